//! Finds complete slices that overlap others of their thread. Slices of a thread nest: importers drop a
//! complete slice that outlives the slice it began in.

use std::collections::VecDeque;

use crate::neighbours::Neighbours;
use crate::{ByTrack, Report, TrackId};

/// The limit for the depth of a thread's slices.
const MOST_OPEN: usize = 8192;
/// The levels of a track that importers show, without a margin. Trace_processor has 512: it does not know the
/// begin of a deeper slice, and lets its end end another.
const MOST_LEVELS: usize = 480;
/// The limit for the slices that a later one may be around, for threads with inner slices first.
const MOST_INNER: usize = 4096;
/// The limit for slices that are over, for threads whose slices are not in the order of their begins.
const MOST_OVER: usize = 128;
/// The limit for the stretches of time that stand for all older slices of a thread.
const MOST_STRETCHES: usize = 4096;
/// The limit for tracks beside one thread, for slices that overlap others.
const MOST_LANES: usize = 64;

/// What reports say of such slices.
pub(crate) const BESIDE: &str = "slices that overlap others of their thread, on a track beside it";

/// What reports say of slices inside of too many others, or around too many.
pub(crate) const DEEP: &str =
    "slices among more than 480 levels, where importers end the wrong ones, on a track beside their thread";

/// What reports say of slices that come after more than [`MOST_OVER`] others that they may overlap.
const UNSURE: &str = "slices far out of order, which may overlap others of their thread";

/// The slices of the threads, by the numbers of their tracks.
#[derive(Debug, Default)]
pub(crate) struct Nesting(ByTrack<Thread>);

#[derive(Debug, Default)]
struct Thread {
    slices: Neighbours,
    is_unsorted: bool,
    latest: i64,
    /// Boxed, because few threads have any.
    others: Option<Box<Others>>,
}

/// The slices of a thread that are not its latest ones.
#[derive(Debug, Default)]
struct Others {
    /// The times of all older slices: stretches in order of time, none of which overlaps another. Where a
    /// slice begins or ends inside a stretch, only the slices themselves could say whether it overlaps one.
    forgotten: VecDeque<(i64, i64)>,
    /// The begin of the first slice and the end of the last one on each track beside the thread.
    lanes: Vec<(i64, i64)>,
    /// If inner slices come first: those that are inside of no other so far, in the order of time.
    outermost: VecDeque<Outermost>,
}

#[derive(Debug)]
struct Outermost {
    begin: i64,
    end: i64,
    /// The number of levels in it.
    levels: usize,
}

impl Others {
    /// Whether a stretch begins at this time.
    fn has_forgotten(&self, time: i64) -> bool {
        self.forgotten.binary_search_by_key(&time, |(begin, _)| *begin).is_ok()
    }

    /// Adds a slice. Returns the number of levels inside of it.
    fn levels_in(&mut self, begin: i64, end: i64) -> usize {
        let outermost = &mut self.outermost;
        let from = outermost.partition_point(|slice| slice.begin < begin);
        let is_around = |slice: &Outermost| slice.begin <= begin && end <= slice.end;
        let before = from.checked_sub(1).and_then(|before| outermost.get(before));
        let count = outermost.iter().skip(from).take_while(|slice| slice.end <= end).count();
        if before.is_some_and(is_around) || count == 0 && outermost.get(from).is_some_and(is_around) {
            return 0;
        }
        let levels = outermost.drain(from..from + count).map(|inner| inner.levels + 1).max().unwrap_or(0);
        outermost.insert(from, Outermost { begin, end, levels });
        if outermost.len() > MOST_INNER {
            self.join_two(from < MOST_INNER / 2);
        }
        levels
    }

    /// Joins the two last outermost slices, or the two first ones.
    fn join_two(&mut self, last: bool) {
        let outermost = &mut self.outermost;
        let (one, other) = if last {
            (outermost.pop_back(), outermost.back_mut())
        } else {
            (outermost.pop_front(), outermost.front_mut())
        };
        if let (Some(one), Some(other)) = (one, other) {
            other.begin = other.begin.min(one.begin);
            other.end = other.end.max(one.end);
            other.levels = other.levels.max(one.levels);
        }
    }
}

impl Thread {
    fn forget(others: &mut Option<Box<Others>>, slice: (i64, i64)) {
        forget(&mut others.get_or_insert_default().forgotten, slice);
    }
}

