//! The string table: texts that have a number get an index, of which there are 32,767. When all are in use, the one that was given out
//! first is given out anew, but not one that the record at hand has already: it would mean another text before the record is read.

use hairline_formats::fxt::{self, MAX_ARGS, MAX_STRING, MAX_STRING_INDEX, StringRef};

use crate::report::Report;
use crate::strings::{StringId, Text};

/// Texts with numbers from here on are written in full.
const MAX_NUMBERED: usize = 1 << 20;

/// Indices that one record takes at the most: category, name, and both texts of each argument.
const MAX_OF_RECORD: usize = 2 + 2 * MAX_ARGS;

/// Where so many indices have an owner, one that a record took first may be given out anew before its end.
const FEW_FREE: usize = MAX_STRING_INDEX as usize - MAX_OF_RECORD;

#[derive(Debug, Default)]
pub(super) struct Strings {
    /// The index of each text; 0 is none.
    index: Vec<u16>,
    /// Whose each index is.
    owner: Vec<StringId>,
    /// The index that was given out last.
    last: u16,
    /// Those of the record at hand, once there are few that nobody has.
    in_use: Vec<u16>,
}

impl Strings {
    /// How a record names a text: the index's own record goes before it into `out`.
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

    /// The record is written: its indices may mean something else.
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
        let place = id.0 as usize;
        if place >= self.index.len() {
            self.index.resize(place + 1, 0);
        }
        self.index[place] = self.last;
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
