//! [`RwLock`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, TryLockResult};

use crate::imp::locks::Watch;
use crate::sync::name::Name;
use crate::sync::watched::{self, Alone, Shared};

/// [`std::sync::RwLock`], whose waits are recorded.
///
/// The begin of a wait names the writer that holds the lock. It does not name readers, who may be many; the
/// end of the wait names the one that released the lock.
///
/// ```
/// use hairline::sync::RwLock;
///
/// static ROUTES: RwLock<Vec<&str>> = RwLock::named("routes", Vec::new());
///
/// ROUTES.write().unwrap().push("/");
/// assert_eq!(ROUTES.read().unwrap().len(), 1);
/// ```
pub struct RwLock<T: ?Sized> {
    watch: Watch,
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Creates a free lock. Its name in the trace is this place in the source, like `src/routes.rs:12`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self::with(Name::MadeAt(Location::caller()), value)
    }

    /// Creates a free lock with a name.
    pub const fn named(name: &'static str, value: T) -> Self {
        Self::with(Name::Given(name), value)
    }

    const fn with(name: Name, value: T) -> Self {
        Self { watch: Watch::new(name), inner: std::sync::RwLock::new(value) }
    }

    /// As [`std::sync::RwLock::into_inner`].
    ///
    /// # Errors
    /// The value all the same, if a writer has panicked.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// As [`std::sync::RwLock::read`]. If the thread must wait, the wait is recorded.
    ///
    /// # Errors
    /// The guard all the same, if a writer has panicked.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_read(), || self.inner.read());
        watched::take(&self.watch, Location::caller(), attempt, block, RwLockReadGuard::from_parts)
    }

    /// As [`std::sync::RwLock::try_read`].
    ///
    /// # Errors
    /// As there: a writer has the lock or waits for it, or the guard all the same if a writer has panicked.
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        watched::try_take(
            &self.watch,
            Location::caller(),
            || self.inner.try_read(),
            RwLockReadGuard::from_parts,
        )
    }

    /// As [`std::sync::RwLock::write`]. If the thread must wait, the wait is recorded.
    ///
    /// # Errors
    /// The guard all the same, if a writer has panicked.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_write(), || self.inner.write());
        watched::take(&self.watch, Location::caller(), attempt, block, RwLockWriteGuard::from_parts)
    }

    /// As [`std::sync::RwLock::try_write`].
    ///
    /// # Errors
    /// As there: another thread has the lock, or the guard all the same if a writer has panicked.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        watched::try_take(
            &self.watch,
            Location::caller(),
            || self.inner.try_write(),
            RwLockWriteGuard::from_parts,
        )
    }

    /// As [`std::sync::RwLock::is_poisoned`].
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// As [`std::sync::RwLock::clear_poison`].
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// As [`std::sync::RwLock::get_mut`].
    ///
    /// # Errors
    /// The value all the same, if a writer has panicked.
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The guard of a reader: its drop ends the reader's share of the [`RwLock`].
#[must_use = "the lock is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'l, T: ?Sized> {
    _held: Shared<'l>, // dropped before the lock is released
    inner: std::sync::RwLockReadGuard<'l, T>,
}

/// The guard of a writer: its drop releases the [`RwLock`].
#[must_use = "the lock is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'l, T: ?Sized> {
    _held: Alone<'l>, // dropped before the lock is released
    inner: std::sync::RwLockWriteGuard<'l, T>,
}

/// What the guards of readers and writers have in common.
macro_rules! guards {
    ($($guard:ident $held:ident)*) => {$(
        impl<'l, T: ?Sized> $guard<'l, T> {
            #[inline(always)]
            fn from_parts(held: $held<'l>, inner: std::sync::$guard<'l, T>) -> Self {
                Self { _held: held, inner }
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    )*};
}

guards!(RwLockReadGuard Shared RwLockWriteGuard Alone);

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
