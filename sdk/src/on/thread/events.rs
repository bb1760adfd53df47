//! The functions that the macros call, for events with options, and what follows if the hot path has left an
//! event.
//!
//! `epoch` is that of the callsite. For a callsite that was never hit it is [`Epoch::UNREGISTERED`], which
//! equals no session's epoch, so that the event takes the cold path.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::on::base::few::Few;
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::Event;
use crate::on::event::argument::{Values, Visitor};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::on_track::{OnTrack, Sealed, TrackRef};
use crate::on::event::position::TrackAction;
use crate::on::event::track::Track;
use crate::on::thread::hot::composed::Options;
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::{cold, hot, slow, starved};
use crate::options::Format;
use crate::site::CallsiteKind;
use crate::vocabulary::Level;

/// Records an event that the hot path has left: its record is composed, or the cold path writes it. Returns
/// the begin of a scope.
#[inline(always)]
pub(super) fn left<V: Values>(
    callsite: &'static Callsite,
    values: &V,
    options: Option<&Options<'_>>,
) -> Option<OpenScope> {
    if starved::is_lost_again(callsite) {
        return None;
    }
    if values.count() == 0 && options.is_none() {
        return plain_left(callsite); // not inlined: a program whose ring is full loses each event before
    }
    let epoch = callsite.epoch()?;
    let recorded = match hot::composed::event(callsite, epoch, values, options) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => record_cold(callsite, epoch, values, &Options::extras(options), 0),
    };
    begun(callsite, recorded)
}

#[inline(never)]
fn plain_left(callsite: &'static Callsite) -> Option<OpenScope> {
    let epoch = callsite.epoch()?;
    let recorded = match hot::composed::plain(callsite, epoch) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => record_cold(callsite, epoch, &(), &Extras::new(), 0),
    };
    begun(callsite, recorded)
}

/// Records an event on the cold path. Its time must exceed `after`.
#[cold]
#[inline(never)]
fn record_cold<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    extras: &Extras<'_>,
    after: u64,
) -> Option<OpenScope> {
    with_list(values, |values| cold::begin(epoch, &Event { after, ..Event::new(callsite, values, extras) }))
}

/// Returns a begin that was recorded beside the hot path, for the guard of the scope; `None` if the callsite
/// is not a scope's. The end of a scope goes into room that its begin has reserved, and no other event
/// reserves any.
pub(super) fn begun(callsite: &'static Callsite, recorded: Option<OpenScope>) -> Option<OpenScope> {
    let recorded = recorded?;
    if callsite.kind() != CallsiteKind::Scope {
        slow::happened(callsite);
        return None;
    }
    Some(slow::if_timed(callsite, recorded))
}

/// Begins a scope with options. Returns the begin if it was recorded.
pub(crate) fn begin_rich(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &impl Values,
    extras: &Extras<'_>,
) -> Option<OpenScope> {
    // A slice on a track reserves no room.
    begun(callsite, rich(callsite, epoch, values, extras).filter(|_| extras.track.is_none()))
}

/// Begins a scope that a flow passes through. Returns the begin if it was recorded.
#[inline(never)]
pub(crate) fn begin_flow(callsite: &'static Callsite, epoch: Epoch, flow: &Flow) -> Option<OpenScope> {
    match hot::with_flow::<false>(this_thread::hot(), callsite, epoch, flow) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => flow_left(callsite, flow),
    }
}

/// Records an instant that a flow passes through. Returns its time if it was recorded.
#[inline(never)]
pub(crate) fn instant_with_flow(callsite: &'static Callsite, epoch: Epoch, flow: &Flow) -> Option<u64> {
    hot::with_flow::<true>(this_thread::hot(), callsite, epoch, flow).or_else(|| {
        rich(callsite, epoch, &(), &Extras::new().flow(flow))?;
        slow::happened(callsite);
        Some(last_event())
    })
}

#[cold]
#[inline(never)]
fn flow_left(callsite: &'static Callsite, flow: &Flow) -> Option<OpenScope> {
    left(callsite, &(), Some(&Options { flow: Some(flow), ..Options::default() }))
}

/// The track of a counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterTrack<'a>(Option<TrackRef<'a>>);

/// Returns the track of a counter.
#[inline(always)]
pub fn counter_track(track: &impl OnTrack) -> CounterTrack<'_> {
    CounterTrack(Sealed::track_ref(track))
}

