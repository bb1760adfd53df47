//! [`Once`].

use std::fmt;
use std::panic::Location;
use std::sync::OnceState;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::imp::locks::{Wait, Watch, epoch};
use crate::sync::name::{Kind, Name, Place};
use crate::sync::watched::{Alone, Held};

/// [`std::sync::Once`]: the waits for the thread that runs the closure are recorded.
///
/// ```
/// use hairline::sync::Once;
///
/// static START: Once = Once::named("start");
///
/// START.call_once(|| { /* load something */ });
/// assert!(START.is_completed());
/// ```
pub struct Once {
    watch: Watch,
    inner: std::sync::Once,
    /// Whether a thread runs the closure, or is about to.
    is_begun: AtomicBool,
}

impl Once {
    /// Creates one whose closure has not run. Its name in the trace is this place in the source.
    #[must_use]
    #[track_caller]
    #[allow(clippy::new_without_default)] // as in the standard library
    pub const fn new() -> Self {
        Self::with(Name::MadeAt(Location::caller()))
    }

    /// Creates one with a name.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self::with(Name::Given(name))
    }

    const fn with(name: Name) -> Self {
        let inner = std::sync::Once::new();
        Self { watch: Watch::new(name), inner, is_begun: AtomicBool::new(false) }
    }

    /// As [`std::sync::Once::call_once`]. If another thread runs the closure, the wait for it is recorded.
    ///
    /// # Panics
    /// If the closure panics, or did so in an earlier call.
    #[inline]
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        if !self.inner.is_completed() {
            self.call(Location::caller(), |run| self.inner.call_once(|| run.run(f)));
        }
    }

    /// As [`std::sync::Once::call_once_force`]. If another thread runs the closure, the wait for it is
    /// recorded.
    ///
    /// # Panics
    /// If the closure panics.
    #[inline]
    #[track_caller]
    pub fn call_once_force(&self, f: impl FnOnce(&OnceState)) {
        if !self.inner.is_completed() {
            self.call(Location::caller(), |run| self.inner.call_once_force(|state| run.run(|| f(state))));
        }
    }

    /// As [`std::sync::Once::is_completed`].
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.inner.is_completed()
    }

    /// As [`std::sync::Once::wait`]. The wait is recorded.
    ///
    /// # Panics
    /// If the closure has panicked.
    #[inline]
    #[track_caller]
    pub fn wait(&self) {
        if !self.inner.is_completed() {
            self.wait_at(Location::caller(), || self.inner.wait());
        }
    }

    /// As [`std::sync::Once::wait_force`]. The wait is recorded.
    #[inline]
    #[track_caller]
    pub fn wait_force(&self) {
        if !self.inner.is_completed() {
            self.wait_at(Location::caller(), || self.inner.wait_force());
        }
    }

    #[cold]
    fn wait_at(&self, place: Place, wait: impl FnOnce()) {
        match epoch() {
            None => wait(),
            Some(epoch) => self.watch.wait(epoch, Kind::Done, place, wait, |()| true),
        }
    }

    /// Calls `call`, which runs the closure in this thread or waits for the thread that does.
    #[cold]
    fn call(&self, place: Place, call: impl FnOnce(&mut Run<'_>)) {
        let epoch = epoch();
        // Relaxed: who comes second only records a wait, which may be short.
        let is_first = !self.is_begun.swap(true, Ordering::Relaxed);
        let wait =
            epoch.filter(|_| !is_first).map(|epoch| Wait::begin(&self.watch, epoch, Kind::Done, place));
        let _begun = Begun(self);
        let mut run = Run { once: self, place, is_on: epoch.is_some(), wait };
        call(&mut run);
        if let Some(wait) = run.wait {
            wait.note_release();
        }
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// A call that may become the one that runs the closure.
struct Run<'o> {
    once: &'o Once,
    place: Place,
    is_on: bool,
    /// The wait, if another call came first.
    wait: Option<Wait<'o>>,
}

impl Run<'_> {
    /// Runs the closure in this thread, which does not wait then.
    fn run(&mut self, f: impl FnOnce()) {
        self.wait = None;
        let _held = Alone::took(&self.once.watch, self.place, self.is_on);
        self.once.watch.begin_hold(self.place);
        f();
    }
}

/// A call. If it panics, because of its closure or of an earlier one, no thread runs a closure any more.
struct Begun<'o>(&'o Once);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_begun.store(false, Ordering::Relaxed);
        }
    }
}
