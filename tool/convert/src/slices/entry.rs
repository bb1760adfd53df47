//! An event that changes which slices are open, or lies in them.

use crate::TrackId;
use crate::slices::keys::Key;
use crate::window::Timed;

/// The begin of a slice, its end, or both; or a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) change: Change,
    pub(super) name: Key,
    pub(super) category: Key,
    /// The caller's number of the event, or 0.
    pub(super) tag: u32,
}

impl Timed for Entry {
    fn time(&self) -> i64 {
        self.time
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Begin,
    End,
    Complete {
        duration: i64,
    },
    /// A moment of which the sink wants to know the slices around it.
    Point,
}
