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

impl<T> Mutex<T> {
    /// Creates a free mutex. Its name in the trace is this place in the source, like `src/cache.rs:12`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self::with(Name::MadeAt(Location::caller()), value)
    }

    /// Creates a free mutex with a name.
    pub const fn named(name: &'static str, value: T) -> Self {
        Self::with(Name::Given(name), value)
    }

    const fn with(name: Name, value: T) -> Self {
        Self { watch: Watch::new(name), inner: std::sync::Mutex::new(value) }
    }

    /// As [`std::sync::Mutex::into_inner`].
    ///
    /// # Errors
    /// The value all the same, if a thread that held the mutex has panicked.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

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

    /// As [`std::sync::Mutex::is_poisoned`].
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// As [`std::sync::Mutex::clear_poison`].
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// As [`std::sync::Mutex::get_mut`].
    ///
    /// # Errors
    /// The value all the same, if a thread that held the mutex has panicked.
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The guard of a [`Mutex`]: its drop releases the mutex.
#[must_use = "the mutex is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'m, T: ?Sized> {
    held: Alone<'m>, // dropped before the mutex is released
    inner: std::sync::MutexGuard<'m, T>,
}

impl<'m, T: ?Sized> MutexGuard<'m, T> {
    /// Releases the mutex to a [`Condvar`](crate::sync::Condvar), which returns it.
    pub(crate) fn into_parts(self) -> (Alone<'m>, std::sync::MutexGuard<'m, T>) {
        (self.held, self.inner)
    }

    #[inline(always)]
    pub(crate) fn from_parts(held: Alone<'m>, inner: std::sync::MutexGuard<'m, T>) -> Self {
        Self { held, inner }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
