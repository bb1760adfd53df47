//! Who woke the tasks whose time between two polls is no interval inside of them.
//!
//! The instant `wake` on the thread that wakes a task, and the time of the task in the queue, begin at once.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Frame, Keys, Slice};

use crate::explain::nested::{Within, covered};
use crate::explain::survey::Survey;
use crate::explain::target::{Part, Target, Waker, total};
use crate::explain::tasks;
use crate::table::plain;

/// The limit for wakes. Further ones are not known.
const MOST_WAKES: usize = 1 << 20;

/// The wakes of all tasks, by their times.
#[derive(Debug, Default)]
pub(super) struct Wakes(HashMap<i64, Waker>);

impl Wakes {
    /// Adds a wake on this track at this time.
    pub(super) fn add(&mut self, keys: &Keys, (track, time): (TrackId, i64), above: &[Frame]) {
        if self.0.len() < MOST_WAKES {
            let inside = above.last();
            let is_parked = inside.is_some_and(|of| tasks::is_parked(keys, (of.category, of.name)));
            let waker = Waker { track, inside: inside.map(|inside| inside.name), is_parked };
            self.0.insert(time, waker);
        }
    }

    /// Adds up the longest times before wakes, by who woke. They may come in the trace before those wakes.
    pub(super) fn look(&self, survey: &Survey, target: &mut Target) {
        let names = &survey.track_names;
        for gap in target.gaps.all() {
            let waker = self.0.get(&gap.end);
            let is_own = |waker: &&Waker| names.process_of(waker.track) == names.process_of(gap.track);
            *target.wakers.entry(waker.filter(is_own).copied()).or_default() += gap.duration();
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

/// Says who woke the slowest intervals after most of that time, if it is one thread, or the runtime.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let whole = total(target.wakers.values().copied());
    let of = |is: &dyn Fn(&Waker) -> bool| {
        let these = target.wakers.iter().filter(|(waker, _)| waker.as_ref().is_some_and(is));
        total(these.map(|(_, time)| *time))
    };
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
    let inside =
        inside.map(|name| format!(", inside `{}`", plain(survey.keys().text(name)))).unwrap_or_default();
    Some(format!("The thread {} wakes them then{inside}.", plain(&survey.track_names.name(most.track))))
}
