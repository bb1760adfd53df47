//! The word of a callsite: the epoch of the session that records its events.
//!
//! The hot path loads the word with Relaxed, which costs nothing where the callsite is off. An event that
//! finds an epoch there passes [`fence_constants`] before it reads the callsite's constants, which were
//! stored with Relaxed before the word.

use crate::on::base::sync::{AtomicU32, Ordering, const_unless_loom, fence};

/// A callsite's word.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

impl Word {
    const_unless_loom! {
        pub(crate) fn new(word: u32) -> Word {
            Word(AtomicU32::new(word))
        }
    }

    /// Relaxed: an event need not see a change of filter or session at once.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Release pairs with the fence in [`fence_constants`]: an event that finds this word sees the constants
    /// stored before.
    pub(crate) fn set(&self, word: u32) {
        self.0.store(word, Ordering::Release);
    }
}

/// Orders the constants of a callsite after its word. Acquire pairs with the Release in [`Word::set`]. No
/// instruction on x86-64.
#[inline(always)]
pub(crate) fn fence_constants() {
    fence(Ordering::Acquire);
}
