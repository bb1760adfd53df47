//! The start and the end of recording with the process: the environment, exit, fork, signals.
//!
//! This layer calls sessions. Sessions never call this layer.

pub(crate) mod connect;
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) mod enabled;
pub(crate) mod entry;
pub(crate) mod env;
pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod inherited;
pub(crate) mod join;
pub(crate) mod listen;
pub(crate) mod panics;
pub(crate) mod place;
pub(crate) mod process_counters;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod socket;
pub(crate) mod start;
pub(crate) mod traced;
