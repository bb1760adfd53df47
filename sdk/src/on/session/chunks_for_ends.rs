//! Chunks that threads keep only for the ends of their open scopes.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of chunks that threads keep only for the ends of their open scopes.
#[derive(Debug, Default)]
pub(crate) struct ChunksForEnds {
    kept: AtomicU32,
    /// The largest number that was kept while the ring was full.
    most_while_full: AtomicU32,
}

impl ChunksForEnds {
    /// Replaces the calling thread's number, `before`, by `now`.
    #[inline]
    pub(crate) fn replace(&self, before: u32, now: u32) {
        self.kept.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Notes that the ring is full.
    #[inline]
    pub(crate) fn note_full(&self) {
        let kept = self.kept.load(Ordering::Relaxed);
        if kept > self.most_while_full.load(Ordering::Relaxed) {
            self.most_while_full.fetch_max(kept, Ordering::Relaxed);
        }
    }

    /// Returns the largest number that was kept while the ring was full.
    pub(crate) fn most_while_full(&self) -> u32 {
        self.most_while_full.load(Ordering::Relaxed)
    }
}
