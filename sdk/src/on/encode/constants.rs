//! What never changes in a callsite's records, put together at its first hit: the FXT header word, the TrackEvent
//! message.

use hairline_formats::fxt;

use crate::on::callsite::{Callsite, CallsiteKind, Constants};
use crate::on::encode::FXT_THREAD;
use crate::on::encode::track_event::message;

/// Puts the constants together. `intern` numbers a string.
pub(crate) fn constants(callsite: &'static Callsite, intern: fn(&'static str) -> u32) -> Constants {
    let (category, name) = (intern(callsite.category()), intern(callsite.name()));
    let keys: Vec<u32> = callsite.keys().iter().map(|key| intern(key.name())).collect();
    let widest = keys.iter().copied().fold(category.max(name), u32::max);
    // Not where its one category is the whole text; blanks are none.
    let is_several = category != 0 && callsite.categories().ne([callsite.category()]);
    let several: Option<Box<[u32]>> = is_several.then(|| callsite.categories().map(&intern).collect());
    let of_one = [category];
    let categories = several.as_deref().unwrap_or(if category == 0 { &[] } else { &of_one });
    let message = message::constant(callsite.kind(), categories, u64::from(name), callsite.name());
    // Strings may have numbers that a constant header cannot hold, or the message more to say than it has room for: without an id
    // the events go the cold way, which writes strings inline.
    let is_constant = widest <= u32::from(fxt::MAX_STRING_INDEX)
        && message.len() <= message::LONGEST
        && !callsite.site().counter.incremental
        && callsite.kind() != CallsiteKind::End;
    Constants {
        category,
        name,
        keys,
        category_list: several.map(Box::new),
        header: header(callsite.kind(), category, name),
        message: is_constant.then_some(message),
    }
}

/// The header word, of an end too: with strings by their index, or without them where they have none.
fn header(kind: CallsiteKind, category: u32, name: u32) -> u64 {
    let kind = match kind {
        CallsiteKind::Scope => fxt::EventKind::DurationBegin,
        CallsiteKind::Instant => fxt::EventKind::Instant,
        CallsiteKind::Counter => fxt::EventKind::Counter,
        CallsiteKind::End => fxt::EventKind::DurationEnd,
    };
    let index = |id: u32| if id <= u32::from(fxt::MAX_STRING_INDEX) { u64::from(id) } else { 0 };
    let thread = u64::from(FXT_THREAD);
    fxt::event_header(kind, 2, 0, thread, index(category), index(name))
}
