//! Complete slices in the order in which they nest.
//!
//! Tracers that write a slice when it ends write inner slices first. Importers of JSON sort slices with an
//! equal begin by duration. Importers of FXT and TrackEvent take the first of them as the outer one, and drop
//! the other. So a slice waits for an outer one with the same begin:
//!
//! * until the thread's next slice begins later, if the thread's slices are in the order of their begins;
//! * otherwise until a slice comes that began before it.
//!
//! Slices with different begins may be in any order: importers sort by time.

use std::collections::VecDeque;

use crate::TrackId;
use crate::json::read::threads::Threads;
use crate::json::read::waiting::Held;

/// The limit for waiting slices, some 300 bytes each, and for the bytes of their arguments.
const MOST: usize = 1 << 14;
const MOST_BYTES: usize = 4 << 20;

/// The limit for the list of threads with waiting slices: twice as many as can wait.
const MOST_LISTED: usize = 2 * MOST;

/// The number of slices after which a thread is taken to be in the order of begins.
const PROVEN: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Order {
    /// The threads with waiting slices, and some whose slices are released already.
    waiting: Vec<TrackId>,
    count: usize,
    bytes: usize,
    /// Events that need not wait any longer.
    ready: VecDeque<Held>,
}

impl Order {
    /// Adds a complete slice.
    pub(super) fn slice(&mut self, held: Held, threads: &mut Threads) {
        let track = held.track;
        let waiting = threads.waiting(track);
        if waiting.slices.is_empty() {
            if waiting.slices.capacity() == 0 {
                waiting.slices.reserve_exact(1); // there may be millions of threads
            }
            self.waiting.push(track);
            if self.waiting.len() > MOST_LISTED {
                self.waiting.sort_unstable();
                self.waiting.dedup();
                let mut waits = |track| threads.waiting_again(track).is_some_and(|of| !of.slices.is_empty());
                self.waiting.retain(|track| waits(*track));
                self.waiting.push(track);
            }
        }
        let waiting = threads.waiting(track);
        waiting.add(held.time);
        let is_sorted = !waiting.is_unsorted && waiting.in_order > PROVEN;
        let slices = &mut waiting.slices;
        let later = slices.partition_point(|other| other.time <= held.time);
        nest(&mut slices[later..]);
        release(slices.drain(later..), (&mut self.count, &mut self.bytes), &mut self.ready);
        self.count += 1;
        self.bytes += held.content.size();
        let time = held.time;
        slices.push(held);
        if is_sorted || self.count > MOST || self.bytes > MOST_BYTES {
            let earlier = slices.partition_point(|other| other.time < time);
            nest(&mut slices[..earlier]);
            release(slices.drain(..earlier), (&mut self.count, &mut self.bytes), &mut self.ready);
        }
        if self.count > MOST || self.bytes > MOST_BYTES {
            self.release_all(threads);
        }
    }

    /// Releases the slices that an event of another kind on the thread must follow.
    pub(super) fn other(&mut self, track: TrackId, time: i64, threads: &mut Threads) {
        if self.count == 0 {
            return;
        }
        let Some(waiting) = threads.waiting_again(track) else { return };
        if !waiting.is_unsorted || waiting.slices.iter().any(|held| held.time == time) {
            nest(&mut waiting.slices);
            release(waiting.slices.drain(..), (&mut self.count, &mut self.bytes), &mut self.ready);
        }
    }

    pub(super) fn release_all(&mut self, threads: &mut Threads) {
        self.waiting.sort_unstable();
        for track in self.waiting.drain(..) {
            let Some(waiting) = threads.waiting_again(track) else { continue };
            // The room goes too.
            let mut slices = std::mem::take(&mut waiting.slices);
            nest(&mut slices);
            release(slices.into_iter(), (&mut self.count, &mut self.bytes), &mut self.ready);
        }
    }

    /// Whether an event must wait for released ones.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Adds an event that follows the released ones.
    pub(super) fn follow(&mut self, held: Held) {
        self.ready.push_back(held);
    }

    pub(super) fn next(&mut self) -> Option<Held> {
        self.ready.pop_front()
    }
}

/// Brings slices in the order of their begins into that in which they nest. Once for many, because to keep
/// each in its place would take the square of the time.
fn nest(slices: &mut [Held]) {
    if !slices.is_sorted_by_key(Held::place) {
        slices.sort_by_cached_key(Held::place);
    }
}

fn release(
    slices: impl Iterator<Item = Held>,
    (count, bytes): (&mut usize, &mut usize),
    ready: &mut VecDeque<Held>,
) {
    for held in slices {
        *count -= 1;
        *bytes -= held.content.size();
        ready.push_back(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;
    use crate::json::read::current::Current;

    fn order(slices: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let (mut order, mut threads) = (Order::default(), Threads::default());
        for (time, duration) in slices {
            let (content, kind) = (Current::default(), EventKind::Complete { duration: *duration });
            order.slice(Held { content, time: *time, track: TrackId(0), kind, position: 0 }, &mut threads);
        }
        order.release_all(&mut threads);
        assert_eq!((order.count, order.bytes), (0, 0));
        std::iter::from_fn(|| order.next()).map(|held| (held.time, held.duration())).collect()
    }

    #[test]
    fn of_slices_with_an_equal_begin_the_longest_comes_first() {
        assert_eq!(order(&[(10, 5), (10, 20), (40, 1)]), [(10, 20), (10, 5), (40, 1)]);
        assert_eq!(order(&[(10, 2), (13, 1), (10, 5), (9, 30)]), [(13, 1), (10, 5), (10, 2), (9, 30)]);
    }

    #[test]
    fn slices_in_order_of_their_ends_wait_for_their_parents() {
        let all = order(&[(20, 1), (5, 1), (10, 2), (15, 1), (10, 8), (5, 20)]);
        let at = |slice| all.iter().position(|other| *other == slice).unwrap();
        assert!(at((10, 8)) < at((10, 2)) && at((5, 20)) < at((5, 1)), "{all:?}");
    }

    #[test]
    fn memory_is_bounded() {
        let (mut order, mut threads) = (Order::default(), Threads::default());
        for time in 0..3 * MOST as i64 {
            let (content, kind) = (Current::default(), EventKind::Complete { duration: 1 });
            order.slice(Held { content, time, track: TrackId(time as u32), kind, position: 0 }, &mut threads);
            while order.next().is_some() {}
            assert!(order.count <= MOST);
        }
    }
}
