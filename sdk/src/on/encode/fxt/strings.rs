//! The strings of a sequence of FXT records: each is written before the first event that refers to its index.

use hairline_formats::fxt;

use crate::on::base::sets::Bits;
use crate::on::callsite::{Callsite, Key, StringId};
use crate::on::encode::cut;
use crate::on::encode::fxt::record::fits_string_record;
use crate::on::encode::sequence::interned_values;
use crate::on::event::Event;

/// The strings of a sequence, by their index.
#[derive(Debug, Default)]
pub(crate) struct Strings(Bits);

impl Strings {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of strings of a callsite.
    pub(crate) fn count(callsite: &'static Callsite) -> usize {
        2 + callsite.keys().len()
    }

    /// Writes the missing strings of a callsite: all of them, or only number `which`.
    pub(crate) fn put(&self, out: &mut Vec<u8>, callsite: &'static Callsite, which: Option<usize>) {
        let keys = callsite.keys().iter().map(|k| (k.id(), k.name()));
        let own = [(callsite.category_id(), callsite.category()), (callsite.name_id(), callsite.name())];
        for (n, (id, text)) in own.into_iter().chain(keys).enumerate() {
            if which.is_none_or(|which| which == n) {
                self.put_string(out, id, text);
            }
        }
    }

    /// All strings of the callsite are in the chunk.
    pub(crate) fn set_written(&mut self, callsite: &'static Callsite) {
        let keys = callsite.keys().iter().map(Key::id);
        for id in [callsite.category_id(), callsite.name_id()].into_iter().chain(keys) {
            if let Some(index) = id.index() {
                self.0.insert(u32::from(index));
            }
        }
    }

    /// Writes the strings that the event's values refer to. `written` has the values that are in the
    /// sequence.
    pub(crate) fn put_values(&self, out: &mut Vec<u8>, event: &Event<'_>, written: &Bits) {
        for (id, text) in interned_values(event) {
            if !written.contains(id.0) && fits_string_record(text) {
                self.put_string(out, id, text);
            }
        }
    }

    /// Writes the record of a string, if the string has an index and no record yet.
    fn put_string(&self, out: &mut Vec<u8>, id: StringId, text: &str) {
        if let Some(index @ 1..) = id.index()
            && !self.0.contains(u32::from(index))
        {
            fxt::string_record(out, index, cut(text));
        }
    }
}
