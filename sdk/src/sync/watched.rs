//! The steps that all locks share: take, wait, release.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::imp::locks::{Watch, epoch};
use crate::sync::name::{Kind, Place};

/// The lock of a guard that has it alone. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(crate) struct Alone<'w>(&'w Watch);

impl<'w> Alone<'w> {
    /// The lock was taken, or taken again. `is_on`: a session recorded waits before that.
    #[inline]
    pub(crate) fn took(watch: &'w Watch, place: Place, is_on: bool) -> Self {
        if is_on {
            watch.took(place);
        }
        Self(watch)
    }

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

/// Takes a lock for one thread alone: by `attempt`, which returns `None` if the lock is not free, else by
/// `block`.
#[inline]
pub(crate) fn alone<'w, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> Option<G>,
    block: impl FnOnce() -> G,
) -> (Alone<'w>, G) {
    let epoch = epoch();
    let got = attempt().unwrap_or_else(|| match epoch {
        None => block(),
        Some(epoch) => watch.wait(epoch, Kind::Alone, place, block, |_| true),
    });
    (Alone::took(watch, place, epoch.is_some()), got)
}

/// The same, if the lock is free.
#[inline]
pub(crate) fn alone_if_free<'w, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> Option<G>,
) -> Option<(Alone<'w>, G)> {
    let is_on = epoch().is_some();
    attempt().map(|got| (Alone::took(watch, place, is_on), got))
}

/// Takes a lock that several threads may have at once.
#[inline]
pub(crate) fn shared<'w, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> Option<G>,
    block: impl FnOnce() -> G,
) -> (Shared<'w>, G) {
    let epoch = epoch();
    let got = attempt().unwrap_or_else(|| match epoch {
        None => block(),
        Some(epoch) => watch.wait(epoch, Kind::Shared, place, block, |_| true),
    });
    (Shared { watch, place }, got)
}

/// Takes such a lock, if it is free.
#[inline]
pub(crate) fn shared_if_free<'w, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> Option<G>,
) -> Option<(Shared<'w>, G)> {
    attempt().map(|got| (Shared { watch, place }, got))
}

/// The outcome of an attempt at a lock of the standard library; `None` if the lock is not free.
#[inline]
pub(crate) fn attempted<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
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

/// The same for an attempt that [`attempted`] looked at.
#[inline]
pub(crate) fn tried<H>(result: Option<LockResult<H>>) -> TryLockResult<H> {
    match result {
        Some(result) => result.map_err(TryLockError::Poisoned),
        None => Err(TryLockError::WouldBlock),
    }
}
