//! The kinds of events that the macros record, with what the program needs of a recorded one.

use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::Values;
use crate::on::thread::events::left;
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::{hot, slow};
use crate::site::CallsiteKind;

/// A kind of event.
pub(super) trait Kind {
    const KIND: CallsiteKind;
    /// What the program needs of a recorded event.
    type Recorded;

    fn recorded(epoch: Epoch, now: u64) -> Self::Recorded;

    /// As [`recorded`](Self::recorded), at a callsite that the session looks at.
    fn watched(callsite: &'static Callsite, epoch: Epoch, now: u64) -> Self::Recorded;

    /// Records an event that the hot path has left. Not inlined: the hot path saves no registers for it.
    fn left<V: Values>(callsite: &'static Callsite, values: &V) -> Self::Recorded;
}

pub(super) struct Scopes;

impl Kind for Scopes {
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
        left(callsite, values, None)
    }
}

pub(super) struct Instants;

impl Kind for Instants {
    const KIND: CallsiteKind = CallsiteKind::Instant;
    type Recorded = ();

    #[inline(always)]
    fn recorded(_: Epoch, _: u64) {}

    fn watched(callsite: &'static Callsite, _: Epoch, _: u64) {
        slow::happened(callsite);
    }

    #[cold]
    #[inline(never)]
    fn left<V: Values>(callsite: &'static Callsite, values: &V) {
        left(callsite, values, None);
    }
}

pub(super) struct Counters;

impl Kind for Counters {
    const KIND: CallsiteKind = CallsiteKind::Counter;
    type Recorded = ();

    #[inline(always)]
    fn recorded(_: Epoch, _: u64) {}

    fn watched(_: &'static Callsite, _: Epoch, _: u64) {}

    #[cold]
    #[inline(never)]
    fn left<V: Values>(callsite: &'static Callsite, value: &V) {
        if hot::counter_with_unit(callsite, value).is_none() {
            left(callsite, value, None);
        }
    }
}
