//! [`Mutex`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, TryLockResult};

use crate::imp::locks::Watch;
use crate::sync::name::Name;
use crate::sync::watched::{self, Alone};

/// [`std::sync::Mutex`], whose waits are recorded.
///
/// ```
/// use hairline::sync::Mutex;
///
/// static CACHE: Mutex<Vec<u32>> = Mutex::named("cache", Vec::new());
///
/// CACHE.lock().unwrap().push(7);       // if another thread holds it: a slice "wait: cache"
/// assert_eq!(*CACHE.lock().unwrap(), [7]);
/// ```
pub struct Mutex<T: ?Sized> {
    watch: Watch,
    inner: std::sync::Mutex<T>,
}

watched::common!(Mutex);

impl<T: ?Sized> Mutex<T> {
    /// As [`std::sync::Mutex::lock`]. If another thread holds the mutex, the wait is recorded.
    ///
    /// # Errors
    /// The guard all the same, if a thread that held the mutex has panicked.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_lock(), || self.inner.lock());
        watched::take(&self.watch, Location::caller(), attempt, block, MutexGuard::from_parts)
    }

    /// As [`std::sync::Mutex::try_lock`].
    ///
    /// # Errors
    /// As there: another thread holds the mutex, or the guard all the same if such a thread has panicked.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        watched::try_take(&self.watch, Location::caller(), || self.inner.try_lock(), MutexGuard::from_parts)
    }
}

/// The guard of a [`Mutex`]: its drop releases the mutex.
#[must_use = "the mutex is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'m, T: ?Sized> {
    held: Alone<'m>, // dropped before the mutex is released
    inner: std::sync::MutexGuard<'m, T>,
}

watched::guard!(MutexGuard, Alone);

impl<'m, T: ?Sized> MutexGuard<'m, T> {
    /// Releases the mutex to a [`Condvar`](crate::sync::Condvar), which returns it.
    pub(crate) fn into_parts(self) -> (Alone<'m>, std::sync::MutexGuard<'m, T>) {
        (self.held, self.inner)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
