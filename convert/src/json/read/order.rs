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

use std::collections::{HashMap, VecDeque};

use crate::json::read::current::Current;
use crate::{EventKind, TrackId};

/// The limit for waiting slices, some 300 bytes each, and for the bytes of their arguments.
const MOST: usize = 1 << 14;
const MOST_BYTES: usize = 4 << 20;

/// The number of slices after which a thread is taken to be in the order of begins.
const PROVEN: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Order {
    threads: HashMap<TrackId, Waiting>,
    count: usize,
    bytes: usize,
    /// Events that need not wait any longer.
    ready: VecDeque<Held>,
}

/// The waiting slices of a thread: by begin, of equal begins the longest first.
#[derive(Debug, Default)]
struct Waiting {
    slices: Vec<Held>,
    latest: i64,
    is_unsorted: bool,
    /// The number of slices so far that were in the order of their begins.
    in_order: u32,
}

/// An event that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) content: Current,
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
}

impl Held {
    fn duration(&self) -> i64 {
        if let EventKind::Complete { duration } = self.kind { duration } else { 0 }
    }
}

impl Order {
    /// Adds a complete slice.
    pub(super) fn slice(&mut self, held: Held) {
        let waiting = self.threads.entry(held.track).or_default();
        waiting.is_unsorted |= held.time < waiting.latest;
        waiting.latest = held.time;
        waiting.in_order = waiting.in_order.saturating_add(1);
        let is_sorted = !waiting.is_unsorted && waiting.in_order > PROVEN;
        let slices = &mut waiting.slices;
        let later = slices.partition_point(|other| other.time <= held.time);
        release(slices.drain(later..), (&mut self.count, &mut self.bytes), &mut self.ready);
        self.count += 1;
        self.bytes += held.content.size();
        let place = slices.partition_point(|o| {
            o.time < held.time || o.time == held.time && o.duration() >= held.duration()
        });
        let time = held.time;
        slices.insert(place, held);
        if is_sorted || self.count > MOST || self.bytes > MOST_BYTES {
            let earlier = slices.partition_point(|other| other.time < time);
            release(slices.drain(..earlier), (&mut self.count, &mut self.bytes), &mut self.ready);
        }
        if self.count > MOST || self.bytes > MOST_BYTES {
            self.release_all();
        }
    }

    /// Releases the slices that an event of another kind on the thread must follow.
    pub(super) fn other(&mut self, track: TrackId, time: i64) {
        if self.count == 0 {
            return;
        }
        let Some(waiting) = self.threads.get_mut(&track) else { return };
        if !waiting.is_unsorted || waiting.slices.iter().any(|held| held.time == time) {
            release(waiting.slices.drain(..), (&mut self.count, &mut self.bytes), &mut self.ready);
        }
    }

    pub(super) fn release_all(&mut self) {
        // In the order of tracks: a hash map has another order each time.
        let mut threads: Vec<_> = self.threads.iter_mut().collect();
        threads.sort_unstable_by_key(|(track, _)| **track);
        for (_, waiting) in threads {
            release(waiting.slices.drain(..), (&mut self.count, &mut self.bytes), &mut self.ready);
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

    fn order(slices: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut order = Order::default();
        for (time, duration) in slices {
            let (content, kind) = (Current::default(), EventKind::Complete { duration: *duration });
            order.slice(Held { content, time: *time, track: TrackId(0), kind });
        }
        order.release_all();
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
        let mut order = Order::default();
        for time in 0..3 * MOST as i64 {
            let (content, kind) = (Current::default(), EventKind::Complete { duration: 1 });
            order.slice(Held { content, time, track: TrackId(time as u32), kind });
            while order.next().is_some() {}
            assert!(order.count <= MOST);
        }
    }
}
