//! The open slices of a track, and which of them are in the trace.

use std::cmp::Ordering;

use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::base::memory::List;
use crate::on::base::this_thread;
use crate::on::callsite::Epoch;
use crate::on::event::track::few_slices::{FewSlices, MOST, NONE};

/// The slices that began on a track and have not ended. A stack has one bit for each slice, from the
/// outermost: whether it is in the trace. A slice that is not, for lack of room or by the filter, has no end
/// in the trace either.
#[derive(Debug)]
pub(crate) struct OpenSlices {
    /// The slices if they are few, and the epoch and the time of the last slice or instant.
    few: FewSlices,
    /// The slices if they are many.
    many: Mutex<Stack>,
}

/// A stack of bits, 64 to a word.
#[derive(Debug, Default)]
struct Stack {
    depth: usize,
    words: List<u64>,
}

impl OpenSlices {
    pub(crate) const fn new() -> Self {
        Self { few: FewSlices::new(), many: Mutex::new(Stack { depth: 0, words: List::new() }) }
    }

    /// Records the begin of a slice in the session with this epoch, at its time if it is in the trace.
    /// Returns false if its end must not end a slice: this thread may not wait for the lock.
    #[inline]
    pub(crate) fn push(&self, epoch: Epoch, begun_at: Option<u64>) -> bool {
        self.few.push(epoch.get(), begun_at).is_ok() || self.push_locked(epoch, begun_at)
    }

    /// Returns the time that the next begin, end or instant must come after, in the session with this epoch.
    #[inline]
    pub(crate) fn last_time(&self, epoch: Epoch) -> u64 {
        self.few.last_time(epoch.get())
    }

    /// Records the time of an end or instant in the session with this epoch.
    #[inline]
    pub(crate) fn set_last_time(&self, epoch: Epoch, time: u64) {
        self.few.set_last_time(epoch.get(), time);
    }

    /// Records the time of an instant in the session with this epoch, perhaps before any slice.
    pub(crate) fn set_instant_time(&self, epoch: Epoch, time: u64) {
        if self.epoch() != Some(epoch)
            && let Some((_busy, mut stack)) = self.lock::<false>()
        {
            self.find(&mut stack, epoch, false); // begins the session
        }
        self.set_last_time(epoch, time);
    }

    /// Returns the epoch of the last slice or instant.
    #[inline]
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        Epoch::from_raw(self.few.epoch())
    }

    /// Records the end of the slice that began last. Returns whether that slice is in the trace.
    #[inline]
    pub(crate) fn pop(&self, epoch: Epoch) -> bool {
        self.few.pop(epoch.get()).unwrap_or_else(|_| self.pop_locked(epoch))
    }

    #[inline(never)]
    fn push_locked(&self, epoch: Epoch, begun_at: Option<u64>) -> bool {
        let Some((_busy, mut stack)) = self.lock::<true>() else { return false };
        while let Some(found) = self.find(&mut stack, epoch, true) {
            match found {
                Found::InStack => {
                    self.set_last_time(epoch, begun_at.unwrap_or(0));
                    stack.push(begun_at.is_some());
                    return true;
                }
                Found::InWord if self.few.push(epoch.get(), begun_at).is_ok() => return true,
                Found::InWord => {} // another thread was faster
            }
        }
        false
    }

    #[inline(never)]
    fn pop_locked(&self, epoch: Epoch) -> bool {
        let Some((_busy, mut stack)) = self.lock::<false>() else { return false };
        while let Some(found) = self.find(&mut stack, epoch, false) {
            match found {
                Found::InStack => {
                    let is_recorded = stack.pop();
                    if stack.depth == 0 {
                        self.few.replace(self.few.get(), epoch.get(), Some(NONE));
                    }
                    return is_recorded;
                }
                Found::InWord => {
                    if let Ok(is_recorded) = self.few.pop(epoch.get()) {
                        return is_recorded;
                    }
                }
            }
        }
        false
    }

    /// Locks the stack. With `IS_PUSH` it has room for one more slice, or for those in the word and one more.
    /// `None` if this thread is inside an event that may hold the lock, or in a forked child that has lost
    /// it.
    fn lock<const IS_PUSH: bool>(&self) -> Option<(this_thread::Busy, MutexGuard<'_, Stack>)> {
        let busy = this_thread::enter()?;
        let stack = if IS_PUSH {
            self.many.lock_unless_lost_with_room(|stack| {
                let more = stack.missing_words();
                (&mut stack.words, more)
            })?
        } else {
            self.many.lock_unless_lost()?
        };
        Some((busy, stack))
    }

    /// Finds the slices of the session with this epoch, which it begins if it is newer than that of the
    /// track. `None` for an earlier session. Before a push, slices that fill the word are moved to the stack.
    fn find(&self, stack: &mut Stack, epoch: Epoch, is_push: bool) -> Option<Found> {
        let epoch = epoch.get();
        loop {
            let word = self.few.get();
            match word.epoch().cmp(&epoch) {
                Ordering::Greater => return None,
                Ordering::Less => {
                    stack.depth = 0;
                    self.few.begin(word, epoch); // unless another thread has changed the word
                }
                Ordering::Equal if !word.is_here() => return Some(Found::InStack),
                Ordering::Equal if !is_push || word.len() < MOST => return Some(Found::InWord),
                Ordering::Equal if self.few.replace(word, epoch, None) => {
                    (0..MOST).rev().for_each(|at| stack.push(word.bits() >> at & 1 != 0));
                    return Some(Found::InStack);
                }
                Ordering::Equal => {}
            }
        }
    }
}

