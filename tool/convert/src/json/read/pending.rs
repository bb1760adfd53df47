//! The queue of items.

use crate::{EventKind, TrackId};

/// An item that the reader returns next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    Trace,
    /// The track with this index.
    Track(usize),
    Event(i64, TrackId, EventKind),
    /// An event without name, categories and arguments.
    Bare(i64, TrackId, EventKind),
    Foreign(&'static str),
}
