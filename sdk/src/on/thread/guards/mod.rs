//! The guards that the macros return. Dropping a guard ends its interval.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Argument, Held, Values};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::on_track::TrackRef;
use crate::on::event::position::TrackAction;
use crate::on::event::text::Text;
use crate::on::event::{Action, Event};
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::{Collected, EndArguments};
use crate::on::thread::late::{self, EndWith};
use crate::on::thread::open_scope::{End, OpenScope};
use crate::on::thread::{cold, events, hot, named, plain, valued};
use crate::options::Format;

pub(crate) mod interval;
pub(crate) mod on_track;

/// An interval on this thread's track, from the macro to the drop of this guard.
///
/// The begin reserves room in the ring for the end: 16 bytes in FXT, 25 in TrackEvent. A forgotten scope
/// ([`std::mem::forget`]) holds this room until its thread ends. Hundreds of thousands of them fill the ring:
/// events of all threads are then lost and counted as [`Lost::buffer_full`](crate::Lost::buffer_full), and
/// the summary has a note about it.
///
/// The slices of a thread nest: an end closes the slice that began last. So a scope must not be held across
/// an `.await`: on a runtime with a single thread the scopes of two tasks would end each other. A runtime
/// with several threads refuses such a task, since a scope is not `Send`. Use `#[trace]` or
/// [`traced`](crate::TraceFuture::traced) for a future. The lint `await_holding_invalid_type` of clippy finds
/// such scopes, with this line in `clippy.toml`:
/// `await-holding-invalid-types = ["hairline::Scope"]`.
///
/// A scope that ends while a later one is open is counted in
/// [`Summary::out_of_order`](crate::Summary::out_of_order). Its end has the argument `hairline_out_of_order`
/// with its name, by which `hairline validate` finds it in the trace.
///
/// ```
/// use hairline::scope;
///
/// let query = scope!("db", "query"); // a guard, to be ended before its block
/// assert!(!query.is_recorded()); // no session runs
/// drop(query);
/// ```
#[must_use = "the scope ends when this guard is dropped; for code with an `.await` use `#[trace]` or `traced`"]
#[derive(Debug)]
pub struct Scope {
    callsite: &'static Callsite,
    /// The begin, if it was recorded.
    open: Option<OpenScope>,
    /// Present only if the begin was recorded, and taken by the drop: so a disabled scope has nothing to
    /// drop.
    arguments: ManuallyDrop<Collected>,
    /// A scope ends on the thread that it began on.
    not_send: PhantomData<*const ()>,
}

impl Scope {
    #[inline(always)]
    fn new(callsite: &'static Callsite, open: Option<OpenScope>) -> Self {
        Self { callsite, open, arguments: ManuallyDrop::new(Collected::None), not_send: PhantomData }
    }

    /// Makes a guard that records nothing.
    #[doc(hidden)]
    #[inline(always)]
    pub fn none(callsite: &'static Callsite) -> Self {
        Self::new(callsite, None)
    }

    /// Begins a scope.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin(callsite: &'static Callsite, _epoch: Epoch) -> Self {
        Self::new(callsite, plain::begin(callsite))
    }

    /// Begins a scope with arguments.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin_with<V: Values>(callsite: &'static Callsite, _epoch: Epoch, values: &V) -> Self {
        Self::new(callsite, valued::begin(callsite, values))
    }

    /// Begins a scope with options.
    #[doc(hidden)]
    pub fn begin_rich(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        Self::new(callsite, events::begin_rich(callsite, epoch, values, extras))
    }

    /// Begins a scope with a name made at run time.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin_named(callsite: &'static Callsite, _epoch: Epoch, values: &impl Values, name: &str) -> Self {
        Self::new(callsite, named::begin(callsite, values, name))
    }

    /// Begins a scope that a flow passes through.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin_flow(callsite: &'static Callsite, epoch: Epoch, flow: &Flow) -> Self {
        Self::new(callsite, events::begin_flow(callsite, epoch, flow))
    }

    /// Returns whether the begin was recorded.
    #[inline]
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.open.is_some()
    }

    /// Returns the epoch in which the begin was recorded.
    #[inline]
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.open.map(OpenScope::epoch)
    }

    /// Adds an argument to the record of the scope's end: for values that are known only after the begin. If
    /// the ring has no room for it, the end is recorded without it, and
    /// [`Lost::arguments`](crate::Lost::arguments) counts it.
    ///
    /// ```
    /// let mut query = hairline::scope!("db", "query");
    /// let rows = [1, 2, 3];
    /// query.arg("rows", rows.len());
    /// ```
    #[inline]
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.open.is_some() {
            let held = value.hold();
            self.arguments.add(key, &held.value());
        }
        self
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = self.open {
            match *self.arguments {
                Collected::None => plain::end(self.callsite, open),
                Collected::One(number) => {
                    late::end_with_number(&EndWith { end: End { callsite: self.callsite, open }, number });
                }
                ref mut arguments => late::end_with(&End { callsite: self.callsite, open }, arguments),
            }
        }
    }
}

/// Records the end of a slice on a track, in the session with `epoch`.
fn end_on_track(
    callsite: &'static Callsite,
    epoch: Epoch,
    track: TrackRef<'_>,
    arguments: Option<Box<EndArguments>>,
) -> TrackEnd {
    let position = track.position(epoch);
    if arguments.is_none()
        && let Some(time) = hot::bare_at(this_thread::hot(), callsite, epoch, TrackAction::End, position)
    {
        return TrackEnd::Recorded(time);
    }
    let (extras, after) = (Extras::new(), position.after);
    let event =
        Event { action: Action::End, after, track: Some(track), ..Event::new(callsite, &[], &extras) };
    match arguments {
        None => cold::end_on_track(epoch, &event),
        Some(arguments) => {
            let end = arguments.show(|named| cold::end_on_track(epoch, &Event { named, ..event }));
            EndArguments::keep(arguments);
            end
        }
    }
}

/// Records a log message.
pub fn log(callsite: &'static Callsite, epoch: Epoch, level: crate::Level, body: &Text) {
    let Value::Str(body) = body.value() else { return };
    let has_level = epoch.format() == Format::Fxt;
    events::log_message(&Event::new(callsite, &[], &Extras::new()), epoch, level, body, has_level);
}
