//! Scopes with a name made at run time.

use hairline_formats::Value;

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::Event;
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::thread::events::{if_scope, with_list};
use crate::on::thread::hot::Taken;
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::{cold, hot, slow};

/// Begins a scope. Returns the begin if it was recorded.
#[inline(always)]
pub(crate) fn begin<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: &str,
) -> Option<OpenScope> {
    match values.count() {
        0 => begin_bare(callsite, &name),
        _ => begin_with(callsite, epoch, values, name),
    }
}

/// The name is passed by reference: it takes one register, not two.
#[inline(never)]
fn begin_bare(callsite: &'static Callsite, name: &&str) -> Option<OpenScope> {
    hot::continue_seen(this_thread::hot(), callsite, name, written::<true>, written::<false>, begin_warm)
}

/// Writes the record in one of the formats: a function for each.
#[inline(never)]
fn written<const IS_FXT: bool>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    name: &&str,
    epoch: Epoch,
    taken: Taken,
) -> Option<OpenScope> {
    let now = if IS_FXT {
        hot::named::in_fxt(hot, callsite, name, taken)
    } else {
        hot::named::in_packet(hot, callsite, name, taken)
    };
    match now {
        Some(now) => Some(OpenScope::new(epoch, now)),
        None => begin_warm(callsite, name),
    }
}

#[cold]
#[inline(never)]
fn begin_warm(callsite: &'static Callsite, name: &&str) -> Option<OpenScope> {
    match hot::composed::begin_named(callsite, name) {
        None => begin_slow(callsite, callsite.epoch()?, &(), name),
        Some(begun) => Some(slow::if_timed(callsite, begun)),
    }
}

#[inline(never)]
fn begin_with<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: &str,
) -> Option<OpenScope> {
    match hot::composed::event(callsite, epoch, values, Some(name)) {
        Some(now) => {
            let begun = if_scope(callsite, Some(OpenScope::new(epoch, now)))?;
            Some(slow::if_timed(callsite, begun))
        }
        None => begin_slow(callsite, epoch, values, name),
    }
}

#[cold]
#[inline(never)]
fn begin_slow<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: &str,
) -> Option<OpenScope> {
    let extras = Extras::new().name(name);
    let event = |values: &[Value<'_>]| cold::begin(epoch, &Event::new(callsite, values, &extras));
    if_scope(callsite, with_list(values, event)).map(|begun| slow::if_timed(callsite, begun))
}
