//! Scopes, instants and counters with values.
//!
//! Few and short values take a function for each format, in tail position, so that neither saves registers
//! for the other one. All else, and whatever finds no room there, is composed.

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::Values;
use crate::on::thread::hot::{self, Taken};
use crate::on::thread::kind::{Counters, Instants, Kind, Scopes};
use crate::on::thread::open_scope::OpenScope;
use crate::site::CallsiteKind;

/// Records an event with values. Those that [`Values::ARE_HOT`] excludes are composed at once.
#[inline(always)]
pub(super) fn record<K: Kind, V: Values>(callsite: &'static Callsite, values: &V) -> K::Recorded {
    if V::ARE_HOT { short::<K, V>(callsite, values) } else { K::left(callsite, values) }
}

#[inline(never)]
fn short<K: Kind, V: Values>(callsite: &'static Callsite, values: &V) -> K::Recorded {
    let (fxt, packet) = (written::<K, V, true>, written::<K, V, false>);
    hot::continue_seen(this_thread::hot(), callsite, values, fxt, packet, K::left::<V>)
}

/// Writes the record in one of the formats: a function for each.
#[inline(never)]
fn written<K: Kind, V: Values, const IS_FXT: bool>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    values: &V,
    epoch: Epoch,
    taken: Taken,
) -> K::Recorded {
    let now = if IS_FXT {
        hot::fxt::with_values(hot, callsite, K::KIND, values, taken)
    } else if K::KIND == CallsiteKind::Counter {
        hot::packet::counter(hot, callsite, values, taken)
    } else if !V::COLD_ONLY && hot::short_packet::is_long(values) {
        return long_packet::<K, V>(hot, callsite, values, epoch, taken);
    } else {
        hot::short_packet::with_values::<V, 1>(hot, callsite, K::KIND, values, taken)
    };
    match now {
        Some(now) => K::recorded(epoch, now),
        None => K::left(callsite, values),
    }
}

/// As [`written`], for a packet of 128 bytes or more.
#[inline(never)]
fn long_packet<K: Kind, V: Values>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    values: &V,
    epoch: Epoch,
    taken: Taken,
) -> K::Recorded {
    match hot::short_packet::with_values::<V, 2>(hot, callsite, K::KIND, values, taken) {
        Some(now) => K::recorded(epoch, now),
        None => K::left(callsite, values),
    }
}

/// Begins a scope with arguments. Returns the begin if it was recorded.
#[inline(always)]
pub(crate) fn begin<V: Values>(callsite: &'static Callsite, values: &V) -> Option<OpenScope> {
    record::<Scopes, V>(callsite, values)
}

/// Records an instant with arguments.
#[inline(always)]
pub(crate) fn instant<V: Values>(callsite: &'static Callsite, _: Epoch, values: &V) {
    record::<Instants, V>(callsite, values);
}

/// Records the value of a counter.
#[inline(always)]
pub(crate) fn counter<V: Values>(callsite: &'static Callsite, _: Epoch, value: &V) {
    record::<Counters, V>(callsite, value);
}
