//! What holds for a whole conversion: the numbers of strings and tracks, and which numbers of its inputs mean the same.

use std::collections::HashMap;

use crate::model::{Text, TrackId};

/// The number of a string, from 0, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

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

/// Strings that come again and again, each once, by their numbers.
#[derive(Debug, Default)]
pub struct Strings {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, StringId>,
    bytes: usize,
}

/// Bytes of strings that are kept; those that come later have no number.
const MOST_BYTES: usize = 16 << 20;

impl Strings {
    /// The number of `text`, which it is given if it has none. None: there are too many already.
    pub fn number(&mut self, text: &str) -> Option<StringId> {
        if let Some(id) = self.ids.get(text) {
            return Some(*id);
        }
        let id = StringId(u32::try_from(self.texts.len()).ok()?);
        self.bytes += 2 * text.len() + 64;
        if self.bytes > MOST_BYTES {
            return None;
        }
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        Some(id)
    }

    /// The string of a number; "" for one that was not given out.
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// The string of a number, with it.
    #[must_use]
    pub fn text(&self, id: StringId) -> Text<'_> {
        Text { text: self.get(id), id: Some(id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_number() {
        let mut strings = Strings::default();
        let (a, b) = (strings.number("a").unwrap(), strings.number("b").unwrap());
        assert_eq!((strings.number("a"), strings.get(b), strings.get(StringId(9))), (Some(a), "b", ""));
    }

    #[test]
    fn memory_is_bounded() {
        let mut strings = Strings::default();
        let long = "x".repeat(1 << 20);
        let numbered = (0..100).filter(|n| strings.number(&format!("{n}{long}")).is_some()).count();
        assert_eq!(numbered, 7);
        assert!(strings.number("y").is_none(), "and stays so");
    }
}
