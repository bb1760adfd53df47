//! The functions that the macros call: each records one kind of event, on the hot path if possible, else on
//! the cold path.
//!
//! `epoch` is the callsite's word where the callsite is on. For a callsite that was never hit it is
//! `UNREGISTERED`, which equals no session's epoch, so that the event takes the cold path.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::on::base::few::Few;
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch, TRACK_EVENT};
use crate::on::event::Event;
use crate::on::event::argument::{Values, Visitor};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::position::TrackAction;
use crate::on::thread::{cold, hot};
use crate::site::CallsiteKind;
use crate::vocabulary::Level;

// Each kind of event has two functions: one with the hot path, and one that follows if the hot path fails.
// They are not inlined into the traced program. So a disabled callsite is a load and a branch there, the
// calls need no saved register, and a program with thousands of callsites has one hot path in its cache.

/// Begins a scope. Returns the epoch in which the begin was recorded, 0 if it was not.
#[inline(never)]
pub(crate) fn begin(callsite: &'static Callsite, epoch: u32) -> u32 {
    if hot::plain::<false>(this_thread::hot(), callsite, epoch, CallsiteKind::Scope) {
        epoch
    } else {
        begin_slow(callsite, epoch)
    }
}

#[cold]
#[inline(never)]
fn begin_slow(callsite: &'static Callsite, epoch: u32) -> u32 {
    let recorded = hot::plain::<true>(this_thread::hot(), callsite, epoch, CallsiteKind::Scope);
    if recorded { epoch } else { if_scope(callsite, bare(callsite, epoch)) }
}

/// Returns `epoch`, in which the cold path has recorded an event, if the callsite is a scope's; else 0. The
/// end of a scope goes into room that its begin has reserved, and no other event reserves any.
fn if_scope(callsite: &'static Callsite, epoch: u32) -> u32 {
    if callsite.kind() == CallsiteKind::Scope { epoch } else { 0 }
}

/// Begins a scope with options. Returns the epoch in which the begin was recorded, 0 if it was not.
pub(crate) fn begin_rich(
    callsite: &'static Callsite,
    epoch: u32,
    values: &impl Values,
    extras: &Extras<'_>,
) -> u32 {
    let recorded = if_scope(callsite, rich(callsite, epoch, values, extras));
    if extras.track.is_some() { 0 } else { recorded } // nor does a slice on a track reserve room
}

#[inline(never)]
pub(crate) fn begin_with<V: Values>(callsite: &'static Callsite, epoch: u32, values: &V) -> u32 {
    let recorded =
        hot::with_values::<false, _>(this_thread::hot(), callsite, epoch, CallsiteKind::Scope, values);
    if recorded {
        epoch
    } else {
        if_scope(callsite, with_values_slow(callsite, epoch, CallsiteKind::Scope, values))
    }
}

/// Begins a scope that a flow passes through. Returns the epoch in which the begin was recorded, 0 if it was
/// not.
#[inline(never)]
pub(crate) fn begin_flow(callsite: &'static Callsite, epoch: u32, flow: &Flow) -> u32 {
    let (id, begun) = (flow.id(), flow.has_begun(epoch));
    if hot::with_flow::<false>(this_thread::hot(), callsite, epoch, id, begun) {
        flow.set_begun(epoch);
        epoch
    } else {
        begin_flow_slow(callsite, epoch, flow)
    }
}

#[cold]
#[inline(never)]
fn begin_flow_slow(callsite: &'static Callsite, epoch: u32, flow: &Flow) -> u32 {
    let (id, begun) = (flow.id(), flow.has_begun(epoch));
    if hot::with_flow::<true>(this_thread::hot(), callsite, epoch, id, begun) {
        flow.set_begun(epoch);
        epoch
    } else {
        if_scope(callsite, rich(callsite, epoch, &(), &Extras::new().flow(flow)))
    }
}

#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, epoch: u32) {
    if !hot::end::<false>(this_thread::hot(), callsite, epoch) {
        end_slow(callsite, epoch);
    }
}

#[cold]
#[inline(never)]
fn end_slow(callsite: &'static Callsite, epoch: u32) {
    if !hot::end::<true>(this_thread::hot(), callsite, epoch) {
        cold::end(callsite, epoch);
    }
}

