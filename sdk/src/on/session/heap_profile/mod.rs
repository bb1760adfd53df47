//! The heap profile of a session: who allocated the memory that is live.
//!
//! Threads sample their allocations (`base/heap/profile`). The session's own thread unwinds the stacks of the
//! samples and keeps sums by stack:
//!
//! ```text
//! samples ──> sums by stack ──> at new peaks and at the session's end: what the present file lacks
//!                           ──> at the end of each file of a rotation: the same; then functions, by a thread
//!                           ──> a flight recorder: the last peak is kept; a snapshot has it, and its moment
//!                           ──> every 100 ms what has changed to the region's tape: for recovery after a kill
//! ```
//!
//! Unwinding needs packages that not every program should build: the feature `sampling`. Without it the twin
//! has the same functions, and says so.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod kept;
#[cfg(feature = "sampling")]
mod present;

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{Profiling, TAPE_BYTES, put_window};
#[cfg(feature = "sampling")]
pub(crate) use present::{Profiling, TAPE_BYTES, put_window};

/// In how many traces a session writes its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    One,
    /// The files of a rotation, or snapshots: several threads write.
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    Several,
}