impl Nesting {
    /// Adds a slice. Returns `false` if it overlaps an earlier one, or encloses an earlier one with the same
    /// begin, and is not added. Counts in `report` a slice that may overlap one that is too long ago.
    pub(crate) fn add(&mut self, thread: TrackId, begin: i64, end: i64, report: &mut Report) -> bool {
        let thread = self.0.at(thread);
        thread.is_unsorted |= begin < thread.latest;
        thread.latest = begin;
        let crosses = |&(b, e): &(i64, i64)| {
            b < begin && begin < e && e < end
                || begin < b && b < end && end < e
                || b == begin && e < end && b < e
        };
        let Thread { slices, others, .. } = thread;
        slices.pass(begin, MOST_OVER, |oldest| Thread::forget(others, oldest));
        let is_beside = slices.open.last().is_some_and(crosses)
            || thread.is_unsorted && (slices.over().any(crosses) || slices.open.iter().any(crosses));
        if is_beside {
            return false;
        }
        if thread.is_unsorted
            && others.as_ref().is_some_and(|others| is_unsure(&others.forgotten, begin, end))
        {
            report.add(UNSURE);
        }
        if thread.slices.open.len() < MOST_OPEN {
            thread.slices.begin((begin, end));
        } else {
            Thread::forget(others, (begin, end));
        }
        true
    }

    /// Whether a slice that was added earlier begins at this time, and the latest one, which begins at `begin`,
    /// before it.
    pub(crate) fn has_begin(&mut self, thread: TrackId, time: i64, begin: i64) -> bool {
        let Thread { slices, others, is_unsorted, .. } = self.0.at(thread);
        let begins = |(b, _): &(i64, i64)| *b == time;
        *is_unsorted
            && begin < time
            && (slices.over().chain(&slices.open).any(begins)
                || others.iter().any(|others| others.has_forgotten(time)))
    }

    /// The number of a track beside the thread for the slice that was added last: `None` unless it is inside
    /// of too many others, or around too many.
    pub(crate) fn deep_lane(&mut self, thread: TrackId, begin: i64, end: i64) -> Option<usize> {
        let Thread { slices, others, is_unsorted, .. } = self.0.at(thread);
        let mut levels = slices.open.len().saturating_sub(1);
        if *is_unsorted {
            levels = levels.max(others.get_or_insert_default().levels_in(begin, end));
        }
        (levels >= MOST_LEVELS).then_some(MOST_LANES + levels / MOST_LEVELS)
    }

