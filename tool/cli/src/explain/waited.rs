//! Which of the intervals inside of another one that one waits for, and when.
//!
//! A future waits between its polls. What it polls as it goes on is what it waited for: `select!` and `join!`
//! poll all of theirs, a set of futures polls the one that was woken. What it does not poll is another
//! task's, or is not looked at yet.

use crate::explain::own_polls::{Poll, is_in};
use crate::explain::polls::{POLL_AFTER, RIGHT_AFTER};
use crate::explain::target::Part;
use crate::stretches::{apart, in_common, merged, sum};

/// Times in order.
type Times = Vec<(i64, i64)>;

/// An interval inside of another one.
pub(super) struct Child<'a> {
    /// From its begin to its end, or to that of the one around it.
    pub(super) start: i64,
    pub(super) end: i64,
    /// Its polls, if they are known.
    pub(super) polls: &'a [Poll],
    /// Of a stream, when its next item is waited for: between two items it waits for its consumer.
    pub(super) nexts: Option<&'a [(i64, i64)]>,
    /// What was inside of it and not ready.
    pub(super) left: &'a [Part],
}

/// What the time of an interval went to.
#[derive(Default)]
pub(super) struct Waited {
    /// When it waited for each of those inside of it; nothing of those that nobody waits for.
    pub(super) of_each: Vec<Option<Times>>,
    /// How long each of them was open while it waited for another one.
    pub(super) beside: Vec<i64>,
    /// How long it waited for them, or for what is not recorded: then it polled one that it had polled before,
    /// but not in the poll before, in which it perhaps did not look at all of them. A set of futures is not
    /// looked at while what is done with the last one that was ready goes on.
    pub(super) in_doubt: i64,
    /// The rest.
    pub(super) alone: Times,
}

/// One of those that may be waited for in the time before a poll.
struct Candidate {
    gap: usize,
    number: usize,
    /// When it ends, at the earliest at the end of the poll in which it is polled; and when it is polled.
    end: i64,
    polled: i64,
    /// Whether it had been polled, but not in the poll before.
    is_late: bool,
}

impl Child<'_> {
    /// The times of its polls inside of the polls of the one around it, and before which of those that one may
    /// have waited for it: of which it is inside, but for the first one, before which nothing looked at it. If it
    /// is inside of none: all that follow times in which it is open.
    fn candidates(&self, number: usize, polls: &[Poll], gaps: &[Times]) -> (Times, Vec<Candidate>) {
        let (mut times, mut candidates, mut before) = (Vec::new(), Vec::new(), None);
        for (gap, own) in self.polls.iter().filter_map(|own| Some((is_in(polls, own)?, own))) {
            times.push((own.start, own.end.min(self.end)));
            if let Some(before) = before.replace(gap).filter(|before| *before != gap) {
                let end = self.end.max(polls[gap].end);
                let is_late = before + 1 < gap || gaps[gap].len() > 1;
                candidates.push(Candidate { gap, number, end, polled: own.start, is_late });
            }
        }
        if times.is_empty() {
            let first = polls.partition_point(|poll| poll.start <= self.start);
            let begins_before =
                |gap: usize, time| gap.checked_sub(1).is_none_or(|before| polls[before].end < time);
            let open = (first..gaps.len()).take_while(|gap| begins_before(*gap, self.end));
            let (end, polled) = (self.end, self.start);
            candidates.extend(open.map(|gap| Candidate { gap, number, end, polled, is_late: false }));
        }
        (times, candidates)
    }

    /// The parts of a time in which it may be waited for.
    fn open(&self, gap: &[(i64, i64)]) -> Times {
        let whole = [(self.start, self.end)];
        gap.iter().flat_map(|part| in_common(*part, self.nexts.unwrap_or(&whole))).collect()
    }

    /// Whether its end lets the one around it go on, which does not poll it: a task that is awaited.
    fn wakes(&self, polls: &[Poll], wakes: &[i64]) -> bool {
        let next = polls.get(polls.partition_point(|poll| poll.start < self.end));
        let from = self.end.saturating_sub(RIGHT_AFTER);
        let wake = wakes.get(wakes.partition_point(|wake| *wake < from));
        next.is_some_and(|next| next.start.saturating_sub(self.end) <= POLL_AFTER)
            || wake.is_some_and(|wake| wake.saturating_sub(self.end) <= RIGHT_AFTER)
    }
}

