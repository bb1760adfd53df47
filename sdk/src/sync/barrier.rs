//! [`Barrier`].

use std::fmt;
use std::panic::Location;
use std::sync::BarrierWaitResult;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::imp::locks::{Watch, epoch};
use crate::sync::name::{Kind, Name};

/// [`std::sync::Barrier`], whose waits are recorded: of all threads but the last one, which the ends of the
/// waits name. If more threads than that wait, the last one of a round may be another one, by some ns.
///
/// ```
/// use hairline::sync::Barrier;
///
/// let barrier = Barrier::named("phase", 2);
/// std::thread::scope(|scope| {
///     scope.spawn(|| barrier.wait());
///     barrier.wait();
/// });
/// ```
pub struct Barrier {
    watch: Watch,
    inner: std::sync::Barrier,
    threads: usize,
    /// The calls of `wait` so far.
    arrived: AtomicUsize,
}

impl Barrier {
    /// Creates a barrier for so many threads. Its name in the trace is this place in the source.
    #[must_use]
    #[track_caller]
    pub const fn new(threads: usize) -> Self {
        Self::with(Name::MadeAt(Location::caller()), threads)
    }

    /// Creates a barrier with a name.
    #[must_use]
    pub const fn named(name: &'static str, threads: usize) -> Self {
        Self::with(Name::Given(name), threads)
    }

    const fn with(name: Name, threads: usize) -> Self {
        let inner = std::sync::Barrier::new(threads);
        Self { watch: Watch::new(name), inner, threads, arrived: AtomicUsize::new(0) }
    }

    /// As [`std::sync::Barrier::wait`].
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let place = Location::caller();
        let epoch = epoch();
        // Relaxed: it only tells who comes last. The order of the threads is that of the barrier inside.
        let arrived = self.arrived.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if arrived.is_multiple_of(self.threads.max(1)) {
            self.watch.leave_shared(Some(place));
            return self.inner.wait();
        }
        match epoch {
            None => self.inner.wait(),
            Some(epoch) => self.watch.wait(epoch, Kind::Met, place, || self.inner.wait(), |_| true),
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
