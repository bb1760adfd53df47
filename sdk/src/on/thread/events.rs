//! What the macros record: each kind of event by the hot path, and by the cold one where that fails.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::on::base::few::Few;
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch, Kind, TRACK_EVENT};
use crate::on::event::Event;
use crate::on::event::argument::{Values, Visitor};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::position::Happens;
use crate::on::thread::{cold, hot};
use crate::vocabulary::Level;

// Each kind of event is two functions: the hot path, and what it ends in where that fails. They are not
// inlined into the traced program: a disabled callsite is a load and a branch there, the calls need no
// register saved, and a program with thousands of callsites has one hot path in its cache.

/// The epoch that the begin was recorded in; 0 if it was not.
#[inline(never)]
pub(crate) fn begin(callsite: &'static Callsite, word: u32) -> u32 {
    if hot::plain::<false>(this_thread::hot(), callsite, word, Kind::Scope) {
        word
    } else {
        begin_slow(callsite, word)
    }
}

#[cold]
#[inline(never)]
fn begin_slow(callsite: &'static Callsite, word: u32) -> u32 {
    let recorded = hot::plain::<true>(this_thread::hot(), callsite, word, Kind::Scope);
    if recorded { word } else { if_scope(callsite, bare(callsite, word)) }
}

/// The epoch of an event that the cold path has recorded by its callsite's kind; 0 where that is no begin:
/// the end of a scope goes into room that its begin has kept, and no other event keeps any.
fn if_scope(callsite: &'static Callsite, epoch: u32) -> u32 {
    if callsite.kind() == Kind::Scope { epoch } else { 0 }
}

/// Begins a scope with options. The epoch that the begin was recorded in; 0 if it was not.
pub(crate) fn begin_rich(
    callsite: &'static Callsite,
    word: u32,
    values: &impl Values,
    extras: &Extras<'_>,
) -> u32 {
    let recorded = if_scope(callsite, rich(callsite, word, values, extras));
    if extras.track.is_some() { 0 } else { recorded } // a slice on a track keeps no room either
}

#[inline(never)]
pub(crate) fn begin_with<V: Values>(callsite: &'static Callsite, word: u32, values: &V) -> u32 {
    let recorded = hot::with_values::<false, _>(this_thread::hot(), callsite, word, Kind::Scope, values);
    if recorded { word } else { if_scope(callsite, with_values_slow(callsite, word, Kind::Scope, values)) }
}

/// The epoch that the begin of a scope with a flow was recorded in; 0 if it was not.
#[inline(never)]
pub(crate) fn begin_flow(callsite: &'static Callsite, word: u32, flow: &Flow) -> u32 {
    let (id, begun) = (flow.id(), flow.has_begun(word));
    if hot::with_flow::<false>(this_thread::hot(), callsite, word, id, begun) {
        flow.set_begun(word);
        word
    } else {
        begin_flow_slow(callsite, word, flow)
    }
}

#[cold]
#[inline(never)]
fn begin_flow_slow(callsite: &'static Callsite, word: u32, flow: &Flow) -> u32 {
    let (id, begun) = (flow.id(), flow.has_begun(word));
    if hot::with_flow::<true>(this_thread::hot(), callsite, word, id, begun) {
        flow.set_begun(word);
        word
    } else {
        if_scope(callsite, rich(callsite, word, &(), &Extras::new().flow(flow)))
    }
}

#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, word: u32) {
    if !hot::end::<false>(this_thread::hot(), callsite, word) {
        end_slow(callsite, word);
    }
}

#[cold]
#[inline(never)]
fn end_slow(callsite: &'static Callsite, word: u32) {
    if !hot::end::<true>(this_thread::hot(), callsite, word) {
        cold::end(callsite, word);
    }
}

/// Records an instant.
#[inline(never)]
pub fn instant(callsite: &'static Callsite, epoch: Epoch) {
    let word = epoch.get();
    if !hot::plain::<false>(this_thread::hot(), callsite, word, Kind::Instant) {
        instant_slow(callsite, word);
    }
}

#[cold]
#[inline(never)]
fn instant_slow(callsite: &'static Callsite, word: u32) {
    if !hot::plain::<true>(this_thread::hot(), callsite, word, Kind::Instant) {
        bare(callsite, word);
    }
}

