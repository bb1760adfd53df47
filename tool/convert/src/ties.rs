//! Events of a thread at one time. Importers of JSON read them by kind: ends first, then complete slices, the
//! longest first, then all others in the order of the file. Importers of other formats read them in the order
//! of the file. So a thread whose file order is different shows other slices in another format.

use std::cmp::Reverse;
use std::collections::VecDeque;

/// The number of times that are kept, for threads whose events are not in the order of time.
const KEPT: usize = 64;

/// What reports say of such events.
pub(crate) const TIES: &str =
    "events that importers of JSON read before others of their thread and time, although they come later";

/// The place of an event among those of its time, for importers of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// An end.
    End,
    /// A complete slice with its duration.
    Complete(Reverse<i64>),
    /// A begin or an instant.
    Other,
    /// The point of a flow. Its place among the others is that of a begin.
    Flow,
}

/// The latest times of a thread.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    recent: VecDeque<Tie>,
    /// The greatest time so far.
    last: i64,
}

#[derive(Clone, Copy, Debug)]
struct Tie {
    time: i64,
    latest: Rank,
    has_flow: bool,
}

impl Ties {
    /// Whether these are the times of a thread with one event, a complete slice.
    pub(crate) fn is_of_slice(&self, time: i64, rank: Rank) -> bool {
        self.recent.len() == 1
            && self.recent.front().is_some_and(|tie| tie.time == time && tie.latest == rank && !tie.has_flow)
    }

    /// Adds an event. Returns whether importers of JSON read it before an earlier one with its time.
    #[inline]
    pub(crate) fn add(&mut self, time: i64, rank: Rank) -> bool {
        match self.recent.back_mut() {
            Some(tie) if tie.time == time => tie.add(rank, false),
            Some(_) if time <= self.last => self.add_earlier(time, rank),
            _ => {
                self.push(time, rank);
                false
            }
        }
    }

    fn add_earlier(&mut self, time: i64, rank: Rank) -> bool {
        match self.recent.iter_mut().rev().find(|tie| tie.time == time) {
            Some(tie) => tie.add(rank, true),
            None => {
                self.push(time, rank);
                false
            }
        }
    }

    fn push(&mut self, time: i64, rank: Rank) {
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        if self.recent.len() < 4 {
            self.recent.reserve_exact(1); // there may be millions of threads
        }
        self.last = time.max(self.last);
        self.recent.push_back(Tie { time, latest: rank.min(Rank::Other), has_flow: rank == Rank::Flow });
    }
}

impl Tie {
    /// `is_apart`: other events are between it and the earlier ones, so waiting points of flows are not
    /// written before it.
    fn add(&mut self, rank: Rank, is_apart: bool) -> bool {
        let place = rank.min(Rank::Other);
        let is_first = place < self.latest || is_apart && self.has_flow && rank != Rank::Flow;
        self.latest = self.latest.max(place);
        self.has_flow |= rank == Rank::Flow;
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Rank::{End, Flow, Other};

    fn complete(duration: i64) -> Rank {
        Rank::Complete(Reverse(duration))
    }

    fn first(events: &[(i64, Rank)]) -> Vec<bool> {
        let mut ties = Ties::default();
        events.iter().map(|(time, rank)| ties.add(*time, *rank)).collect()
    }

    #[test]
    fn ends_and_complete_slices_are_read_before_others_of_their_time() {
        assert_eq!(first(&[(1, End), (1, complete(5)), (1, Other), (2, Other)]), [false; 4]);
        assert_eq!(first(&[(1, Other), (1, End), (1, complete(5))]), [false, true, true]);
        assert_eq!(first(&[(1, Flow), (2, End), (1, Other)]), [false, false, true]);
        assert_eq!(first(&[(4, Other), (2, Other), (4, End)]), [false, false, true]);
    }

    #[test]
    fn of_complete_slices_the_longest_is_read_first() {
        let slice = |duration| (1, complete(duration));
        assert_eq!(first(&[slice(5), slice(5), slice(2), slice(3)]), [false, false, false, true]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut ties = Ties::default();
        assert!((0..1000).all(|time| !ties.add(time, Other)));
        assert_eq!(ties.recent.len(), KEPT);
    }
}
