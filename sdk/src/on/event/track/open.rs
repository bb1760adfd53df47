//! Brackets: which slices on a track are open, and which of those are in the trace.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::on::base::lock::Mutex;
use crate::on::base::this_thread;

/// The slices that were begun on a track and not ended: for each, from the outermost, whether it is in the trace. One
/// that is not, for want of room or by the filter, has no end there either.
#[derive(Debug, Default)]
pub(crate) struct Open {
    stack: Mutex<Stack>,
    /// The stack's epoch, to be looked at without the lock; 0 while nothing was ever begun.
    epoch: AtomicU32,
    /// The time of the last begin or end in that session: threads' clocks may be some ns apart, and what they do here one after the other
    /// is to be in that order.
    last: AtomicU64,
}

/// A stack of bits, 64 to a word.
#[derive(Debug, Default)]
struct Stack {
    /// The session's; what another one began is forgotten.
    epoch: u32,
    depth: usize,
    /// The first 64, so that few tracks need more.
    low: u64,
    high: Vec<u64>,
}

impl Open {
    /// A slice was begun in the session with this epoch.
    pub(crate) fn push(&self, epoch: u32, is_recorded: bool) {
        self.with::<true, _>(epoch, |stack| stack.push(is_recorded));
    }

    /// The time that what happens now comes after, in the session with this epoch.
    pub(crate) fn last(&self, epoch: u32) -> u64 {
        if self.epoch() == epoch { self.last.load(Relaxed) } else { 0 }
    }

    /// A slice has begun or ended, in the session with this epoch.
    pub(crate) fn set_last(&self, epoch: u32, time: u64) {
        if self.epoch() == epoch {
            self.last.store(time, Relaxed); // who does it at the same time has no order to keep
        }
    }

    /// The session in which a slice was begun last; 0: none was.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// The slice begun last ends. Whether it is in the trace.
    pub(crate) fn pop(&self, epoch: u32) -> bool {
        self.with::<false, _>(epoch, Stack::pop).unwrap_or(false)
    }

    /// None: this thread is inside of an event, which may be holding the lock, or in a forked child. A begin there was not
    /// recorded, and its end comes the same way. With `IS_PUSH` there is room for one more.
    #[inline]
    fn with<const IS_PUSH: bool, R>(&self, epoch: u32, f: impl FnOnce(&mut Stack) -> R) -> Option<R> {
        if this_thread::is_barred() {
            return None;
        }
        let _busy = this_thread::busy();
        let mut stack = if IS_PUSH {
            self.stack.lock_unless_lost_with_room(|stack| {
                let more = stack.missing_words();
                (&mut stack.high, more)
            })?
        } else {
            self.stack.lock_unless_lost()?
        };
        if stack.epoch > epoch {
            return None; // of a session before this one
        }
        if stack.epoch < epoch {
            stack.begin(epoch);
            self.last.store(0, Relaxed);
            self.epoch.store(epoch, Relaxed);
        }
        Some(f(&mut stack))
    }
}

impl Stack {
    /// Forgets the slices of the session before, and keeps the memory: it may not be freed under the lock.
    fn begin(&mut self, epoch: u32) {
        (self.epoch, self.depth, self.low) = (epoch, 0, 0);
        self.high.clear();
    }

    /// Number of words that the next push adds to `high`.
    fn missing_words(&self) -> usize {
        (self.depth / 64).saturating_sub(self.high.len())
    }

    fn word(&mut self, n: usize) -> &mut u64 {
        match n.checked_sub(1) {
            None => &mut self.low,
            Some(n) => {
                if n >= self.high.len() {
                    self.high.resize(n + 1, 0); // there is room
                }
                &mut self.high[n]
            }
        }
    }

    /// The caller has made sure of room.
    fn push(&mut self, bit: bool) {
        let (word, at) = (self.depth / 64, self.depth % 64);
        let word = self.word(word);
        *word = *word & !(1 << at) | u64::from(bit) << at;
        self.depth += 1;
    }

    fn pop(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else { return false };
        self.depth = depth;
        *self.word(depth / 64) >> (depth % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_belongs_to_the_begin_before_it() {
        let open = Open::default();
        assert!(!open.pop(2)); // nothing was begun
        [true, false, true].iter().for_each(|bit| open.push(2, *bit));
        assert_eq!([open.pop(2), open.pop(2), open.pop(2), open.pop(2)], [true, false, true, false]);
    }

    #[test]
    fn slices_may_be_nested_to_any_depth() {
        let open = Open::default();
        let bits: Vec<bool> = (0..1000).map(|n| n % 3 == 0).collect();
        bits.iter().for_each(|bit| open.push(2, *bit));
        assert!(bits.iter().rev().all(|bit| open.pop(2) == *bit));
    }

    #[test]
    fn what_another_session_began_does_not_count() {
        let open = Open::default();
        open.push(2, true);
        assert!(!open.pop(4));
        open.push(4, true);
        assert!(!open.pop(2) && open.pop(4));
    }
}
