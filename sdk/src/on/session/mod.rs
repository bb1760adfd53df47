//! A session: from its start to its summary.
//!
//! ```text
//! Session (the user's handle) ──┐
//! CURRENT (attach, exit) ───────┼──> Shared: region, clock, wake-up, requests ──> drain thread: drain, sink
//! each recording thread ────────┘
//! ```
//!
//! [`Shared`](shared::Shared) lives as long as anyone who may still write into its region: a thread lets go of a stopped
//! session at its next event or at its exit.

#[cfg(feature = "compress")]
pub(crate) mod compress;
pub(crate) mod current;
pub(crate) mod drain_thread;
pub(crate) mod end;
pub(crate) mod late;
pub(crate) mod open_slices;
pub(crate) mod output;
pub(crate) mod panics;
pub(crate) mod recall;
pub(crate) mod recorder;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod room;
pub(crate) mod rotation;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod snapshot;
pub(crate) mod start;
pub(crate) mod stray;
pub(crate) mod trigger;
pub(crate) mod upkeep;
pub(crate) mod window;
