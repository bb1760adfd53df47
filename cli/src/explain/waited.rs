//! Which of the intervals inside of another one that one waits for, and when.
//!
//! A future waits between its polls. What it polls as it goes on is what it waited for: `select!` and `join!`
//! poll all of theirs, a set of futures polls the one that was woken. What it does not poll is another
//! task's, or is not looked at yet.

use crate::explain::own_polls::{Poll, is_in};
use crate::explain::polls::{POLL_AFTER, RIGHT_AFTER};

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
}

/// What the time of an interval went to.
#[derive(Default)]
pub(super) struct Waited {
    /// When it waited for each of those inside of it; nothing of those that nobody waits for.
    pub(super) of_each: Vec<Option<Times>>,
    /// How long each of them was open while it waited for another one.
    pub(super) beside: Vec<i64>,
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
}

impl Child<'_> {
    /// Whether its end lets the one around it go on, which does not poll it: a task that is awaited.
    fn wakes(&self, polls: &[Poll], wakes: &[i64]) -> bool {
        let next = polls.get(polls.partition_point(|poll| poll.start < self.end));
        next.is_some_and(|next| next.start.saturating_sub(self.end) <= POLL_AFTER)
            || wakes.iter().any(|wake| wake.abs_diff(self.end) <= RIGHT_AFTER.unsigned_abs())
    }
}

