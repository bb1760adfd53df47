//! Words that one thread stores together and every thread loads together. A load never waits for the storing
//! thread.
//!
//! ```text
//! version   v: the number of stores so far. Slot v % 2 is current
//! slots     [words] [words]
//! store     fills the slot that is not current, then publishes version v + 1
//! load      reads the version, the current slot and the version again: equal versions prove
//!           that the words belong together
//! ```
//!
//! A load does not depend on the progress of the storing thread: a store in progress leaves the current slot
//! unchanged. (With one slot, a real-time thread that loads on the core of a preempted store would wait for
//! ever.) A load starts again only if a whole store was published meanwhile.

use crate::on::base::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Tries of a load. Stores are milliseconds apart at least, so each further try means that the thread was
/// preempted between the few instructions of the try before.
const TRIES: u32 = 4;

/// `N` words, published together.
#[derive(Debug)]
pub(crate) struct Words<const N: usize> {
    version: AtomicU32,
    slots: [[AtomicU64; N]; 2],
}

impl<const N: usize> Words<N> {
    pub(crate) fn new(words: [u64; N]) -> Self {
        Self { version: AtomicU32::new(0), slots: [words.map(AtomicU64::new), words.map(AtomicU64::new)] }
    }

    /// Publishes all words. Only one thread may store.
    pub(crate) fn store(&self, words: [u64; N]) {
        let next = self.fill(words);
        // Release pairs with the Acquire in `load`: a load that sees this version sees all words of its
        // slot.
        self.version.store(next, Ordering::Release);
    }

    /// Writes the slot that is not current. Returns the version that makes it current.
    fn fill(&self, words: [u64; N]) -> u32 {
        // Relaxed: the storing thread's own last store.
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the fence in `load`: a load that reads one of the words below also sees the version
        // before `next`. The slot was current in the version before that one, so such a load starts again.
        fence(Ordering::Release);
        for (slot, word) in self.slot(next).iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        next
    }

    /// Returns the words of one store, the latest that this thread can see. `None` if a store was published
    /// during each try.
    pub(crate) fn load(&self) -> Option<[u64; N]> {
        // Acquire pairs with the Release in `store`, here and below.
        let mut version = self.version.load(Ordering::Acquire);
        for _ in 0..TRIES {
            let slot = self.slot(version);
            let words = std::array::from_fn(|word| slot[word].load(Ordering::Relaxed));
            // Pairs with the fence in `fill`.
            fence(Ordering::Acquire);
            let now = self.version.load(Ordering::Acquire);
            if now == version {
                return Some(words);
            }
            version = now;
        }
        None
    }

    fn slot(&self, version: u32) -> &[AtomicU64; N] {
        &self.slots[version as usize % 2]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_load_finishes_while_a_store_is_stopped_half_way() {
        let words = Words::new([1, 1]);
        for n in 2..10 {
            // The storing thread is preempted after the first word, and then after the second.
            words.slot(words.version.load(Ordering::Relaxed) + 1)[0].store(n, Ordering::Relaxed);
            assert_eq!(words.load(), Some([n - 1, n - 1]));
            let next = words.fill([n, n]);
            assert_eq!(words.load(), Some([n - 1, n - 1]));
            words.version.store(next, Ordering::Release);
            assert_eq!(words.load(), Some([n, n]));
        }
    }

    #[test]
    fn words_are_of_one_store() {
        let words = Words::new([0; 3]);
        std::thread::scope(|threads| {
            threads.spawn(|| (1..20_000).for_each(|n| words.store([n; 3])));
            for _ in 0..20_000 {
                let [a, b, c] = words.load().unwrap_or_default();
                assert!(a == b && b == c);
            }
        });
    }

    #[test]
    fn the_version_may_wrap() {
        let words = Words::new([0, 0]);
        words.version.store(u32::MAX - 1, Ordering::Relaxed);
        for n in 1..5 {
            words.store([n, n]);
            assert_eq!(words.load(), Some([n, n]));
        }
    }
}
