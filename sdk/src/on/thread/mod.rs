//! The thread side: from a macro to a committed record.
//!
//! [`hot`] is the path that an event takes nearly always. [`cold`] is everything else: a
//! callsite's first hit, a thread's first event, a full chunk, loss, a long gap, a torn-down thread; it records through the
//! thread's [`writer`].

mod cold;
mod end_arguments;
pub(crate) mod event;
mod few;
mod fit;
mod guards;
mod hot;
mod kept;
mod lifetime;
pub(crate) mod message;
mod raw;
mod room;
mod sequence;
#[cfg(feature = "subscriber")]
mod slices;
mod text;
mod writer;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use super::argument::{Values, Visitor};
use super::callsite::{Callsite, Epoch, Kind, TRACK_EVENT};
use super::extras::Extras;
use super::flow::Flow;
use super::{process, registry};
use crate::vocabulary::Level;
pub(crate) use cold::{begin_fork, end_fork, first_hit, forget_parent, leave_in_child, stray_losses};
use event::Event;
pub(crate) use few::Few;
pub use guards::{
    AsyncScope, Scope, TrackScope, log, track_begin, track_end, track_left_out, track_was_used,
};
pub(crate) use hot::near_bit;
pub(crate) use hot::{Busy, Happens, InFxt, Place};
#[cfg(feature = "subscriber")]
pub(crate) use kept::Kept;
pub(super) use lifetime::forget_key;
pub(crate) use room::empty_room;
pub(crate) use sequence::Spread;
pub(crate) use sequence::late::put_late_end;
#[cfg(feature = "subscriber")]
pub(crate) use slices::{
    begin_flow_slice, begin_slice, begin_slice_hot, begin_slice_rich, begin_slice_with, end_slice,
    end_slice_with, event_of, instant_of, last_time,
};
pub use text::Text;

/// Each chunk's context defines this index as its thread.
pub(crate) const FXT_THREAD: u8 = 1;

/// Bytes of the longest name, category or key that is written; longer ones are cut at a character.
pub(crate) const MAX_NAME: usize = 1000;

/// FXT counters are told apart by name; their id is the same for all.
pub(crate) const COUNTER_ID: u64 = 0;

/// Marks this thread's writer as busy; see [`hot::Hot::busy`].
pub(crate) fn busy() -> Busy {
    hot::hot().busy()
}

/// Marks this thread's writer as busy, so that it may wait for a lock. `None` where it may not: [`is_barred`].
pub(crate) fn enter() -> Option<Busy> {
    (!is_barred()).then(busy)
}

/// Whether this thread may not wait for a lock: it is inside of an event, which may be holding it, or in a forked child,
/// where its holder may not exist.
pub(crate) fn is_barred() -> bool {
    hot::hot().own_lease().is_busy() || registry::is_detached()
}

// Each kind of event is two functions: the hot path, and what it ends in where that fails. They are not
// inlined into the traced program: a disabled callsite is a load and a branch there, the calls need no
// register saved, and a program with thousands of callsites has one hot path in its cache.

/// The epoch that the begin was recorded in; 0 if it was not.
#[inline(never)]
pub(crate) fn begin(callsite: &'static Callsite, word: u32) -> u32 {
    if hot::plain::<false>(hot::hot(), callsite, word, Kind::Scope) {
        word
    } else {
        begin_slow(callsite, word)
    }
}

#[cold]
#[inline(never)]
fn begin_slow(callsite: &'static Callsite, word: u32) -> u32 {
    let recorded = hot::plain::<true>(hot::hot(), callsite, word, Kind::Scope);
    if recorded { word } else { if_scope(callsite, bare(callsite, word)) }
}

/// The epoch of an event that the cold path has recorded by its callsite's kind; 0 where that is no begin:
/// the end of a scope goes into room that its begin has kept, and no other event keeps any.
fn if_scope(callsite: &'static Callsite, epoch: u32) -> u32 {
    if callsite.kind() == Kind::Scope { epoch } else { 0 }
}

