//! The constant parts of a callsite's records, composed at its first hit: the FXT header word and the
//! TrackEvent message.

use hairline_formats::fxt;

use crate::on::callsite::{Callsite, Constants, StringId};
use crate::on::encode::track_event::message;
use crate::on::encode::{FXT_THREAD, cut};
use crate::site::CallsiteKind;

/// Composes the constants of a callsite. `intern` returns the id of a string.
pub(crate) fn constants(callsite: &'static Callsite, intern: fn(&'static str) -> StringId) -> Constants {
    let (category, name) = (intern(callsite.category()), intern(callsite.name()));
    let keys: Vec<StringId> = callsite.keys().iter().map(|key| intern(key.name())).collect();
    let widest = keys.iter().copied().fold(category.max(name), StringId::max);
    // `several` stays empty if the whole text is one category. Blanks are no category.
    let is_several = !category.is_none() && callsite.categories().ne([callsite.category()]);
    let several: Option<Box<[StringId]>> = is_several.then(|| callsite.categories().map(&intern).collect());
    let of_one = [category];
    let categories = several.as_deref().unwrap_or(if category.is_none() { &[] } else { &of_one });
    let message = message::constant(callsite.kind(), categories, name, callsite.name());
    // Without a constant message the events take the cold path, which writes strings inline. That is so if
    // the ids of the strings exceed the header's fields, or the message is longer than the hot path copies.
    let is_constant = widest.index().is_some()
        && message.len() <= message::LONGEST
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
        keys,
        category_list: several.map(Box::new),
        header: header(callsite.kind(), category, name),
        message: is_constant.then_some(message),
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
