//! Which spans of `tracing` lost a `select!`: nothing in the trace says that their futures were dropped.

use std::collections::HashMap;

use crate::explain::own_polls::{Poll, is_in};
use crate::explain::target::Part;
use crate::explain::waited::Child;

/// How an interval ends.
#[derive(Clone, Copy)]
struct Ending {
    /// The number of the poll of the one around it in which it ends.
    within: usize,
    /// Its last poll before it is dropped.
    last: Option<Poll>,
}

impl Ending {
    fn of(one: &Child<'_>, polls: &[Poll]) -> Option<Self> {
        let within = polls.partition_point(|poll| poll.start <= one.end).checked_sub(1)?;
        (polls[within].end >= one.end).then(|| Self { within, last: last_poll(one, polls[within]) })
    }
}

/// The last poll of an interval that ends inside of this poll. A span is entered once more as its future is
/// dropped; the trace has that if something else ends then.
fn last_poll(one: &Child<'_>, around: Poll) -> Option<Poll> {
    let mut last = one.polls.iter().rev().copied();
    let (poll, before) = (last.next()?, last.next());
    let is_inside = |poll: Poll| is_in(&[around], &poll).is_some();
    let drops = |left: &Part| (poll.start..=poll.end).contains(&left.end);
    let is_drop = is_inside(poll) && (before.is_some_and(is_inside) || one.left.iter().any(drops));
    if is_drop { before } else { Some(poll) }
}

/// Which of those inside of an interval with these polls were not ready as that went on, although nothing
/// says that they were dropped, as nothing does of spans: in the poll in which they end, another one was
/// polled after them, and last of all.
pub(super) fn lost(all: &[Child<'_>], polls: &[Poll]) -> Vec<bool> {
    let endings: Vec<_> = all.iter().map(|one| Ending::of(one, polls)).collect();
    // The begin of the one that is polled last in each poll, and that poll.
    let mut winners: HashMap<usize, (i64, Poll)> = HashMap::new();
    for (one, ending) in all.iter().zip(&endings) {
        let Some(Ending { within, last: Some(last) }) = *ending else { continue };
        if last.start >= polls[within].start {
            let winner = winners.entry(within).or_insert((one.start, last));
            if last.start > winner.1.start {
                *winner = (one.start, last);
            }
        }
    }
    let has_lost = |one: &Child<'_>, ending: Option<Ending>| {
        let Ending { within, last } = ending?;
        let (begun, winner) = winners.get(&within)?;
        let first = one.polls.first().and_then(|first| is_in(polls, first))?;
        let is_beside = *begun <= polls[first].end || last.is_some_and(|last| *begun < last.start);
        let is_after = last.is_none_or(|last| winner.start >= last.end) && winner.start < one.end;
        Some(is_beside && is_after)
    };
    all.iter().zip(endings).map(|(one, ending)| has_lost(one, ending) == Some(true)).collect()
}

#[cfg(test)]
mod tests {
    use hairline_convert::TrackId;

    use super::*;

    fn polls(times: &[(i64, i64)]) -> Vec<Poll> {
        times.iter().map(|(start, end)| Poll { start: *start, end: *end, thread: TrackId(1) }).collect()
    }

    fn child(start: i64, end: i64, polls: &[Poll]) -> Child<'_> {
        Child { start, end, polls, nexts: None, left: &[] }
    }

    #[test]
    fn the_one_that_is_polled_last_has_not_lost() {
        let around = polls(&[(0, 10), (90, 100)]);
        let [first, second] = [polls(&[(1, 2), (91, 92)]), polls(&[(3, 4), (93, 94)])];
        let all = [child(1, 98, &first), child(3, 99, &second)];
        assert_eq!(lost(&all, &around), [true, false]);
        let all = [child(1, 92, &first), child(3, 94, &second)];
        assert_eq!(lost(&all, &around), [false; 2], "each ends as it is ready, as in `join!`");
        let all = [child(1, 98, &first[..1]), child(3, 99, &second)];
        assert_eq!(lost(&all, &around), [true, false], "the first one was not polled again");
        let begun_later = polls(&[(93, 94)]);
        let all = [child(1, 98, &first), child(93, 99, &begun_later)];
        assert_eq!(lost(&all, &around), [false; 2], "one after the other");
    }

    #[test]
    fn to_be_dropped_is_not_to_be_polled() {
        let around = polls(&[(0, 10), (90, 100)]);
        let winner = polls(&[(1, 2), (93, 94)]);
        let again = polls(&[(3, 4), (91, 92), (95, 96)]);
        let all = [child(1, 98, &winner), child(3, 97, &again)];
        assert_eq!(lost(&all, &around), [false, true]);
        let not_again = polls(&[(3, 4), (95, 96)]);
        let left = [Part::new(TrackId(2), 3, 96)];
        let all = [child(1, 98, &winner), Child { left: &left, ..child(3, 97, &not_again) }];
        assert_eq!(lost(&all, &around), [false, true], "what is inside of it is dropped with it");
    }
}
