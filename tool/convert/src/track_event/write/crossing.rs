//! Finds slices with a begin and an end that cross complete slices of their thread: one begins inside the
//! other and ends after it. Where the complete slice becomes a begin and an end too, importers find the begin
//! of each end by its place, so both slices have false durations.

use std::collections::VecDeque;

use crate::neighbours::Span;

/// What reports say of such slices.
pub(super) const CROSSING: &str =
    "slices that cross complete slices of their thread, so that importers show false durations";

/// What reports say of complete slices of a thread whose begins and ends are not in order of time: which of
/// them cross is known only when all are sorted.
pub(super) const UNSURE: &str =
    "slices out of order, which may cross others of their thread, so that importers show false durations";

/// The limit for open slices, and for those that are over.
const MOST: usize = 4096;
const MOST_OVER: usize = 128;

#[derive(Debug)]
enum Open {
    Begun { begin: i64 },
    Complete { end: i64 },
}

/// The open slices of a thread from its first complete slice on.
#[derive(Debug, Default)]
pub(super) struct Crossing {
    open: Vec<Open>,
    /// The latest slices with a begin and an end that are over, and the end of those that are not kept.
    over: VecDeque<Span>,
    forgotten_until: i64,
    latest: i64,
    has_complete: bool,
    /// Whether a begin or an end came after later events.
    is_unsorted: bool,
}

impl Crossing {
    /// The same of a thread whose begins and ends so far are not known: the last of them is at this time.
    pub(super) fn after(last: i64) -> Box<Self> {
        Box::new(Self { latest: last, forgotten_until: last, ..Self::default() })
    }

    /// Notes that a begin or an end comes after later events. Returns the number of slices that is unsure now.
    pub(super) fn unsort(&mut self) -> u64 {
        u64::from(!std::mem::replace(&mut self.is_unsorted, true) && self.has_complete)
    }

    /// Adds a complete slice. One that comes after later events is not kept. Returns what reports say of it.
    pub(super) fn complete(&mut self, begin: i64, end: i64) -> Option<&'static str> {
        self.has_complete = true;
        if begin >= self.latest {
            self.pass(begin);
            self.push(Open::Complete { end });
            return self.is_unsorted.then_some(UNSURE);
        }
        // Of a begin and an end at one time, the one of the later event comes second.
        let crosses =
            |(b, e): &Span| b <= &begin && begin < *e && *e < end || begin < *b && *b <= end && end < *e;
        if self.over.iter().any(crosses) {
            return Some(CROSSING);
        }
        let is_in = |open: &Open| matches!(open, Open::Begun { begin: b } if begin < *b && *b <= end || end > self.latest);
        let is_unsure = self.is_unsorted || begin < self.forgotten_until || self.open.iter().any(is_in);
        is_unsure.then_some(UNSURE)
    }

    pub(super) fn begin(&mut self, time: i64) {
        self.pass(time);
        self.push(Open::Begun { begin: time });
    }

    /// The number of complete slices inside of the innermost slice with a begin that end at this time.
    pub(super) fn ending_inside(&self, time: i64) -> usize {
        let inside = self.open.iter().rev().take_while(|open| matches!(open, Open::Complete { .. }));
        inside.filter(|open| matches!(open, Open::Complete { end } if *end == time)).count()
    }

    /// Whether a begin, an end or a complete slice came that begins after this time.
    pub(super) fn is_past(&self, time: i64) -> bool {
        time < self.latest
    }

    /// Ends the innermost slice with a begin. Returns the number of complete slices that it crosses.
    pub(super) fn end(&mut self, time: i64) -> u64 {
        self.latest = self.latest.max(time);
        let begun = self.open.iter().rposition(|open| matches!(open, Open::Begun { .. }));
        let outlasts = |open: &Open| matches!(open, Open::Complete { end } if *end > time);
        match begun.and_then(|begun| self.open.get(begun)) {
            Some(Open::Begun { begin }) => {
                self.over.push_back((*begin, time));
                if self.over.len() > MOST_OVER
                    && let Some((_, end)) = self.over.pop_front()
                {
                    self.forgotten_until = self.forgotten_until.max(end);
                }
            }
            // It began before the first complete slice.
            _ => self.forgotten_until = self.forgotten_until.max(time),
        }
        let mut crossing = self.open.drain(begun.unwrap_or(0)..).filter(outlasts).count();
        while self.open.pop_if(|open| matches!(open, Open::Complete { end } if *end < time)).is_some() {
            crossing += 1;
        }
        crossing as u64
    }

    /// The number of complete slices that are around a begin without an end: importers take theirs for it.
    pub(super) fn without_end(&self) -> u64 {
        let begun = self.open.iter().rposition(|open| matches!(open, Open::Begun { .. })).unwrap_or(0);
        self.open[..begun].iter().filter(|open| matches!(open, Open::Complete { .. })).count() as u64
    }

    fn pass(&mut self, time: i64) {
        self.latest = self.latest.max(time);
        while self.open.pop_if(|open| matches!(open, Open::Complete { end } if *end <= time)).is_some() {}
    }

    fn push(&mut self, open: Open) {
        if self.open.len() < MOST {
            self.open.push(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_cross_complete_ones_are_counted() {
        let mut thread = Crossing::default();
        thread.complete(10, 110); // inside a slice that began before
        assert_eq!(thread.end(50), 1);
        thread.complete(200, 250);
        thread.begin(210);
        assert_eq!(thread.end(260), 1);
        thread.begin(300);
        assert_eq!(thread.end(310), 0);
    }

    #[test]
    fn complete_slices_are_unsure_on_a_thread_whose_others_are_not_in_order() {
        let mut thread = Crossing::default();
        assert_eq!((thread.unsort(), thread.complete(10, 20), thread.unsort()), (0, Some(UNSURE), 0));
        let mut thread = Crossing::default();
        assert_eq!((thread.complete(10, 20), thread.unsort(), thread.unsort()), (None, 1, 0));
    }

    #[test]
    fn a_complete_slice_that_comes_late_crosses_those_that_are_over() {
        let mut thread = Crossing::after(5);
        thread.begin(100);
        thread.end(200);
        assert_eq!(
            [(110, 190), (90, 210), (100, 200), (10, 99)].map(|(b, e)| thread.complete(b, e)),
            [None; 4]
        );
        for (begin, end) in [(90, 100), (90, 150), (150, 210), (100, 210)] {
            assert_eq!(thread.complete(begin, end), Some(CROSSING), "{begin} to {end}");
        }
        assert_eq!(thread.complete(4, 90), Some(UNSURE));
        thread.begin(300);
        assert_eq!((thread.complete(250, 310), thread.complete(250, 299)), (Some(UNSURE), None));
    }

    #[test]
    fn a_begin_without_an_end_takes_that_of_a_complete_slice_around_it() {
        let mut thread = Crossing::default();
        thread.complete(10, 50);
        thread.begin(20);
        assert_eq!(thread.without_end(), 1);
        thread.end(30);
        assert_eq!(thread.without_end(), 0);
    }

    #[test]
    fn slices_that_nest_or_touch_are_not() {
        let mut thread = Crossing::default();
        thread.begin(0);
        thread.complete(10, 50);
        thread.begin(20);
        assert_eq!(thread.ending_inside(50), 0, "the complete one is around");
        assert_eq!((thread.end(50), thread.end(50)), (0, 0));
        thread.complete(60, 70);
        thread.begin(70);
        assert_eq!(thread.end(80), 0);
    }
}
