//! Who woke the tasks whose time between two polls is no interval inside of them.
//!
//! The instant `wake` on the thread that wakes a task, and the time of the task in the queue, begin at once.

use std::collections::{BTreeSet, HashMap};

use hairline_convert::TrackId;
use hairline_convert::slices::{Frame, Key, Slice};

use crate::explain::locks::{Holder, Kind};
use crate::explain::nested::Within;
use crate::explain::own_polls::Poll;
use crate::explain::polls::{AllPolls, RIGHT_AFTER};
use crate::explain::queue::counted;
use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Part, Place, Polls, Source, Target, Waker, add, total};
use crate::explain::tasks;
use crate::stretches::{in_common, merged, sum};
use crate::table::plain;

/// The limit for wakes. Further ones are not known.
const MOST_WAKES: usize = 1 << 20;

/// The wakes of all tasks, by their times.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    all: HashMap<i64, Waker>,
    /// The begin, the end and the name of the last poll of each thread that is in no other one.
    last_polls: HashMap<TrackId, (i64, i64, Key)>,
    /// The poll that a worker had just ended as it looked for what is ready: its begin and its name, by the time
    /// of the wake.
    busy: HashMap<i64, (i64, Key)>,
    pub(super) polls: AllPolls,
}

impl Wakes {
    /// Adds a wake on this track at this time.
    pub(super) fn add(&mut self, survey: &Survey, (track, time): (TrackId, i64), above: &[Frame]) {
        if self.all.len() < MOST_WAKES {
            let inside = above.last();
            let is_parked = inside.is_some_and(|of| tasks::is_parked(survey.keys(), (of.category, of.name)));
            let poll = above.iter().find(|of| survey.has_polls(of.category, of.name));
            let [inside, poll] = [inside, poll].map(|frame| frame.map(|frame| frame.name));
            let before =
                self.last_polls.get(&track).filter(|(_, end, _)| time.saturating_sub(*end) <= RIGHT_AFTER);
            let after = before.filter(|_| above.is_empty()).map(|(.., name)| *name);
            if let Some((start, _, name)) = before.filter(|_| is_parked) {
                self.busy.insert(time, (*start, *name));
            }
            self.all.insert(time, Waker { track, inside, poll, after, is_parked });
        }
    }

    /// A poll ends that is in no other slice.
    pub(super) fn add_poll(&mut self, poll: &Slice) {
        let end = poll.start.saturating_add(poll.duration);
        self.last_polls.insert(poll.track, (poll.start, end, poll.name));
        self.polls.add(poll);
    }

    /// Call it once there are no more.
    pub(super) fn sort(&mut self) {
        self.polls.sort();
    }

    /// Who woke the task at the end of this part of its time.
    pub(super) fn of(&self, survey: &Survey, part: &Part) -> Option<Waker> {
        let process = |track| survey.track_names.process_of(track);
        self.all.get(&part.end).filter(|waker| process(waker.track) == process(part.track)).copied()
    }

    /// The poll that took most of a time, if a worker looked for what is ready only after that.
    pub(super) fn busy_during(&self, part: &Part) -> Option<Key> {
        let (start, name) = self.busy.get(&part.end)?;
        (part.end.saturating_sub(*start) > part.duration() / 2).then_some(*name)
    }

