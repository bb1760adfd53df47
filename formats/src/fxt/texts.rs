//! Inline texts of events that are not UTF-8. The format demands UTF-8, but writers in C and C++ do not
//! check, and importers show such texts with U+FFFD in the place of what is wrong.

use std::borrow::Cow;

use crate::fxt::cursor::Cursor;
use crate::fxt::field::Field;
use crate::fxt::layout::{
    ArgumentType, MAX_RECORD_WORDS, MAX_STRING, RecordType, argument, event, record, string_ref,
};
use crate::fxt::put::PutWords;
use crate::text::truncate_utf8;

/// An event whose inline texts are UTF-8: its category and name, the names and texts of its arguments.
struct Valid {
    words: Vec<u8>,
    /// The texts that were not.
    wrong: u64,
}

/// Returns an event whose inline texts are not all UTF-8, with U+FFFD in the place of what is wrong, and the
/// number of such texts. `None` for any other record, and for an event that would be too long.
pub(super) fn valid_texts(bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
    let header = u64::from_le_bytes(*bytes.first_chunk()?);
    let is_inline = |field: Field| string_ref::INLINE.get(field.get(header)) != 0;
    let has_texts = is_inline(event::CATEGORY) || is_inline(event::NAME) || event::ARGS.get(header) > 0;
    if record::TYPE.get(header) != RecordType::Event as u64 || !has_texts {
        return None;
    }
    if are_valid(header, bytes)? {
        return None;
    }
    let mut valid = Valid { words: Vec::new(), wrong: 0 };
    valid.event(header, bytes)?;
    Some((valid.words, valid.wrong))
}

/// Whether all inline texts of an event are UTF-8, as nearly always. `None` if they are not in the record.
fn are_valid(header: u64, bytes: &[u8]) -> Option<bool> {
    let is_valid = |bits: u64, cursor: &mut Cursor<'_>| {
        let is_inline = string_ref::INLINE.get(bits) != 0;
        let text = is_inline.then(|| cursor.stream(string_ref::LENGTH.get(bits), "a text").ok());
        text.map_or(Some(true), |text| Some(std::str::from_utf8(text?).is_ok()))
    };
    let fixed = if event::THREAD.get(header) == 0 { 4 } else { 2 };
    let mut cursor = Cursor::new(bytes.get(8 * fixed..)?, 0);
    let mut are_valid = is_valid(event::CATEGORY.get(header), &mut cursor)?;
    are_valid &= is_valid(event::NAME.get(header), &mut cursor)?;
    for _ in 0..event::ARGS.get(header) {
        let (header, mut body) = cursor.argument().ok()?;
        are_valid &= is_valid(argument::NAME.get(header), &mut body)?;
        if argument::TYPE.get(header) == ArgumentType::String as u64 {
            are_valid &= is_valid(argument::STRING.get(header), &mut body)?;
        }
    }
    Some(are_valid)
}

impl Valid {
    fn event(&mut self, header: u64, bytes: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(bytes, 0);
        let inline_thread = if event::THREAD.get(header) == 0 { 2 } else { 0 };
        for _ in 0..2 + inline_thread {
            self.words.word(cursor.word("a word").ok()?);
        }
        let category = self.text(event::CATEGORY.get(header), &mut cursor)?;
        let name = self.text(event::NAME.get(header), &mut cursor)?;
        for _ in 0..event::ARGS.get(header) {
            let (header, mut body) = cursor.argument().ok()?;
            let start = self.words.len();
            self.words.word(header);
            let name = self.text(argument::NAME.get(header), &mut body)?;
            let mut fields = vec![(argument::NAME, name)];
            if argument::TYPE.get(header) == ArgumentType::String as u64 {
                fields.push((argument::STRING, self.text(argument::STRING.get(header), &mut body)?));
            }
            self.words.extend_from_slice(body.rest());
            fields.push((argument::SIZE, ((self.words.len() - start) / 8) as u64));
            self.set(start, &fields)?;
        }
        self.words.extend_from_slice(cursor.rest());
        let size = self.words.len() / 8;
        let is_small = size <= MAX_RECORD_WORDS;
        let fields = [(event::CATEGORY, category), (event::NAME, name), (record::SIZE, size as u64)];
        is_small.then(|| self.set(0, &fields))?
    }

    /// Copies the text of a reference, and returns its bits.
    fn text(&mut self, bits: u64, cursor: &mut Cursor<'_>) -> Option<u64> {
        if string_ref::INLINE.get(bits) == 0 {
            return Some(bits);
        }
        let bytes = cursor.stream(string_ref::LENGTH.get(bits), "a text").ok()?;
        let text = String::from_utf8_lossy(bytes);
        self.wrong += u64::from(matches!(text, Cow::Owned(_)));
        let text = truncate_utf8(&text, MAX_STRING);
        self.words.stream(text.as_bytes());
        Some(string_ref::INLINE.set(1) | string_ref::LENGTH.set(text.len() as u64))
    }

    /// Sets fields of the word at a place. `None` if one is too narrow.
    fn set(&mut self, at: usize, fields: &[(Field, u64)]) -> Option<()> {
        let bytes = self.words.get_mut(at..)?.first_chunk_mut()?;
        let mut word = u64::from_le_bytes(*bytes);
        for (field, value) in fields {
            if *value > field.max() {
                return None;
            }
            word = word & !field.set(u64::MAX) | field.set(*value);
        }
        *bytes = word.to_le_bytes();
        Some(())
    }
}
