//! The lock for readers and writers.

#![allow(unsafe_code)] // as in `mutex.rs`

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

use hairline::__tasks::Awaited;
use tokio::sync::TryLockError;

use crate::sync::acquire;
use crate::sync::common::{Held, Read, guard, lock};

type Place = &'static Location<'static>;

/// As [`tokio::sync::RwLock`], with the waits for it in the trace.
///
/// ```
/// # async fn work() {
/// let routes = hairline_tokio::sync::RwLock::named("routes", vec!["/"]);
/// routes.write().await.push("/health");
/// assert_eq!(routes.read().await.len(), 2);
/// # }
/// ```
pub struct RwLock<T: ?Sized> {
    awaited: Awaited,
    inner: tokio::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// As [`tokio::sync::RwLock::with_max_readers`].
    ///
    /// # Panics
    /// If `most` is above the limit of tokio.
    #[track_caller]
    pub fn with_max_readers(value: T, most: u32) -> Self {
        Self::with(
            Awaited::made_at("lock", Location::caller()),
            tokio::sync::RwLock::with_max_readers(value, most),
        )
    }
}

impl<T: ?Sized> RwLock<T> {
    /// As [`tokio::sync::RwLock::read`].
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> + use<'_, T> {
        self.read_at(Location::caller())
    }

    async fn read_at(&self, place: Place) -> RwLockReadGuard<'_, T> {
        let inner = acquire(&self.awaited, self.inner.read(), (place, None), |_| true).await;
        self.read_guard(inner, place)
    }

    fn read_guard<'a>(
        &'a self,
        inner: tokio::sync::RwLockReadGuard<'a, T>,
        place: Place,
    ) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard { _held: Read::new(&self.awaited, place), inner }
    }

    /// As [`tokio::sync::RwLock::write`].
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> + use<'_, T> {
        self.write_at(Location::caller())
    }

    async fn write_at(&self, place: Place) -> RwLockWriteGuard<'_, T> {
        let inner = acquire(&self.awaited, self.inner.write(), (place, None), |_| true).await;
        self.awaited.took(place);
        self.guard(inner)
    }

    /// The caller has noted the holder.
    fn guard<'a>(&'a self, inner: tokio::sync::RwLockWriteGuard<'a, T>) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard { _held: Held::new(&self.awaited), inner }
    }

    /// As [`tokio::sync::RwLock::read_owned`].
    #[track_caller]
    pub fn read_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockReadGuard<T>>
    where
        T: 'static,
    {
        let place = Location::caller();
        async move {
            let guard = self.read_at(place).await;
            OwnedRwLockReadGuard::new(guard, Arc::clone(&self))
        }
    }

    /// As [`tokio::sync::RwLock::write_owned`].
    #[track_caller]
    pub fn write_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockWriteGuard<T>>
    where
        T: 'static,
    {
        let place = Location::caller();
        async move {
            let guard = self.write_at(place).await;
            OwnedRwLockWriteGuard::new(guard, Arc::clone(&self))
        }
    }

    /// As [`tokio::sync::RwLock::blocking_read`].
    ///
    /// # Panics
    /// If it is called by a task, as that of tokio does.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        self.read_guard(self.inner.blocking_read(), Location::caller())
    }

    /// As [`tokio::sync::RwLock::blocking_write`].
    ///
    /// # Panics
    /// If it is called by a task, as that of tokio does.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        self.awaited.prepare();
        let inner = self.inner.blocking_write();
        self.awaited.took_as_thread(Location::caller());
        self.guard(inner)
    }

    /// As [`tokio::sync::RwLock::try_read`].
    ///
    /// # Errors
    /// If a writer has it, or waits for it.
    #[track_caller]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        Ok(self.read_guard(self.inner.try_read()?, Location::caller()))
    }

    /// As [`tokio::sync::RwLock::try_write`].
    ///
    /// # Errors
    /// If it is locked.
    #[track_caller]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.awaited.prepare();
        let inner = self.inner.try_write()?;
        self.awaited.took(Location::caller());
        Ok(self.guard(inner))
    }

    /// As [`tokio::sync::RwLock::try_read_owned`].
    ///
    /// # Errors
    /// If a writer has it, or waits for it.
    #[track_caller]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError>
    where
        T: 'static,
    {
        Ok(OwnedRwLockReadGuard::new(self.try_read()?, Arc::clone(&self)))
    }

    /// As [`tokio::sync::RwLock::try_write_owned`].
    ///
    /// # Errors
    /// If it is locked.
    #[track_caller]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError>
    where
        T: 'static,
    {
        Ok(OwnedRwLockWriteGuard::new(self.try_write()?, Arc::clone(&self)))
    }
}

lock!(RwLock);
guard!(RwLockWriteGuard, OwnedRwLockWriteGuard of RwLock: Held<'a>, mut);
guard!(RwLockReadGuard, OwnedRwLockReadGuard of RwLock: Read<'a>);

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// As [`tokio::sync::RwLockWriteGuard::downgrade`].
    #[track_caller]
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let Self { _held: held, inner } = self;
        let reads = Read::new(held.awaited(), Location::caller());
        drop(held);
        RwLockReadGuard { _held: reads, inner: inner.downgrade() }
    }
}
