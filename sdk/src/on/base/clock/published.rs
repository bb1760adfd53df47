//! A pair of words that one thread stores and every thread loads as a pair. A load never waits for the
//! storing thread.
//!
//! ```text
//! version   v: the number of stores so far. Slot v % 2 is current
//! slots     [two words] [two words]
//! store     fills the slot that is not current, then publishes version v + 1
//! load      reads the version, the current slot and the version again: equal versions prove
//!           that the words belong together
//! ```
//!
//! A load does not depend on the progress of the storing thread: a store in progress leaves the current slot
//! unchanged. (With one slot, a real-time thread that loads on the core of a preempted store would wait for
//! ever.) A load starts again only if a whole store was published meanwhile.

use crate::on::base::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Tries of a load. Stores are tens of milliseconds apart, so each further try means that the thread was
/// preempted between the few instructions of the try before.
const TRIES: u32 = 4;

/// Two words, published together.
#[derive(Debug)]
pub(crate) struct Pair {
    version: AtomicU32,
    slots: [[AtomicU64; 2]; 2],
}

impl Pair {
    pub(crate) fn new([first, second]: [u64; 2]) -> Self {
        let slot = || [AtomicU64::new(first), AtomicU64::new(second)];
        Self { version: AtomicU32::new(0), slots: [slot(), slot()] }
    }

    /// Publishes both words. Only one thread may store.
    pub(crate) fn store(&self, words: [u64; 2]) {
        let next = self.fill(words);
        // Release pairs with the Acquire in `load`: a load that sees this version sees both words of its
        // slot.
        self.version.store(next, Ordering::Release);
    }

    /// Writes the slot that is not current. Returns the version that makes it current.
    fn fill(&self, [first, second]: [u64; 2]) -> u32 {
        // Relaxed: the storing thread's own last store.
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the fence in `load`: a load that reads one of the words below also sees the version
        // before `next`. The slot was current in the version before that one, so such a load starts again.
        fence(Ordering::Release);
        let slot = self.slot(next);
        slot[0].store(first, Ordering::Relaxed);
        slot[1].store(second, Ordering::Relaxed);
        next
    }

    /// Returns both words of one store, the latest that this thread can see. `None` if a store was published
    /// during each try.
    pub(crate) fn load(&self) -> Option<[u64; 2]> {
        // Acquire pairs with the Release in `store`, here and below.
        let mut version = self.version.load(Ordering::Acquire);
        for _ in 0..TRIES {
            let slot = self.slot(version);
            let words = [slot[0].load(Ordering::Relaxed), slot[1].load(Ordering::Relaxed)];
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

    fn slot(&self, version: u32) -> &[AtomicU64; 2] {
        &self.slots[version as usize % 2]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_load_finishes_while_a_store_is_stopped_half_way() {
        let pair = Pair::new([1, 1]);
        for n in 2..10 {
            // The storing thread is preempted after the first word, and then after the second.
            pair.slot(pair.version.load(Ordering::Relaxed) + 1)[0].store(n, Ordering::Relaxed);
            assert_eq!(pair.load(), Some([n - 1, n - 1]));
            let next = pair.fill([n, n]);
            assert_eq!(pair.load(), Some([n - 1, n - 1]));
            pair.version.store(next, Ordering::Release);
            assert_eq!(pair.load(), Some([n, n]));
        }
    }

    #[test]
    fn the_version_may_wrap() {
        let pair = Pair::new([0, 0]);
        pair.version.store(u32::MAX - 1, Ordering::Relaxed);
        for n in 1..5 {
            pair.store([n, n]);
            assert_eq!(pair.load(), Some([n, n]));
        }
    }
}
