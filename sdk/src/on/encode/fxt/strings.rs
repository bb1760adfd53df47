//! The strings of a sequence of FXT records: each is written before the first event that refers to its index.

use hairline_formats::fxt;

use crate::on::base::memory::Bytes;
use crate::on::base::sets::Bits;
use crate::on::callsite::{Callsite, Key, StringId, registry};
use crate::on::encode::cut;
use crate::on::encode::fxt::record::{fits_string_record, location};
use crate::on::encode::sequence::interned_values;
use crate::on::event::Event;

/// The strings of a sequence.
#[derive(Debug)]
pub(crate) struct Strings {
    /// Those that are written, by their index.
    written: Bits,
    /// Whether a callsite has its place in the source as a string too.
    are_located: bool,
}

/// A place in the source that is no string of its own, since it is too long or the strings are too many.
const NO_STRING: StringId = StringId(u32::MAX);

/// Returns the string id of the place of a callsite in the source. Interns it at the first call. Call it on a
/// thread in an event of its own.
fn location_id(callsite: &'static Callsite) -> StringId {
    let known = callsite.location_id();
    if !known.is_none() {
        return known;
    }
    let text = location(callsite);
    let text = text.as_str();
    let id = if !fits_string_record(text) { NO_STRING } else { registry::intern(text) };
    callsite.set_location_id(id);
    id
}

impl Strings {
    pub(crate) fn new(are_located: bool) -> Self {
        Self { written: Bits::default(), are_located }
    }

    pub(crate) fn clear(&mut self) {
        self.written.clear();
    }

    /// Returns the number of strings of a callsite.
    pub(crate) fn count(&self, callsite: &'static Callsite) -> usize {
        2 + callsite.keys().len() + usize::from(self.are_located)
    }

    /// Writes the missing strings of a callsite: all of them, or only number `which`.
    pub(crate) fn put(&self, out: &mut Bytes, callsite: &'static Callsite, which: Option<usize>) {
        let keys = callsite.keys().iter().map(|k| (k.id(), k.name()));
        let own = [(callsite.category_id(), callsite.category()), (callsite.name_id(), callsite.name())];
        for (n, (id, text)) in own.into_iter().chain(keys).enumerate() {
            if which.is_none_or(|which| which == n) {
                self.put_string(out, id, text);
            }
        }
        if self.are_located && which.is_none_or(|which| which == 2 + callsite.keys().len()) {
            self.put_string(out, location_id(callsite), location(callsite).as_str());
        }
    }

    /// All strings of the callsite are in the chunk.
    pub(crate) fn set_written(&mut self, callsite: &'static Callsite) {
        let keys = callsite.keys().iter().map(Key::id);
        let location = self.are_located.then(|| callsite.location_id());
        for id in [callsite.category_id(), callsite.name_id()].into_iter().chain(keys).chain(location) {
            if let Some(index) = id.index() {
                self.written.insert(u32::from(index));
            }
        }
    }

    /// Writes the strings that the event's values refer to. `written` has the values that are in the
    /// sequence.
    pub(crate) fn put_values(&self, out: &mut Bytes, event: &Event<'_>, written: &Bits) {
        for (id, text) in interned_values(event) {
            if !written.contains(id.0) && fits_string_record(text) {
                self.put_string(out, id, text);
            }
        }
    }

    /// Writes the record of a string, if the string has an index and no record yet.
    fn put_string(&self, out: &mut Bytes, id: StringId, text: &str) {
        if let Some(index @ 1..) = id.index()
            && !self.written.contains(u32::from(index))
        {
            fxt::string_record(out, index, cut(text));
        }
    }
}