/// Records an instant with arguments.
#[inline(never)]
pub fn instant_with<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) {
    let word = epoch.get();
    if !hot::with_values::<false, _>(this_thread::hot(), callsite, word, Kind::Instant, values) {
        with_values_slow(callsite, word, Kind::Instant, values);
    }
}

/// Records a counter's value.
#[inline(never)]
pub fn counter<V: Values>(callsite: &'static Callsite, epoch: Epoch, value: &V) {
    let word = epoch.get();
    if !hot::with_values::<false, _>(this_thread::hot(), callsite, word, Kind::Counter, value) {
        with_values_slow(callsite, word, Kind::Counter, value);
    }
}

#[cold]
#[inline(never)]
fn with_values_slow<V: Values>(callsite: &'static Callsite, word: u32, kind: Kind, values: &V) -> u32 {
    if hot::with_values::<true, _>(this_thread::hot(), callsite, word, kind, values) {
        return word;
    }
    rich(callsite, word, values, &Extras::new())
}

/// The time of the last event of this thread.
pub(crate) fn last_event() -> u64 {
    this_thread::hot().lease().last()
}

/// Records an event of the callsite's kind with options. The epoch it was recorded in, 0 if it was not.
pub(crate) fn rich(callsite: &'static Callsite, word: u32, values: &impl Values, extras: &Extras<'_>) -> u32 {
    let happens = match callsite.kind() {
        Kind::Scope => Some(Happens::Begin),
        Kind::Instant => Some(Happens::Instant),
        Kind::Counter | Kind::End => None,
    };
    let place = extras.track.filter(|track| track.is_of(word)).map(|track| track.place(word));
    if let (Some(happens), Some(place)) = (happens, place.filter(|_| extras.says_no_more()))
        && hot::on_track(this_thread::hot(), callsite, word, happens, place, values).is_some()
    {
        return word;
    }
    let after = happens.and(place).map_or(0, |place| place.after);
    with_list(values, |values| cold::event(word, &Event { after, ..Event::new(callsite, values, extras) }))
}

/// Records an instant or a counter's value with options.
#[inline(never)]
pub fn event_rich<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V, extras: &Extras<'_>) {
    rich(callsite, epoch.get(), values, extras);
}

/// The cold path for an event without anything.
fn bare(callsite: &'static Callsite, word: u32) -> u32 {
    cold::event(word, &Event::new(callsite, &[], &Extras::new()))
}

/// The values, in a list.
pub(crate) fn with_list<R>(values: &impl Values, f: impl FnOnce(&[Value<'_>]) -> R) -> R {
    let mut list = List(Few::new(Value::Null));
    values.each(0, &mut list);
    f(list.0.as_slice())
}

/// Lists the values.
struct List<'v>(Few<Value<'v>>);

impl<'v> Visitor<'v> for List<'v> {
    fn visit(&mut self, _: usize, value: Value<'v>) {
        self.0.push(value);
    }
}

/// Records a log message with options.
#[cfg(feature = "log")]
pub(crate) fn log_with(
    callsite: &'static Callsite,
    word: u32,
    level: Level,
    message: &str,
    extras: &Extras<'_>,
) {
    log_message(&Event::new(callsite, &[], extras), word, level, message);
}

/// Records the event with a message to be read by people.
pub(crate) fn log_message(event: &Event<'_>, word: u32, level: Level, message: &str) {
    let named = [("level", Value::Str(level.name())), ("message", Value::Str(message))];
    // In TrackEvent the message is a field of its own.
    let named: &[_] = if word & TRACK_EVENT == 0 { &named } else { &[] };
    cold::event(word, &Event { log: Some((priority(level), message)), named, ..*event });
}

/// The level, as TrackEvent has it.
fn priority(level: Level) -> Priority {
    match level {
        Level::Trace => Priority::Verbose,
        Level::Debug => Priority::Debug,
        Level::Info => Priority::Info,
        Level::Warn => Priority::Warn,
        Level::Error => Priority::Error,
        Level::Fatal => Priority::Fatal,
    }
}
