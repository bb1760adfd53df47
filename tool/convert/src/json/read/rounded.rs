//! Slices whose ends are beside those of their neighbours by the rounding of their clock.
//!
//! A tracer rounds the begin and the duration of a slice each on its own. So a slice that ends with the slice
//! around it may end a nanosecond later, and one that begins where another ends may begin before that.
//! Importers take such slices for overlapping ones, and drop them. Here the end (or the begin) moves to
//! where it belongs, by at most the step of the clock: 1 ns, or the distance of two doubles of that size in
//! microseconds.

use crate::neighbours::{Neighbours, Span};

/// The limit for slices that are over, for threads that write slices at their end.
const MOST_OVER: usize = 32;
/// The limit for open slices.
const MOST_OPEN: usize = 1 << 16;

/// The place of a complete slice, by those of the slices of its thread at their places. Of the open ones each
/// ends within the one around it, so those that end near a time are found by it.
pub(super) fn place(slices: &mut Neighbours, own: Span) -> Span {
    slices.pass(own.0, MOST_OVER, drop);
    let mut new = Placed { own, begin: own.0, end: own.1, step: step(own.0.max(own.1)) };
    new.end_inside(&slices.open);
    slices.over().rev().for_each(|other| new.meet(*other));
    let new = (new.begin, new.end);
    // It may have moved behind its neighbour.
    slices.pass(new.0, MOST_OVER, drop);
    while let Some(inner) = slices.open.pop_if(|(b, e)| *b == new.0 && *e < new.1) {
        slices.end(inner, MOST_OVER, drop);
    }
    let is_inside = slices.open.last().is_none_or(|(_, e)| *e >= new.1);
    if is_inside && slices.open.len() < MOST_OPEN {
        slices.begin(new);
    } else {
        slices.end(new, MOST_OVER, drop);
    }
    new
}

/// A slice that gets its place. Neither end moves farther than a step.
struct Placed {
    /// Its begin and end in the file.
    own: Span,
    begin: i64,
    end: i64,
    step: i64,
}

impl Placed {
    /// Moves this slice to where it does not overlap those around its begin, if that is near.
    fn end_inside(&mut self, around: &[Span]) {
        let around = &around[..around.partition_point(|(b, _)| *b < self.begin)];
        // The first that it outlives, and the innermost of those whose end is near.
        let outlived = around.partition_point(|(_, e)| *e >= self.end);
        let far = around.partition_point(|(_, e)| *e >= self.own.1.saturating_sub(self.step));
        if far > outlived {
            self.end = around[far - 1].1;
        }
        let ending = around.partition_point(|(_, e)| *e > self.own.0.saturating_add(self.step));
        if let Some((_, end)) = around.get(ending.max(far).max(outlived)) {
            self.begin_at(*end);
        }
    }

    /// Moves this slice to where it does not overlap another one, if that is near.
    fn meet(&mut self, (begin, end): Span) {
        let is_near = |one: i64, other: i64| one.abs_diff(other) <= self.step.unsigned_abs();
        if begin < self.begin && self.begin < end && end < self.end {
            if is_near(self.own.1, end) {
                self.end = end;
            } else if is_near(self.own.0, end) {
                self.begin_at(end);
            }
        } else if self.begin < begin && begin < self.end && self.end < end {
            if is_near(self.own.1, end) {
                self.end = end;
            } else if is_near(self.own.1, begin) {
                self.end = begin;
            }
        }
    }

    fn begin_at(&mut self, time: i64) {
        self.begin = time;
        self.end = self.end.max(time);
    }
}

/// The step of a clock at a time, in nanoseconds.
fn step(time: i64) -> i64 {
    let microseconds = time.unsigned_abs() as f64 / 1000.0;
    let next = f64::from_bits(microseconds.to_bits() + 1);
    (((next - microseconds) * 1000.0).ceil() as i64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(slices: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut thread = Neighbours::default();
        slices.iter().map(|slice| place(&mut thread, *slice)).collect()
    }

    #[test]
    fn the_step_is_a_nanosecond_or_that_of_a_double() {
        assert_eq!((step(0), step(1_000_000_000), step(-5)), (1, 1, 1));
        assert_eq!(step(1_692_108_548_132_154_500), 250);
    }

    #[test]
    fn a_child_ends_with_its_parent_and_a_sibling_begins_after_it() {
        assert_eq!(placed(&[(0, 100), (50, 101), (60, 99)]), [(0, 100), (50, 100), (60, 99)]);
        assert_eq!(placed(&[(0, 100), (99, 150), (150, 200)]), [(0, 100), (100, 150), (150, 200)]);
        let siblings: Vec<_> = (0..1000).map(|n| (10 * n, 10 * n + 5)).collect();
        let all = placed(&[&[(0, 20_000)], &siblings[..], &[(19_000, 20_001)]].concat());
        assert_eq!(all.last(), Some(&(19_000, 20_000)));
    }

    #[test]
    fn a_parent_that_is_written_after_its_children_ends_with_them() {
        let slices = [(60, 102), (50, 101), (0, 101), (101, 150), (101, 200)];
        assert_eq!(placed(&slices), [(60, 102), (50, 102), (0, 102), (102, 150), (102, 200)]);
    }

    #[test]
    fn a_chain_of_ends_moves_none_of_them_by_more_than_a_step() {
        assert_eq!(placed(&[(0, 100), (50, 101), (60, 102)]), [(0, 100), (50, 100), (60, 102)]);
        let chain: Vec<_> = (0..50).map(|n| (n, 1_000 + n)).collect();
        for chain in [chain.clone(), chain.iter().rev().copied().collect()] {
            for (own, new) in chain.iter().zip(placed(&chain)) {
                assert!(own.0.abs_diff(new.0) <= 1 && own.1.abs_diff(new.1) <= 1, "{own:?}: {new:?}");
            }
        }
    }

    /// This took minutes while each slice met all that are open.
    #[test]
    fn slices_that_all_overlap_are_placed_in_little_time() {
        let mut thread = Neighbours::default();
        let nested = (0..60_000).map(|n| (n, 1_000_000 - n));
        for (begin, end) in nested.chain((0..200_000).map(|n| (60_000 + n, 2_000_000 + 3 * n))) {
            assert_eq!(place(&mut thread, (begin, end)), (begin, end));
        }
    }

    #[test]
    fn slices_that_overlap_by_more_stay() {
        let slices = [(0, 100), (50, 102), (98, 200)];
        assert_eq!(placed(&slices), slices);
        let nested = [(0, 100), (0, 50), (10, 50), (50, 100), (50, 50), (100, 100)];
        assert_eq!(placed(&nested), nested);
    }
}
