//! The callsites that are made for the events of other crates. Their tables stand here, and not beside what fills them,
//! since a fork holds their locks.

#[cfg(feature = "log")]
pub(crate) mod log;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
