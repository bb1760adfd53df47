//! The strings of a sequence: each is told before the first event that means it by its number.

use hairline_formats::track_event as te;
use hairline_formats::track_event::Interned;
use hairline_formats::{Value, fxt};

use crate::on::base::few::Few;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, CallsiteKind, Key};
use crate::on::encode::cut;
use crate::on::encode::fxt::record;
use crate::on::encode::sequence::{Sequence, location_iid};
use crate::on::encode::track_event::packet;
use crate::on::event::Event;

impl Sequence {
    /// The strings that this callsite needs and this sequence does not have yet: all of them, or only number `which`.
    pub(crate) fn put_strings(&self, out: &mut Vec<u8>, callsite: &'static Callsite, which: Option<usize>) {
        if self.told_callsites.contains(callsite.serial()) {
            return;
        }
        let wanted = |n: usize| which.is_none_or(|which| which == n);
        if self.is_track_event() {
            self.put_interned(out, callsite, wanted);
        } else {
            self.put_string_records(out, callsite, wanted);
        }
    }

    /// How many strings [`put_strings`](Self::put_strings) may have to write.
    pub(crate) fn string_count(callsite: &'static Callsite) -> usize {
        callsite.categories().count() + 3 + callsite.keys().len()
    }

    /// All of the callsite's strings stand in the sequence.
    pub(crate) fn set_seen(&mut self, hot: &Hot, callsite: &'static Callsite) {
        if self.told_callsites.insert(callsite.serial()) {
            let keys = callsite.keys().iter().map(Key::id);
            for id in [callsite.category_id(), callsite.name_id()].into_iter().chain(keys) {
                if id <= u32::from(fxt::MAX_STRING_INDEX) || self.is_track_event() {
                    self.seen_strings.insert(id);
                }
            }
        }
        // A counter with a unit is no record of FXT's own, as the hot path would write it.
        if callsite.has_constants() && (self.is_track_event() || callsite.site().counter.is_plain()) {
            self.seen_callsites.insert(callsite.serial());
            hot.set_seen(callsite.serial());
        }
    }

    fn put_string_records(
        &self,
        out: &mut Vec<u8>,
        callsite: &'static Callsite,
        wanted: impl Fn(usize) -> bool,
    ) {
        let keys = callsite.keys().iter().map(|k| (k.id(), k.name()));
        let own = [(callsite.category_id(), callsite.category()), (callsite.name_id(), callsite.name())];
        for (n, (id, text)) in own.into_iter().chain(keys).enumerate() {
            if wanted(n) {
                self.put_string_record(out, id, text);
            }
        }
    }

    /// The string's record, if it can have one and the sequence does not.
    fn put_string_record(&self, out: &mut Vec<u8>, id: u32, text: &str) {
        if let Ok(index @ 1..=fxt::MAX_STRING_INDEX) = u16::try_from(id)
            && !self.seen_strings.contains(id)
        {
            fxt::string_record(out, index, cut(text));
        }
    }

    fn put_interned(&self, out: &mut Vec<u8>, callsite: &'static Callsite, wanted: impl Fn(usize) -> bool) {
        if callsite.kind() == CallsiteKind::Counter {
            return; // its track says it all
        }
        // A number may stand for a string as a category and as a name; each has an index of its own, so what one
        // callsite needs is told once for it, rather than tracked for each index.
        let mut entries = Few::<_>::new(Interned::Category { iid: 0, name: "" });
        let ids = callsite.category_ids();
        for (iid, name) in ids.as_slice().iter().zip(callsite.categories()) {
            entries.push(Interned::Category { iid: u64::from(*iid), name: cut(name) });
        }
        if callsite.name_id() != 0 {
            entries
                .push(Interned::EventName { iid: u64::from(callsite.name_id()), name: cut(callsite.name()) });
        }
        for key in callsite.keys().iter().filter(|k| k.id() != 0) {
            entries.push(Interned::AnnotationName { iid: u64::from(key.id()), name: cut(key.name()) });
        }
        if self.detail.source_locations {
            entries.push(Interned::Location { iid: location_iid(callsite), at: packet::location(callsite) });
        }
        let mut few = Few::<_>::new(Interned::Category { iid: 0, name: "" });
        let all = entries.as_slice().iter().enumerate();
        all.filter(|(n, _)| wanted(*n)).for_each(|(_, entry)| few.push(*entry));
        if !few.as_slice().is_empty() {
            te::interned(out, self.number, few.as_slice());
        }
    }

    /// The strings that the event's values are numbers of, and its log message's body.
    pub(crate) fn put_values(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        for value in event.values {
            if let Value::Interned { iid, text } = *value
                && let Ok(id) = u32::try_from(iid)
                && !self.seen_values.contains(id)
            {
                if self.is_track_event() {
                    te::interned(out, self.number, &[Interned::AnnotationText { iid, name: text }]);
                } else if record::has_record(text) {
                    self.put_string_record(out, id, text);
                }
            }
        }
        if let Some((_, body)) = event.log
            && self.is_track_event()
        {
            te::interned(out, self.number, &[Interned::LogBody { iid: self.bodies + 1, name: body }]);
        }
    }

    /// What [`put_values`](Self::put_values) wrote stands in the sequence.
    pub(crate) fn values_told(&mut self, event: &Event<'_>) {
        for value in event.values {
            if let Value::Interned { iid, .. } = *value
                && let Ok(id) = u32::try_from(iid)
            {
                self.seen_values.insert(id);
            }
        }
    }
}
