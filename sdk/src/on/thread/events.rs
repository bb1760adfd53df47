//! The functions that the macros call: each records one kind of event, on the hot path if possible, else on
//! the cold path.
//!
//! `epoch` is that of the callsite. For a callsite that was never hit it is [`Epoch::UNREGISTERED`], which
//! equals no session's epoch, so that the event takes the cold path.

use std::marker::PhantomData;

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::on::base::few::Few;
use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::Event;
use crate::on::event::argument::{Values, Visitor};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::on_track::{OnTrack, Sealed, TrackRef};
use crate::on::event::position::TrackAction;
use crate::on::event::track::Track;
use crate::on::thread::hot::Taken;
use crate::on::thread::kind::{Instants, Kind, Scopes};
use crate::on::thread::open_scope::{End, OpenScope};
use crate::on::thread::{cold, hot, slow, starved};
use crate::options::Format;
use crate::site::CallsiteKind;
use crate::vocabulary::Level;

// Each kind of event has two functions: one with the hot path, and one that follows if the hot path fails.
// They are not inlined into the traced program. So a disabled callsite is a load and a branch there, the
// calls need no saved register, and a program with thousands of callsites has one hot path in its cache.

/// A kind of event without arguments.
trait Plain: Kind {
    fn slow(callsite: &'static Callsite) -> Self::Recorded;
}

/// The functions that continue an event: see [`hot::Next`].
struct Next<K>(PhantomData<K>);

impl<K: Plain> Next<K> {
    const ALL: hot::Next<K::Recorded> = hot::Next {
        packet: packet::<K>,
        unseen: unseen::<K>,
        located_packet: located_packet::<K>,
        far: far::<K>,
        slow: K::slow,
    };
}

#[inline(always)]
fn plain<K: Plain>(callsite: &'static Callsite) -> K::Recorded {
    hot::plain_or(this_thread::hot(), callsite, K::KIND, Next::<K>::ALL, K::recorded)
}

#[inline(never)]
fn unseen<K: Plain>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    hot::plain_unseen(hot, callsite, K::KIND, (room, taken, epoch), Next::<K>::ALL, K::recorded)
}

#[inline(never)]
fn far<K: Plain>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    hot::plain_far(hot, callsite, K::KIND, (room, taken, epoch), Next::<K>::ALL, K::recorded)
}

#[inline(never)]
fn located_packet<K: Plain>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    match hot::packet::located(hot, callsite, K::KIND, room, taken) {
        Some(now) => K::recorded(epoch, now),
        None => K::slow(callsite),
    }
}

#[inline(never)]
fn packet<K: Plain>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    match hot::packet::plain::<false>(hot, callsite, K::KIND, room, taken) {
        Some(now) => K::recorded(epoch, now),
        None => K::slow(callsite),
    }
}

/// Begins a scope. Returns the begin if it was recorded.
#[inline(never)]
pub(crate) fn begin(callsite: &'static Callsite) -> Option<OpenScope> {
    plain::<Scopes>(callsite)
}

impl Plain for Scopes {
    #[cold]
    #[inline(never)]
    fn slow(callsite: &'static Callsite) -> Option<OpenScope> {
        let hot = this_thread::hot();
        if hot.is_unusual() { begin_unusual(callsite) } else { begin_warm(hot, callsite) }
    }
}

// A program whose ring is full comes here with each event: the functions that need many registers are behind.
#[inline(never)]
fn begin_unusual(callsite: &'static Callsite) -> Option<OpenScope> {
    if starved::is_lost_again(callsite) { None } else { begin_detailed(callsite) }
}

#[inline(never)]
fn begin_detailed(callsite: &'static Callsite) -> Option<OpenScope> {
    let (hot, epoch) = (this_thread::hot(), callsite.epoch()?);
    match hot::with_facts(hot, callsite, epoch, CallsiteKind::Scope, &()) {
        Some(now) => Some(slow::if_timed(callsite, OpenScope::new(epoch, now))),
        None => begin_warm(hot, callsite),
    }
}

#[inline(never)]
fn begin_warm(hot: &'static Hot, callsite: &'static Callsite) -> Option<OpenScope> {
    let begun = hot::plain::<true>(hot, callsite, CallsiteKind::Scope)
        .or_else(|| if_scope(callsite, bare(callsite, callsite.epoch()?)))?;
    Some(slow::if_timed(callsite, begun))
}

/// Returns `recorded`, an event of the cold path, if the callsite is a scope's. The end of a scope goes into
/// room that its begin has reserved, and no other event reserves any.
pub(super) fn if_scope(callsite: &'static Callsite, recorded: Option<OpenScope>) -> Option<OpenScope> {
    recorded.filter(|_| callsite.kind() == CallsiteKind::Scope)
}

/// Begins a scope with options. Returns the begin if it was recorded.
pub(crate) fn begin_rich(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &impl Values,
    extras: &Extras<'_>,
) -> Option<OpenScope> {
    let recorded = if_scope(callsite, rich(callsite, epoch, values, extras));
    // Nor does a slice on a track reserve room.
    recorded.filter(|_| extras.track.is_none()).map(|begun| slow::if_timed(callsite, begun))
}

