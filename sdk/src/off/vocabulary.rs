//! Tracks, flows and guards that stand for nothing.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Argument;
use crate::vocabulary::Ordering;

/// A place for slices that are not recorded.
#[derive(Clone, Debug)]
pub struct Track(());

impl Track {
    /// The root of a tree.
    pub fn new(_: impl Into<Cow<'static, str>>) -> Self {
        Self(())
    }

    /// The process's.
    pub fn process() -> Self {
        Self(())
    }

    /// The calling thread's.
    pub fn thread() -> Self {
        Self(())
    }

    /// One below this one.
    #[must_use]
    pub fn child(&self, _: impl Into<Cow<'static, str>>) -> Self {
        Self(())
    }

    /// How the tracks below would be shown.
    #[must_use]
    pub fn ordering(self, _: Ordering) -> Self {
        self
    }

    /// Its place among its siblings.
    #[must_use]
    pub fn rank(self, _: i32) -> Self {
        self
    }

    /// What it is about.
    #[must_use]
    pub fn description(self, _: impl Into<Cow<'static, str>>) -> Self {
        self
    }

    /// Its number: 0.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        0
    }
}

impl AsRef<Track> for Track {
    fn as_ref(&self) -> &Track {
        self
    }
}

/// What `track:` takes.
pub trait OnTrack {}
impl OnTrack for Track {}
impl OnTrack for AsyncScope {}
impl<T: OnTrack + ?Sized> OnTrack for &T {}

/// A row of arrows that are not recorded.
#[derive(Debug, Default)]
pub struct Flow(u64);

impl Flow {
    /// A flow.
    #[must_use]
    pub fn new() -> Self {
        Self(0)
    }

    /// The flow with this id.
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self(id)
    }

    /// Its id; 0 for one that was made here.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0
    }
}

impl AsRef<Flow> for Flow {
    fn as_ref(&self) -> &Flow {
        self
    }
}

macro_rules! guards {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[must_use = "the slice ends when this guard is dropped"]
        #[derive(Debug)]
        pub struct $name(());

        impl $name {
            /// Nothing is recorded.
            #[inline(always)]
            pub fn none() -> Self {
                Self(())
            }

            /// Whether the begin was recorded: no.
            #[must_use]
            pub fn is_recorded(&self) -> bool {
                false
            }

            /// Would add an argument to the end.
            #[inline(always)]
            pub fn arg(&mut self, _: &'static str, _: impl Argument) -> &mut Self {
                self
            }
        }

        impl Drop for $name {
            #[inline(always)]
            fn drop(&mut self) {}
        }
    )*};
}

guards! {
    /// An interval on a track that is not recorded.
    TrackScope;
    /// An interval on a track of its own that is not recorded.
    AsyncScope;
}

/// What can name an entry of a map.
pub trait MapKey {}
impl<T: ?Sized> MapKey for T {}

/// Bytes that are not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'b>(#[allow(dead_code)] &'b [u8]);

/// A blob.
#[must_use]
pub fn bytes(bytes: &[u8]) -> Bytes<'_> {
    Bytes(bytes)
}

/// A kernel object's number.
#[derive(Clone, Copy, Debug)]
pub struct Koid(#[allow(dead_code)] u64);

/// A kernel object's number.
#[must_use]
pub fn koid(number: u64) -> Koid {
    Koid(number)
}

/// A string.
#[derive(Clone, Copy, Debug)]
pub struct Interned(#[allow(dead_code)] &'static str);

/// A string.
#[must_use]
pub fn interned(text: &'static str) -> Interned {
    Interned(text)
}

/// A value that is not serialized.
#[cfg(feature = "serde")]
pub fn serialize<T: serde::Serialize + ?Sized>(value: &T) -> &T {
    value
}

pin_project_lite::pin_project! {
    /// A future or stream, as it is.
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
    /// Would record the future's life and its polls.
    fn traced(self, _: &'static str, _: &'static str) -> Traced<Self> {
        Traced { inner: self }
    }
}

impl<F: Future> TraceFuture for F {}

/// `traced` for every stream.
#[cfg(feature = "futures")]
pub trait TraceStream: futures_core::Stream + Sized {
    /// Would record the stream's life and its polls.
    fn traced(self, _: &'static str, _: &'static str) -> Traced<Self> {
        Traced { inner: self }
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> TraceStream for S {}

/// The life of a future that is not recorded.
#[derive(Debug)]
pub struct Life;

impl Life {
    /// Whose life it is.
    #[inline]
    pub fn wrap<T>(self, inner: T) -> Traced<T> {
        Traced { inner }
    }
}
