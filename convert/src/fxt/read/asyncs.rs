//! Which async intervals are open, and which tracks are free.
//!
//! Ids may be as many as intervals. A track whose interval is over goes to the next one of the same name that begins later, so there
//! are as many tracks as intervals are open at once.

use std::collections::{HashMap, VecDeque};

/// What tells an interval from others: its name's [`key`](super::tracks::key) and its id.
pub(super) type Key = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct Asyncs {
    known: HashMap<Key, Known>,
    /// Intervals that are over, by name, in the order in which they were found to be.
    over: HashMap<u64, VecDeque<Key>>,
}

#[derive(Debug)]
struct Known {
    slot: u32,
    open: i32,
    /// The latest time on it.
    until: i64,
    is_over: bool,
}

impl Asyncs {
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        self.known.get(&key).map(|known| known.slot)
    }

    /// A track for an interval that is new at `time`, if one is free.
    pub(super) fn reuse(&mut self, key: Key, time: i64) -> Option<u32> {
        let over = self.over.get_mut(&key.0)?;
        // One that was opened again meanwhile has left, and comes back.
        while let Some(first) = over.front() {
            let known = self.known.get(first)?;
            if known.open == 0 {
                break;
            }
            let first = over.pop_front()?;
            self.known.get_mut(&first)?.is_over = false;
        }
        let first = *over.front()?;
        if self.known.get(&first)?.until >= time {
            return None;
        }
        over.pop_front();
        let known = self.known.remove(&first)?;
        self.add(key, known.slot);
        Some(known.slot)
    }

    pub(super) fn add(&mut self, key: Key, slot: u32) {
        self.known.insert(key, Known { slot, open: 0, until: i64::MIN, is_over: false });
    }

    /// Something happened on an interval: `opened` more slices are open on it.
    pub(super) fn passed(&mut self, key: Key, time: i64, opened: i32) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.open = known.open.saturating_add(opened);
        known.until = known.until.max(time);
        if known.open == 0 && !known.is_over {
            known.is_over = true;
            self.over.entry(key.0).or_default().push_back(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_goes_to_the_next_interval_of_its_name_that_begins_later() {
        let mut asyncs = Asyncs::default();
        asyncs.add((1, 1), 0);
        asyncs.passed((1, 1), 10, 1);
        assert_eq!(asyncs.reuse((1, 2), 15), None, "it is open");
        asyncs.passed((1, 1), 20, -1);
        assert_eq!(asyncs.reuse((1, 2), 20), None, "another thread's events are told later");
        assert_eq!(asyncs.reuse((2, 2), 30), None, "another name");
        assert_eq!(asyncs.find((1, 1)), Some(0));
        assert_eq!((asyncs.reuse((1, 2), 21), asyncs.find((1, 1))), (Some(0), None));
    }

    #[test]
    fn one_that_is_opened_again_is_not_free() {
        let mut asyncs = Asyncs::default();
        asyncs.add((1, 1), 0);
        for (time, opened) in [(10, 1), (20, -1), (30, 1)] {
            asyncs.passed((1, 1), time, opened);
        }
        assert_eq!(asyncs.reuse((1, 2), 40), None);
        asyncs.passed((1, 1), 50, -1);
        assert_eq!(asyncs.reuse((1, 2), 60), Some(0));
    }
}
