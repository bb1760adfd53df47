//! Futures and streams with a place in the trace.
//!
//! ```text
//! async track   [ request ................................... ]     from the wrapping to the end, or the drop
//! thread 1        [ request ] ──┐                [ request ]        each poll, on the thread that polls
//! thread 2                      └─> [ request ] ──┘                 linked by a flow
//! ```
//!
//! While a wrapped future is polled it is the thread's current one: what is wrapped meanwhile lies below it.

#![allow(unsafe_code)] // the current interval of a thread is a pointer into a future that is being polled

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use crate::on::callsite::{Callsite, Epoch, registry};
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::lifecycle::entry;
use crate::on::thread::guards::Scope;
use crate::on::thread::guards::interval::AsyncScope;

thread_local! {
    /// The interval of the future that this thread polls.
    static CURRENT: Cell<Option<NonNull<AsyncScope>>> = const { Cell::new(None) };
}

/// Until it is dropped, `interval` is this thread's current one.
struct Current<'i> {
    before: Option<NonNull<AsyncScope>>,
    _interval: &'i AsyncScope,
}

impl<'i> Current<'i> {
    fn enter(interval: &'i AsyncScope) -> Self {
        Self { before: CURRENT.replace(Some(NonNull::from(interval))), _interval: interval }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Hands on the interval of the future that this thread polls.
fn with_current<R>(f: impl FnOnce(Option<&AsyncScope>) -> R) -> R {
    // SAFETY: `Current::enter` put the pointer there and its guard, which borrows the interval, takes it away again:
    // on a stack of calls of this thread, of which we are a deeper one.
    f(CURRENT.get().map(|current| unsafe { &*current.as_ptr() }))
}

/// The life of a future, in the trace.
#[derive(Debug)]
pub struct Life {
    callsite: &'static Callsite,
    /// The interval, and the flow of its polls. None: it is over, or not recorded.
    recorded: Option<(AsyncScope, Flow)>,
}

impl Life {
    /// A life that is not recorded.
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { callsite, recorded: None }
    }

    /// Begins a life.
    pub fn begin(callsite: &'static Callsite, epoch: Epoch, values: &impl Values) -> Self {
        let interval = with_current(|above| {
            let extras = above.map_or_else(Extras::new, |above| Extras::new().track(above));
            AsyncScope::begin(callsite, epoch, values, &extras)
        });
        let recorded = interval.is_recorded().then(|| (interval, Flow::new()));
        Self { callsite, recorded }
    }

    /// Begins the life of what is wrapped at the caller's place in the source.
    #[track_caller]
    fn begin_here(category: &'static str, name: &'static str) -> Self {
        let callsite = registry::callsite_of(category, name, entry::first_hit);
        match callsite.registered_epoch() {
            None => Self::none(callsite),
            Some(epoch) => Self::begin(callsite, epoch, &()),
        }
    }

    /// Whose life it is.
    pub fn wrap<T>(self, inner: T) -> Traced<T> {
        Traced { inner, life: self }
    }

    /// A poll: a slice on this thread, unless the future's life is over or was not recorded.
    #[inline]
    fn poll<R>(&self, poll: impl FnOnce() -> R) -> R {
        let Some((interval, flow)) = self.recorded.as_ref() else { return poll() };
        let _slice = match self.callsite.epoch() {
            None => Scope::none(self.callsite),
            Some(epoch) => Scope::begin_flow(self.callsite, epoch, flow),
        };
        let _current = Current::enter(interval);
        poll()
    }
}

pin_project_lite::pin_project! {
    /// A future or stream whose life and polls are in the trace. Made by [`TraceFuture::traced`] and
    /// [`TraceStream::traced`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Traced<T> {
        #[pin]
        inner: T, // dropped before its life ends
        life: Life,
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let outcome = this.life.poll(|| this.inner.poll(cx));
        if outcome.is_ready() {
            this.life.recorded = None;
        }
        outcome
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> futures_core::Stream for Traced<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        let outcome = this.life.poll(|| this.inner.poll_next(cx));
        if matches!(outcome, Poll::Ready(None)) {
            this.life.recorded = None;
        }
        outcome
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

/// `traced` for every future.
pub trait TraceFuture: Future + Sized {
    /// Records the future's life, from here to its end or its drop, as an interval on an async track, and each of its
    /// polls as a slice on the thread that polls it; a flow links them. What is wrapped while it is polled lies below
    /// it.
    ///
    /// ```
    /// use hairline::TraceFuture;
    ///
    /// # async fn read() {}
    /// # let _ = async {
    /// read().traced("io", "read").await;
    /// # };
    /// ```
    #[track_caller]
    fn traced(self, category: &'static str, name: &'static str) -> Traced<Self> {
        Life::begin_here(category, name).wrap(self)
    }
}

impl<F: Future> TraceFuture for F {}

/// `traced` for every stream.
#[cfg(feature = "futures")]
#[cfg_attr(docsrs, doc(cfg(feature = "futures")))]
pub trait TraceStream: futures_core::Stream + Sized {
    /// As [`TraceFuture::traced`]: the stream's life ends with its last item.
    #[track_caller]
    fn traced(self, category: &'static str, name: &'static str) -> Traced<Self> {
        Life::begin_here(category, name).wrap(self)
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> TraceStream for S {}
