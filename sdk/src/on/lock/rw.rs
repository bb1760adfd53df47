//! The lock of tables that are looked up all the time and hardly ever grow.

use std::convert::Infallible;
use std::sync::{PoisonError, RwLock as StdRwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Instant;

use super::growing::{self, Grow};
use super::retry_until;

#[derive(Debug)]
pub(crate) struct RwLock<T>(StdRwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(StdRwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock for writing, with room in a container that it guards: see [`growing::lock_with_room`].
    pub(crate) fn write_with_room<C: Grow>(
        &self,
        place: impl Fn(&mut T) -> (&mut C, usize),
    ) -> RwLockWriteGuard<'_, T> {
        let Ok(guard) = growing::lock_with_room::<_, Infallible, _>(|| Ok(self.write()), place);
        guard
    }

    pub(crate) fn try_write_until(&self, until: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        retry_until(until, || match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }
}