/// Records the value of a counter on a track, without other options.
#[inline(never)]
pub(crate) fn counter_on<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    value: &V,
    CounterTrack(track): CounterTrack<'_>,
) {
    if let Some(TrackRef::Track(track)) = track {
        let (hot, uuid) = (this_thread::hot(), Some(track.track_uuid()));
        if hot::counter_on_track(hot, callsite, epoch, uuid, value).is_some() {
            return;
        }
    }
    rich(callsite, epoch, value, &Extras { track, ..Extras::new() });
}

/// Records an instant on a track, without arguments and other options.
#[inline(always)]
pub fn instant_on(callsite: &'static Callsite, epoch: Epoch, track: &impl OnTrack) {
    match Sealed::track_ref(track) {
        Some(TrackRef::Track(track)) => instant_on_track(callsite, epoch, track),
        _ => event_rich(callsite, epoch, &(), &Extras::new().track(track)),
    }
}

#[inline(never)]
fn instant_on_track(callsite: &'static Callsite, epoch: Epoch, track: &Track) {
    let happens = TrackAction::Instant;
    match hot::bare_on_track(this_thread::hot(), callsite, epoch, happens, track) {
        Some(now) => track.open_slices().set_instant_time(epoch, now),
        None => instant_on_track_slow(callsite, epoch, track),
    }
}

#[cold]
#[inline(never)]
fn instant_on_track_slow(callsite: &'static Callsite, epoch: Epoch, track: &Track) {
    rich(callsite, epoch, &(), &Extras::new().own_track(track));
}

/// Returns the time of this thread's last event.
#[inline]
pub(crate) fn last_event() -> u64 {
    this_thread::hot().lease().last()
}

/// Records an event of the callsite's kind with options. Returns the epoch in which it was recorded, and its
/// id if it is a begin on this thread's track. Returns `None` if it was not recorded.
pub(crate) fn rich(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &impl Values,
    extras: &Extras<'_>,
) -> Option<OpenScope> {
    let (hot, kind) = (this_thread::hot(), callsite.kind());
    let track = extras.track.filter(|track| track.is_of(epoch));
    let position = track.map(|track| track.position(epoch));
    let now = match (kind, position) {
        (CallsiteKind::End, _) => None,
        (CallsiteKind::Counter, _) if extras.has_only_track() => {
            hot::counter_on_track(hot, callsite, epoch, track.map(TrackRef::uuid), values)
        }
        (_, Some(position)) if extras.has_only_track() => {
            let is_scope = kind == CallsiteKind::Scope;
            let happens = if is_scope { TrackAction::Begin } else { TrackAction::Instant };
            hot::on_track(callsite, epoch, happens, position, values)
        }
        (_, Some(_)) => None,
        (_, None) => Options::of(callsite, extras)
            .and_then(|options| hot::composed::event(callsite, epoch, values, Some(&options))),
    };
    let recorded = match now {
        Some(now) => OpenScope::new(epoch, now),
        None => {
            let is_counter = kind == CallsiteKind::Counter;
            let after = position.filter(|_| !is_counter).map_or(0, |position| position.after);
            record_cold(callsite, epoch, values, extras, after)?
        }
    };
    if let Some(track) = track.filter(|_| kind == CallsiteKind::Instant) {
        track.set_instant_time(epoch, last_event());
    }
    Some(recorded)
}

/// Records an instant, or the value of a counter, with options.
#[inline(never)]
pub(crate) fn event_rich<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    extras: &Extras<'_>,
) {
    if rich(callsite, epoch, values, extras).is_some() && extras.track.is_none() {
        slow::happened(callsite);
    }
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

/// Records an event with a message for people to read. In TrackEvent the message and the level are fields of
/// their own. In FXT the message is an argument. `has_level`: so is the level, in both formats.
pub(crate) fn log_message(event: &Event<'_>, epoch: Epoch, level: Level, message: &str, has_level: bool) {
    let named = [("message", Value::Str(message)), ("level", Value::Str(level.name()))];
    let from = usize::from(epoch.format() == Format::TrackEvent);
    let named = named.get(from..1 + usize::from(has_level)).unwrap_or_default();
    if cold::event(epoch, &Event { log: Some((priority(level), message)), named, ..*event }).is_some() {
        slow::happened(event.callsite);
    }
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
