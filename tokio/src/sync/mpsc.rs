//! The bounded channel of [`tokio::sync::mpsc`], with the waits of its senders and its depth in the trace.
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
//! A receiver waits as a rule, so its waits are not recorded.
//!
//! The depth is a counter `depth: NAME` in the category `lock`: the messages that are in the channel, and the
//! places that senders have reserved. It is recorded where a message comes or goes and the channel is then
//! empty or full, or its depth differs from the last value by an eighth of the capacity, or by 1 if that is
//! more: so a channel of 64 that is emptied again and again makes no event, and no value is off by 8 or more.
//! In a channel of less than 16, each message is two events. What `send_timeout`, an owned permit and a
//! permit that is dropped change is there with the next message. Of more than 1,000 channels at a time, the
//! later ones have no depth.
//!
//! A `ReceiverStream` is made of [`Receiver::into_inner`].
//!
//! The unbounded channel and all other types are those of tokio.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use hairline::__tasks::Awaited;
use tokio::sync::mpsc;

pub use tokio::sync::mpsc::{
    OwnedPermit, Permit, PermitIterator, UnboundedReceiver, UnboundedSender, WeakUnboundedSender, error,
    unbounded_channel,
};

use crate::sync::acquire;
use crate::sync::depth::Channel;

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
    let channel = Arc::new(Channel::new(awaited, buffer));
    let end = End(Arc::clone(&channel));
    (Sender { inner, channel }, Receiver { inner: receiver, end })
}

/// As [`tokio::sync::mpsc::Sender`]. Functions that are not here are those of the [`Deref`] target.
pub struct Sender<T> {
    inner: mpsc::Sender<T>,
    channel: Arc<Channel>,
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

    /// As [`tokio::sync::mpsc::Sender::try_send`].
    ///
    /// # Errors
    /// The value, if the channel is full, or the receiver is closed.
    pub fn try_send(&self, value: T) -> Result<(), error::TrySendError<T>> {
        self.inner.try_send(value).inspect(|()| self.changed())
    }

    /// As [`tokio::sync::mpsc::Sender::blocking_send`].
    ///
    /// # Errors
    /// The value, if the receiver is closed.
    ///
    /// # Panics
    /// Inside of an async task.
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), error::SendError<T>> {
        self.inner.blocking_send(value).inspect(|()| self.changed())
    }

    /// A place was taken.
    fn changed(&self) {
        self.channel.changed(|| self.inner.capacity());
    }

    /// As [`tokio::sync::mpsc::Sender::try_reserve`].
    ///
    /// # Errors
    /// If the channel is full, or the receiver is closed.
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, error::TrySendError<()>> {
        self.inner.try_reserve().inspect(|_| self.changed())
    }

    /// As [`tokio::sync::mpsc::Sender::try_reserve_many`].
    ///
    /// # Errors
    /// If so many places are not free, or the receiver is closed.
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, error::TrySendError<()>> {
        self.inner.try_reserve_many(n).inspect(|_| self.changed())
    }

    /// As [`tokio::sync::mpsc::Sender::reserve`].
    ///
    /// # Errors
    /// If the receiver is closed.
    #[track_caller]
    pub fn reserve(&self) -> impl Future<Output = Result<Permit<'_, T>, error::SendError<()>>> {
        self.reserve_at(Location::caller())
    }

    async fn reserve_at(&self, place: Place) -> Result<Permit<'_, T>, error::SendError<()>> {
        let _look = Look(self);
        acquire(&self.channel.awaited, self.inner.reserve(), (place, None), Result::is_ok).await
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
        async move {
            let _look = Look(self);
            acquire(&self.channel.awaited, self.inner.reserve_many(n), at, Result::is_ok).await
        }
    }

    /// As [`tokio::sync::mpsc::Sender::reserve_owned`].
    ///
    /// # Errors
    /// If the receiver is closed.
    #[track_caller]
    pub fn reserve_owned(self) -> impl Future<Output = Result<OwnedPermit<T>, error::SendError<()>>> {
        let place = Location::caller();
        async move {
            acquire(&self.channel.awaited, self.inner.reserve_owned(), (place, None), Result::is_ok).await
        }
    }

    /// As [`tokio::sync::mpsc::Sender::same_channel`].
    pub fn same_channel(&self, other: &Self) -> bool {
        self.inner.same_channel(&other.inner)
    }

    /// As [`tokio::sync::mpsc::Sender::downgrade`].
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { inner: self.inner.downgrade(), channel: Arc::clone(&self.channel) }
    }
}

