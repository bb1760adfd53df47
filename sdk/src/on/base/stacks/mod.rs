//! The threads' side of the stacks of events: a thread copies its registers and the top of its stack into a
//! ring when it records an event that is to have a stack, and when a slice of it is slow.
//!
//! It allocates nothing, takes no lock and waits for nobody. The session's own thread is the only reader, and
//! a thread of its own watches the open slices that may become slow.
//!
//! Stacks are unwound with the packages of the feature `sampling`. Without it the twin has the functions for
//! threads.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod present;

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{Watched, leave_in_child, take, unwatch, unwatch_begun, watch};
#[cfg(feature = "sampling")]
pub(crate) use present::{Reader, Watched, are_taken, leave_in_child, take, unwatch, unwatch_begun, watch};