    /// Adds up the longest times before wakes, by who woke. They may come in the trace before those wakes.
    pub(super) fn look(&self, survey: &Survey, target: &mut Target) {
        let names = &survey.track_names;
        let of = |part: &Part| self.of(survey, part);
        let Target { lasts, last_wakers, left, left_wakers, .. } = target;
        for (parts, wakers) in [(lasts, last_wakers), (left, left_wakers)] {
            parts.all().iter().for_each(|part| add(wakers, of(part), part.duration()));
        }
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
            let waker = of(wait).filter(|_| names.tid(wait.track).is_none());
            if wait.wait.tags.is_dropped && survey.locks.kind(wait.wait.tags) != Kind::Notification {
                let is_elsewhere = waker.is_some_and(|waker| waker.inside.is_some() && !waker.is_parked);
                let (time, elsewhere) = &mut target.dropped_waits;
                *time += wait.duration();
                *elsewhere += if is_elsewhere { wait.duration() } else { 0 };
            }
            let Some(waker) = waker else { continue };
            let life = |task| survey.tasks.life(task).map(|life| life.name);
            let turns = target.turns.all().iter();
            if turns.clone().any(|turn| {
                turn.wait.held.is_timed
                    && turn.start >= wait.start
                    && turn.end <= wait.end
                    && turn.track == wait.track
            }) {
                continue;
            }
            let held = survey.locks.holder(wait.wait.tags);
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

/// The time from `start` up to the last wake that is not after `end`, of times in the queue.
pub(super) fn last(queues: &[Part], start: i64, end: i64) -> Option<Part> {
    let wakes = queues.iter().map(|queue| queue.start);
    let last = wakes.filter(|wake| (start..=end).contains(wake)).max()?;
    Some(Part::new(TrackId(0), start, last))
}

/// Calls `each` with the times of an interval up to when it could run, without what is inside of it and its
/// polls.
pub(super) fn gaps(
    (track, start): (TrackId, i64),
    within: &Within,
    polls: &[Poll],
    mut each: impl FnMut(Part),
) {
    let mut queues: Vec<&Part> = within.queues.iter().filter(|queue| queue.start >= start).collect();
    queues.sort_unstable_by_key(|queue| queue.start);
    let polls = polls.iter().map(|poll| (poll.start, poll.end));
    let inside = merged(within.waited.iter().copied().chain(polls));
    let mut since = start;
    for queue in queues {
        let end = queue.start.max(since);
        let covered = sum(in_common((since, end), &inside));
        each(Part::new(track, since.saturating_add(covered).min(end), end));
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

/// Where the wakes come from that end most of the time.
pub(super) fn most(wakers: &HashMap<Option<Waker>, i64>) -> Option<Source> {
    let mut sums: HashMap<Source, i64> = HashMap::new();
    wakers.iter().filter_map(|(waker, time)| Some((waker.as_ref()?.source(), *time))).for_each(
        |(source, time)| {
            let sum = sums.entry(source).or_default();
            *sum = sum.saturating_add(time);
        },
    );
    let (source, time) = sums.into_iter().max_by_key(|(source, time)| (*time, *source))?;
    (time > total(wakers.values().copied()) / 2).then_some(source)
}

/// Threads that wake, as the subject of a sentence, and whether they are several.
fn threads(
    survey: &Survey,
    wakers: &HashMap<Option<Waker>, i64>,
    is: impl Fn(&Waker) -> bool,
) -> (String, bool) {
    let names = &survey.track_names;
    let of_source = wakers.keys().flatten().filter(|waker| is(waker));
    let tracks: BTreeSet<TrackId> = of_source.map(|waker| waker.track).collect();
    let all: BTreeSet<String> = tracks.iter().map(|track| names.name_without_id(*track)).collect();
    match (tracks.first(), all.first()) {
        (Some(track), _) if tracks.len() == 1 => {
            (format!("the thread {}", plain(&names.name(*track))), false)
        }
        (_, Some(name)) if all.len() == 1 => (format!("{} threads {}", tracks.len(), plain(name)), true),
        _ => (format!("{} threads", tracks.len()), true),
    }
}

/// Says who woke the slowest intervals after most of that time, if it is one thread, or the runtime; and who
/// woke them last, if that is another one: all before may be wakes after which they waited on.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let whole = target.gaps.total();
    let text = |name: Key| plain(survey.keys().text(name));
    if let Some((name, polls, share)) = late(target) {
        return Some(format!(
            "No worker looked for what is ready, a timer or a socket: the one that woke them had just polled `{}`, \
             for {share} of that time ({}). It may have been ready before, or only then.",
            text(name),
            counted(&polls)
        ));
    }
    let often = most(&target.wakers).filter(|_| whole > 0);
    let first = match often {
        Some(Source::Runtime) => {
            let what = "The runtime wakes them then (`parked`): a timer has run out, or a socket is ready.";
            Some(what.to_owned())
        }
        Some(source) => {
            let who = threads(survey, &target.wakers, |waker| waker.source() == source);
            Some(wakes_them(&who, &place(survey, target, source)))
        }
        None => of_one_name(survey, target).map(|who| wakes_them(&who, "")),
    };
    // Of threads in no slice, another one says nothing.
    let is_thread = |source| matches!(source, Source::On(_));
    let are_threads = first.is_some() && often.is_none_or(is_thread);
    let is_other = |last: &Source| Some(*last) != often && !(are_threads && is_thread(*last));
    let last = most(&target.last_wakers).filter(is_other).map(|source| {
        let (threads, _) = threads(survey, &target.last_wakers, |waker| waker.source() == source);
        let who = match source {
            Source::Runtime => "the runtime (`parked`): a timer has run out, or a socket is ready".to_owned(),
            Source::Inside(name) => format!("{threads}, inside `{}`", text(name)),
            Source::On(_) => threads,
        };
        format!("The last wake, after which they end, is by {who}.")
    });
    let both: Vec<_> = first.into_iter().chain(last).collect();
    (!both.is_empty()).then(|| both.join(" "))
}

/// The threads of one name that woke after most of the time.
fn of_one_name(survey: &Survey, target: &Target) -> Option<(String, bool)> {
    let name = |waker: &Waker| survey.track_names.name_without_id(waker.track);
    let mut sums: HashMap<String, i64> = HashMap::new();
    for (waker, time) in target.wakers.iter().filter_map(|(waker, time)| Some((waker.as_ref()?, time))) {
        let sum = sums.entry(name(waker)).or_default();
        *sum = sum.saturating_add(*time);
    }
    let (most, time) = sums.into_iter().max_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)))?;
    let are_most = time > total(target.wakers.values().copied()) / 2;
    are_most.then(|| threads(survey, &target.wakers, |waker| name(waker) == most))
}

/// Says that threads wake the intervals. `place` is the end of the sentence.
fn wakes_them((who, are_many): &(String, bool), place: &str) -> String {
    let wake = if *are_many { "wake" } else { "wakes" };
    format!("{} {wake} them then{place}.", capitalized(who))
}

/// Where a thread was as it woke, as a part of a sentence.
fn place(survey: &Survey, target: &Target, source: Source) -> String {
    let text = |name: Key| plain(survey.keys().text(name));
    let all: u64 = target.after_polls.values().map(|polls| polls.count).sum();
    let ended = target.after_polls.iter().find(|(_, polls)| polls.count > all / 2);
    match (source, ended) {
        (Source::Inside(name), _) => format!(", inside `{}`", text(name)),
        (_, Some((name, _))) => format!(", right after a poll of `{}`", text(*name)),
        _ => String::new(),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
