//! The waits for locks, which are not recorded.

use crate::sync::name::{Kind, Name, Place};

/// There is no session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Epoch {}

#[inline(always)]
pub(crate) fn epoch() -> Option<Epoch> {
    None
}

/// No lock has more steps.
pub(crate) enum MoreSteps {}

#[inline(always)]
pub(crate) fn epoch_at_once() -> Result<Option<Epoch>, MoreSteps> {
    Ok(None)
}

#[inline(always)]
pub(crate) fn known_epoch() -> Option<Epoch> {
    None
}

/// No thread is counted.
pub(crate) struct Counted;

#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    pub(crate) const fn new(_: Name) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn took(&self, _: Place) {}

    #[inline(always)]
    pub(crate) fn begin_hold(&self, _: Place) {}

    #[inline(always)]
    pub(crate) fn leave(&self) {}

    #[inline(always)]
    pub(crate) fn leave_shared(&self, _: Option<Place>) {}

    #[inline(always)]
    pub(crate) fn notify(&self, _: Place) {}

    #[inline(always)]
    pub(crate) fn expect_notify(&self) -> Counted {
        Counted
    }

    #[inline(always)]
    pub(crate) fn wait<R>(
        &self,
        epoch: Epoch,
        _: Kind,
        _: Place,
        _: impl FnOnce() -> R,
        _: impl FnOnce(&R) -> bool,
    ) -> R {
        match epoch {}
    }
}

/// There is no wait.
pub(crate) enum Wait<'w> {
    #[allow(dead_code)] // it has the lifetime of the other one
    Never(Epoch, &'w Watch),
}

impl<'w> Wait<'w> {
    pub(crate) fn begin(_: &'w Watch, epoch: Epoch, _: Kind, _: Place) -> Self {
        match epoch {}
    }

    pub(crate) fn note_release(&self) {
        match self {
            Self::Never(epoch, _) => match *epoch {},
        }
    }
}

/// Nothing is recorded.
#[inline(always)]
pub fn is_sample_due() -> bool {
    false
}

/// Nothing is recorded.
#[inline(always)]
pub fn note(_: u32, _: &'static str) {}

/// Nothing is recorded.
#[inline(always)]
pub fn session() -> u32 {
    0
}

/// How full channels are.
pub(crate) mod depth {
    use crate::imp::locks::awaited::Awaited;

    /// Nothing is recorded.
    #[derive(Debug)]
    pub struct DepthCounter;

    impl DepthCounter {
        /// Creates it.
        #[must_use]
        #[allow(clippy::new_without_default)]
        pub const fn new() -> Self {
            Self
        }

        /// Nothing is recorded.
        #[inline(always)]
        pub fn record(&self, _: &Awaited, _: usize) -> bool {
            false
        }
    }
}

/// What tasks wait for.
pub(crate) mod awaited {
    use std::future::Future;
    use std::marker::PhantomData;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use crate::sync::name::Place;

    /// Nothing is known.
    #[derive(Debug)]
    pub struct Awaited;

    impl Awaited {
        /// Creates it.
        #[must_use]
        pub const fn named(_: &'static str, _: &'static str) -> Self {
            Self
        }

        /// Creates it.
        #[must_use]
        pub const fn made_at(_: &'static str, _: Place) -> Self {
            Self
        }

        /// Nothing begins.
        #[inline(always)]
        pub fn prepare(&self) {}

        /// Nothing is noted.
        #[inline(always)]
        pub fn took(&self, _: Place) {}

        /// Nothing is noted.
        #[inline(always)]
        pub fn took_as_thread(&self, _: Place) {}

        /// Nothing is noted.
        #[inline(always)]
        pub fn leave(&self) {}

        /// Nothing is noted.
        #[inline(always)]
        pub fn leave_shared(&self, _: Place) {}

        /// Wraps a future that waits for it.
        #[inline(always)]
        pub fn wait<F>(&self, future: F, _: Place, _: Option<u32>) -> Waiting<'_, F> {
            Waiting { future, of: PhantomData }
        }
    }

    pin_project_lite::pin_project! {
        /// A future, unchanged.
        #[derive(Debug)]
        #[must_use = "futures do nothing unless they are polled"]
        pub struct Waiting<'a, F> {
            #[pin]
            future: F,
            of: PhantomData<&'a Awaited>,
        }
    }

    impl<F> Waiting<'_, F> {
        /// Returns the future.
        pub fn inner(self: Pin<&mut Self>) -> Pin<&mut F> {
            self.project().future
        }
    }

    impl<F: Future> Future for Waiting<'_, F> {
        type Output = F::Output;

        #[inline]
        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            self.project().future.poll(cx)
        }
    }
}
