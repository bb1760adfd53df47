//! Keys for names and categories. Equal texts have one key, with or without a number in the conversion.

use crate::{Categories, StringId, Strings, Text};

/// The key of a text: from 0, without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u32);

impl Key {
    /// The empty text: no name, or no category.
    pub const NONE: Self = Self(0);
    /// All texts beyond the limit.
    pub const OTHER: Self = Self(1);
}

/// Texts and their keys.
///
/// ```
/// use hairline_convert::Categories;
/// use hairline_convert::slices::{Key, Keys};
///
/// let mut keys = Keys::default();
/// let read = keys.key("read".into());
/// assert_eq!((keys.key("read".into()), keys.text(read)), (read, "read"));
/// assert_eq!(keys.key("".into()), Key::NONE);
/// assert_eq!(keys.categories(&Categories::One("read".into())), read); // one key for equal texts
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    texts: Strings,
    /// The keys by string number, or [`UNKNOWN`].
    by_id: Vec<u32>,
    joined: String,
    /// How often a text got no key of its own.
    left_out: u64,
}

const UNKNOWN: u32 = u32::MAX;
/// The limit for the bytes of texts with a key of their own. Further texts share [`Key::OTHER`].
const MOST_BYTES: usize = 8 << 20;

impl Default for Keys {
    fn default() -> Self {
        let mut texts = Strings::with_limit(MOST_BYTES);
        for text in ["", "(others)"] {
            texts.number(text);
        }
        Self { texts, by_id: Vec::new(), joined: String::new(), left_out: 0 }
    }
}

impl Keys {
    /// Returns the key of a text, and assigns one if it is new.
    #[inline]
    pub fn key(&mut self, text: Text<'_>) -> Key {
        if text.text.is_empty() {
            return Key::NONE;
        }
        match text.id {
            Some(id) => match self.by_id.get(id.0 as usize) {
                Some(&key) if key != UNKNOWN => Key(key),
                _ => self.first(id.0 as usize, text.text),
            },
            None => self.by_text(text.text),
        }
    }

    /// The key of the text with a number, which is given plus 1; 0 for none.
    #[inline]
    pub(super) fn numbered(&mut self, number: u32, strings: &Strings) -> Key {
        let Some(id) = number.checked_sub(1) else { return Key::NONE };
        match self.by_id.get(id as usize) {
            Some(&key) if key != UNKNOWN => Key(key),
            _ => self.first(id as usize, strings.get(StringId(id))),
        }
    }

    /// As `numbered`, for a text that has a key already.
    #[inline(always)] // for every event
    pub(super) fn known(&self, number: u32) -> Option<Key> {
        let Some(id) = number.checked_sub(1) else { return Some(Key::NONE) };
        self.by_id.get(id as usize).filter(|key| **key != UNKNOWN).map(|key| Key(*key))
    }

    #[cold]
    fn first(&mut self, id: usize, text: &str) -> Key {
        let key = self.by_text(text);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, UNKNOWN);
        }
        self.by_id[id] = key.0;
        key
    }

    fn by_text(&mut self, text: &str) -> Key {
        if let Some(number) = self.texts.number(text) {
            return Key(number.0);
        }
        self.left_out += 1;
        Key::OTHER
    }

    /// Changes the limit for the bytes of texts with a key of their own: 8 MiB at first.
    pub fn limit(&mut self, bytes: usize) {
        self.texts.limit(bytes);
    }

    /// How often a text beyond the limit was replaced by [`Key::OTHER`]. A text with a number counts once.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the key of an event's categories. Several categories are joined with commas.
    #[inline]
    pub fn categories(&mut self, categories: &Categories<'_>) -> Key {
        match categories {
            Categories::None => Key::NONE,
            Categories::One(text) => self.key(*text),
            Categories::Many(_) => {
                let mut joined = std::mem::take(&mut self.joined);
                categories.join(&mut joined);
                let key = self.key(joined.as_str().into());
                self.joined = joined;
                key
            }
        }
    }

    /// Returns the text of a key.
    #[must_use]
    pub fn text(&self, key: Key) -> &str {
        self.texts.get(StringId(key.0))
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Always `false`, because the empty text has a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_key_with_a_number_and_without() {
        let mut keys = Keys::default();
        let with = keys.key(Text { text: "read", id: Some(StringId(7)) });
        assert_eq!((keys.key("read".into()), keys.text(with)), (with, "read"));
        assert_eq!(keys.key("".into()), Key::NONE);
    }

    #[test]
    fn several_categories_are_one_text() {
        let mut keys = Keys::default();
        let texts: &[Text<'_>] = &["net".into(), "io".into()];
        let key = keys.categories(&Categories::Many(&texts));
        assert_eq!(keys.text(key), "net,io");
    }

    #[test]
    fn memory_is_bounded() {
        let mut keys = Keys::default();
        let long = "x".repeat(1 << 20);
        let told_apart = (0..100).filter(|n| keys.key(format!("{n}{long}").as_str().into()) != Key::OTHER);
        assert_eq!(told_apart.count(), 3);
        assert_eq!(keys.key("new".into()), Key::OTHER);
        assert_eq!(keys.left_out(), 98);
    }
}
