//! What the reader has read and returns next.

use crate::{EventKind, Loss, TrackId};

/// An item that the reader returns next. Its content is in the state.
#[derive(Debug)]
pub(super) enum Pending {
    Track(u32),
    Event,
    /// The end of the state that lasted on the current event's track.
    StateEnd,
    Loss(Loss),
    Uuid(u128),
    System,
    Clocks,
    Scheduling,
    Sample,
    /// By index in the current packet.
    Symbols(usize),
    /// By index in the current dumps.
    Heap(usize),
    Foreign(&'static str),
    Copied,
}

/// An event with interned ids, its time and its track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interned {
    /// The index of its packet sequence.
    pub(super) sequence: usize,
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    pub(super) name: u64,
    pub(super) category: u64,
    /// The counter whose categories apply if the event has none.
    pub(super) counter: Option<u32>,
    pub(super) has_args: bool,
}
