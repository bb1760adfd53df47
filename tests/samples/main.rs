//! Samples of call stacks: their shares are those of the CPU time, and their functions and lines those of the
//! source, before the judge.

mod programs;
mod record;
