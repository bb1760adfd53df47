//! Futures and streams that are not recorded.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::off::callsite::{Callsite, Epoch};
use crate::off::event::{Argument, Extras, Values};

pin_project_lite::pin_project! {
    /// A future or stream, unchanged.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Traced<T> {
        #[pin]
        inner: T,
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(cx)
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> futures_core::Stream for Traced<S> {
    type Item = S::Item;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.project().inner.poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

/// `traced` for every future.
pub trait TraceFuture: Future + Sized {
    /// Would record the life of the future and its polls.
    fn traced(self, _: &'static str, _: &'static str) -> Traced<Self> {
        Traced { inner: self }
    }

    /// Would record the life of the task, its polls and its wakes.
    fn traced_task(self, _: &'static str, _: &'static str) -> TracedTask<Self> {
        Traced { inner: self }
    }
}

impl<F: Future> TraceFuture for F {}

/// A future, unchanged.
pub type TracedTask<F> = Traced<F>;

impl<F> Traced<F> {
    /// Would begin the life of a task.
    #[doc(hidden)]
    pub fn begin(
        inner: F,
        _: &'static str,
        _: Option<&'static str>,
        _: &'static std::panic::Location<'static>,
    ) -> Self {
        Self { inner }
    }

    /// Would begin the life of a call that blocks.
    #[doc(hidden)]
    pub fn begin_blocking(inner: F, _: &'static std::panic::Location<'static>) -> Self {
        Self { inner }
    }
}

/// `traced` for every stream.
#[cfg(feature = "futures")]
pub trait TraceStream: futures_core::Stream + Sized {
    /// Would record the life of the stream and its polls.
    fn traced(self, _: &'static str, _: &'static str) -> Traced<Self> {
        Traced { inner: self }
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> TraceStream for S {}

/// Would add an argument to the end of the future that this thread polls.
#[inline(always)]
pub fn future_arg(_: &'static str, _: impl Argument) {}

/// The life of a future that is not recorded.
#[derive(Debug)]
pub struct Life(());

impl Life {
    /// A life that is not recorded.
    #[inline]
    pub fn none(_: &'static Callsite) -> Self {
        Self(())
    }

    /// Would begin a life. There is no `Epoch`, so the function cannot be called.
    pub fn begin(_: &'static Callsite, epoch: Epoch, _: &impl Values, _: &Extras<'_>) -> Self {
        match epoch {}
    }

    /// Wraps the future of this life.
    #[inline]
    pub fn wrap<T>(self, inner: T) -> Traced<T> {
        Traced { inner }
    }
}
