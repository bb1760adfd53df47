//! Futures and streams whose lives and polls are recorded.
//!
//! ```text
//! async track   [ request ................................... ]     from `traced` to the end, or the drop
//! thread 1        [ request ] ──┐                [ request ]        each poll, on the thread that polls
//! thread 2                      └─> [ request ] ──┘                 linked by a flow
//! ```
//!
//! An interval `next` below the life of a stream is there while an item is waited for: between two items, the
//! stream waits for its consumer. The first one is always there, which tells the life of a stream.
//!
//! While a traced future is polled, it is the thread's current one: the intervals of futures that are wrapped
//! meanwhile go below its interval.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use hairline_formats::Value;

use crate::on::bridges::long_polls::PollOfTask;
#[cfg(feature = "futures")]
use crate::on::bridges::polled::Next;
use crate::on::bridges::polled::{self, Recorded};
#[cfg(feature = "subscriber")]
use crate::on::bridges::tracing;
use crate::on::callsite::{Callsite, Epoch, registry};
use crate::on::event::argument::{Argument, Held, Values};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::lifecycle::{connect, entry};
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::Scope;
use crate::on::thread::guards::interval::AsyncScope;
#[cfg(feature = "futures")]
use crate::site::{CallsiteKind, Site};

/// Adds an argument to the end of the future that this thread polls: the innermost one with `traced`,
/// [`trace_future!`](crate::trace_future) or `#[trace]`. Outside of a recorded future it does nothing.
///
/// The argument is in the record of the end of the future's life, whenever that ends.
///
/// ```
/// use hairline::{future_arg, trace};
///
/// #[trace("web", args(id))]
/// async fn answer(id: u64) -> u16 {
///     let status = if id == 0 { 404 } else { 200 };
///     future_arg("status", status);
///     status
/// }
/// ```
pub fn future_arg(key: &'static str, value: impl Argument) {
    if !polled::takes_arguments() {
        return;
    }
    // The value's own code runs before the list is taken: it may add arguments too, or panic.
    let held = value.hold();
    match held.value() {
        value @ (Value::Dict(_) | Value::Array(_)) => {
            let mut copy = None;
            EndArguments::add_to(&mut copy, key, &value);
            let Some(copy) = copy else { return };
            copy.each(|_, value| polled::add(key, value));
            EndArguments::keep(copy);
        }
        value => polled::add(key, &value),
    }
}

/// Calls `begin` with the innermost life that is current on this thread as the track, if there is one: that
/// of the future that it polls, or of the span of `tracing` that it has entered.
pub(crate) fn below_current<R>(begin: impl FnOnce(&Extras<'_>) -> R) -> R {
    polled::with_interval(|polled| {
        #[cfg(feature = "subscriber")]
        if let Some(life) = tracing::innermost_life(polled.map_or(0, |(_, spans)| spans)) {
            return begin(&Extras::new().below(&life));
        }
        match polled {
            Some((above, _)) => begin(&Extras::new().track(above)),
            None => begin(&Extras::new()),
        }
    })
}

/// The recorded life of a future.
#[derive(Debug)]
pub struct Life {
    callsite: &'static Callsite,
    /// `None` if the life is over or not recorded.
    recorded: Option<Recorded>,
}

impl Life {
    /// Makes a life that is not recorded.
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { callsite, recorded: None }
    }

    /// Begins a life: on the track of the options, by default below the innermost life that is current.
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let interval = if extras.track.is_some() {
            AsyncScope::begin(callsite, epoch, values, extras)
        } else {
            // Not an owner of what is above: an executor may run the future on its own.
            below_current(|below| {
                AsyncScope::begin(callsite, epoch, values, &Extras { track: below.track, ..Extras::new() })
            })
        };
        Self::of(callsite, interval)
    }

    /// Begins the life of the future that the caller wraps. The callsite is the caller's place in the source.
    #[track_caller]
    pub(crate) fn begin_here(category: &'static str, name: &'static str) -> Self {
        connect::connect(); // before the registry's lock
        let callsite = registry::callsite_of(Location::caller(), category, name, &[], entry::first_hit);
        match callsite.registered_epoch() {
            None => Self::none(callsite),
            Some(epoch) => Self::begin(callsite, epoch, &(), &Extras::new()),
        }
    }

    /// Begins the life of a task, below nothing else.
    pub(crate) fn begin_task(callsite: &'static Callsite, epoch: Epoch, values: &impl Values) -> Self {
        Self::of(callsite, AsyncScope::begin_as_track(callsite, epoch, values, &Extras::new()))
    }

    /// Begins the life of a task at a time of the past.
    #[cfg(feature = "sync")]
    pub(crate) fn begin_task_at(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &[Value<'_>],
        past: u64,
    ) -> Self {
        Self::of(callsite, AsyncScope::begin_at(callsite, epoch, values, &Extras::new(), Some(past)))
    }

    /// Returns what is recorded of it.
    #[cfg(feature = "sync")]
    pub(crate) fn into_recorded(mut self) -> Option<Recorded> {
        self.recorded.take()
    }

    fn of(callsite: &'static Callsite, interval: AsyncScope) -> Self {
        let is_recorded = interval.is_recorded();
        let recorded = is_recorded.then(|| Recorded {
            interval,
            flow: Flow::new(),
            arguments: None,
            spans: 0,
            #[cfg(feature = "futures")]
            next: Next::default(),
        });
        Self { callsite, recorded }
    }

    /// The next item of the stream is waited for.
    #[cfg(feature = "futures")]
    fn await_item(&mut self) {
        let Some(Recorded { interval, next, .. }) = &mut self.recorded else { return };
        if matches!(next, Next::Awaited(_)) {
            return;
        }
        if let Some(epoch) = NEXT.registered_epoch().filter(|epoch| interval.is_recorded_in(*epoch)) {
            let below = Extras::new().track(&*interval);
            *next = Next::Awaited(Box::new(AsyncScope::begin(&NEXT, epoch, &(), &below)));
        }
    }

    /// The stream has given an item, or is over.
    #[cfg(feature = "futures")]
    fn give_item(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.next = Next::Given;
        }
    }

    #[cfg(feature = "futures")]
    fn is_first_item(&self) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| matches!(recorded.next, Next::Unasked))
    }

    /// Returns the interval and the flow of its polls, if it is recorded and not over.
    pub(crate) fn parts(&self) -> Option<(&AsyncScope, &Flow)> {
        self.recorded.as_ref().map(|recorded| (&recorded.interval, &recorded.flow))
    }

    /// Wraps the future or stream that lives this life.
    pub fn wrap<T>(self, inner: T) -> Traced<T> {
        Traced { inner, life: self }
    }

    /// Calls `poll` inside of a slice on this thread, which ends with the guard that `guard` makes of it. If the
    /// life is over or not recorded, there is no slice.
    #[inline]
    fn poll<G, R>(&mut self, guard: impl FnOnce(Scope) -> G, poll: impl FnOnce() -> R) -> R {
        let Some(recorded) = &mut self.recorded else {
            return polled::poll_unrecorded(poll);
        };
        let _slice = guard(match self.callsite.epoch() {
            None => Scope::none(self.callsite),
            Some(epoch) => Scope::begin_flow(self.callsite, epoch, &recorded.flow),
        });
        #[cfg(feature = "subscriber")]
        {
            recorded.spans = tracing::entered_spans();
        }
        polled::poll_in(recorded, poll)
    }

    #[inline(never)]
    fn end(&mut self) {
        self.recorded = None;
    }
}