/// Says for what an interval with these polls waited. It was woken at these times, in order, and went on
/// without those that were left.
pub(super) fn waited(
    (start, end): (i64, i64),
    polls: &[Poll],
    wakes: &[i64],
    all: &[Child<'_>],
    left: &[Child<'_>],
) -> Waited {
    // A set of futures that has polled nothing but those was not done with its wait.
    let (of_left, own): (Vec<_>, Vec<_>) =
        polls.iter().zip(are_of_left(polls, all, left)).partition(|(_, is_of_left)| *is_of_left);
    let of_left: Times = of_left.iter().map(|(poll, _)| (poll.start, poll.end)).collect();
    let own: Vec<Poll> = own.iter().map(|(poll, _)| **poll).collect();
    let begins = std::iter::once(start).chain(own.iter().map(|poll| poll.end));
    let ends = own.iter().map(|poll| poll.start).chain([end]);
    let gaps = begins.zip(ends).map(|(from, to)| apart((from.max(start), to.min(end)), &of_left).collect());
    let gaps: Vec<Times> = gaps.collect();
    let (mut of_each, mut beside) = (Vec::with_capacity(all.len()), vec![0_i64; all.len()]);
    let (mut in_doubt, is_looked_at) = (0_i64, are_looked_at(&own, all));
    let mut candidates = Vec::new();
    for (number, child) in all.iter().enumerate() {
        let (times, of_child) = child.candidates(number, &own, &gaps);
        let is_another_tasks = times.is_empty() && !polls.is_empty() && !child.polls.is_empty();
        let is_waited_for = !is_another_tasks || child.wakes(polls, wakes);
        of_each.push(is_waited_for.then_some(times));
        candidates.extend(of_child.into_iter().filter(|_| is_waited_for));
    }
    candidates.sort_by_key(|of| (of.gap, std::cmp::Reverse(of.end), of.polled));
    for of_gap in candidates.chunk_by(|a, b| a.gap == b.gap) {
        let number_of_gap = of_gap[0].gap;
        let gap = &gaps[number_of_gap];
        let mut free = gap.clone();
        let is_in_doubt =
            gap.len() > 1 || number_of_gap.checked_sub(1).is_some_and(|before| !is_looked_at[before]);
        for Candidate { number, is_late, .. } in of_gap {
            let open = all[*number].open(gap);
            let taken: Times = open.iter().flat_map(|part| in_common(*part, &free)).collect();
            let more = sum(open.iter().copied()).saturating_sub(sum(taken.iter().copied()));
            beside[*number] = beside[*number].saturating_add(more);
            if *is_late && is_in_doubt {
                in_doubt = in_doubt.saturating_add(sum(taken.iter().copied()));
            }
            free = free.iter().flat_map(|part| apart(*part, &open)).collect();
            of_each[*number].iter_mut().for_each(|times| times.extend(&taken));
        }
    }
    let of_each: Vec<Option<Times>> = of_each.into_iter().map(|times| times.map(merged)).collect();
    let alone = apart((start, end), &merged(of_each.iter().flatten().flatten().copied())).collect();
    Waited { of_each, beside, in_doubt, alone }
}

/// In which of the polls one that was left was polled, and none of the others was.
fn are_of_left(polls: &[Poll], all: &[Child<'_>], left: &[Child<'_>]) -> Vec<bool> {
    let (of_left, of_all) = (are_with(polls, left), are_with(polls, all));
    of_left.into_iter().zip(of_all).map(|(is_of_left, is_of_all)| is_of_left && !is_of_all).collect()
}

/// In which of the polls one of these was polled.
fn are_with(polls: &[Poll], children: &[Child<'_>]) -> Vec<bool> {
    let mut are_with = vec![false; polls.len()];
    let own = children.iter().flat_map(|child| child.polls);
    own.filter_map(|own| is_in(polls, own)).for_each(|poll| are_with[poll] = true);
    are_with
}

/// In which of the polls those inside were surely looked at to the end: some were polled, and none was ready.
fn are_looked_at(polls: &[Poll], all: &[Child<'_>]) -> Vec<bool> {
    let mut are_looked_at = are_with(polls, all);
    let last = all.iter().filter_map(|child| is_in(polls, child.polls.last()?));
    last.for_each(|poll| are_looked_at[poll] = false);
    are_looked_at
}

#[cfg(test)]
mod tests {
    use hairline_convert::TrackId;

    use super::*;

    fn polls(times: &[(i64, i64)]) -> Vec<Poll> {
        times.iter().map(|(start, end)| Poll { start: *start, end: *end, thread: TrackId(1) }).collect()
    }

    fn child<'a>(start: i64, end: i64, polls: &'a [Poll]) -> Child<'a> {
        Child { start, end, polls, nexts: None, left: &[] }
    }

    fn times(of: &Waited, number: usize) -> Times {
        of.of_each[number].clone().unwrap_or_default()
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn without_polls_the_one_that_ends_last_is_waited_for() {
        let all = [child(30, 90, &[]), child(10, 50, &[])];
        let of = waited((0, 100), &[], &[], &all, &[]);
        assert_eq!((times(&of, 0), times(&of, 1)), (vec![(30, 90)], vec![(10, 30)]));
        assert_eq!((of.alone, of.beside), (vec![(0, 10), (90, 100)], vec![0, 20]));
    }

    #[test]
    fn what_is_polled_as_a_future_goes_on_is_what_it_waited_for() {
        let outer = polls(&[(0, 10), (50, 60), (90, 100)]);
        let [first, second] = [polls(&[(2, 4), (51, 53)]), polls(&[(5, 6), (92, 95)])];
        let all = [child(1, 53, &first), child(5, 96, &second)];
        let of = waited((0, 100), &outer, &[], &all, &[]);
        assert_eq!(times(&of, 0), [(2, 4), (10, 50), (51, 53)]);
        assert_eq!(
            times(&of, 1),
            [(5, 6), (60, 90), (92, 95)],
            "not before the second poll, which has only the first"
        );
    }

    #[test]
    fn of_two_that_end_in_one_poll_the_one_that_is_polled_first_is_waited_for() {
        let outer = polls(&[(0, 10), (90, 100)]);
        let [parse, prefetch] = [polls(&[(3, 5), (91, 94)]), polls(&[(6, 7), (95, 97)])];
        let all = [child(1, 98, &prefetch), child(2, 94, &parse)];
        let of = waited((0, 100), &outer, &[], &all, &[]);
        assert_eq!(
            (times(&of, 0), times(&of, 1)),
            (vec![(6, 7), (95, 97)], vec![(3, 5), (10, 90), (91, 94)])
        );
        assert_eq!(of.beside, [80, 0]);
    }

    #[test]
    fn what_was_not_looked_at_before_was_not_waited_for() {
        let outer = polls(&[(0, 10), (90, 100), (190, 200)]);
        let prefetch = polls(&[(95, 97), (191, 192)]);
        let of = waited((0, 200), &outer, &[], &[child(1, 192, &prefetch)], &[]);
        assert_eq!(times(&of, 0), [(95, 97), (100, 190), (191, 192)], "not before the second poll");
    }

    #[test]
    fn of_what_is_looked_at_late_it_is_in_doubt_that_it_was_waited_for() {
        let outer = polls(&[(0, 10), (20, 30), (90, 100)]);
        let first = polls(&[(2, 3), (91, 92)]);
        let one = waited((0, 100), &outer, &[], &[child(1, 92, &first)], &[]);
        let waited_for = vec![(30, 90), (91, 92)];
        assert_eq!((times(&one, 0)[1..].to_vec(), one.in_doubt), (waited_for.clone(), 60));
        let between = polls(&[(3, 4), (22, 23)]);
        let ended = waited((0, 100), &outer, &[], &[child(1, 92, &first), child(2, 24, &between)], &[]);
        assert_eq!((times(&ended, 0)[1..].to_vec(), ended.in_doubt), (waited_for.clone(), 60));
        let goes_on = polls(&[(3, 4), (22, 23), (93, 94)]);
        let pending = waited((0, 100), &outer, &[], &[child(1, 92, &first), child(2, 95, &goes_on)], &[]);
        assert_eq!((times(&pending, 0)[1..].to_vec(), pending.in_doubt), (waited_for, 0));
    }

    #[test]
    fn a_poll_of_what_is_dropped_ends_no_wait() {
        let outer = polls(&[(0, 10), (30, 40), (90, 100)]);
        let [ticks, part] = [polls(&[(1, 2), (31, 39)]), polls(&[(3, 4), (91, 92)])];
        let of = waited((0, 100), &outer, &[], &[child(3, 92, &part)], &[child(1, 93, &ticks)]);
        assert_eq!(times(&of, 0), [(3, 4), (10, 30), (40, 90), (91, 92)]);
        assert_eq!(of.in_doubt, 70);
    }

    #[test]
    fn what_another_task_polls_is_waited_for_if_its_end_wakes() {
        let outer = polls(&[(0, 10), (90 * MS, 91 * MS)]);
        let others = [Poll { start: 20, end: 40 * MS, thread: TrackId(2) }];
        let of = waited((0, 91 * MS), &outer, &[], &[child(5, 40 * MS, &others)], &[]);
        assert_eq!(of.of_each, [None]);
        let of = waited((0, 91 * MS), &outer, &[40 * MS + 1000], &[child(5, 40 * MS, &others)], &[]);
        assert_eq!(times(&of, 0), [(10, 40 * MS)]);
        let of = waited((0, 91 * MS), &outer, &[], &[child(5, 90 * MS - 100, &others)], &[]);
        assert_eq!(times(&of, 0), [(10, 90 * MS - 100)]);
    }

    #[test]
    fn a_stream_is_waited_for_between_its_items() {
        let nexts = [(10, 20), (60, 70)];
        let all = [Child { nexts: Some(&nexts), ..child(5, 95, &[]) }];
        let of = waited((0, 100), &[], &[], &all, &[]);
        assert_eq!((times(&of, 0), of.alone), (vec![(10, 20), (60, 70)], vec![(0, 10), (20, 60), (70, 100)]));
    }
}
