//! Finds complete slices that overlap others of their thread. Slices of a thread nest: importers drop a
//! complete slice that outlives the slice it began in.

use std::collections::{HashMap, VecDeque};

use crate::TrackId;

/// The limit for the depth of a thread's slices.
const MOST_OPEN: usize = 1024;
/// The limit for slices that are over, for threads whose slices are not in the order of their begins.
const MOST_OVER: usize = 128;
/// The limit for tracks beside one thread.
const MOST_LANES: usize = 64;

/// What reports say of such slices.
pub(crate) const BESIDE: &str = "slices that overlap others of their thread, on a track beside it";

/// The slices of the threads.
#[derive(Debug, Default)]
pub(crate) struct Nesting(HashMap<TrackId, Thread>);

#[derive(Debug, Default)]
struct Thread {
    /// The latest slice and those around it, the outermost first.
    open: Vec<(i64, i64)>,
    over: VecDeque<(i64, i64)>,
    is_unsorted: bool,
    latest: i64,
    /// The begin of the first slice and the end of the last one on each track beside the thread.
    lanes: Vec<(i64, i64)>,
}

impl Nesting {
    /// Adds a slice. Returns `false` if it overlaps an earlier one, or encloses an earlier one with the same
    /// begin, and is not added.
    pub(crate) fn add(&mut self, thread: TrackId, begin: i64, end: i64) -> bool {
        let thread = self.0.entry(thread).or_default();
        thread.is_unsorted |= begin < thread.latest;
        thread.latest = begin;
        let crosses = |&(b, e): &(i64, i64)| {
            b < begin && begin < e && e < end
                || begin < b && b < end && end < e
                || b == begin && e < end && b < e
        };
        while let Some(last) = thread.open.pop_if(|(b, e)| *e <= begin || *b > begin) {
            if thread.over.len() == MOST_OVER {
                thread.over.pop_front();
            }
            thread.over.push_back(last);
        }
        let is_beside = thread.open.last().is_some_and(crosses)
            || thread.is_unsorted && (thread.over.iter().any(crosses) || thread.open.iter().any(crosses));
        if !is_beside && thread.open.len() < MOST_OPEN {
            thread.open.push((begin, end));
        }
        !is_beside
    }

    /// The number of a track beside the thread with room for a slice, and whether the track is new.
    pub(crate) fn lane(&mut self, thread: TrackId, begin: i64, end: i64) -> (usize, bool) {
        let lanes = &mut self.0.entry(thread).or_default().lanes;
        let free = lanes.iter().position(|(first, last)| end <= *first || begin >= *last);
        if let Some((free, lane)) = free.and_then(|free| Some((free, lanes.get_mut(free)?))) {
            *lane = (lane.0.min(begin), lane.1.max(end));
            return (free, false);
        }
        if lanes.len() < MOST_LANES {
            lanes.push((begin, end));
            return (lanes.len() - 1, true);
        }
        (MOST_LANES - 1, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(slices: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut nesting = Nesting::default();
        slices.iter().copied().filter(|(begin, end)| !nesting.add(TrackId(0), *begin, *end)).collect()
    }

    #[test]
    fn slices_that_nest_or_touch_are_not_beside_their_thread() {
        assert!(beside(&[(10, 50), (10, 20), (20, 50), (50, 60), (60, 60), (60, 70)]).is_empty());
        assert!(beside(&[(12, 15), (16, 18), (10, 20), (22, 30), (5, 40), (40, 50)]).is_empty());
    }

    #[test]
    fn slices_that_overlap_are_beside_it_in_any_order() {
        assert_eq!(beside(&[(10, 20), (15, 35), (16, 18), (40, 50)]), [(15, 35)]);
        assert_eq!(beside(&[(40, 50), (15, 35), (10, 20)]), [(10, 20)]);
        assert_eq!(beside(&[(10, 15), (10, 20)]), [(10, 20)]);
    }

    #[test]
    fn slices_share_a_track_if_they_do_not_overlap() {
        let mut nesting = Nesting::default();
        let all = [(10, 20), (15, 25), (20, 30), (1, 9)];
        let lanes = all.map(|(begin, end)| nesting.lane(TrackId(0), begin, end));
        assert_eq!(lanes, [(0, true), (1, true), (0, false), (0, false)]);
    }
}
