//! The heap profile of a session: who allocated the memory that is live.
//!
//! Threads sample their allocations (`base/heap/profile`). The drain thread unwinds the stacks of the
//! samples, keeps sums by stack, and writes them at new peaks and when the session ends.
//!
//! Unwinding needs packages that not every program should build: the feature `sampling`. Without it the twin
//! has the same functions, and says so.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod present;

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{Profiling, Slot};
#[cfg(feature = "sampling")]
pub(crate) use present::{Profiling, Slot};
