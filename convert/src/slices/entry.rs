//! An event that changes which slices are open.

use crate::TrackId;
use crate::slices::keys::Key;

/// The begin of a slice, its end, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) change: Change,
    pub(super) name: Key,
    pub(super) category: Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Begin,
    End,
    Complete { duration: i64 },
}
