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
/// The begin of a wait names the writer that took the lock. It does not name readers, who may be many. The
/// end of a writer's wait names a reader that released the lock: the last one, or one that did so at the same
/// time.
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

watched::common!(RwLock);

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
}

/// The guard of a reader: its drop ends the reader's share of the [`RwLock`].
#[must_use = "the lock is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'l, T: ?Sized> {
    #[allow(dead_code)] // its drop comes before the release of the lock
    held: Shared<'l>,
    inner: std::sync::RwLockReadGuard<'l, T>,
}

/// The guard of a writer: its drop releases the [`RwLock`].
#[must_use = "the lock is released when this guard is dropped"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'l, T: ?Sized> {
    #[allow(dead_code)] // as above
    held: Alone<'l>,
    inner: std::sync::RwLockWriteGuard<'l, T>,
}

watched::guard!(RwLockReadGuard, Shared);
watched::guard!(RwLockWriteGuard, Alone);

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
