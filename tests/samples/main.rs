//! Samples of call stacks: their shares are those of the CPU time, and their functions and lines those of the
//! source, before the judge.

#[allow(dead_code, unsafe_code, unreachable_pub, missing_docs, clippy::all)] // a program of its own
mod burn;
mod clock;
mod events;
mod killed;
mod pointers;
mod profiles;
mod programs;
mod record;
mod recorder;
mod refused;
mod rotated;
mod session;
mod together;
mod truth;

/// A process has one session at a time.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
