//! What is to be given out next.

use crate::model::{EventKind, TrackId};

/// What is to be given out next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    Trace,
    /// The track in this place.
    Track(usize),
    Event(i64, TrackId, EventKind),
    /// Of an event nothing but this.
    Bare(i64, TrackId, EventKind),
    Foreign(&'static str),
}
