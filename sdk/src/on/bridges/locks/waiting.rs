//! How many threads wait for a lock.
//!
//! A forked child has a copy of its parent's locks, but none of the threads that wait for them. So the number
//! has the number of forks beside it that have led to the process which counted: what another process counted
//! is 0.
//!
//! A lock whose holds are timed has a mark beside the numbers, so that one load at its release finds both.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::base::this_thread;
use crate::sync::name::Kind;

/// Bits of each number. No system has so many threads.
const BITS: u32 = 22;

/// The numbers of threads that wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// From the lowest bits up: the number of forks; the readers; the threads that want the lock alone, or a
    /// notification; the mark. So a comparison finds whether anything but forks is in it. Relaxed: it guards no
    /// other memory.
    word: AtomicU64,
}

impl Waiting {
    pub(crate) const fn nobody() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Whether a thread waits, or holds are timed. True in a forked child too if that was so at the fork,
    /// before [`number`](Self::number) is called.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= READER
    }

    /// The same for threads that are no readers.
    #[inline(always)]
    pub(crate) fn is_alone(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= ALONE
    }

    /// Whether holds are timed.
    pub(crate) fn is_timed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & TIMED != 0
    }

    /// Sets whether holds are timed.
    pub(crate) fn set_timed(&self, on: bool) {
        if self.is_timed() != on {
            self.update(|word| if on { word | TIMED } else { word & !TIMED });
        }
    }

    /// Whether a thread waits whom the release of such a thread lets continue.
    pub(crate) fn is_for(&self, kind: Kind) -> bool {
        let least = if kind == Kind::Shared { ALONE } else { READER };
        self.word.load(Ordering::Relaxed) & !TIMED >= least
    }

    /// Returns the number of threads of this process that wait.
    pub(crate) fn number(&self) -> u64 {
        self.update(|word| word)
    }

    /// Adds this thread. Returns the number of all.
    pub(crate) fn add(&self, kind: Kind) -> u64 {
        self.update(|word| word + one(kind))
    }

    /// Removes this thread.
    pub(crate) fn remove(&self, kind: Kind) {
        // A signal handler may have forked while the thread waited: the child has not counted it.
        self.update(|word| if word & numbers(one(kind)) == 0 { word } else { word - one(kind) });
    }

    fn update(&self, change: impl Fn(u64) -> u64) -> u64 {
        let forks = u64::from(this_thread::forks()) % READER;
        let own = |word: u64| if word % READER == forks { word } else { forks };
        let change = |word| Some(change(own(word)));
        let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        let now = before.ok().and_then(change).unwrap_or_default();
        (now & numbers(ALONE)) / ALONE + (now & numbers(READER)) / READER
    }
}

/// The mark: holds are timed.
const TIMED: u64 = 1 << 63;
/// One thread that wants the lock alone.
const ALONE: u64 = 1 << (63 - BITS);
/// One reader. Below is the number of forks.
const READER: u64 = ALONE >> BITS;

fn one(kind: Kind) -> u64 {
    match kind {
        Kind::Shared => READER,
        _ => ALONE,
    }
}

/// All bits of the number of which this is one.
fn numbers(one: u64) -> u64 {
    one * ((1 << BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_are_counted_apart_and_never_below_0() {
        let waiting = Waiting::nobody();
        waiting.remove(Kind::Shared);
        assert!(!waiting.is_any() && waiting.number() == 0);
        assert_eq!((waiting.add(Kind::Shared), waiting.add(Kind::Shared)), (1, 2));
        assert!(waiting.is_any() && !waiting.is_alone());
        assert_eq!(waiting.add(Kind::Notified), 3);
        assert!(waiting.is_alone());
        waiting.remove(Kind::Alone);
        waiting.remove(Kind::Alone);
        waiting.remove(Kind::Shared);
        assert!(waiting.is_any() && !waiting.is_alone() && waiting.number() == 1);
    }

    #[test]
    fn what_another_process_counted_is_0() {
        let waiting = Waiting { word: AtomicU64::new(5 | (3 * ALONE) | TIMED) };
        assert!(waiting.is_any());
        assert_eq!(waiting.number(), 0);
        assert!(!waiting.is_any());
        let waiting = Waiting { word: AtomicU64::new(5 | (3 * ALONE) | TIMED) };
        assert_eq!(waiting.add(Kind::Alone), 1);
    }
}
