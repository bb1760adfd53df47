//! A session, from its start to its summary.
//!
//! ```text
//! Session (the user's handle) ──┐
//! CURRENT (attach, exit) ───────┼──> Shared ──> drain thread: drain, sink
//! each recording thread ────────┘          └──> flight recorder: recorder thread, snapshots
//! ```
//!
//! [`Shared`](shared::Shared) lives as long as a thread may write into its region. A recording thread
//! releases a stopped session at its next event or at its exit.

pub(crate) mod chunks_for_ends;
#[cfg(feature = "compress")]
pub(crate) mod compress;
pub(crate) mod control;
pub(crate) mod current;
pub(crate) mod descriptors;
pub(crate) mod destination;
pub(crate) mod drain_handle;
pub(crate) mod drain_thread;
pub(crate) mod end;
pub(crate) mod ended_sequences;
pub(crate) mod filter_notes;
pub(crate) mod flight_recorder;
pub(crate) mod hardware;
pub(crate) mod heap_profile;
pub(crate) mod late_ends;
pub(crate) mod naming;
pub(crate) mod open_slices;
pub(crate) mod output;
pub(crate) mod own_files;
pub(crate) mod placeholders;
pub(crate) mod reading;
pub(crate) mod recall;
pub(crate) mod recorder_thread;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod room;
pub(crate) mod rotation;
pub(crate) mod sampling;
pub(crate) mod scheduling;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod slot;
pub(crate) mod snapshot;
pub(crate) mod start;
pub(crate) mod stray;
pub(crate) mod summary;
pub(crate) mod thread_list;
pub(crate) mod trigger;
pub(crate) mod upkeep;
pub(crate) mod without_effect;
