//! The locks of [`lock_api`], whose waits are recorded.

#![allow(unsafe_code)] // the traits of `lock_api`

use std::panic::Location;

use lock_api::{
    RawMutexFair, RawMutexTimed, RawRwLockDowngrade, RawRwLockFair, RawRwLockRecursive,
    RawRwLockRecursiveTimed, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use crate::imp::locks::{Epoch, Watch, epoch, epoch_at_once, known_epoch};
use crate::sync::name::{Kind, Name, Place};

/// A raw mutex of [`lock_api`] around another one, whose waits are recorded.
///
/// With `parking_lot`, `Mutex<T>` becomes `lock_api::Mutex<RawMutex<parking_lot::RawMutex>, T>`:
///
/// ```
/// # mod parking_lot {
/// #     pub struct RawMutex(std::sync::atomic::AtomicBool);
/// #     unsafe impl lock_api::RawMutex for RawMutex {
/// #         const INIT: Self = Self(std::sync::atomic::AtomicBool::new(false));
/// #         type GuardMarker = lock_api::GuardSend;
/// #         fn lock(&self) {
/// #             while !self.try_lock() {}
/// #         }
/// #         fn try_lock(&self) -> bool {
/// #             !self.0.swap(true, std::sync::atomic::Ordering::Acquire)
/// #         }
/// #         unsafe fn unlock(&self) {
/// #             self.0.store(false, std::sync::atomic::Ordering::Release);
/// #         }
/// #     }
/// # }
/// use hairline::sync::RawMutex;
///
/// type Mutex<T> = lock_api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
///
/// static CACHE: Mutex<Vec<u32>> = Mutex::from_raw(RawMutex::named("cache"), Vec::new());
///
/// CACHE.lock().push(7);
/// ```
///
/// A lock without a name has the name `lock`: `lock_api` does not say where it was made. The places of
/// waiters and holders are those that `lock_api` says: places of the program where its methods are
/// `track_caller`, else places in `lock_api`. A guard that another thread drops is that of the thread which
/// took it.
#[derive(Debug)]
pub struct RawMutex<R> {
    watch: Watch,
    inner: R,
}

impl<R: lock_api::RawMutex> RawMutex<R> {
    /// Creates a free mutex with a name.
    pub const fn named(name: &'static str) -> Self {
        Self { watch: Watch::new(Name::Given(name)), inner: R::INIT }
    }
}

/// A raw lock of [`lock_api`] for many readers or one writer, around another one, whose waits are recorded:
/// see [`RawMutex`]. A reader that can become a writer counts as a reader until it is one.
#[derive(Debug)]
pub struct RawRwLock<R> {
    watch: Watch,
    inner: R,
}

impl<R: lock_api::RawRwLock> RawRwLock<R> {
    /// Creates a free lock with a name.
    pub const fn named(name: &'static str) -> Self {
        Self { watch: Watch::new(Name::Given(name)), inner: R::INIT }
    }
}

/// Takes a lock by `attempt`, else by `block` if there is one. All say whether they have it.
#[inline]
fn take<B: FnOnce() -> bool>(
    watch: &Watch,
    kind: Kind,
    place: Place,
    attempt: impl FnOnce() -> bool,
    block: Option<B>,
) -> bool {
    match epoch_at_once() {
        Ok(epoch) => take_in(epoch, watch, kind, place, attempt, block),
        Err(_) => take_timed(epoch, watch, kind, place, attempt, block),
    }
}

/// The same for a thread that has the lock already, as a reader.
#[inline]
fn become_writer<B: FnOnce() -> bool>(
    watch: &Watch,
    place: Place,
    attempt: impl FnOnce() -> bool,
    block: Option<B>,
) -> bool {
    take_timed(known_epoch, watch, Kind::Alone, place, attempt, block)
}

/// Takes a lock, and notes when. The hold of a reader is not recorded: its release does not say which of the
/// readers it is.
#[cold]
#[inline(never)]
fn take_timed<B: FnOnce() -> bool>(
    epoch: impl FnOnce() -> Option<Epoch>,
    watch: &Watch,
    kind: Kind,
    place: Place,
    attempt: impl FnOnce() -> bool,
    block: Option<B>,
) -> bool {
    let has_it = take_in(epoch(), watch, kind, place, attempt, block);
    if has_it && kind == Kind::Alone {
        watch.begin_hold(place);
    }
    has_it
}

#[inline]
fn take_in<B: FnOnce() -> bool>(
    epoch: Option<Epoch>,
    watch: &Watch,
    kind: Kind,
    place: Place,
    attempt: impl FnOnce() -> bool,
    block: Option<B>,
) -> bool {
    let has_it = attempt()
        || block.is_some_and(|block| match epoch {
            None => block(),
            Some(epoch) => watch.wait(epoch, kind, place, block, |has_it| *has_it),
        });
    if has_it && kind == Kind::Alone && epoch.is_some() {
        watch.took(place);
    }
    has_it
}

/// Defines the methods that take a lock: if it is free, after a wait, or within a limit.
macro_rules! takes {
    ($kind:ident $attempt:ident) => {
        #[inline]
        #[track_caller]
        fn $attempt(&self) -> bool {
            let attempt = || self.inner.$attempt();
            take(&self.watch, Kind::$kind, Location::caller(), attempt, None::<fn() -> bool>)
        }
    };
    ($kind:ident $attempt:ident, $block:ident) => {
        #[inline]
        #[track_caller]
        fn $block(&self) {
            let block = || {
                self.inner.$block();
                true
            };
            take(&self.watch, Kind::$kind, Location::caller(), || self.inner.$attempt(), Some(block));
        }
    };
    ($kind:ident $attempt:ident, $block:ident($limit:ty)) => {
        #[inline]
        #[track_caller]
        fn $block(&self, limit: $limit) -> bool {
            let block = || self.inner.$block(limit);
            take(&self.watch, Kind::$kind, Location::caller(), || self.inner.$attempt(), Some(block))
        }
    };
}

/// Defines the methods that release a lock, or lend it to another thread.
macro_rules! leaves {
    ($kind:ident $release:ident) => {
        #[inline]
        unsafe fn $release(&self) {
            leave(&self.watch, Kind::$kind);
            // SAFETY: the caller has the lock, and in this way.
            unsafe { self.inner.$release() };
        }
    };
    ($kind:ident bump $bump:ident) => {
        #[inline]
        #[track_caller]
        unsafe fn $bump(&self) {
            leave(&self.watch, Kind::$kind);
            // SAFETY: the caller has the lock, and in this way.
            unsafe { self.inner.$bump() };
            if Kind::$kind == Kind::Alone && known_epoch().is_some() {
                self.watch.took(Location::caller());
                self.watch.begin_hold(Location::caller());
            }
        }
    };
}

#[inline]
fn leave(watch: &Watch, kind: Kind) {
    match kind {
        Kind::Shared => watch.leave_shared(None),
        _ => watch.leave(),
    }
}

// SAFETY: each method below is that of `R`, which keeps the contract of its trait. Beside it, only words of
// the watch are read and written, and events recorded, which do not unwind. `named` and `INIT` are free.
unsafe impl<R: lock_api::RawMutex> lock_api::RawMutex for RawMutex<R> {
    const INIT: Self = Self { watch: Watch::new(Name::Given("lock")), inner: R::INIT };
    type GuardMarker = R::GuardMarker;

    takes!(Alone try_lock, lock);
    takes!(Alone try_lock);
    leaves!(Alone unlock);

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair> RawMutexFair for RawMutex<R> {
    leaves!(Alone unlock_fair);
    leaves!(Alone bump bump);
}

// SAFETY: as above.
unsafe impl<R: RawMutexTimed> RawMutexTimed for RawMutex<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    takes!(Alone try_lock, try_lock_for(R::Duration));
    takes!(Alone try_lock, try_lock_until(R::Instant));
}

// SAFETY: as above.
unsafe impl<R: lock_api::RawRwLock> lock_api::RawRwLock for RawRwLock<R> {
    const INIT: Self = Self { watch: Watch::new(Name::Given("lock")), inner: R::INIT };
    type GuardMarker = R::GuardMarker;

    takes!(Shared try_lock_shared, lock_shared);
    takes!(Shared try_lock_shared);
    leaves!(Shared unlock_shared);
    takes!(Alone try_lock_exclusive, lock_exclusive);
    takes!(Alone try_lock_exclusive);
    leaves!(Alone unlock_exclusive);

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.inner.is_locked_exclusive()
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockFair> RawRwLockFair for RawRwLock<R> {
    leaves!(Shared unlock_shared_fair);
    leaves!(Alone unlock_exclusive_fair);
    leaves!(Shared bump bump_shared);
    leaves!(Alone bump bump_exclusive);
}

// SAFETY: as above.
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for RawRwLock<R> {
    leaves!(Alone downgrade);
}

// SAFETY: as above.
unsafe impl<R: RawRwLockRecursive> RawRwLockRecursive for RawRwLock<R> {
    takes!(Shared try_lock_shared_recursive, lock_shared_recursive);
    takes!(Shared try_lock_shared_recursive);
}

// SAFETY: as above.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for RawRwLock<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    takes!(Shared try_lock_shared, try_lock_shared_for(R::Duration));
    takes!(Shared try_lock_shared, try_lock_shared_until(R::Instant));
    takes!(Alone try_lock_exclusive, try_lock_exclusive_for(R::Duration));
    takes!(Alone try_lock_exclusive, try_lock_exclusive_until(R::Instant));
}

// SAFETY: as above.
unsafe impl<R: RawRwLockRecursiveTimed> RawRwLockRecursiveTimed for RawRwLock<R> {
    takes!(Shared try_lock_shared_recursive, try_lock_shared_recursive_for(R::Duration));
    takes!(Shared try_lock_shared_recursive, try_lock_shared_recursive_until(R::Instant));
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for RawRwLock<R> {
    takes!(Shared try_lock_upgradable, lock_upgradable);
    takes!(Shared try_lock_upgradable);
    leaves!(Shared unlock_upgradable);

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self) {
        // SAFETY: the caller has the lock as one that can become a writer.
        let attempt = || unsafe { self.inner.try_upgrade() };
        let block = || {
            // SAFETY: as above; the attempt has changed nothing.
            unsafe { self.inner.upgrade() };
            true
        };
        become_writer(&self.watch, Location::caller(), attempt, Some(block));
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller has the lock as one that can become a writer.
        let attempt = || unsafe { self.inner.try_upgrade() };
        become_writer(&self.watch, Location::caller(), attempt, None::<fn() -> bool>)
    }
}

/// Defines the methods by which a reader becomes a writer within a limit.
macro_rules! upgrades {
    ($upgrade:ident($limit:ty)) => {
        #[inline]
        #[track_caller]
        unsafe fn $upgrade(&self, limit: $limit) -> bool {
            // SAFETY: the caller has the lock as one that can become a writer.
            let attempt = || unsafe { self.inner.try_upgrade() };
            // SAFETY: as above; the attempt has changed nothing.
            let block = || unsafe { self.inner.$upgrade(limit) };
            become_writer(&self.watch, Location::caller(), attempt, Some(block))
        }
    };
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for RawRwLock<R> {
    takes!(Shared try_lock_upgradable, try_lock_upgradable_for(R::Duration));
    takes!(Shared try_lock_upgradable, try_lock_upgradable_until(R::Instant));
    upgrades!(try_upgrade_for(R::Duration));
    upgrades!(try_upgrade_until(R::Instant));
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for RawRwLock<R> {
    leaves!(Shared unlock_upgradable_fair);
    leaves!(Shared bump bump_upgradable);
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for RawRwLock<R> {
    leaves!(Shared downgrade_upgradable);
    leaves!(Alone downgrade_to_upgradable);
}
