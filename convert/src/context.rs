//! What holds for a whole conversion: the numbers of strings and tracks, and which numbers of its inputs mean the same.

use crate::model::TrackId;
use crate::strings::Strings;

/// What all readers of a conversion share.
#[derive(Debug, Default)]
pub struct Context {
    /// The strings so far.
    pub strings: Strings,
    tracks: u32,
    /// Inputs before the one that is read.
    inputs: u32,
    /// Processes and threads that have no number in their input.
    unnumbered: u32,
}

/// The first number for a process or thread that has only a name: no kernel counts that far, and it has 32 bits in every format.
const FIRST_MADE: u64 = 1 << 30;

impl Context {
    /// Nothing is numbered yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A number for a track.
    pub fn new_track(&mut self) -> TrackId {
        let id = TrackId(self.tracks);
        self.tracks += 1;
        id
    }

    /// What is read from here on is another input, to become one trace with those before it.
    pub fn next_input(&mut self) {
        self.inputs += 1;
    }

    /// The number of an input's flow. Random ones mean the same flow wherever they are; one that an input has counted up to is its own.
    #[inline]
    pub(crate) fn flow(&self, id: u64) -> u64 {
        if id <= u64::from(u32::MAX) { id | u64::from(self.inputs) << 32 } else { id }
    }

    /// A number for a process or thread that has only a name.
    pub(crate) fn new_owner(&mut self) -> u64 {
        let number = FIRST_MADE + u64::from(self.unnumbered);
        self.unnumbered += 1;
        number
    }
}
