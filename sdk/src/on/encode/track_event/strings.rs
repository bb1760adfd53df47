//! The strings of a packet sequence: each is interned before the first event that refers to its id.

use hairline_formats::track_event as te;
use hairline_formats::track_event::{Interned, InternedKind};

use crate::on::base::few::Few;
use crate::on::base::memory::Bytes;
use crate::on::callsite::Callsite;
use crate::on::encode::cut;
use crate::on::encode::sequence::{State, interned_values};
use crate::on::encode::track_event::location::{location, location_iid, tag, tag_iid};
use crate::on::event::Event;
use crate::site::CallsiteKind;

/// Returns the number of strings of a callsite, at most.
pub(crate) fn count(callsite: &'static Callsite) -> usize {
    callsite.categories().count() + 2 + callsite.keys().len() // its name and its place in the source
}

/// Writes the strings of a callsite: all of them, or only number `which`.
pub(crate) fn put(out: &mut Bytes, state: &State, callsite: &'static Callsite, which: Option<usize>) {
    if callsite.kind() == CallsiteKind::Counter {
        return; // its track has its strings
    }
    // One id may be that of a category and of a name, which have an index each. So a callsite's strings are
    // written once for that callsite, and not tracked for each index.
    let mut entries = Few::<_>::new(Interned::Text { kind: InternedKind::Category, iid: 0, name: "" });
    let ids = callsite.category_ids();
    for (id, name) in ids.as_slice().iter().zip(callsite.categories()) {
        entries.push(Interned::Text { kind: InternedKind::Category, iid: id.iid(), name: cut(name) });
    }
    if !callsite.name_id().is_none() {
        entries.push(Interned::Text {
            kind: InternedKind::EventName,
            iid: callsite.name_id().iid(),
            name: cut(callsite.name()),
        });
    }
    for key in callsite.keys().iter().filter(|k| !k.id().is_none()) {
        entries.push(Interned::Text {
            kind: InternedKind::AnnotationName,
            iid: key.id().iid(),
            name: cut(key.name()),
        });
    }
    if state.detail.source_locations {
        entries.push(Interned::Location { iid: location_iid(callsite), at: location(callsite) });
    }
    let entries = match which {
        None => entries.as_slice(),
        Some(n) => entries.as_slice().get(n..=n).unwrap_or_default(),
    };
    if !entries.is_empty() {
        te::interned(out, state.number, entries);
    }
}

/// Writes the strings that the event's values refer to, and the body of its log message.
pub(crate) fn put_values(out: &mut Bytes, state: &State, event: &Event<'_>, body_iid: u64) {
    for (id, text) in interned_values(event) {
        if !state.written_values.contains(id.0) {
            let text = Interned::Text { kind: InternedKind::AnnotationText, iid: id.iid(), name: text };
            te::interned(out, state.number, &[text]);
        }
    }
    if let Some((_, body)) = event.log {
        let tag = Interned::Location { iid: tag_iid(event.callsite), at: tag(event.callsite) };
        let body = Interned::Text { kind: InternedKind::LogBody, iid: body_iid, name: body };
        let both = [body, tag];
        let is_tagged = state.written_tags.contains(event.callsite.serial());
        te::interned(out, state.number, if is_tagged { &both[..1] } else { &both });
    }
}
