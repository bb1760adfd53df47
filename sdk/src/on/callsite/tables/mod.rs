//! Tables of the callsites that are created for events of other crates. The tables are in this layer, below
//! the bridges that fill them, because a fork holds their locks.

#[cfg(any(feature = "log", feature = "subscriber"))]
pub(crate) mod messages;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
