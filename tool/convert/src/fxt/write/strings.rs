//! The string table with its 32,767 indices. If all are in use, the index assigned first is assigned again.
//! An index that the current record uses is not, because its text would change before the record is read.

use hairline_formats::fxt::{self, MAX_ARGS, MAX_STRING, MAX_STRING_INDEX, StringRef};

use crate::{Report, StringId, Text};

/// Texts with this number or a larger one are written inline.
const MAX_NUMBERED: usize = 1 << 20;

/// The most indices of one record: category, name, and two texts for each argument.
const MAX_OF_RECORD: usize = 2 + 2 * MAX_ARGS;

/// With more indices in use than this, an index may be reassigned within one record.
const FEW_FREE: usize = MAX_STRING_INDEX as usize - MAX_OF_RECORD;

#[derive(Debug, Default)]
pub(super) struct Strings {
    /// The index of each text; 0 is none.
    index: Vec<u16>,
    /// The text of each index.
    owner: Vec<StringId>,
    /// The latest assigned index.
    last: u16,
    /// The indices of the current record, when few are free.
    in_use: Vec<u16>,
}

impl Strings {
    /// The reference to a text. Writes the record of a new index to `out`.
    #[inline]
    pub(super) fn reference<'a>(
        &mut self,
        text: Text<'a>,
        out: &mut Vec<u8>,
        report: &mut Report,
    ) -> StringRef<'a> {
        match text.id.map(|id| self.index.get(id.0 as usize)) {
            Some(Some(&index)) if index != 0 => {
                if self.owner.len() > FEW_FREE {
                    self.in_use.push(index);
                }
                StringRef::Index(index)
            }
            _ => self.new_reference(text, out, report),
        }
    }

    /// The index of a text, or 0 for the empty text. `None` if the text has none, or if indices may be
    /// reassigned within a record.
    #[inline]
    pub(super) fn known(&self, text: Text<'_>) -> Option<u64> {
        match text.id {
            _ if self.owner.len() > FEW_FREE => None,
            None if text.text.is_empty() => Some(0),
            None => None,
            Some(id) => match *self.index.get(id.0 as usize)? {
                0 => None,
                index => Some(u64::from(index)),
            },
        }
    }

    /// As `known`, for the text of a number plus 1; 0 is no text.
    #[inline]
    pub(super) fn known_number(&self, number: u32) -> Option<u64> {
        if self.owner.len() > FEW_FREE {
            return None;
        }
        let Some(id) = number.checked_sub(1) else { return Some(0) };
        match *self.index.get(id as usize)? {
            0 => None,
            index => Some(u64::from(index)),
        }
    }

    #[cold]
    fn new_reference<'a>(&mut self, text: Text<'a>, out: &mut Vec<u8>, report: &mut Report) -> StringRef<'a> {
        if text.text.is_empty() {
            return StringRef::Empty;
        }
        if text.text.len() > MAX_STRING {
            report.add("texts cut at 32000 bytes");
        }
        match text.id.filter(|id| (id.0 as usize) < MAX_NUMBERED) {
            Some(id) => {
                let index = self.give_out(id);
                fxt::string_record(out, index, text.text);
                StringRef::Index(index)
            }
            None => StringRef::Inline(text.text),
        }
    }

    /// Ends the record. Its indices may be reassigned.
    #[inline]
    pub(super) fn end_record(&mut self) {
        self.in_use.clear();
    }

    fn give_out(&mut self, id: StringId) -> u16 {
        for _ in 0..=MAX_OF_RECORD {
            self.last = if self.last == MAX_STRING_INDEX { 1 } else { self.last + 1 };
            if !self.in_use.contains(&self.last) {
                break;
            }
        }
        if self.owner.len() > FEW_FREE {
            self.in_use.push(self.last);
        }
        match self.owner.get_mut(usize::from(self.last) - 1) {
            Some(owner) => self.index[std::mem::replace(owner, id).0 as usize] = 0,
            None => self.owner.push(id),
        }
        let number = id.0 as usize;
        if number >= self.index.len() {
            self.index.resize(number + 1, 0);
        }
        self.index[number] = self.last;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_used_again_when_all_are_given_out() {
        let (mut strings, mut out, mut report) = (Strings::default(), Vec::new(), Report::default());
        let mut index = |id| {
            let text = Text { text: "x", id: Some(StringId(id)) };
            let before = out.len();
            let reference = strings.reference(text, &mut out, &mut report);
            strings.end_record();
            (reference, out.len() > before)
        };
        for id in 0..40_000 {
            assert!(index(id).1);
            assert!(!index(id).1);
        }
        let last = 40_000 - 32_767;
        assert_eq!(index(39_999), (StringRef::Index(last as u16), false));
        assert_eq!(index(0), (StringRef::Index(last as u16 + 1), true), "it had lost its index");
    }
}