#[cfg(feature = "futures")]
static NEXT: Callsite = Callsite::new(CallsiteKind::Scope, "task", "next", &[], &Site::NOWHERE);

/// The argument of the end of a life or a wait whose future was dropped before it was ready.
pub(crate) const DROPPED: &str = "dropped";

impl Drop for Life {
    /// The life is not over: the future is dropped before it is ready, like a branch of a `select!` that loses.
    #[inline]
    fn drop(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            EndArguments::add_to(&mut recorded.arguments, DROPPED, &Value::Bool(true));
        }
    }
}

pin_project_lite::pin_project! {
    /// A future or stream whose life and polls are recorded. [`TraceFuture::traced`] and
    /// [`TraceStream::traced`] make it.
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    ///
    /// use hairline::{MemoryOutput, Session, TraceFuture};
    ///
    /// let session = Session::builder().output_memory(&MemoryOutput::new()).start()?;
    /// let future = pin!(async { 7 }.traced("io", "read")); // its life begins
    /// let poll = future.poll(&mut Context::from_waker(Waker::noop()));
    /// assert!(poll.is_ready());
    /// assert_eq!(session.stop()?.records, 4); // both ends of its life, and of one poll
    /// # Ok::<(), hairline::Error>(())
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Traced<T> {
        #[pin]
        inner: T, // dropped before its life ends
        life: Life,
    }
}

impl<T> Traced<T> {
    pub(crate) fn life(self: Pin<&Self>) -> &Life {
        self.project_ref().life
    }
}

impl<F: Future> Traced<F> {
    /// Polls the future of a task with this number.
    pub(crate) fn poll_task(self: Pin<&mut Self>, cx: &mut Context<'_>, number: u32) -> Poll<F::Output> {
        self.poll_in(|slice| PollOfTask::new(slice, number), cx)
    }

    #[inline]
    fn poll_in<G>(
        self: Pin<&mut Self>,
        guard: impl FnOnce(Scope) -> G,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let this = self.project();
        let outcome = this.life.poll(guard, || this.inner.poll(cx));
        if outcome.is_ready() {
            this.life.end();
        }
        outcome
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.poll_in(|slice| slice, cx)
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> futures_core::Stream for Traced<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if this.life.is_first_item() {
            this.life.await_item();
        }
        let outcome = this.life.poll(|slice| slice, || this.inner.poll_next(cx));
        match outcome {
            Poll::Ready(None) => this.life.end(),
            Poll::Ready(Some(_)) => this.life.give_item(),
            Poll::Pending => this.life.await_item(),
        }
        outcome
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}
