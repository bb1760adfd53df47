//! Who woke the tasks whose time between two polls is no interval inside of them.
//!
//! The instant `wake` on the thread that wakes a task, and the time of the task in the queue, begin at once.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Frame, Key, Slice};

use crate::explain::locks::Holder;
use crate::explain::nested::{Within, covered};
use crate::explain::queue::counted;
use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Part, Place, Polls, Target, Waker, add, total};
use crate::explain::tasks;
use crate::table::plain;

/// The limit for wakes. Further ones are not known.
const MOST_WAKES: usize = 1 << 20;

/// The wakes of all tasks, by their times.
#[derive(Debug, Default)]
pub(super) struct Wakes(HashMap<i64, Waker>);

impl Wakes {
    /// Adds a wake on this track at this time.
    pub(super) fn add(&mut self, survey: &Survey, (track, time): (TrackId, i64), above: &[Frame]) {
        if self.0.len() < MOST_WAKES {
            let inside = above.last();
            let is_parked = inside.is_some_and(|of| tasks::is_parked(survey.keys(), (of.category, of.name)));
            let poll = above.iter().find(|of| survey.has_polls(of.category, of.name));
            let [inside, poll] = [inside, poll].map(|frame| frame.map(|frame| frame.name));
            self.0.insert(time, Waker { track, inside, poll, is_parked });
        }
    }

    /// Adds up the longest times before wakes, by who woke. They may come in the trace before those wakes.
    pub(super) fn look(&self, survey: &Survey, target: &mut Target) {
        let names = &survey.track_names;
        let of = |part: &Part| {
            let is_own = |waker: &&Waker| names.process_of(waker.track) == names.process_of(part.track);
            self.0.get(&part.end).filter(is_own).copied()
        };
        for gap in target.gaps.all() {
            let waker = of(gap);
            *target.wakers.entry(waker).or_default() += gap.duration();
            let Some(waker) = waker else { continue };
            let gap = Part { worker: Some(waker.track), ..*gap };
            match waker.inside {
                _ if waker.is_parked => target.late.add(gap),
                None => target.after.add(gap),
                Some(_) => {}
            }
        }
        for wait in target.waits.all() {
            let Some(waker) = of(wait).filter(|_| names.tid(wait.track).is_none()) else { continue };
            let life = |task| survey.tasks.life(task).map(|life| life.name);
            let turns = target.turns.all().iter();
            if turns.clone().any(|turn| {
                turn.held.is_timed
                    && turn.start >= wait.start
                    && turn.end <= wait.end
                    && turn.track == wait.track
            }) {
                continue;
            }
            let held = survey.locks.holder(wait.tags);
            let place = match (held.holder, waker.inside) {
                _ if waker.is_parked => continue,
                (Holder::Unknown, None) => Place::On(waker.track),
                (Holder::Unknown, Some(inside)) => Place::Inside(inside),
                (Holder::Task(task), Some(inside))
                    if waker.poll.is_none_or(|poll| life(task) != Some(poll)) =>
                {
                    Place::Inside(inside)
                }
                _ => continue,
            };
            add(&mut target.woken, (held, place), wait.duration());
        }
    }
}

/// Calls `each` with the times of an interval up to when it could run, without what is inside of it.
pub(super) fn gaps(slice: &Slice, within: &Within, mut each: impl FnMut(Part)) {
    let mut queues: Vec<&Part> = within.queues.iter().filter(|queue| queue.start >= slice.start).collect();
    queues.sort_unstable_by_key(|queue| queue.start);
    let mut since = slice.start;
    for queue in queues {
        let gap = since..queue.start.max(since);
        let inside = within.children.iter().map(|child| Part {
            start: child.start.clamp(gap.start, gap.end),
            end: child.end.clamp(gap.start, gap.end),
            ..*child
        });
        let inside: Vec<Part> = inside.collect();
        let start = gap.start.saturating_add(covered(&inside)).min(gap.end);
        each(Part::new(slice.track, start, gap.end));
        since = since.max(queue.end);
    }
}

/// The poll that the workers had just ended as they found a timer or a socket of the slowest intervals ready,
/// if it took most of the time up to then: no worker was free to look. Its name and all such polls, and their
/// part of that time.
pub(super) fn late(target: &Target) -> Option<(Key, Polls, String)> {
    let whole = target.gaps.total();
    let (name, polls) = target.late_polls.iter().max_by_key(|(name, polls)| (polls.time, name.0))?;
    let are_most = polls.time > whole / 2;
    are_most.then(|| (*name, *polls, percent(polls.time, whole)))
}

/// Says who woke the slowest intervals after most of that time, if it is one thread, or the runtime.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let whole = total(target.wakers.values().copied());
    let of = |is: &dyn Fn(&Waker) -> bool| {
        let these = target.wakers.iter().filter(|(waker, _)| waker.as_ref().is_some_and(is));
        total(these.map(|(_, time)| *time))
    };
    let text = |name: Key| plain(survey.keys().text(name));
    if let Some((name, polls, share)) = late(target) {
        return Some(format!(
            "No worker looked for what is ready, a timer or a socket: the one that woke them had just polled `{}`, \
             for {share} of that time ({}). It may have been ready before, or only then.",
            text(name),
            counted(&polls)
        ));
    }
    if whole > 0 && of(&|waker| waker.is_parked) > whole / 2 {
        return Some(
            "The runtime wakes them then (`parked`): a timer has run out, or a socket is ready.".to_owned(),
        );
    }
    let all = target.wakers.keys().flatten();
    let most = all.max_by_key(|one| (of(&|waker| waker.track == one.track), one.track.0))?;
    if of(&|waker| waker.track == most.track) <= whole / 2 {
        return None;
    }
    let inside = target.wakers.iter().filter_map(|(waker, time)| Some((waker.as_ref()?, time)));
    let inside = inside.filter(|(waker, _)| waker.track == most.track).max_by_key(|(_, time)| **time);
    let inside = inside.and_then(|(waker, _)| waker.inside);
    let all: u64 = target.after_polls.values().map(|polls| polls.count).sum();
    let ended = target.after_polls.iter().find(|(_, polls)| polls.count > all / 2);
    let inside = match (inside, ended) {
        (Some(name), _) => format!(", inside `{}`", text(name)),
        (None, Some((name, _))) => format!(", right after a poll of `{}`", text(*name)),
        (None, None) => String::new(),
    };
    Some(format!("The thread {} wakes them then{inside}.", plain(&survey.track_names.name(most.track))))
}
