//! The queue of items.

use crate::Loss;

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
