//! The interned texts of all sequences.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::{Context, StringId, Text};

/// An interned string, by its number: that of the conversion plus 1, or [`OTHER`] and its place among the
/// strings without one. A trace may have millions of sequences with a name each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InternedText(NonZeroU32);

/// There are far fewer strings of either kind.
const OTHER: u32 = 1 << 31;

impl InternedText {
    /// The number in the conversion, if it has one.
    #[inline(always)] // for every event
    pub(super) fn id(self) -> Option<StringId> {
        (self.0.get() < OTHER).then(|| StringId(self.0.get() - 1))
    }
}

/// The interned texts, each stored once for all sequences.
#[derive(Debug, Default)]
pub(super) struct SharedTexts {
    numbered: Vec<Option<Arc<str>>>,
    others: Vec<Arc<str>>,
    /// The bytes of the others.
    bytes: usize,
}

/// The limit for the bytes of texts without a number in the conversion.
const MOST_BYTES: usize = 16 << 20;

impl SharedTexts {
    /// Stores a string. Returns `None` if there are too many.
    pub(super) fn intern(&mut self, text: &str, context: &mut Context) -> Option<InternedText> {
        let Some(id) = context.strings.number(text) else {
            self.bytes += text.len() + 64;
            if self.bytes > MOST_BYTES {
                return None;
            }
            self.others.push(text.into());
            return NonZeroU32::new(OTHER | (self.others.len() - 1) as u32).map(InternedText);
        };
        let index = id.0 as usize;
        if index >= self.numbered.len() {
            self.numbered.resize(index + 1, None);
        }
        self.numbered[index].get_or_insert_with(|| text.into());
        NonZeroU32::new(id.0 + 1).map(InternedText)
    }

    /// The string, shared.
    #[inline]
    pub(super) fn get(&self, text: InternedText) -> Option<&Arc<str>> {
        match text.id() {
            Some(id) => self.numbered.get(id.0 as usize)?.as_ref(),
            None => self.others.get((text.0.get() ^ OTHER) as usize),
        }
    }

    #[inline]
    pub(super) fn text(&self, text: InternedText) -> Text<'_> {
        Text { text: self.get(text).map_or("", |text| text), id: text.id() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_with_and_without_a_number_are_found_again() {
        let (mut context, mut texts) = (Context::new(), SharedTexts::default());
        context.strings.limit(200);
        let all = ["a", "b", "c", "d", "c"].map(|text| texts.intern(text, &mut context).unwrap());
        assert_eq!(all.map(|text| texts.text(text).text), ["a", "b", "c", "d", "c"]);
        assert_eq!(
            all.map(|text| text.id()),
            [Some(StringId(0)), Some(StringId(1)), Some(StringId(2)), None, Some(StringId(2))]
        );
    }
}