    /// The number of a track beside the thread with room for a slice, and whether the track is new.
    pub(crate) fn lane(&mut self, thread: TrackId, begin: i64, end: i64) -> (usize, bool) {
        let lanes = &mut self.0.at(thread).others.get_or_insert_default().lanes;
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

/// Adds the time of a slice to the stretches.
fn forget(stretches: &mut VecDeque<(i64, i64)>, (mut begin, mut end): (i64, i64)) {
    let from = stretches.partition_point(|(_, e)| *e <= begin);
    let to = stretches.partition_point(|(b, _)| *b < end).max(from);
    for (b, e) in stretches.drain(from..to) {
        (begin, end) = (begin.min(b), end.max(e));
    }
    stretches.insert(from, (begin, end));
    if stretches.len() > MOST_STRETCHES {
        close_gaps(stretches);
    }
}

/// Joins half of the stretches to those before them: where the gaps are smallest, since a slice around others
/// begins and ends in large ones.
fn close_gaps(stretches: &mut VecDeque<(i64, i64)>) {
    let gap = |before: (i64, i64), after: (i64, i64)| after.0.saturating_sub(before.1);
    let mut gaps: Vec<i64> =
        stretches.iter().zip(stretches.iter().skip(1)).map(|(before, after)| gap(*before, *after)).collect();
    let half = gaps.len() / 2;
    let (_, median, _) = gaps.select_nth_unstable(half.saturating_sub(1));
    let mut left = half;
    let mut joined: VecDeque<(i64, i64)> = VecDeque::with_capacity(stretches.len());
    for stretch in stretches.drain(..) {
        match joined.back_mut() {
            Some(last) if left > 0 && gap(*last, stretch) <= *median => {
                left -= 1;
                last.1 = last.1.max(stretch.1);
            }
            _ => joined.push_back(stretch),
        }
    }
    *stretches = joined;
}

/// Whether a slice may overlap one of those that the stretches stand for. A slice around whole stretches does
/// not.
fn is_unsure(stretches: &VecDeque<(i64, i64)>, begin: i64, end: i64) -> bool {
    let around = |time: i64| stretches.get(stretches.partition_point(|(_, e)| *e <= time));
    let is_cut = |time: i64| around(time).is_some_and(|(b, _)| *b < time);
    // Of two slices with the same begin, the longer one must come first.
    let is_same_begin = around(begin).is_some_and(|(b, e)| *b == begin && *e < end);
    begin < end && (is_cut(begin) || is_cut(end) || is_same_begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(slices: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let (mut nesting, mut report) = (Nesting::default(), Report::default());
        let is_beside = |(begin, end): &(i64, i64)| !nesting.add(TrackId(0), *begin, *end, &mut report);
        slices.iter().copied().filter(is_beside).collect()
    }

    /// The number of slices that may overlap an older one.
    fn unsure(slices: impl IntoIterator<Item = (i64, i64)>) -> u64 {
        let (mut nesting, mut report) = (Nesting::default(), Report::default());
        for (begin, end) in slices {
            nesting.add(TrackId(0), begin, end, &mut report);
        }
        report.iter().map(|(_, count)| count).sum()
    }

    #[test]
    fn a_slice_that_may_overlap_one_of_long_ago_is_counted() {
        let backwards = || (0..20_000).rev().map(|n| (100 * n, 100 * n + 50));
        assert_eq!(unsure(backwards()), 0);
        for (late, count) in [((1_999_940, 1_999_960), 1), ((20_060, 1_999_910), 1), ((-10, -5), 0)] {
            assert_eq!(unsure(backwards().chain([late])), count, "{late:?}");
        }
    }

    #[test]
    fn slices_that_are_written_at_their_end_are_not_counted() {
        // Each with ten inside, and all of them in one.
        let inner = |n: i64| (0..10).map(move |k| (1_000 * n + 90 * k, 1_000 * n + 90 * k + 80));
        let tasks = (0..5_000).flat_map(|n| inner(n).chain([(1_000 * n - 5, 1_000 * n + 900)]));
        assert_eq!(unsure(tasks.clone().chain([(-9, 5_000_000)])), 0);
        assert_eq!(unsure(tasks.chain([(450, 5_000_000)])), 1);
    }

    #[test]
    fn stretches_are_joined_where_the_gaps_between_them_are_small() {
        let mut stretches = VecDeque::new();
        for n in (0..2_100).map(|n| 1_000 * n) {
            forget(&mut stretches, (n, n + 400));
            forget(&mut stretches, (n + 410, n + 900));
        }
        assert!(stretches.len() <= MOST_STRETCHES, "{}", stretches.len());
        assert!(is_unsure(&stretches, 402, 408) && !is_unsure(&stretches, 902, 998));
        forget(&mut stretches, (-5, 2_000_000));
        assert_eq!(stretches.front(), Some(&(-5, 2_000_000)));
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

    /// Adds the slices. Returns the number of those on tracks for many levels.
    fn deep(slices: impl IntoIterator<Item = (i64, i64)>) -> usize {
        let (mut nesting, mut report) = (Nesting::default(), Report::default());
        let mut is_deep = |(begin, end)| {
            assert!(nesting.add(TrackId(0), begin, end, &mut report));
            nesting.deep_lane(TrackId(0), begin, end).is_some()
        };
        slices.into_iter().map(&mut is_deep).filter(|is_deep| *is_deep).count()
    }

    #[test]
    fn only_slices_among_many_levels_are_deep_in_any_order() {
        let backwards = || (0..10_000).rev().map(|n| (100 * n, 100 * n + 50));
        assert_eq!(deep(backwards()), 0);
        // Levels with inner ones first.
        let group = |n: i64, of: i64| (1..=of).map(move |k| (2_000 * n - k, 2_000 * n + k));
        let groups = |of| (0..5_000).rev().flat_map(move |n| group(n, of));
        assert_eq!(deep(groups(10)), 0);
        assert_eq!(deep(groups(1).chain(group(-9, 500))), 20);
        let nested = |of| group(0, of);
        assert_eq!(deep(nested(480)), 0);
        assert_eq!(deep(nested(500)), 20);
        assert_eq!(deep((1..=500).rev().map(|k| (-k, k))), 20);
        // Around all of a long list.
        assert_eq!(deep(backwards().chain([(-1, 1_000_000)])), 0);
    }

    #[test]
    fn slices_share_a_track_if_they_do_not_overlap() {
        let mut nesting = Nesting::default();
        let all = [(10, 20), (15, 25), (20, 30), (1, 9)];
        let lanes = all.map(|(begin, end)| nesting.lane(TrackId(0), begin, end));
        assert_eq!(lanes, [(0, true), (1, true), (0, false), (0, false)]);
    }
}