/// Says for what an interval with these polls and wakes waited.
pub(super) fn waited((start, end): (i64, i64), polls: &[Poll], wakes: &[i64], all: &[Child<'_>]) -> Waited {
    let begins = std::iter::once(start).chain(polls.iter().map(|poll| poll.end));
    let ends = polls.iter().map(|poll| poll.start).chain([end]);
    let gaps: Times = begins.zip(ends).map(|(from, to)| (from.max(start), to.min(end))).collect();
    let mut of_each: Vec<Option<Times>> = Vec::with_capacity(all.len());
    let mut candidates = Vec::new();
    for (number, child) in all.iter().enumerate() {
        let mut times = Vec::new();
        // The number of the poll around each of its own.
        let inside = child.polls.iter().filter_map(|own| Some((is_in(polls, own)?, own)));
        for (gap, own) in inside {
            times.push((own.start, own.end.min(end)));
            let is_next =
                candidates.last().is_none_or(|last: &Candidate| (last.number, last.gap) != (number, gap));
            if is_next {
                candidates.push(Candidate {
                    gap,
                    number,
                    end: child.end.max(polls[gap].end),
                    polled: own.start,
                });
            }
        }
        let is_another_tasks = times.is_empty() && !polls.is_empty() && !child.polls.is_empty();
        if is_another_tasks && !child.wakes(polls, wakes) {
            of_each.push(None);
            continue;
        }
        if times.is_empty() {
            let first = gaps.partition_point(|gap| gap.1 <= child.start);
            let open = gaps[first..].iter().take_while(|gap| gap.0 < child.end).zip(first..);
            let polled = child.start;
            candidates.extend(open.map(|(_, gap)| Candidate { gap, number, end: child.end, polled }));
        }
        of_each.push(Some(times));
    }
    candidates.sort_by_key(|of| (of.gap, std::cmp::Reverse(of.end), of.polled));
    let mut beside = vec![0_i64; all.len()];
    for of_gap in candidates.chunk_by(|a, b| a.gap == b.gap) {
        let mut free = vec![gaps[of_gap[0].gap]];
        for Candidate { number, .. } in of_gap {
            let Child { start, end, nexts, .. } = all[*number];
            let whole = [(start, end)];
            for range in nexts.unwrap_or(&whole) {
                let taken: Times = free.iter().filter_map(|part| common(*part, *range)).collect();
                let open =
                    common(gaps[of_gap[0].gap], *range).map_or(0, |(from, to)| to.saturating_sub(from));
                let took = taken.iter().map(|(from, to)| to.saturating_sub(*from)).sum::<i64>();
                beside[*number] = beside[*number].saturating_add(open.saturating_sub(took));
                free = free.into_iter().flat_map(|part| without(part, *range)).collect();
                of_each[*number].iter_mut().for_each(|times| times.extend(&taken));
            }
        }
    }
    let of_each: Vec<_> = of_each.into_iter().map(|times| times.map(merged)).collect();
    let all_times = merged(of_each.iter().flatten().flatten().copied());
    let mut alone = vec![(start, end)];
    let mut since = start;
    alone.clear();
    for (from, to) in all_times {
        alone.extend((since < from).then_some((since, from)));
        since = since.max(to);
    }
    alone.extend((since < end).then_some((since, end)));
    Waited { of_each, beside, alone }
}

/// What two times have in common.
fn common(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    let (start, end) = (a.0.max(b.0), a.1.min(b.1));
    (start < end).then_some((start, end))
}

/// The parts of a time without another one.
fn without((start, end): (i64, i64), (from, to): (i64, i64)) -> impl Iterator<Item = (i64, i64)> {
    let parts = if to <= start || from >= end { [(start, end), (0, 0)] } else { [(start, from), (to, end)] };
    parts.into_iter().filter(|(start, end)| start < end)
}

/// Times in order, those that touch each other as one.
pub(super) fn merged(times: impl IntoIterator<Item = (i64, i64)>) -> Times {
    let mut all: Vec<_> = times.into_iter().collect();
    all.sort_unstable();
    all.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    all
}

#[cfg(test)]
mod tests {
    use hairline_convert::TrackId;

    use super::*;

    fn polls(times: &[(i64, i64)]) -> Vec<Poll> {
        times.iter().map(|(start, end)| Poll { start: *start, end: *end, thread: TrackId(1) }).collect()
    }

    fn child<'a>(start: i64, end: i64, polls: &'a [Poll]) -> Child<'a> {
        Child { start, end, polls, nexts: None }
    }

    fn times(of: &Waited, number: usize) -> Times {
        of.of_each[number].clone().unwrap_or_default()
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn without_polls_the_one_that_ends_last_is_waited_for() {
        let all = [child(30, 90, &[]), child(10, 50, &[])];
        let of = waited((0, 100), &[], &[], &all);
        assert_eq!((times(&of, 0), times(&of, 1)), (vec![(30, 90)], vec![(10, 30)]));
        assert_eq!((of.alone, of.beside), (vec![(0, 10), (90, 100)], vec![0, 20]));
    }

    #[test]
    fn what_is_polled_as_a_future_goes_on_is_what_it_waited_for() {
        let outer = polls(&[(0, 10), (50, 60), (90, 100)]);
        let [first, second] = [polls(&[(2, 4), (51, 53)]), polls(&[(5, 6), (92, 95)])];
        let all = [child(1, 53, &first), child(5, 96, &second)];
        let of = waited((0, 100), &outer, &[], &all);
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
        let [parse, prefetch] = [polls(&[(3, 5), (91, 94)]), polls(&[(95, 97)])];
        let all = [child(1, 98, &prefetch), child(2, 94, &parse)];
        let of = waited((0, 100), &outer, &[], &all);
        assert_eq!((times(&of, 0), times(&of, 1)), (vec![(95, 97)], vec![(3, 5), (10, 90), (91, 94)]));
        assert_eq!(of.beside, [80, 0]);
    }

    #[test]
    fn what_another_task_polls_is_waited_for_if_its_end_wakes() {
        let outer = polls(&[(0, 10), (90 * MS, 91 * MS)]);
        let others = [Poll { start: 20, end: 40 * MS, thread: TrackId(2) }];
        let of = waited((0, 91 * MS), &outer, &[], &[child(5, 40 * MS, &others)]);
        assert_eq!(of.of_each, [None]);
        let of = waited((0, 91 * MS), &outer, &[40 * MS + 1000], &[child(5, 40 * MS, &others)]);
        assert_eq!(times(&of, 0), [(10, 40 * MS)]);
        let of = waited((0, 91 * MS), &outer, &[], &[child(5, 90 * MS - 100, &others)]);
        assert_eq!(times(&of, 0), [(10, 90 * MS - 100)]);
    }

    #[test]
    fn a_stream_is_waited_for_between_its_items() {
        let nexts = [(10, 20), (60, 70)];
        let all = [Child { nexts: Some(&nexts), ..child(5, 95, &[]) }];
        let of = waited((0, 100), &[], &[], &all);
        assert_eq!((times(&of, 0), of.alone), (vec![(10, 20), (60, 70)], vec![(0, 10), (20, 60), (70, 100)]));
    }
}
