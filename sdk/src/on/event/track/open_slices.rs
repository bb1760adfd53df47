//! The open slices of a track, and which of them are in the trace.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::on::base::lock::Mutex;
use crate::on::base::this_thread;
use crate::on::callsite::Epoch;

/// The slices that began on a track and have not ended. A stack has one bit for each slice, from the
/// outermost: whether it is in the trace. A slice that is not, for lack of room or by the filter, has no end
/// in the trace either.
#[derive(Debug, Default)]
pub(crate) struct OpenSlices {
    stack: Mutex<Stack>,
    /// The epoch of the stack, to be read without the lock; 0 while the track has no event.
    epoch: AtomicU32,
    /// The time of the last begin, end or instant in that session. Threads' clocks may be some ns apart, or
    /// have the same tick, and the slices and instants on a track must be in their order.
    last_time: AtomicU64,
}

/// A stack of bits, 64 to a word.
#[derive(Debug, Default)]
struct Stack {
    /// The epoch of the session. Slices of other sessions are dropped.
    epoch: Option<Epoch>,
    depth: usize,
    /// The bits of the first 64 slices. Few tracks need more.
    low: u64,
    high: Vec<u64>,
}

impl OpenSlices {
    /// Records the begin of a slice in the session with this epoch.
    pub(crate) fn push(&self, epoch: Epoch, is_recorded: bool) {
        self.with::<true, _>(epoch, |stack| stack.push(is_recorded));
    }

    /// Returns the time that the next begin, end or instant must come after, in the session with this epoch.
    #[inline]
    pub(crate) fn last_time(&self, epoch: Epoch) -> u64 {
        if self.epoch() == Some(epoch) { self.last_time.load(Relaxed) } else { 0 }
    }

    /// Records the time of a begin, end or instant in the session with this epoch.
    #[inline]
    pub(crate) fn set_last_time(&self, epoch: Epoch, time: u64) {
        if self.epoch() == Some(epoch) {
            // Simultaneous events have no order, but what follows them comes after the latest.
            self.last_time.fetch_max(time, Relaxed);
        }
    }

    /// Records the time of an instant in the session with this epoch, perhaps before any slice.
    pub(crate) fn set_instant_time(&self, epoch: Epoch, time: u64) {
        if self.epoch() != Some(epoch) {
            self.with::<false, _>(epoch, |_| ()); // begins the stack of the session
        }
        self.set_last_time(epoch, time);
    }

    /// Returns the epoch of the last slice or instant.
    #[inline]
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        Epoch::from_raw(self.epoch.load(Relaxed))
    }

    /// Records the end of the slice that began last. Returns whether that slice is in the trace.
    pub(crate) fn pop(&self, epoch: Epoch) -> bool {
        self.with::<false, _>(epoch, Stack::pop).unwrap_or(false)
    }

    /// Calls `f` with the stack of the session with this epoch. With `IS_PUSH` the stack has room for one
    /// more slice. `None` if this thread is inside an event that may hold the lock, or in a forked child: a
    /// begin there is not recorded, and its end gets `None` too.
    #[inline]
    fn with<const IS_PUSH: bool, R>(&self, epoch: Epoch, f: impl FnOnce(&mut Stack) -> R) -> Option<R> {
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
        if stack.epoch > Some(epoch) {
            return None; // an event of an earlier session
        }
        if stack.epoch < Some(epoch) {
            stack.begin(epoch);
            self.last_time.store(0, Relaxed);
            self.epoch.store(epoch.get(), Relaxed);
        }
        Some(f(&mut stack))
    }
}

impl Stack {
    /// Drops the slices of the session before, and keeps the memory, which may not be freed under the lock.
    fn begin(&mut self, epoch: Epoch) {
        (self.epoch, self.depth, self.low) = (Some(epoch), 0, 0);
        self.high.clear();
    }

    /// Returns the number of words that the next push adds to `high`.
    fn missing_words(&self) -> usize {
        (self.depth / 64).saturating_sub(self.high.len())
    }

    /// Returns the word with number `n`, which may be one beyond the last.
    fn word(&mut self, n: usize) -> &mut u64 {
        match n.checked_sub(1) {
            None => &mut self.low,
            Some(n) => {
                if n >= self.high.len() {
                    self.high.resize(n + 1, 0); // the caller has made room
                }
                &mut self.high[n]
            }
        }
    }

    /// Adds a bit. The caller has made room.
    fn push(&mut self, bit: bool) {
        let (word, at) = (self.depth / 64, self.depth % 64);
        let word = self.word(word);
        *word = *word & !(1 << at) | u64::from(bit) << at;
        self.depth += 1;
    }

    /// Removes the last bit; false if the stack is empty.
    fn pop(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else { return false };
        self.depth = depth;
        *self.word(depth / 64) >> (depth % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> Epoch {
        Epoch::from_raw(2).expect("not 0")
    }

    fn second() -> Epoch {
        Epoch::from_raw(4).expect("not 0")
    }

    #[test]
    fn an_end_closes_the_slice_that_began_last() {
        let open = OpenSlices::default();
        assert!(!open.pop(first())); // no slice has begun
        [true, false, true].iter().for_each(|bit| open.push(first(), *bit));
        assert_eq!(
            [open.pop(first()), open.pop(first()), open.pop(first()), open.pop(first())],
            [true, false, true, false]
        );
    }

    #[test]
    fn slices_nest_to_any_depth() {
        let open = OpenSlices::default();
        let bits: Vec<bool> = (0..1000).map(|n| n % 3 == 0).collect();
        bits.iter().for_each(|bit| open.push(first(), *bit));
        assert!(bits.iter().rev().all(|bit| open.pop(first()) == *bit));
    }

    #[test]
    fn slices_of_another_session_are_dropped() {
        let open = OpenSlices::default();
        open.push(first(), true);
        assert!(!open.pop(second()));
        open.push(second(), true);
        assert!(!open.pop(first()) && open.pop(second()));
    }
}
