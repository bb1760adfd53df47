//! Slices and events without the guards of the macros: for the spans of others, which begin and end them on their own.

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Kind};
use crate::on::event::argument::{Values, Visitor};
use crate::on::event::extras::Extras;
use crate::on::event::{Action, Event};
pub(crate) use crate::on::thread::events::begin as begin_slice;
pub(crate) use crate::on::thread::events::begin_flow as begin_flow_slice;
pub(crate) use crate::on::thread::events::end as end_slice;
use crate::on::thread::{cold, events, hot};
use crate::vocabulary::Level;

/// Begins a slice with the values of its callsite's keys. The epoch it was recorded in, 0 if it was not.
#[inline(never)]
pub(crate) fn begin_slice_with(callsite: &'static Callsite, word: u32, values: &[Value<'_>]) -> u32 {
    if begin_slice_hot(callsite, word, values) {
        return word;
    }
    cold::event(word, &Event::new(callsite, values, &Extras::new()))
}

/// The same where the hot path can do it; false: nothing is recorded. It neither allocates nor waits, and
/// runs no code of the program, so that the caller may hold a lock.
#[inline]
pub(crate) fn begin_slice_hot(callsite: &'static Callsite, word: u32, values: &[Value<'_>]) -> bool {
    let listed = Listed(values);
    listed.is_plain()
        && hot::with_values::<false, _>(this_thread::hot(), callsite, word, Kind::Scope, &listed)
}

/// Values whose kinds are known only when they are there.
struct Listed<'v>(&'v [Value<'v>]);

impl Listed<'_> {
    /// Whether all are what the hot path can write.
    fn is_plain(&self) -> bool {
        let plain = |value: &Value<'_>| {
            !matches!(value, Value::Dict(_) | Value::Array(_) | Value::Blob(_) | Value::Interned { .. })
        };
        self.0.iter().all(plain)
    }
}

impl Values for Listed<'_> {
    const NESTED: bool = false;

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

/// Begins a slice with options.
pub(crate) fn begin_slice_rich(callsite: &'static Callsite, word: u32, extras: &Extras<'_>) -> u32 {
    cold::event(word, &Event::new(callsite, &[], extras))
}

/// Ends a slice with arguments.
pub(crate) fn end_slice_with(callsite: &'static Callsite, word: u32, named: &[(&str, Value<'_>)]) {
    let extras = Extras::new();
    let event = Event { action: Action::End, named, ..Event::new(callsite, &[], &extras) };
    cold::end_with(&event, word);
}

/// An instant, whatever the callsite's own events are.
pub(crate) fn instant_of(callsite: &'static Callsite, word: u32, extras: &Extras<'_>) {
    cold::event(word, &Event { action: Action::Instant, ..Event::new(callsite, &[], extras) });
}

/// An event with a level: an instant, or with a message a log message that is named after it.
pub(crate) fn event_of(
    callsite: &'static Callsite,
    word: u32,
    values: &[Value<'_>],
    message: Option<&str>,
    level: Level,
) {
    let Some(message) = message else {
        cold::event(word, &Event::new(callsite, values, &Extras::new()));
        return;
    };
    let extras = Extras::new().name(message);
    events::log_message(&Event::new(callsite, values, &extras), word, level, message);
}

/// When this thread's last event was.
#[inline]
pub(crate) fn last_time() -> u64 {
    this_thread::hot().lease().last()
}
