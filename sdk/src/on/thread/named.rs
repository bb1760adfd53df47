//! Scopes with a name made at run time.

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::Values;
use crate::on::thread::events::left;
use crate::on::thread::hot::composed::Options;
use crate::on::thread::hot::{self, Taken};
use crate::on::thread::open_scope::OpenScope;

/// Begins a scope. Returns the begin if it was recorded.
#[inline(always)]
pub(crate) fn begin<V: Values>(callsite: &'static Callsite, values: &V, name: &str) -> Option<OpenScope> {
    match values.count() {
        0 => begin_bare(callsite, &name),
        _ => begin_with(callsite, values, name),
    }
}

/// The name is passed by reference: it takes one register, not two.
#[inline(never)]
fn begin_bare(callsite: &'static Callsite, name: &&str) -> Option<OpenScope> {
    hot::continue_seen(this_thread::hot(), callsite, name, written::<true>, written::<false>, begin_left)
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
        None => begin_left(callsite, name),
    }
}

#[cold]
#[inline(never)]
fn begin_left(callsite: &'static Callsite, name: &&str) -> Option<OpenScope> {
    begin_with(callsite, &(), name)
}

#[inline(never)]
fn begin_with<V: Values>(callsite: &'static Callsite, values: &V, name: &str) -> Option<OpenScope> {
    left(callsite, values, Some(&Options { name: Some(name), ..Options::default() }))
}
