//! The word of a callsite: 0, or the epoch of the session that records its events.
//!
//! The hot path loads the word with Relaxed, which adds no cost while the callsite is off. The constants of
//! the callsite are stored with Relaxed before the word. An event that finds an epoch in the word calls
//! [`fence_constants`] before it reads them.

use crate::on::base::sync::{AtomicU32, Ordering, const_unless_loom, fence};

/// A callsite's word.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

impl Word {
    const_unless_loom! {
        /// Creates a word.
        pub(crate) fn new(word: u32) -> Word {
            Word(AtomicU32::new(word))
        }
    }

    /// Loads the word. Relaxed: an event may see a change of filter or session late.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Stores the word. Release pairs with the fence in [`fence_constants`]: an event that finds this word
    /// sees the constants stored before it.
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
