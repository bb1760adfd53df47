//! A read-write lock, for tables that are read often and rarely grow.

use std::sync::RwLock as StdRwLock;
use std::sync::{RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use crate::on::base::lock::growing::Grow;
use crate::on::base::lock::{Guard, growing, retry_unless_lost, retry_until, unless_blocked};

pub(crate) type ReadGuard<'l, T> = Guard<RwLockReadGuard<'l, T>>;
pub(crate) type WriteGuard<'l, T> = Guard<RwLockWriteGuard<'l, T>>;

/// A read-write lock that a forked child can detect as lost.
#[derive(Debug)]
pub(crate) struct RwLock<T>(StdRwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(StdRwLock::new(value))
    }

    /// Takes the lock for reading. `None` in a forked child that has lost the lock.
    pub(crate) fn read(&self) -> Option<ReadGuard<'_, T>> {
        retry_unless_lost(|| unless_blocked(self.0.try_read()).map(Guard::new))
    }

    /// Takes the lock for writing, with room in a container that it guards: see [`growing::lock_with_room`].
    /// `None` in a forked child that has lost the lock.
    pub(crate) fn write_with_room<C: Grow>(
        &self,
        container: impl Fn(&mut T) -> (&mut C, usize),
    ) -> Option<WriteGuard<'_, T>> {
        let write = || retry_unless_lost(|| unless_blocked(self.0.try_write()).map(Guard::new));
        growing::lock_with_room(|| write().ok_or(()), container).ok()
    }

    /// Tries to take the lock for writing until a point in time; `None` if it is still held then.
    pub(crate) fn try_write_until(&self, until: Instant) -> Option<WriteGuard<'_, T>> {
        retry_until(until, || unless_blocked(self.0.try_write()).map(Guard::new))
    }
}