/// Records an instant.
#[inline(never)]
pub fn instant(callsite: &'static Callsite, epoch: Epoch) {
    let epoch = epoch.get();
    if !hot::plain::<false>(this_thread::hot(), callsite, epoch, CallsiteKind::Instant) {
        instant_slow(callsite, epoch);
    }
}

#[cold]
#[inline(never)]
fn instant_slow(callsite: &'static Callsite, epoch: u32) {
    if !hot::plain::<true>(this_thread::hot(), callsite, epoch, CallsiteKind::Instant) {
        bare(callsite, epoch);
    }
}

/// Records an instant with arguments.
#[inline(never)]
pub fn instant_with<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) {
    let epoch = epoch.get();
    if !hot::with_values::<false, _>(this_thread::hot(), callsite, epoch, CallsiteKind::Instant, values) {
        with_values_slow(callsite, epoch, CallsiteKind::Instant, values);
    }
}

/// Records the value of a counter.
#[inline(never)]
pub fn counter<V: Values>(callsite: &'static Callsite, epoch: Epoch, value: &V) {
    let epoch = epoch.get();
    if !hot::with_values::<false, _>(this_thread::hot(), callsite, epoch, CallsiteKind::Counter, value) {
        with_values_slow(callsite, epoch, CallsiteKind::Counter, value);
    }
}

#[cold]
#[inline(never)]
fn with_values_slow<V: Values>(
    callsite: &'static Callsite,
    epoch: u32,
    kind: CallsiteKind,
    values: &V,
) -> u32 {
    if hot::with_values::<true, _>(this_thread::hot(), callsite, epoch, kind, values) {
        return epoch;
    }
    rich(callsite, epoch, values, &Extras::new())
}

/// Returns the time of this thread's last event.
#[inline]
pub(crate) fn last_event() -> u64 {
    this_thread::hot().lease().last()
}

/// Records an event of the callsite's kind with options. Returns the epoch in which it was recorded, 0 if it
/// was not.
pub(crate) fn rich(
    callsite: &'static Callsite,
    epoch: u32,
    values: &impl Values,
    extras: &Extras<'_>,
) -> u32 {
    let happens = match callsite.kind() {
        CallsiteKind::Scope => Some(TrackAction::Begin),
        CallsiteKind::Instant => Some(TrackAction::Instant),
        CallsiteKind::Counter | CallsiteKind::End => None,
    };
    let position = extras.track.filter(|track| track.is_of(epoch)).map(|track| track.position(epoch));
    if let (Some(happens), Some(position)) = (happens, position.filter(|_| extras.has_only_track()))
        && hot::on_track(this_thread::hot(), callsite, epoch, happens, position, values).is_some()
    {
        return epoch;
    }
    let after = happens.and(position).map_or(0, |position| position.after);
    with_list(values, |values| cold::event(epoch, &Event { after, ..Event::new(callsite, values, extras) }))
}

/// Records an instant, or the value of a counter, with options.
#[inline(never)]
pub fn event_rich<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V, extras: &Extras<'_>) {
    rich(callsite, epoch.get(), values, extras);
}

/// Records an event without arguments and options on the cold path.
fn bare(callsite: &'static Callsite, epoch: u32) -> u32 {
    cold::event(epoch, &Event::new(callsite, &[], &Extras::new()))
}

/// Calls `f` with the values in a slice.
pub(crate) fn with_list<R>(values: &impl Values, f: impl FnOnce(&[Value<'_>]) -> R) -> R {
    let mut list = List(Few::new(Value::Null));
    values.each(0, &mut list);
    f(list.0.as_slice())
}

/// Collects the values.
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
    epoch: u32,
    level: Level,
    message: &str,
    extras: &Extras<'_>,
) {
    log_message(&Event::new(callsite, &[], extras), epoch, level, message);
}

/// Records an event with a message for people to read.
pub(crate) fn log_message(event: &Event<'_>, epoch: u32, level: Level, message: &str) {
    let named = [("level", Value::Str(level.name())), ("message", Value::Str(message))];
    // In TrackEvent the message is a field of its own.
    let named: &[_] = if epoch & TRACK_EVENT == 0 { &named } else { &[] };
    cold::event(epoch, &Event { log: Some((priority(level), message)), named, ..*event });
}

/// Returns the TrackEvent priority of a level.
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
