//! A thread and its place in the source, in words that one thread at a time writes and any thread reads.
//!
//! The thread that holds a lock writes them, so nobody waits. A reader sees one whole state or none: each
//! state has a number, which the reader compares before and after it reads the place. The loom test
//! `sdk/models/holders.rs` includes this file.

use crate::on::base::sync::{AtomicPtr, AtomicU64, Ordering, const_unless_loom};

/// A thread and its place, or nobody.
#[derive(Debug)]
pub(crate) struct Who<P> {
    /// High half: the number of this state. Low half: the thread; 0 for nobody.
    state: AtomicU64,
    place: AtomicPtr<P>,
}

/// What a reader saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen<P> {
    pub(crate) thread: u32,
    pub(crate) place: *mut P,
}

impl<P> Who<P> {
    const_unless_loom! {
        /// Nobody.
        pub(crate) fn nobody() -> Self {
            Self { state: AtomicU64::new(0), place: AtomicPtr::new(std::ptr::null_mut()) }
        }
    }

    /// Whether there is anybody, for the thread that may write.
    #[inline(always)]
    pub(crate) fn is_somebody(&self) -> bool {
        self.state.load(Ordering::Relaxed) as u32 != 0
    }

    /// Returns the place, for the thread that may write.
    #[inline(always)]
    pub(crate) fn own_place(&self) -> *mut P {
        self.place.load(Ordering::Relaxed)
    }

    /// Sets the thread, which is not 0. Before this call there is nobody.
    #[inline(always)]
    pub(crate) fn set(&self, thread: u32, place: *mut P) {
        let before = self.state.load(Ordering::Relaxed);
        debug_assert!(before as u32 == 0 && thread != 0);
        // Release, pair 1: who reads this place, or what was stored before this call, sees from then on that
        // the state before is over.
        self.place.store(place, Ordering::Release);
        // Release, pair 2: who sees this state sees its place, or a later one.
        let number = (before >> 32).wrapping_add(1);
        self.state.store(number << 32 | u64::from(thread), Ordering::Release);
    }

    /// From now on there is nobody.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        let number = self.state.load(Ordering::Relaxed) >> 32;
        self.state.store(number << 32, Ordering::Relaxed); // pair 1 orders it
    }

    /// Returns who it is, with what `with` reads: words that were stored with `Release` between
    /// [`clear`](Self::clear) and [`set`](Self::set), and are loaded with `Acquire`. Returns `None` if it is
    /// nobody, or if that changes meanwhile.
    pub(crate) fn look<R>(&self, with: impl FnOnce() -> R) -> Option<(Seen<P>, R)> {
        let before = self.state.load(Ordering::Acquire); // pair 2
        if before as u32 == 0 {
            return None;
        }
        let with = with();
        let place = self.place.load(Ordering::Acquire); // pair 1
        let after = self.state.load(Ordering::Relaxed);
        (after == before).then_some((Seen { thread: before as u32, place }, with))
    }

    /// Returns a number that changes with each [`set`](Self::set).
    pub(crate) fn number(&self) -> u32 {
        (self.state.load(Ordering::Relaxed) >> 32) as u32
    }
}
