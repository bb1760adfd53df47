//! The state of a TrackEvent writer.

use crate::Report;
use crate::nesting::Nesting;
use crate::readings::Readings;
use crate::track_event::stacks::Stacks;
use crate::track_event::write::flow_names::FlowNames;
use crate::track_event::write::flows::Flows;
use crate::track_event::write::scheduled::Scheduled;
use crate::track_event::write::sequence::{Locations, Sequence};
use crate::track_event::write::tracks::Tracks;

/// The number of bytes written at once.
pub(super) const GATHERED: usize = 256 * 1024;

/// The state of a TrackEvent writer, without its output.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) out: Vec<u8>,
    pub(super) report: Report,
    pub(super) tracks: Tracks,
    /// The general sequence, then those of the threads.
    pub(super) sequences: Vec<Sequence>,
    /// The index of the sequence of the latest thread.
    pub(super) current: usize,
    pub(super) locations: Locations,
    /// Encoded fields of the current event.
    pub(super) fields: Vec<u8>,
    /// The latest time written.
    pub(super) time: u64,
    pub(super) lost: u64,
    pub(super) has_uuid: bool,
    pub(super) readings: Readings,
    pub(super) flows: Flows,
    pub(super) nesting: Nesting,
    pub(super) scheduled: Scheduled,
    pub(super) stacks: Stacks,
    pub(super) flow_names: FlowNames,
    /// Several categories as one text.
    pub(super) joined: String,
}
