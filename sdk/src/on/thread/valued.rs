//! Scopes, instants and counters with values.
//!
//! Few and short values take a function for each format, in tail position, so that neither saves registers
//! for the other one. All else, and whatever finds no room there, takes the slow way.

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::thread::events::{if_scope, is_lost_again, rich};
use crate::on::thread::hot::{self, Taken};
use crate::on::thread::kind::{Counters, Instants, Kind, Scopes};
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::slow;
use crate::site::CallsiteKind;

/// A kind of event with values.
trait Valued: Kind {
    fn slow<V: Values>(callsite: &'static Callsite, values: &V) -> Self::Recorded;
}

#[inline(never)]
fn short<K: Valued, V: Values>(callsite: &'static Callsite, values: &V) -> K::Recorded {
    if !V::ARE_HOT {
        return K::slow(callsite, values);
    }
    let (fxt, packet) = (written::<K, V, true>, written::<K, V, false>);
    hot::continue_seen(this_thread::hot(), callsite, values, fxt, packet, K::slow::<V>)
}

/// Writes the record in one of the formats: a function for each.
#[inline(never)]
fn written<K: Valued, V: Values, const IS_FXT: bool>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    values: &V,
    epoch: Epoch,
    taken: Taken,
) -> K::Recorded {
    let now = if IS_FXT {
        hot::fxt::with_short_values(hot, callsite, K::KIND, values, taken)
    } else if K::KIND == CallsiteKind::Counter {
        hot::packet::counter::<false>(hot, callsite, values, taken)
    } else {
        hot::short_packet::with_short_values(hot, callsite, K::KIND, values, taken)
    };
    match now {
        Some(now) => K::recorded(epoch, now),
        None => K::slow(callsite, values),
    }
}

impl Valued for Scopes {
    #[cold]
    #[inline(never)]
    fn slow<V: Values>(callsite: &'static Callsite, values: &V) -> Option<OpenScope> {
        let epoch = callsite.epoch()?;
        if V::COLD_ONLY { begin_nested(callsite, epoch, values) } else { begin_any(callsite, epoch, values) }
    }
}

impl Valued for Instants {
    #[cold]
    #[inline(never)]
    fn slow<V: Values>(callsite: &'static Callsite, values: &V) {
        match callsite.epoch() {
            None => {}
            Some(epoch) if V::COLD_ONLY => instant_nested(callsite, epoch, values),
            Some(epoch) => _ = any(callsite, epoch, CallsiteKind::Instant, values),
        }
    }
}

impl Valued for Counters {
    #[cold]
    #[inline(never)]
    fn slow<V: Values>(callsite: &'static Callsite, value: &V) {
        let Some(epoch) = callsite.epoch() else { return };
        if hot::counter_with_unit(this_thread::hot(), callsite, epoch, value).is_none() {
            any(callsite, epoch, CallsiteKind::Counter, value);
        }
    }
}

/// Begins a scope with arguments. Returns the begin if it was recorded.
#[inline(always)]
pub(crate) fn begin<V: Values>(callsite: &'static Callsite, values: &V) -> Option<OpenScope> {
    short::<Scopes, V>(callsite, values)
}

/// Begins a scope with nested arguments. Returns the begin if it was recorded.
#[inline(never)]
pub(crate) fn begin_nested<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
) -> Option<OpenScope> {
    match hot::composed::event(callsite, epoch, values, None) {
        Some(now) => {
            let begun = if_scope(callsite, Some(OpenScope::new(epoch, now)))?;
            Some(slow::if_timed(callsite, begun))
        }
        None => begin_any(callsite, epoch, values),
    }
}

#[inline(always)]
fn begin_any<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) -> Option<OpenScope> {
    let begun = any(callsite, epoch, CallsiteKind::Scope, values);
    if_scope(callsite, begun).map(|begun| slow::if_timed(callsite, begun))
}

/// Records an instant with arguments.
#[inline(always)]
pub(crate) fn instant<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) {
    if V::ARE_HOT {
        short::<Instants, V>(callsite, values);
    } else {
        instant_nested(callsite, epoch, values);
    }
}

#[inline(never)]
fn instant_nested<V: Values>(callsite: &'static Callsite, epoch: Epoch, values: &V) {
    if hot::composed::event(callsite, epoch, values, None).is_none() {
        any(callsite, epoch, CallsiteKind::Instant, values);
    }
}

/// Records the value of a counter.
#[inline(always)]
pub(crate) fn counter<V: Values>(callsite: &'static Callsite, _: Epoch, value: &V) {
    short::<Counters, V>(callsite, value);
}

/// Records an event with any values.
#[inline(always)]
fn any<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    kind: CallsiteKind,
    values: &V,
) -> Option<OpenScope> {
    let hot = this_thread::hot();
    if hot.is_unusual() {
        if is_lost_again(callsite) {
            return None;
        }
        if let Some(now) = hot::with_facts(hot, callsite, epoch, kind, values) {
            return Some(OpenScope::new(epoch, now));
        }
    }
    match hot::with_values::<true, _>(hot, callsite, epoch, kind, values) {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => rich(callsite, epoch, values, &Extras::new()),
    }
}
