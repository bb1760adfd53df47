//! Notifications.

use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use hairline::__tasks::{Awaited, Waiting};

/// As [`tokio::sync::Notify`], with the waits for notifications in the trace. Functions that do not wait are
/// those of the [`Deref`] target.
///
/// ```
/// # async fn work() {
/// let stop = hairline_tokio::sync::Notify::named("stop");
/// stop.notify_one();
/// stop.notified().await;
/// # }
/// ```
#[derive(Debug)]
pub struct Notify {
    awaited: Awaited,
    inner: tokio::sync::Notify,
}

impl Notify {
    /// Creates it. Its name in the trace is this place in the source.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self {
            awaited: Awaited::made_at("notification", Location::caller()),
            inner: tokio::sync::Notify::new(),
        }
    }

    /// Creates it with a name.
    #[must_use]
    pub fn named(name: &'static str) -> Self {
        Self { awaited: Awaited::named("notification", name), inner: tokio::sync::Notify::new() }
    }

    /// As [`new`](Self::new), for a static.
    #[track_caller]
    #[must_use]
    pub const fn const_new() -> Self {
        Self {
            awaited: Awaited::made_at("notification", Location::caller()),
            inner: tokio::sync::Notify::const_new(),
        }
    }

    /// As [`named`](Self::named), for a static.
    #[must_use]
    pub const fn const_named(name: &'static str) -> Self {
        Self { awaited: Awaited::named("notification", name), inner: tokio::sync::Notify::const_new() }
    }

    /// As [`tokio::sync::Notify::notified`].
    #[track_caller]
    pub fn notified(&self) -> Notified<'_> {
        let waiting = self.awaited.wait(self.inner.notified(), Location::caller(), None);
        Notified { waiting }
    }
}

pin_project_lite::pin_project! {
    /// As [`tokio::sync::futures::Notified`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Notified<'a> {
        #[pin]
        waiting: Waiting<'a, tokio::sync::futures::Notified<'a>>,
    }
}

impl Notified<'_> {
    /// As [`tokio::sync::futures::Notified::enable`].
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.project().waiting.inner().enable()
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().waiting.poll(cx)
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Notify {
    type Target = tokio::sync::Notify;

    fn deref(&self) -> &tokio::sync::Notify {
        &self.inner
    }
}
