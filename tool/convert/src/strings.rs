//! The strings of a conversion, each kept once.

use std::collections::HashMap;

/// The number of a string in one conversion: from 0, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

impl StringId {
    /// The interning id of the string in [`Value::Interned`](hairline_formats::Value): its number plus 1.
    #[inline]
    pub(crate) fn iid(self) -> u64 {
        u64::from(self.0) + 1
    }

    /// The string with an interning id. Returns `None` for 0 and for ids beyond 32 bits.
    #[inline]
    pub(crate) fn of_iid(iid: u64) -> Option<Self> {
        iid.checked_sub(1).and_then(|id| u32::try_from(id).ok()).map(Self)
    }
}

/// A string, with its number if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    /// The text.
    pub text: &'a str,
    /// The number.
    pub id: Option<StringId>,
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, id: None }
    }
}

/// Strings that occur many times, each stored once.
///
/// ```
/// use hairline_convert::Strings;
///
/// let mut strings = Strings::default();
/// let read = strings.number("read").unwrap();
/// assert_eq!(strings.number("read"), Some(read)); // stored once
/// assert_eq!((strings.get(read), strings.text(read).id), ("read", Some(read)));
/// ```
#[derive(Clone, Debug)]
pub struct Strings {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, StringId>,
    /// The number of a recent text, by its [`slot`]. It spares nearly all searches in `ids`, whose hash is
    /// safe against made-up texts, but takes as long as the rest of reading an event.
    recent: Box<[StringId; RECENT]>,
    /// The number of the empty text plus 1, once it has one.
    empty: u32,
    bytes: usize,
    /// The limit for the bytes of all strings. Strings beyond it get no number.
    most_bytes: usize,
}

const RECENT: usize = 1 << 11;

/// The place of a text among the recent ones: by its length, and its first and last eight bytes.
#[inline]
fn slot(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0),
    };
    // Fibonacci hashing: the multiplier spreads texts that differ in few bits.
    let mixed = (first ^ last.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 53) as usize % RECENT
}

impl Default for Strings {
    fn default() -> Self {
        Self::with_limit(16 << 20)
    }
}

impl Strings {
    /// Changes the limit for the bytes of all strings.
    pub(crate) fn limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
    }

    pub(crate) fn with_limit(most_bytes: usize) -> Self {
        let recent = Box::new([StringId(u32::MAX); RECENT]);
        Self { texts: Vec::new(), ids: HashMap::new(), recent, empty: 0, bytes: 0, most_bytes }
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the number of `text`, and assigns one if it is new. Returns `None` if the limit for all
    /// strings is reached.
    #[inline]
    pub fn number(&mut self, text: &str) -> Option<StringId> {
        let slot = slot(text);
        let id = self.recent[slot];
        match self.texts.get(id.0 as usize) {
            Some(known) if **known == *text => Some(id),
            _ => {
                let id = self.search(text)?;
                self.recent[slot] = id;
                Some(id)
            }
        }
    }

    fn search(&mut self, text: &str) -> Option<StringId> {
        if let Some(id) = self.ids.get(text) {
            return Some(*id);
        }
        let id = StringId(u32::try_from(self.texts.len()).ok()?);
        self.bytes += 2 * text.len() + 64;
        if self.bytes > self.most_bytes {
            return None;
        }
        if text.is_empty() {
            self.empty = id.0.checked_add(1)?;
        }
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        Some(id)
    }

    /// Whether this is the number of the empty text, plus 1, or 0, which stands for no text.
    #[inline]
    pub(crate) fn is_empty_text(&self, number: u32) -> bool {
        number == 0 || number == self.empty
    }

    /// Returns the string with a number, or "" if there is none.
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// Returns the string with a number, and the number itself.
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
