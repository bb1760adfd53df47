//! The position of an event on a track that is not its thread's own.

use hairline_formats::track_event::TrackUuid;

/// The position of an event on a track that is not its thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The uuid of the track.
    pub(crate) uuid: TrackUuid,
    /// The time that the event must come after.
    pub(crate) after: u64,
    /// The form of the track in an FXT trace.
    pub(crate) in_fxt: InFxt,
}

/// The form of a track in an FXT trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InFxt {
    /// An async interval, which has records of its own.
    Interval,
    /// A thread, perhaps another one: only the cold path writes it.
    Thread,
    /// No track of FXT: each event is a TrackEvent packet in a blob.
    Blob,
}

/// The type of an event on such a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackAction {
    Begin,
    End,
    Instant,
}
