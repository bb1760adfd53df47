//! Open async intervals, and the tracks that new ones can reuse.
//!
//! A trace may have as many ids as intervals. Above `OWN_TRACKS` intervals, a track whose interval is over
//! goes to the next interval of the same name that begins later. The number of tracks is then about the
//! number of intervals open at once. Below the limit no track is reused: some writers reuse a few ids on any
//! thread, and the events of one thread precede those of another.

use std::collections::{HashMap, VecDeque};

/// Identifies an interval: the [key](crate::fxt::read::tracks::key) of its name, and its id.
pub(super) type Key = (u64, u64);

/// The number of intervals that have a track of their own.
const OWN_TRACKS: usize = 1024;

#[derive(Debug)]
pub(super) struct Intervals {
    /// The number of intervals that have a track of their own.
    own_tracks: usize,
    known: HashMap<Key, Interval>,
    /// Intervals that are over, by name, in the order in which they ended.
    over: HashMap<u64, VecDeque<Key>>,
}

#[derive(Debug)]
struct Interval {
    slot: u32,
    open: i32,
    /// The begin of the interval on a reused track.
    since: i64,
    /// The time of the latest event.
    until: i64,
    is_over: bool,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { own_tracks: OWN_TRACKS, known: HashMap::new(), over: HashMap::new() }
    }
}

impl Intervals {
    /// Returns the track of the interval, if an event at `time` can be on it.
    pub(super) fn find(&self, key: Key, time: i64) -> Option<u32> {
        self.known.get(&key).filter(|known| known.since <= time).map(|known| known.slot)
    }

    /// Returns a free track for an interval that begins at `time`.
    pub(super) fn reuse(&mut self, key: Key, time: i64) -> Option<u32> {
        if self.known.len() < self.own_tracks {
            return None;
        }
        let over = self.over.get_mut(&key.0)?;
        // An interval that was opened again leaves the queue, and returns to it at its end.
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
        self.add_since(key, known.slot, time);
        Some(known.slot)
    }

    pub(super) fn add(&mut self, key: Key, slot: u32) {
        self.add_since(key, slot, i64::MIN);
    }

    fn add_since(&mut self, key: Key, slot: u32, since: i64) {
        self.known.insert(key, Interval { slot, open: 0, since, until: i64::MIN, is_over: false });
    }

    /// Records an event on an interval. `opened` is the change in the number of open slices.
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

    fn none_of_its_own() -> Intervals {
        Intervals { own_tracks: 0, ..Intervals::default() }
    }

    #[test]
    fn what_was_before_a_track_was_taken_over_is_not_on_it() {
        let mut intervals = none_of_its_own();
        intervals.add((1, 1), 0);
        intervals.passed((1, 1), 10, 1);
        intervals.passed((1, 1), 20, -1);
        assert_eq!(intervals.reuse((1, 2), 30), Some(0));
        assert_eq!((intervals.find((1, 2), 30), intervals.find((1, 2), 15)), (Some(0), None));
        assert_eq!(Intervals::default().reuse((1, 2), 30), None, "there are few");
    }

    #[test]
    fn a_track_goes_to_the_next_interval_of_its_name_that_begins_later() {
        let mut intervals = none_of_its_own();
        intervals.add((1, 1), 0);
        intervals.passed((1, 1), 10, 1);
        assert_eq!(intervals.reuse((1, 2), 15), None, "it is open");
        intervals.passed((1, 1), 20, -1);
        assert_eq!(intervals.reuse((1, 2), 20), None, "another thread's events are emitted later");
        assert_eq!(intervals.reuse((2, 2), 30), None, "another name");
        assert_eq!(intervals.find((1, 1), 21), Some(0));
        assert_eq!((intervals.reuse((1, 2), 21), intervals.find((1, 1), 21)), (Some(0), None));
    }

    #[test]
    fn one_that_is_opened_again_is_not_free() {
        let mut intervals = none_of_its_own();
        intervals.add((1, 1), 0);
        for (time, opened) in [(10, 1), (20, -1), (30, 1)] {
            intervals.passed((1, 1), time, opened);
        }
        assert_eq!(intervals.reuse((1, 2), 40), None);
        intervals.passed((1, 1), 50, -1);
        assert_eq!(intervals.reuse((1, 2), 60), Some(0));
    }
}