/// Looks at a channel after a wait for a place, also one that is given up: a place may have been its own by
/// then.
struct Look<'a, T>(&'a Sender<T>);

impl<T> Drop for Look<'_, T> {
    fn drop(&mut self) {
        self.0.changed();
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), channel: Arc::clone(&self.channel) }
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
    channel: Arc<Channel>,
}

impl<T> WeakSender<T> {
    /// As [`tokio::sync::mpsc::WeakSender::upgrade`].
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.inner.upgrade().map(|inner| Sender { inner, channel: Arc::clone(&self.channel) })
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), channel: Arc::clone(&self.channel) }
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

/// As [`tokio::sync::mpsc::Receiver`]. Functions that receive nothing are those of the [`Deref`] target.
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    end: End,
}

impl<T> Receiver<T> {
    /// As [`tokio::sync::mpsc::Receiver::recv`].
    pub async fn recv(&mut self) -> Option<T> {
        let message = self.inner.recv().await;
        self.gone();
        message
    }

    /// As [`tokio::sync::mpsc::Receiver::recv_many`].
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        let count = self.inner.recv_many(buffer, limit).await;
        self.gone();
        count
    }

    /// As [`tokio::sync::mpsc::Receiver::try_recv`].
    ///
    /// # Errors
    /// If the channel is empty, or all senders are dropped.
    pub fn try_recv(&mut self) -> Result<T, error::TryRecvError> {
        let message = self.inner.try_recv();
        self.gone();
        message
    }

    /// As [`tokio::sync::mpsc::Receiver::blocking_recv`].
    ///
    /// # Panics
    /// Inside of an async task.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        let message = self.inner.blocking_recv();
        self.gone();
        message
    }

    /// As [`tokio::sync::mpsc::Receiver::blocking_recv_many`].
    ///
    /// # Panics
    /// Inside of an async task.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        let count = self.inner.blocking_recv_many(buffer, limit);
        self.gone();
        count
    }

    /// As [`tokio::sync::mpsc::Receiver::poll_recv`].
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let message = self.inner.poll_recv(cx);
        self.gone();
        message
    }

    /// As [`tokio::sync::mpsc::Receiver::poll_recv_many`].
    pub fn poll_recv_many(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<T>, limit: usize) -> Poll<usize> {
        let count = self.inner.poll_recv_many(cx, buffer, limit);
        self.gone();
        count
    }

    /// Returns the receiver of tokio, for `ReceiverStream` and others. The depth of the channel is then no
    /// longer recorded.
    #[must_use]
    pub fn into_inner(self) -> mpsc::Receiver<T> {
        self.end.0.set_blind();
        self.inner
    }

    /// A message may be gone.
    fn gone(&self) {
        self.end.0.changed(|| self.inner.capacity());
    }
}

/// Records the end of a channel, whose messages are gone then.
struct End(Arc<Channel>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.changed(|| usize::MAX);
    }
}

impl<T> From<Receiver<T>> for mpsc::Receiver<T> {
    fn from(receiver: Receiver<T>) -> Self {
        receiver.into_inner()
    }
}

impl<T> Deref for Receiver<T> {
    type Target = mpsc::Receiver<T>;

    fn deref(&self) -> &mpsc::Receiver<T> {
        &self.inner
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
