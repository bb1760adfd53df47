//! The steps that all locks share: take, wait, release.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::imp::locks::{Watch, epoch};
use crate::sync::name::{Kind, Place};

/// The lock of a guard that has it alone. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(crate) struct Alone<'w>(&'w Watch);

impl<'w> Alone<'w> {
    pub(crate) fn watch(&self) -> &'w Watch {
        self.0
    }
}

impl Drop for Alone<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The lock of a guard that shares it. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(crate) struct Shared<'w> {
    watch: &'w Watch,
    place: Place,
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.watch.leave_shared(Some(self.place));
    }
}

/// How a thread takes a lock: what its guard keeps until the drop, and what is noted of it.
pub(crate) trait Held<'w>: Sized {
    const KIND: Kind;

    /// The lock was taken, or taken again. `is_on`: a session recorded waits before that.
    fn took(watch: &'w Watch, place: Place, is_on: bool) -> Self;
}

impl<'w> Held<'w> for Alone<'w> {
    const KIND: Kind = Kind::Alone;

    #[inline(always)]
    fn took(watch: &'w Watch, place: Place, is_on: bool) -> Self {
        if is_on {
            watch.took(place);
        }
        Self(watch)
    }
}

impl<'w> Held<'w> for Shared<'w> {
    const KIND: Kind = Kind::Shared;

    #[inline(always)]
    fn took(watch: &'w Watch, place: Place, _: bool) -> Self {
        Self { watch, place }
    }
}

/// Takes a lock of the standard library: by `attempt` if it is free, else by `block`.
#[inline(always)]
pub(crate) fn take<'w, H: Held<'w>, G, W>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
    block: impl FnOnce() -> LockResult<G>,
    wrap: impl FnOnce(H, G) -> W,
) -> LockResult<W> {
    let epoch = epoch();
    let got = match attempt() {
        // The common outcome, alone: a match of all three would move each of them through memory.
        Ok(guard) => return Ok(wrap(H::took(watch, place, epoch.is_some()), guard)),
        Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
        Err(TryLockError::WouldBlock) => match epoch {
            None => block(),
            Some(epoch) => watch.wait(epoch, H::KIND, place, block, |_| true),
        },
    };
    wrapped(got, |guard| wrap(H::took(watch, place, epoch.is_some()), guard))
}

/// Takes such a lock if it is free.
#[inline(always)]
pub(crate) fn try_take<'w, H: Held<'w>, G, W>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
    wrap: impl FnOnce(H, G) -> W,
) -> TryLockResult<W> {
    let is_on = epoch().is_some();
    match attempt() {
        Ok(guard) => Ok(wrap(H::took(watch, place, is_on), guard)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(poisoned)) => {
            let guard = wrap(H::took(watch, place, is_on), poisoned.into_inner());
            Err(TryLockError::Poisoned(PoisonError::new(guard)))
        }
    }
}

/// Makes a guard of the inner one. A poisoned lock stays so.
#[inline]
pub(crate) fn wrapped<G, H>(result: LockResult<G>, wrap: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(guard) => Ok(wrap(guard)),
        Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
    }
}
