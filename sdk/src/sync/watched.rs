//! The steps that all locks share: take, wait, release.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::imp::locks::{Epoch, Watch, epoch, epoch_at_once};
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
    match epoch_at_once() {
        Ok(epoch) => take_in(epoch, watch, place, attempt, block, wrap),
        Err(_) => joined(take_timed(watch, place, attempt, block), wrap),
    }
}

/// The parts of a guard, and whether the lock is poisoned. A function that is not inlined returns them: a
/// whole guard would be in memory, and with it the caller's guard of the common outcome.
type Parts<H, G> = (H, G, bool);

fn parts<H, G>(got: LockResult<(H, G)>) -> Parts<H, G> {
    let is_poisoned = got.is_err();
    let (held, guard) = got.unwrap_or_else(PoisonError::into_inner);
    (held, guard, is_poisoned)
}

#[inline(always)]
fn joined<H, G, W>((held, guard, is_poisoned): Parts<H, G>, wrap: impl FnOnce(H, G) -> W) -> LockResult<W> {
    let guard = wrap(held, guard);
    if is_poisoned { Err(PoisonError::new(guard)) } else { Ok(guard) }
}

/// The same with all steps.
#[cold]
#[inline(never)]
fn take_timed<'w, H: Held<'w>, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
    block: impl FnOnce() -> LockResult<G>,
) -> Parts<H, G> {
    let got = take_in(epoch(), watch, place, attempt, block, |held, guard| (held, guard));
    watch.begin_hold(place);
    parts(got)
}

#[inline(always)]
fn take_in<'w, H: Held<'w>, G, W>(
    epoch: Option<Epoch>,
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
    block: impl FnOnce() -> LockResult<G>,
    wrap: impl FnOnce(H, G) -> W,
) -> LockResult<W> {
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
    match epoch_at_once() {
        Ok(epoch) => try_take_in(epoch.is_some(), watch, place, attempt, wrap),
        Err(_) => match try_take_timed(watch, place, attempt) {
            Some(parts) => joined(parts, wrap).map_err(TryLockError::Poisoned),
            None => Err(TryLockError::WouldBlock),
        },
    }
}

#[cold]
#[inline(never)]
fn try_take_timed<'w, H: Held<'w>, G>(
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
) -> Option<Parts<H, G>> {
    let got = match try_take_in(epoch().is_some(), watch, place, attempt, |held, guard| (held, guard)) {
        Err(TryLockError::WouldBlock) => return None,
        Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
        Ok(guard) => Ok(guard),
    };
    watch.begin_hold(place);
    Some(parts(got))
}

#[inline(always)]
fn try_take_in<'w, H: Held<'w>, G, W>(
    is_on: bool,
    watch: &'w Watch,
    place: Place,
    attempt: impl FnOnce() -> TryLockResult<G>,
    wrap: impl FnOnce(H, G) -> W,
) -> TryLockResult<W> {
    match attempt() {
        Ok(guard) => Ok(wrap(H::took(watch, place, is_on), guard)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(poisoned)) => {
            let guard = wrap(H::took(watch, place, is_on), poisoned.into_inner());
            Err(TryLockError::Poisoned(PoisonError::new(guard)))
        }
    }
}

/// Defines what the locks of values have in common.
macro_rules! common {
    ($Lock:ident) => {
        impl<T> $Lock<T> {
            /// Creates a free lock. Its name in the trace is this place in the source, like `src/cache.rs:12`.
            /// Where the function is passed on, as in `map`, it is a place in Hairline: use `named` there.
            #[track_caller]
            pub const fn new(value: T) -> Self {
                Self::with(Name::MadeAt(Location::caller()), value)
            }

            /// Creates a free lock with a name.
            pub const fn named(name: &'static str, value: T) -> Self {
                Self::with(Name::Given(name), value)
            }

            const fn with(name: Name, value: T) -> Self {
                Self { watch: Watch::new(name), inner: std::sync::$Lock::new(value) }
            }

            #[doc = concat!("As [`std::sync::", stringify!($Lock), "::into_inner`].")]
            ///
            /// # Errors
            /// The value all the same, if a thread that could change it has panicked.
            pub fn into_inner(self) -> LockResult<T> {
                self.inner.into_inner()
            }
        }

        impl<T: ?Sized> $Lock<T> {
            #[doc = concat!("As [`std::sync::", stringify!($Lock), "::is_poisoned`].")]
            #[inline]
            pub fn is_poisoned(&self) -> bool {
                self.inner.is_poisoned()
            }

            #[doc = concat!("As [`std::sync::", stringify!($Lock), "::clear_poison`].")]
            #[inline]
            pub fn clear_poison(&self) {
                self.inner.clear_poison();
            }

            #[doc = concat!("As [`std::sync::", stringify!($Lock), "::get_mut`].")]
            ///
            /// # Errors
            /// The value all the same, if a thread that could change it has panicked.
            #[inline]
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.inner.get_mut()
            }
        }

        impl<T> From<T> for $Lock<T> {
            #[track_caller]
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }

        impl<T: Default> Default for $Lock<T> {
            #[track_caller]
            fn default() -> Self {
                Self::new(T::default())
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $Lock<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}
pub(crate) use common;

/// Defines what their guards have in common. The drop of the first field comes before the release of the
/// lock.
macro_rules! guard {
    ($Guard:ident, $Held:ident) => {
        impl<'l, T: ?Sized> $Guard<'l, T> {
            #[inline(always)]
            pub(crate) fn from_parts(held: $Held<'l>, inner: std::sync::$Guard<'l, T>) -> Self {
                Self { held, inner }
            }
        }

        impl<T: ?Sized> Deref for $Guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $Guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $Guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}
pub(crate) use guard;

/// Makes a guard of the inner one. A poisoned lock stays so.
#[inline]
pub(crate) fn wrapped<G, H>(result: LockResult<G>, wrap: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(guard) => Ok(wrap(guard)),
        Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
    }
}
