//! Bridges that record the events of other crates: spans of `tracing`, messages of `log`, futures and tasks;
//! calls of the allocator.

pub(crate) mod futures;
pub(crate) mod heap;
#[cfg(feature = "sync")]
pub(crate) mod hooked;
#[cfg(feature = "sync")]
pub(crate) mod locks;
#[cfg(feature = "log")]
pub(crate) mod log;
mod long_polls;
#[cfg(any(feature = "log", feature = "subscriber"))]
mod messages;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod polled;
#[cfg(feature = "sync")]
pub(crate) mod roots;
pub(crate) mod tasks;
pub(crate) mod trace_future;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