/// Where the slices of a session are.
enum Found {
    InWord,
    InStack,
}

impl Stack {
    /// Returns the number of words that the next push adds.
    fn missing_words(&self) -> usize {
        (self.depth / 64 + 1).saturating_sub(self.words.len())
    }

    /// Adds a bit. The caller has made room.
    fn push(&mut self, bit: bool) {
        let (word, at) = (self.depth / 64, self.depth % 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] = self.words[word] & !(1 << at) | u64::from(bit) << at;
        self.depth += 1;
    }

    /// Removes the last bit; false if the stack is empty.
    fn pop(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else { return false };
        self.depth = depth;
        self.words[depth / 64] >> (depth % 64) & 1 != 0
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

    /// The time of a slice in the trace.
    fn at(is_recorded: bool) -> Option<u64> {
        is_recorded.then_some(1)
    }

    #[test]
    fn an_end_closes_the_slice_that_began_last() {
        let open = OpenSlices::new();
        assert!(!open.pop(first())); // no slice has begun
        [true, false, true].iter().for_each(|bit| assert!(open.push(first(), at(*bit))));
        assert_eq!(
            [open.pop(first()), open.pop(first()), open.pop(first()), open.pop(first())],
            [true, false, true, false]
        );
    }

    #[test]
    fn slices_nest_to_any_depth() {
        let open = OpenSlices::new();
        let bits: Vec<bool> = (0..1000).map(|n| n % 3 == 0).collect();
        bits.iter().for_each(|bit| assert!(open.push(first(), at(*bit))));
        assert!(bits.iter().rev().all(|bit| open.pop(first()) == *bit));
    }

    #[test]
    fn many_slices_of_one_session_and_few_of_the_next() {
        let open = OpenSlices::new();
        (0..100).for_each(|n| assert!(open.push(first(), at(n % 2 == 0))));
        assert!(open.push(second(), at(true)) && !open.push(first(), at(true)));
        assert!(!open.pop(first()) && open.pop(second()) && !open.pop(second()));
        for most in [MOST, MOST + 1] {
            (0..most).for_each(|n| assert!(open.push(second(), at(n % 3 == 0))));
            assert!((0..most).rev().all(|n| open.pop(second()) == (n % 3 == 0)));
        }
        assert!(!open.pop(second()));
    }

    #[test]
    fn threads_that_begin_and_end_slices_at_once_lose_none() {
        let open = OpenSlices::new();
        let work = || {
            for n in 0..2_000 {
                let depth = n % 40;
                (0..depth).for_each(|_| assert!(open.push(first(), at(true))));
                assert!((0..depth).all(|_| open.pop(first())));
            }
        };
        std::thread::scope(|threads| {
            (0..4).for_each(|_| drop(threads.spawn(work)));
        });
        assert!(!open.pop(first()));
    }

    #[test]
    fn slices_of_another_session_are_dropped() {
        let open = OpenSlices::new();
        assert!(open.push(first(), at(true)) && !open.pop(second()));
        assert!(open.push(second(), at(true)));
        assert!(!open.pop(first()) && open.pop(second()));
    }

    #[test]
    fn the_last_time_is_that_of_the_latest_event_of_the_session() {
        let open = OpenSlices::new();
        for depth in 1..=u64::from(2 * MOST) {
            open.push(first(), Some(10 * depth));
            assert_eq!(open.last_time(first()), 10 * depth);
        }
        open.set_last_time(first(), 7);
        assert_eq!((open.last_time(first()), open.last_time(second())), (20 * u64::from(MOST), 0));
        open.push(second(), None);
        assert_eq!((open.last_time(first()), open.last_time(second())), (0, 0));
        open.set_instant_time(second(), 5);
        assert_eq!(open.last_time(second()), 5);
    }
}
