//! [`Condvar`].

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, PoisonError, WaitTimeoutResult};
use std::time::{Duration, Instant};

use crate::imp::locks::{Watch, known_epoch};
use crate::sync::MutexGuard;
use crate::sync::name::{Kind, Name, Place};
use crate::sync::watched::{self, Alone, Held};

/// [`std::sync::Condvar`], whose waits are recorded.
///
/// A wait ends with the name of the thread that notified it, if it was the only one that waited. Its slice
/// includes the wait for the mutex.
///
/// ```
/// use hairline::sync::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::named("ready", false);
/// static CHANGED: Condvar = Condvar::named("ready changed");
///
/// let thread = std::thread::spawn(|| {
///     *READY.lock().unwrap() = true;
///     CHANGED.notify_one();
/// });
/// let ready = CHANGED.wait_while(READY.lock().unwrap(), |ready| !*ready).unwrap();
/// assert!(*ready);
/// # drop(ready);
/// # thread.join().unwrap();
/// ```
pub struct Condvar {
    watch: Watch,
    inner: std::sync::Condvar,
}

impl Condvar {
    /// Creates a condition variable. Its name in the trace is this place in the source.
    #[must_use]
    #[track_caller]
    pub const fn new() -> Self {
        Self::with(Name::MadeAt(Location::caller()))
    }

    /// Creates a condition variable with a name.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self::with(Name::Given(name))
    }

    const fn with(name: Name) -> Self {
        Self { watch: Watch::new(name), inner: std::sync::Condvar::new() }
    }

    /// As [`std::sync::Condvar::wait`]. The wait is recorded.
    ///
    /// # Errors
    /// The guard all the same, if a thread that held the mutex has panicked.
    #[track_caller]
    pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> LockResult<MutexGuard<'m, T>> {
        self.wait_at(Location::caller(), guard, Kind::Notified)
    }

    /// As [`std::sync::Condvar::wait_while`]. Each wait is recorded.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_while<'m, T>(
        &self,
        mut guard: MutexGuard<'m, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'m, T>> {
        let (place, mut kind) = (Location::caller(), Kind::Notified);
        while condition(&mut guard) {
            guard = self.wait_at(place, guard, kind)?;
            kind = Kind::NotifiedAgain;
        }
        Ok(guard)
    }

    /// As [`std::sync::Condvar::wait_timeout`]. The wait is recorded.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout<'m, T>(
        &self,
        guard: MutexGuard<'m, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'m, T>, WaitTimeoutResult)> {
        self.wait_timeout_at(Location::caller(), guard, limit, Kind::Notified)
    }

    /// As [`std::sync::Condvar::wait_timeout_while`]. Each wait is recorded.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout_while<'m, T>(
        &self,
        mut guard: MutexGuard<'m, T>,
        limit: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'m, T>, WaitTimeoutResult)> {
        let (place, start, mut kind) = (Location::caller(), Instant::now(), Kind::Notified);
        while condition(&mut guard) {
            let Some(rest) = limit.checked_sub(start.elapsed()) else { return Ok((guard, outcome(true))) };
            guard = self.wait_timeout_at(place, guard, rest, kind)?.0;
            kind = Kind::NotifiedAgain;
        }
        Ok((guard, outcome(false)))
    }

    fn wait_at<'m, T>(
        &self,
        place: Place,
        guard: MutexGuard<'m, T>,
        kind: Kind,
    ) -> LockResult<MutexGuard<'m, T>> {
        let block = |inner| {
            let got = self.inner.wait(inner);
            watched::wrapped(got, |inner| (inner, ()))
        };
        let got = self.record((place, kind), guard, block, |()| true);
        watched::wrapped(got, |(guard, ())| guard)
    }

    fn wait_timeout_at<'m, T>(
        &self,
        place: Place,
        guard: MutexGuard<'m, T>,
        limit: Duration,
        kind: Kind,
    ) -> LockResult<(MutexGuard<'m, T>, WaitTimeoutResult)> {
        let block = |inner| self.inner.wait_timeout(inner, limit);
        self.record((place, kind), guard, block, |outcome| !outcome.timed_out())
    }

    /// Releases the mutex, waits as `block` does, and has the mutex again. `is_notified` tells whether the
    /// wait ended because of another thread.
    fn record<'m, T, O>(
        &self,
        (place, kind): (Place, Kind),
        guard: MutexGuard<'m, T>,
        block: impl FnOnce(std::sync::MutexGuard<'m, T>) -> LockResult<(std::sync::MutexGuard<'m, T>, O)>,
        is_notified: impl FnOnce(&O) -> bool,
    ) -> LockResult<(MutexGuard<'m, T>, O)> {
        let epoch = known_epoch();
        let (held, inner) = guard.into_parts();
        let mutex = held.watch();
        let got = {
            let _counted = self.watch.expect_notify();
            drop(held);
            match epoch {
                None => block(inner),
                Some(epoch) => {
                    let is_notified = |got: &LockResult<(_, O)>| match got {
                        Ok((_, outcome)) => is_notified(outcome),
                        Err(poisoned) => is_notified(&poisoned.get_ref().1),
                    };
                    self.watch.wait(epoch, kind, place, || block(inner), is_notified)
                }
            }
        };
        let held = Alone::took(mutex, place, epoch.is_some());
        mutex.begin_hold(place);
        watched::wrapped(got, |(inner, outcome)| (MutexGuard::from_parts(held, inner), outcome))
    }

    /// As [`std::sync::Condvar::notify_one`]. If a thread waits, an instant is recorded.
    #[inline]
    #[track_caller]
    pub fn notify_one(&self) {
        self.watch.notify(Location::caller());
        self.inner.notify_one();
    }

    /// As [`std::sync::Condvar::notify_all`]. If a thread waits, an instant is recorded.
    #[inline]
    #[track_caller]
    pub fn notify_all(&self) {
        self.watch.notify(Location::caller());
        self.inner.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

/// Makes an outcome, which only the standard library can, by a lock of its own: the program's lock stays
/// held.
fn outcome(is_over: bool) -> WaitTimeoutResult {
    let (own, nobody) = (std::sync::Mutex::new(()), std::sync::Condvar::new());
    let guard = own.lock().unwrap_or_else(PoisonError::into_inner);
    let got = nobody.wait_timeout_while(guard, Duration::ZERO, |()| is_over);
    got.unwrap_or_else(PoisonError::into_inner).1
}
