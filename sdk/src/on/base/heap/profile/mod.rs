//! The threads' side of the heap profile: which allocations are sampled, and which frees are theirs.
//!
//! ```text
//! alloc ──> countdown: a subtraction, and a branch that is rarely taken
//!               └──> blocks: the address ──> ring: slot, weight, registers, top of the stack
//! free  ──> blocks: a byte of the filter, rarely a cache line ──> list of freed slots
//! ```
//!
//! It allocates nothing, takes no lock and waits for nobody. Allocations inside of Hairline are not sampled:
//! they find their thread busy. Nor are those of Hairline's own threads. The session's is the only reader.
//!
//! Stacks are unwound with the packages of the feature `sampling`. Without it the twin has the functions for
//! threads.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod blocks;
#[cfg(feature = "sampling")]
mod countdown;
#[cfg(feature = "sampling")]
mod present;

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{
    Countdown, Taken, freed, from_here, leave_in_child, may_have, put_back, sample, take,
};
#[cfg(feature = "sampling")]
pub(crate) use hairline_sampler::from_here;
#[cfg(feature = "sampling")]
pub(crate) use present::{Countdown, Reader, Taken, freed, leave_in_child, may_have, put_back, sample, take};
