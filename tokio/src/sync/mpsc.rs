//! The bounded channel of [`tokio::sync::mpsc`], with the waits of its senders in the trace.
//!
//! ```
//! use hairline_tokio::sync::mpsc;
//!
//! # async fn work() {
//! let (jobs, mut queue) = mpsc::channel_named("jobs", 64);
//! jobs.send(7).await.unwrap();
//! assert_eq!(queue.recv().await, Some(7));
//! # }
//! ```
//!
//! A receiver waits as a rule, so its waits are not recorded. The receiver, the unbounded channel and all
//! other types are those of tokio.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;

use hairline::__tasks::Awaited;
use tokio::sync::mpsc;

pub use tokio::sync::mpsc::{
    OwnedPermit, Permit, PermitIterator, Receiver, UnboundedReceiver, UnboundedSender, WeakUnboundedSender,
    error, unbounded_channel,
};

use crate::sync::acquire;

type Place = &'static Location<'static>;

/// As [`tokio::sync::mpsc::channel`]. The channel's name in the trace is this place in the source.
///
/// # Panics
/// If `buffer` is 0 or above the limit of tokio.
#[track_caller]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    with(Awaited::made_at("channel", Location::caller()), buffer)
}

/// The same, with a name.
///
/// # Panics
/// If `buffer` is 0 or above the limit of tokio.
pub fn channel_named<T>(name: &'static str, buffer: usize) -> (Sender<T>, Receiver<T>) {
    with(Awaited::named("channel", name), buffer)
}

fn with<T>(awaited: Awaited, buffer: usize) -> (Sender<T>, Receiver<T>) {
    let (inner, receiver) = mpsc::channel(buffer);
    (Sender { inner, awaited: Arc::new(awaited) }, receiver)
}

/// As [`tokio::sync::mpsc::Sender`]. Functions that do not wait are those of the [`Deref`] target.
pub struct Sender<T> {
    inner: mpsc::Sender<T>,
    awaited: Arc<Awaited>,
}

impl<T> Sender<T> {
    /// As [`tokio::sync::mpsc::Sender::send`].
    ///
    /// # Errors
    /// The value, if the receiver is closed.
    #[track_caller]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), error::SendError<T>>> {
        let place = Location::caller();
        async move {
            // The future is made here, since an `async` block would have a captured one twice.
            match self.reserve_at(place).await {
                Ok(permit) => {
                    permit.send(value);
                    Ok(())
                }
                Err(_) => Err(error::SendError(value)),
            }
        }
    }

    /// As [`tokio::sync::mpsc::Sender::reserve`].
    ///
    /// # Errors
    /// If the receiver is closed.
    #[track_caller]
    pub fn reserve(&self) -> impl Future<Output = Result<Permit<'_, T>, error::SendError<()>>> {
        self.reserve_at(Location::caller())
    }

    fn reserve_at(&self, place: Place) -> impl Future<Output = Result<Permit<'_, T>, error::SendError<()>>> {
        acquire(&self.awaited, self.inner.reserve(), (place, None), Result::is_ok)
    }

    /// As [`tokio::sync::mpsc::Sender::reserve_many`].
    ///
    /// # Errors
    /// If the receiver is closed, or `n` is above the channel's capacity.
    #[track_caller]
    pub fn reserve_many(
        &self,
        n: usize,
    ) -> impl Future<Output = Result<PermitIterator<'_, T>, error::SendError<()>>> {
        let wanted = u32::try_from(n).unwrap_or(u32::MAX);
        let at = (Location::caller(), Some(wanted));
        acquire(&self.awaited, self.inner.reserve_many(n), at, Result::is_ok)
    }

    /// As [`tokio::sync::mpsc::Sender::reserve_owned`].
    ///
    /// # Errors
    /// If the receiver is closed.
    #[track_caller]
    pub fn reserve_owned(self) -> impl Future<Output = Result<OwnedPermit<T>, error::SendError<()>>> {
        let place = Location::caller();
        async move { acquire(&self.awaited, self.inner.reserve_owned(), (place, None), Result::is_ok).await }
    }

    /// As [`tokio::sync::mpsc::Sender::same_channel`].
    pub fn same_channel(&self, other: &Self) -> bool {
        self.inner.same_channel(&other.inner)
    }

    /// As [`tokio::sync::mpsc::Sender::downgrade`].
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { inner: self.inner.downgrade(), awaited: Arc::clone(&self.awaited) }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), awaited: Arc::clone(&self.awaited) }
    }
}

impl<T> Deref for Sender<T> {
    type Target = mpsc::Sender<T>;

    fn deref(&self) -> &mpsc::Sender<T> {
        &self.inner
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// As [`tokio::sync::mpsc::WeakSender`].
pub struct WeakSender<T> {
    inner: mpsc::WeakSender<T>,
    awaited: Arc<Awaited>,
}

impl<T> WeakSender<T> {
    /// As [`tokio::sync::mpsc::WeakSender::upgrade`].
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.inner.upgrade().map(|inner| Sender { inner, awaited: Arc::clone(&self.awaited) })
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), awaited: Arc::clone(&self.awaited) }
    }
}

impl<T> Deref for WeakSender<T> {
    type Target = mpsc::WeakSender<T>;

    fn deref(&self) -> &mpsc::WeakSender<T> {
        &self.inner
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
