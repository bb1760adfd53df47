//! The mutex.

#![allow(unsafe_code)] // an owned guard has a lock and a guard that borrows it

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

use hairline::__tasks::Awaited;
use tokio::sync::TryLockError;

use crate::sync::acquire;
use crate::sync::common::{Held, guard, lock};

type Place = &'static Location<'static>;

/// As [`tokio::sync::Mutex`], with the waits for it in the trace.
///
/// ```
/// # async fn work() {
/// let cache = hairline_tokio::sync::Mutex::named("cache", vec![1]);
/// cache.lock().await.push(2);
/// # }
/// ```
pub struct Mutex<T: ?Sized> {
    awaited: Awaited,
    inner: tokio::sync::Mutex<T>,
}

impl<T: ?Sized> Mutex<T> {
    /// As [`tokio::sync::Mutex::lock`].
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> + use<'_, T> {
        self.lock_at(Location::caller())
    }

    async fn lock_at(&self, place: Place) -> MutexGuard<'_, T> {
        let inner = acquire(&self.awaited, self.inner.lock(), (place, None), |_| true).await;
        self.awaited.took(place);
        self.guard(inner)
    }

    /// The caller has noted the holder.
    fn guard<'a>(&'a self, inner: tokio::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { _held: Held::new(&self.awaited), inner }
    }

    /// As [`tokio::sync::Mutex::lock_owned`].
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>>
    where
        T: 'static,
    {
        let place = Location::caller();
        async move {
            let guard = self.lock_at(place).await;
            OwnedMutexGuard::new(guard, Arc::clone(&self))
        }
    }

    /// As [`tokio::sync::Mutex::blocking_lock`].
    ///
    /// # Panics
    /// If it is called by a task, as that of tokio does.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        self.awaited.prepare();
        let inner = self.inner.blocking_lock();
        self.awaited.took_as_thread(Location::caller());
        self.guard(inner)
    }

    /// As [`tokio::sync::Mutex::blocking_lock_owned`].
    ///
    /// # Panics
    /// If it is called by a task, as that of tokio does.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T>
    where
        T: 'static,
    {
        OwnedMutexGuard::new(self.blocking_lock(), Arc::clone(&self))
    }

    /// As [`tokio::sync::Mutex::try_lock`].
    ///
    /// # Errors
    /// If it is locked.
    #[track_caller]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        self.awaited.prepare();
        let inner = self.inner.try_lock()?;
        self.awaited.took(Location::caller());
        Ok(self.guard(inner))
    }

    /// As [`tokio::sync::Mutex::try_lock_owned`].
    ///
    /// # Errors
    /// If it is locked.
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError>
    where
        T: 'static,
    {
        Ok(OwnedMutexGuard::new(self.try_lock()?, Arc::clone(&self)))
    }
}

lock!(Mutex);
guard!(MutexGuard, OwnedMutexGuard of Mutex: Held<'a>, mut);
