//! The constant parts of a callsite's records, composed at its first hit: the FXT header word and the
//! TrackEvent message.

use hairline_formats::fxt;

use crate::on::base::memory::{List, leak};
use crate::on::callsite::{Callsite, Constants, StringId};
use crate::on::encode::track_event::message;
use crate::on::encode::{FXT_THREAD, cut};
use crate::site::CallsiteKind;

/// Composes the constants of a callsite. `intern` returns the id of a string.
pub(crate) fn constants(callsite: &'static Callsite, intern: fn(&'static str) -> StringId) -> Constants {
    let (category, name) = (intern(callsite.category()), intern(callsite.name()));
    let widest = callsite.intern_keys(intern).max(category).max(name);
    // `several` stays empty if the whole text is one category. Blanks are no category.
    let is_several = !category.is_none() && callsite.categories().ne([callsite.category()]);
    // Leaked, since the callsite exists for the rest of the process.
    let several = is_several.then(|| {
        let ids: &'static List<StringId> = leak(callsite.categories().map(intern).collect());
        ids
    });
    let of_one = [category];
    let one = if category.is_none() { &[][..] } else { &of_one };
    let categories = several.map_or(one, |ids| &ids[..]);
    let message = message::constant(callsite.kind(), categories, name, callsite.name());
    // Without a constant message the events take the cold path, which writes strings inline. That is so if
    // the ids of the strings exceed the header's fields, or the message is longer than the hot path copies.
    let is_constant = widest.index().is_some()
        && !callsite.site().counter.incremental
        && callsite.kind() != CallsiteKind::End;
    let counter = match callsite.kind() {
        CallsiteKind::Counter => {
            [message::counter_uuid(callsite.name()).0, message::name_hash(cut(callsite.name()))]
        }
        _ => [0; 2],
    };
    Constants {
        counter,
        category,
        name,
        category_list: several,
        header: header(callsite.kind(), category, name),
        message: message.filter(|_| is_constant),
    }
}

/// Returns the header word of a record, also of an end: with strings by their index, or without those that
/// have none.
fn header(kind: CallsiteKind, category: StringId, name: StringId) -> u64 {
    let kind = match kind {
        CallsiteKind::Scope => fxt::EventKind::DurationBegin,
        CallsiteKind::Instant => fxt::EventKind::Instant,
        CallsiteKind::Counter => fxt::EventKind::Counter,
        CallsiteKind::End => fxt::EventKind::DurationEnd,
    };
    let index = |id: StringId| id.index().map_or(0, u64::from);
    let thread = u64::from(FXT_THREAD);
    fxt::event_header(kind, 2, 0, thread, index(category), index(name))
}