/// Begins a scope with options. The epoch that the begin was recorded in; 0 if it was not.
fn begin_rich(callsite: &'static Callsite, word: u32, values: &impl Values, extras: &Extras<'_>) -> u32 {
    let recorded = if_scope(callsite, rich(callsite, word, values, extras));
    if extras.track.is_some() { 0 } else { recorded } // a slice on a track keeps no room either
}

#[inline(never)]
fn begin_with<V: Values>(callsite: &'static Callsite, word: u32, values: &V) -> u32 {
    let recorded = hot::with_values::<false, _>(hot::hot(), callsite, word, Kind::Scope, values);
    if recorded { word } else { if_scope(callsite, with_values_slow(callsite, word, Kind::Scope, values)) }
}

/// The epoch that the begin of a scope with a flow was recorded in; 0 if it was not.
#[inline(never)]
pub(crate) fn begin_flow(callsite: &'static Callsite, word: u32, flow: &Flow) -> u32 {
    let (id, begun) = (flow.id(), flow.has_begun(word));
    if hot::with_flow::<false>(hot::hot(), callsite, word, id, begun) {
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
    if hot::with_flow::<true>(hot::hot(), callsite, word, id, begun) {
        flow.set_begun(word);
        word
    } else {
        if_scope(callsite, rich(callsite, word, &(), &Extras::new().flow(flow)))
    }
}

#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, word: u32) {
    if !hot::end::<false>(hot::hot(), callsite, word) {
        end_slow(callsite, word);
    }
}

#[cold]
#[inline(never)]
fn end_slow(callsite: &'static Callsite, word: u32) {
    if !hot::end::<true>(hot::hot(), callsite, word) {
        cold::end(callsite, word);
    }
}

/// Records an instant.
#[inline(never)]
pub fn instant(callsite: &'static Callsite, epoch: Epoch) {
    let word = epoch.get();
    if !hot::plain::<false>(hot::hot(), callsite, word, Kind::Instant) {
        instant_slow(callsite, word);
    }
}

#[cold]
#[inline(never)]
fn instant_slow(callsite: &'static Callsite, word: u32) {
    if !hot::plain::<true>(hot::hot(), callsite, word, Kind::Instant) {
        bare(callsite, word);
    }
}

/// Records an instant with arguments.
#[inline(never)]
pub fn instant_with<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) {
    let word = epoch.get();
    if !hot::with_values::<false, _>(hot::hot(), callsite, word, Kind::Instant, values) {
        with_values_slow(callsite, word, Kind::Instant, values);
    }
}

/// Records a counter's value.
#[inline(never)]
pub fn counter<V: Values>(callsite: &'static Callsite, epoch: Epoch, value: &V) {
    let word = epoch.get();
    if !hot::with_values::<false, _>(hot::hot(), callsite, word, Kind::Counter, value) {
        with_values_slow(callsite, word, Kind::Counter, value);
    }
}

#[cold]
#[inline(never)]
fn with_values_slow<V: Values>(callsite: &'static Callsite, word: u32, kind: Kind, values: &V) -> u32 {
    if hot::with_values::<true, _>(hot::hot(), callsite, word, kind, values) {
        return word;
    }
    rich(callsite, word, values, &Extras::new())
}

/// The time of the last event of this thread.
pub(crate) fn last_event() -> u64 {
    hot::hot().lease().last()
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
        && hot::on_track(hot::hot(), callsite, word, happens, place, values).is_some()
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
fn with_list<R>(values: &impl Values, f: impl FnOnce(&[Value<'_>]) -> R) -> R {
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

thread_local! {
    static OWN_UUID: Cell<u64> = const { Cell::new(0) };
}

/// The number of this thread's track, the same in all sessions.
#[inline]
pub(crate) fn own_uuid() -> u64 {
    match OWN_UUID.get() {
        0 => number_this_thread(),
        uuid => uuid,
    }
}

#[cold]
fn number_this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    OWN_UUID.set(message::uuid(process::uuid() ^ serial.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    OWN_UUID.get()
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
fn log_message(event: &Event<'_>, word: u32, level: Level, message: &str) {
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
