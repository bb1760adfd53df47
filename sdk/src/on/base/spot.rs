//! A place for one value, which any thread may put there or take without waiting.
//!
//! A thread that comes while another one is at the place gets nothing, and goes another way. So does a forked
//! child whose parent had a thread there in the moment of the fork: for the child the place is never free
//! again.

use crate::on::base::sync::{AtomicU32, AtomicU64, Ordering, const_unless_loom};

const EMPTY: u32 = 0;
const FULL: u32 = 1;
/// A thread is reading or writing the words.
const OCCUPIED: u32 = 2;

/// A value.
pub(crate) type Words = [u64; 4];

/// A place for a value, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Spot {
    state: AtomicU32,
    words: [AtomicU64; 4],
}

impl Spot {
    const_unless_loom! {
        /// Makes an empty place.
        pub(crate) fn new() -> Self {
            let words = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
            Self { state: AtomicU32::new(EMPTY), words }
        }
    }

    /// Takes the value if there is one and it `is_wanted`.
    #[inline]
    pub(crate) fn take_if(&self, is_wanted: impl FnOnce(&Words) -> bool) -> Option<Words> {
        // Acquire pairs with the Release in `put`: the words are those that were put.
        self.state.compare_exchange(FULL, OCCUPIED, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let words = std::array::from_fn(|n| self.words[n].load(Ordering::Relaxed));
        let is_wanted = is_wanted(&words);
        // Release pairs with the Acquire in `put`: the words were read before others are stored.
        self.state.store(if is_wanted { EMPTY } else { FULL }, Ordering::Release);
        is_wanted.then_some(words)
    }

    /// Puts a value if the place is empty. Returns whether it did.
    #[inline]
    pub(crate) fn put(&self, words: Words) -> bool {
        // Acquire and Release pair with those in `take_if`.
        if self.state.compare_exchange(EMPTY, OCCUPIED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        std::iter::zip(&self.words, words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        self.state.store(FULL, Ordering::Release);
        true
    }
}
