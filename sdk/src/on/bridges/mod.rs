//! Bridges that record the events of other crates: spans of `tracing`, messages of `log`, futures.

pub(crate) mod futures;
#[cfg(feature = "log")]
pub(crate) mod log;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
