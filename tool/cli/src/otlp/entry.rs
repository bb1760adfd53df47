//! The events of a track, before they are spans.

use crate::otlp::attribute::Attributes;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Begin,
    End,
    Complete(i64),
    Instant,
    /// A flow through the open slice.
    Flow,
}

/// An event of a track.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) time: i64,
    /// The place among all events of the trace, whatever is chosen.
    pub(super) number: u64,
    pub(super) change: Change,
    pub(super) name: String,
    pub(super) is_chosen: bool,
    pub(super) attributes: Attributes,
    /// With whether the flow begins there, if that is known.
    pub(super) flows: Vec<(u64, bool)>,
    pub(super) is_failed: bool,
}

/// A track and its events.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) process: usize,
    pub(super) thread: Option<(u64, String)>,
    pub(super) all: Vec<Entry>,
}
