//! The string table: texts that have a number get an index, of which there are 32,767. When all are in use, the one that was given out
//! first is given out anew.

use hairline_formats::fxt::{self, MAX_STRING, MAX_STRING_INDEX, StringRef};

use crate::{Report, StringId, Text};

/// Texts with numbers from here on are written in full.
const MAX_NUMBERED: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Strings {
    /// The index of each text; 0 is none.
    index: Vec<u16>,
    /// Whose each index is.
    owner: Vec<StringId>,
    /// The index that was given out last.
    last: u16,
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
            Some(Some(&index)) if index != 0 => StringRef::Index(index),
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

    fn give_out(&mut self, id: StringId) -> u16 {
        self.last = if self.last == MAX_STRING_INDEX { 1 } else { self.last + 1 };
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
