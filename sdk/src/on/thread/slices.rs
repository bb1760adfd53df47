//! Slices and events without guards, for the spans of `tracing`, which begin and end slices by explicit
//! calls.

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Values, Visitor, are_plain};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::{Action, Event};
pub(crate) use crate::on::thread::events::begin as begin_slice;
pub(crate) use crate::on::thread::events::begin_flow as begin_flow_slice;
pub(crate) use crate::on::thread::events::{end as end_slice, last_event};
pub(crate) use crate::on::thread::open_scope::{OpenScope, RecordedIn};
use crate::on::thread::{cold, events, hot, slow};
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
    begin_slice_on::<true>(callsite, epoch, values, flow)
        .or_else(|| begin_slice_rich(callsite, epoch, values, &extras_of(flow)))
}

/// The options of an event with a flow, or without one.
pub(crate) fn extras_of(flow: Option<&Flow>) -> Extras<'_> {
    flow.map_or_else(Extras::new, |flow| Extras::new().flow(flow))
}

/// As [`begin_slice_with`], on the hot path alone. Returns `None` if nothing was recorded. It neither
/// allocates nor waits, and runs no code of the program, so the caller may hold a lock.
#[inline]
pub(crate) fn begin_slice_hot(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    flow: Option<&Flow>,
) -> Option<OpenScope> {
    begin_slice_on::<false>(callsite, epoch, values, flow)
}

/// Begins a slice on the hot path, or on the warm one. Returns `None` if nothing was recorded.
#[inline(always)]
fn begin_slice_on<const WARM: bool>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &[Value<'_>],
    flow: Option<&Flow>,
) -> Option<OpenScope> {
    let listed = Listed(values, flow.map(|flow| (flow.id(), flow.state().known_in(epoch.get()).is_some())));
    if !listed.is_plain() {
        return None;
    }
    let (hot, kind) = (this_thread::hot(), CallsiteKind::Scope);
    let now = match hot::with_values::<WARM, _>(hot, callsite, epoch, kind, &listed) {
        None if WARM => hot::with_facts(hot, callsite, epoch, kind, &listed)?,
        now => now?,
    };
    if let Some(flow) = flow {
        flow.state().begin_alone(epoch.get(), now);
    }
    Some(slow::if_timed(callsite, OpenScope::new(epoch, now)))
}

/// Values whose types are known only at run time, and a flow.
struct Listed<'v>(&'v [Value<'v>], Option<(u64, bool)>);

impl Listed<'_> {
    /// Returns whether the hot path can write all values.
    fn is_plain(&self) -> bool {
        are_plain(self.0)
    }
}

impl Values for Listed<'_> {
    const COLD_ONLY: bool = false;

    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn flow(&self) -> Option<(u64, bool)> {
        self.1
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
    if let (Some(_), Some(track)) = (cold::event(epoch, &event), track) {
        track.set_instant_time(epoch, last_event());
    }
}

/// Records an instant with arguments whose names the callsite does not have.
pub(crate) fn instant_with(callsite: &'static Callsite, epoch: Epoch, named: &[(&str, Value<'_>)]) {
    let extras = Extras::new();
    let event = Event { action: Action::Instant, named, ..Event::new(callsite, &[], &extras) };
    cold::event(epoch, &event);
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
            cold::event(epoch, &event);
        }
    }
}
