//! Slices and events without guards, for the spans of `tracing`, which begin and end slices by explicit
//! calls.

use hairline_formats::Value;

use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Values, Visitor, are_plain};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::{Action, Event};
pub(crate) use crate::on::thread::events::begin_flow as begin_flow_slice;
pub(crate) use crate::on::thread::events::last_event;
use crate::on::thread::hot::composed::Options;
use crate::on::thread::kind::Kind;
pub(crate) use crate::on::thread::open_scope::{OpenScope, RecordedIn};
pub(crate) use crate::on::thread::plain::{begin as begin_slice, end as end_slice};
use crate::on::thread::{cold, events, hot, slow, valued};
use crate::site::CallsiteKind;
use crate::vocabulary::Level;

/// Begins a slice with the values of its callsite's keys, and with a flow through it. Returns the begin if it
/// was recorded.
#[inline(never)]
pub(crate) fn begin_slice_with(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    flow: Option<&Flow>,
) -> Option<OpenScope> {
    begin_composed(callsite, epoch, &Listed(values), flow)
        .or_else(|| begin_slice_rich(callsite, epoch, values, &extras_of(flow)))
}

/// The options of an event with a flow, or without one.
pub(crate) fn extras_of(flow: Option<&Flow>) -> Extras<'_> {
    flow.map_or_else(Extras::new, |flow| Extras::new().flow(flow))
}

/// As [`begin_slice_with`], but not on the cold path. Returns `None` if nothing was recorded. It neither
/// allocates nor waits, and runs no code of the program, so the caller may hold a lock.
pub(crate) fn begin_slice_hot(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    flow: Option<&Flow>,
) -> Option<OpenScope> {
    match flow {
        _ if !are_plain(values) => None,
        None => valued::record::<Slices, _>(callsite, &Listed(values)),
        flow => begin_composed(callsite, epoch, &Listed(values), flow),
    }
}

/// Slices that the hot path begins, or nobody.
struct Slices;

impl Kind for Slices {
    const KIND: CallsiteKind = CallsiteKind::Scope;
    type Recorded = Option<OpenScope>;

    #[inline(always)]
    fn recorded(epoch: Epoch, now: u64) -> Option<OpenScope> {
        Some(OpenScope::new(epoch, now))
    }

    fn watched(callsite: &'static Callsite, epoch: Epoch, now: u64) -> Option<OpenScope> {
        Some(slow::if_timed(callsite, OpenScope::new(epoch, now)))
    }

    #[cold]
    #[inline(never)]
    fn left<V: Values>(callsite: &'static Callsite, values: &V) -> Option<OpenScope> {
        begin_composed(callsite, callsite.epoch()?, values, None)
    }
}

fn begin_composed(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &impl Values,
    flow: Option<&Flow>,
) -> Option<OpenScope> {
    let options = flow.map(|flow| Options { flow: Some(flow), ..Options::default() });
    let now = hot::composed::event(callsite, epoch, values, options.as_ref())?;
    Some(slow::if_timed(callsite, OpenScope::new(epoch, now)))
}

/// Values whose types are known only at run time.
struct Listed<'v>(&'v [Value<'v>]);

impl Values for Listed<'_> {
    const COLD_ONLY: bool = false;

    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn each<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
        for (n, value) in self.0.iter().enumerate() {
            visitor.visit(at + n, *value);
        }
    }
}

/// Begins a slice with options. Returns the begin if it was recorded.
pub(crate) fn begin_slice_rich(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    extras: &Extras<'_>,
) -> Option<OpenScope> {
    cold::begin(epoch, &Event::new(callsite, values, extras)).map(|open| slow::if_timed(callsite, open))
}

/// Ends a slice with arguments.
pub(crate) fn end_slice_with(callsite: &'static Callsite, open: OpenScope, named: &[(&str, Value<'_>)]) {
    let extras = Extras::new();
    let event = Event { action: Action::End, named, ..Event::new(callsite, &[], &extras) };
    cold::end_with(&event, open);
    slow::ended(callsite, open);
}

/// Records an instant, whatever the callsite's kind.
pub(crate) fn instant_of(callsite: &'static Callsite, epoch: Epoch, extras: &Extras<'_>) {
    let track = extras.track.filter(|track| track.is_of(epoch));
    let after = track.map_or(0, |track| track.position(epoch).after);
    let event = Event { action: Action::Instant, after, ..Event::new(callsite, &[], extras) };
    match (cold::event(epoch, &event), track) {
        (Some(_), Some(track)) => track.set_instant_time(epoch, last_event()),
        (Some(_), None) => slow::happened(callsite),
        (None, _) => {}
    }
}

/// Records an instant with arguments whose names the callsite does not have.
pub(crate) fn instant_with(callsite: &'static Callsite, epoch: Epoch, named: &[(&str, Value<'_>)]) {
    let extras = Extras::new();
    let event = Event { action: Action::Instant, named, ..Event::new(callsite, &[], &extras) };
    if cold::event(epoch, &event).is_some() {
        slow::happened(callsite);
    }
}

/// Records an event with a level. With a message it is also a log message; without one it is an instant.
pub(crate) fn event_of(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    extras: &Extras<'_>,
    message: Option<&str>,
    level: Level,
) {
    let event = Event::new(callsite, values, extras);
    match message {
        // The level, if it is recorded, is one of the values.
        Some(message) => events::log_message(&event, epoch, level, message, false),
        None => {
            if cold::event(epoch, &event).is_some() {
                slow::happened(callsite);
            }
        }
    }
}