/// Begins a scope that a flow passes through. Returns the begin if it was recorded.
#[inline(never)]
pub(crate) fn begin_flow(callsite: &'static Callsite, epoch: Epoch, flow: &Flow) -> Option<OpenScope> {
    match hot::with_flow::<false>(this_thread::hot(), callsite, epoch, flow) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => begin_flow_slow(callsite, epoch, flow),
    }
}

#[cold]
#[inline(never)]
fn begin_flow_slow(callsite: &'static Callsite, epoch: Epoch, flow: &Flow) -> Option<OpenScope> {
    match hot::with_flow::<true>(this_thread::hot(), callsite, epoch, flow) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => if_scope(callsite, rich(callsite, epoch, &(), &Extras::new().flow(flow))),
    }
    .map(|begun| slow::if_timed(callsite, begun))
}

/// Ends a recorded scope. One that is not the innermost is counted, and its end is marked.
#[inline(always)]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope) {
    end_of(&End { callsite, open });
}

#[inline(never)]
fn end_of(end: &End) {
    hot::end_or(this_thread::hot(), end, end_packet, end_slow);
}

#[inline(never)]
fn end_packet(hot: &'static Hot, end: &End, id: u32, taken: Taken) {
    if !hot::packet::end::<false>(hot, id, taken) {
        end_slow(end);
    }
}

#[cold]
#[inline(never)]
fn end_slow(end: &End) {
    let hot = this_thread::hot();
    if !hot::end(hot, end) && !hot::facts::end(hot, end) {
        cold::end(end.callsite, end.open);
    }
    slow::ended(end.callsite, end.open);
}

/// Records an instant.
#[inline(never)]
pub fn instant(callsite: &'static Callsite, _epoch: Epoch) {
    plain::<Instants>(callsite);
}

impl Plain for Instants {
    #[cold]
    #[inline(never)]
    fn slow(callsite: &'static Callsite) {
        let hot = this_thread::hot();
        if hot.is_unusual() && (is_lost_again(callsite) || instant_with_facts(hot, callsite)) {
            return;
        }
        if hot::plain::<true>(hot, callsite, CallsiteKind::Instant).is_none()
            && let Some(epoch) = callsite.epoch()
        {
            bare(callsite, epoch);
        }
    }
}

fn instant_with_facts(hot: &Hot, callsite: &'static Callsite) -> bool {
    let epoch = callsite.epoch();
    epoch.and_then(|epoch| hot::with_facts(hot, callsite, epoch, CallsiteKind::Instant, &())).is_some()
}

/// [`starved::is_lost_again`], not inlined.
#[inline(never)]
pub(super) fn is_lost_again(callsite: &'static Callsite) -> bool {
    starved::is_lost_again(callsite)
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
    counter_on_slow(callsite, epoch, value, track);
}

#[cold]
#[inline(never)]
fn counter_on_slow<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    value: &V,
    track: Option<TrackRef<'_>>,
) {
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
    if extras.name.is_some()
        && extras.has_only_name()
        && let Some(now) = composed_named(callsite, epoch, values, extras.name)
    {
        return Some(OpenScope::new(epoch, now));
    }
    let happens = match callsite.kind() {
        CallsiteKind::Scope => Some(TrackAction::Begin),
        CallsiteKind::Instant => Some(TrackAction::Instant),
        CallsiteKind::Counter | CallsiteKind::End => None,
    };
    let track = extras.track.filter(|track| track.is_of(epoch));
    if callsite.kind() == CallsiteKind::Counter
        && extras.has_only_track()
        && let uuid = track.map(TrackRef::uuid)
        && let Some(now) = hot::counter_on_track(this_thread::hot(), callsite, epoch, uuid, values)
    {
        return Some(OpenScope::new(epoch, now));
    }
    let position = track.map(|track| track.position(epoch));
    let is_instant = happens == Some(TrackAction::Instant);
    if let (Some(happens), Some(position)) = (happens, position.filter(|_| extras.has_only_track()))
        && let Some(now) = hot::on_track(this_thread::hot(), callsite, epoch, happens, position, values)
    {
        if let Some(track) = track.filter(|_| is_instant) {
            track.set_instant_time(epoch, now);
        }
        return Some(OpenScope::new(epoch, now));
    }
    let after = happens.and(position).map_or(0, |position| position.after);
    let recorded = with_list(values, |values| {
        cold::begin(epoch, &Event { after, ..Event::new(callsite, values, extras) })
    })?;
    if let Some(track) = track.filter(|_| is_instant) {
        track.set_instant_time(epoch, last_event());
    }
    Some(recorded)
}

/// [`hot::composed::event`], not inlined: the cold path must not have its buffers on the stack.
#[inline(never)]
fn composed_named<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: Option<&str>,
) -> Option<u64> {
    hot::composed::event(callsite, epoch, values, name)
}

/// Records an instant, or the value of a counter, with options.
#[inline(never)]
pub(crate) fn event_rich<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    extras: &Extras<'_>,
) {
    rich(callsite, epoch, values, extras);
}

/// Records an event without arguments and options on the cold path.
fn bare(callsite: &'static Callsite, epoch: Epoch) -> Option<OpenScope> {
    cold::begin(epoch, &Event::new(callsite, &[], &Extras::new()))
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
