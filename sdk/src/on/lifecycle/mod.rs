//! How recording begins and ends with the process: the environment, exit, fork, signals. It calls sessions, and is never
//! called by them.

#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) mod asked;
pub(crate) mod connect;
pub(crate) mod entry;
pub(crate) mod env;
pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod inherited;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod start;
