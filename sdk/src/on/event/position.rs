//! Where an event is that is not on its thread's own track.

/// Where an event is that is not on its thread's own track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The track.
    pub(crate) uuid: u64,
    /// The time that the event must come after.
    pub(crate) after: u64,
    /// What it is in an FXT trace.
    pub(crate) in_fxt: InFxt,
}

/// What a track is in an FXT trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InFxt {
    /// An async interval, which has records of its own.
    Interval,
    /// A thread, perhaps another one: left to the cold path.
    Thread,
    /// Nothing: what happens there is a packet in a blob.
    Blob,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happens {
    Begin,
    End,
    Instant,
}
