//! The tasks whose end wakes the slowest intervals: those that they spawn and await, or that answer. Where
//! the time of such a task went is why the interval waited.

use std::collections::{BTreeMap, HashMap};

use hairline_convert::TrackId;
use hairline_convert::slices::{Key, Slice};

use crate::explain::locks::{PREFIX, command_for_wait, lock_name};
use crate::explain::nested::{Own, Within, covered};
use crate::explain::own_polls::Poll;
use crate::explain::polls::RIGHT_AFTER;
use crate::explain::queue;
use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Awaited, Part, Source, Target, Waker, add, total};
use crate::explain::wakes::{self, Wakes};
use crate::stretches::{common, sum};
use crate::table::plain;

/// The limit for lives that are kept, with the parts of each.
const MOST_KEPT: usize = 1 << 18;

/// The lives of tasks that are over, by name and end.
pub(super) struct Lives<'s> {
    ends: BTreeMap<(Key, i64, TrackId), Life<'s>>,
    count: usize,
    /// Shorter ones are not kept.
    shortest: i64,
    /// The begins and the polls of the lives on each track.
    polls: HashMap<TrackId, Vec<(i64, &'s [Poll])>>,
}

struct Life<'s> {
    start: i64,
    within: Within,
    polls: &'s [Poll],
}

/// Where most of the time of such tasks went.
enum Where {
    Queue,
    Inside(Key),
    /// Beside both, up to wakes from there.
    Up(Source),
    /// Beside both, up to when a worker looked for what is ready, which had polled this.
    Late(Key),
    /// In its last poll: it computed, or a call blocked.
    LastPoll,
    /// In none of these for most of its time.
    Various,
}

impl<'s> Lives<'s> {
    /// Keeps lives that may take a good part of one of the slowest intervals.
    pub(super) fn new(shortest_of_slowest: i64) -> Self {
        Self { ends: BTreeMap::new(), count: 0, shortest: shortest_of_slowest / 4, polls: HashMap::new() }
    }

    /// Adds the life of a task.
    pub(super) fn add(&mut self, slice: &Slice, within: &Within, polls: &'s [Poll]) {
        if !polls.is_empty() && self.polls.len() < MOST_KEPT {
            self.polls.entry(slice.track).or_default().push((slice.start, polls));
        }
        let size = 1 + within.own.len() + within.waits.len() + within.queues.len();
        if slice.duration >= self.shortest && self.count + size <= MOST_KEPT {
            self.count += size;
            let end = slice.start.saturating_add(slice.duration);
            let life = Life { start: slice.start, within: within.clone(), polls };
            self.ends.insert((slice.name, end, slice.track), life);
        }
    }

    /// The polls of the life that is on a track at this time.
    pub(super) fn polls_at(&self, track: TrackId, time: i64) -> &'s [Poll] {
        let lives = self.polls.get(&track).map_or(&[][..], Vec::as_slice);
        let before = lives.partition_point(|(start, _)| *start <= time).checked_sub(1);
        before.map_or(&[], |before| lives[before].1)
    }

    /// The life that ended with a wake: in the poll around it, or in the one right before it.
    fn ended(&self, survey: &Survey, waker: &Waker, wake: i64) -> Option<(TrackId, &Life<'s>)> {
        let process = survey.track_names.process_of(waker.track);
        let is_own = |track: TrackId| survey.track_names.process_of(track) == process;
        let of = |name: Key, from: i64, to: i64| {
            let ends = self.ends.range((name, from, TrackId(0))..=(name, to, TrackId(u32::MAX)));
            ends.filter(|((.., track), _)| is_own(*track)).map(|((.., track), life)| (*track, life))
        };
        match (waker.poll, waker.after) {
            (Some(name), _) => of(name, wake, wake.saturating_add(RIGHT_AFTER)).next(),
            (None, Some(name)) => of(name, wake.saturating_sub(RIGHT_AFTER), wake).next_back(),
            (None, None) => None,
        }
    }

    /// Adds the tasks whose ends woke the slowest intervals of a target.
    pub(super) fn look_at(&self, survey: &Survey, wakes: &Wakes, target: &mut Target) {
        for gap in target.gaps.all().to_vec() {
            if let Some(waker) = wakes.of(survey, &gap) {
                self.look(survey, wakes, target, (&waker, &gap));
            }
        }
    }

    /// Adds the task that ended with a wake, if it was alive for most of the time before it.
    fn look(&self, survey: &Survey, wakes: &Wakes, target: &mut Target, (waker, gap): (&Waker, &Part)) {
        let Some((track, life)) = self.ended(survey, waker, gap.end) else { return };
        let Some(name) = waker.poll.or(waker.after) else { return };
        let start = life.start.max(gap.start);
        let time = gap.end.saturating_sub(start);
        if time <= gap.duration() / 2 {
            return;
        }
        let queues: Vec<Part> =
            life.within.queues.iter().filter_map(|queue| queue.within(start, gap.end)).collect();
        let awaited = target.awaited.entry(name).or_default();
        awaited.time = awaited.time.saturating_add(time);
        if waker.poll.is_none() {
            awaited.after = awaited.after.saturating_add(time);
        }
        awaited.queued = awaited.queued.saturating_add(covered(&queues));
        for Own { name, stretch } in &life.within.own {
            let time = sum(common(*stretch, (start, gap.end)));
            if time > 0 {
                add(&mut awaited.inside, *name, time);
            }
        }
        wakes::gaps((track, life.start), &life.within, life.polls, |gap| {
            let source = wakes.of(survey, &gap).map(|waker| waker.source());
            let busy = wakes.busy_during(&gap).filter(|_| source == Some(Source::Runtime));
            match (busy, source, gap.within(start, i64::MAX)) {
                (Some(poll), _, Some(gap)) => add(&mut awaited.late, poll, gap.duration()),
                (None, Some(source), Some(gap)) => add(&mut awaited.sources, source, gap.duration()),
                _ => {}
            }
        });
        let last_poll = life.within.queues.iter().map(|queue| queue.end).max().unwrap_or(life.start);
        let last_poll = gap.end.saturating_sub(last_poll.max(start)).max(0);
        awaited.last_polls = awaited.last_polls.saturating_add(last_poll);
        if let Some(longest) = queues.iter().max_by_key(|queue| (queue.duration(), queue.start)) {
            let worker = wakes.polls.after(name, longest.end);
            target.awaited_queues.times.add(Part { track, worker, ..*longest });
        }
    }
}

/// The tasks of one name whose ends end most of the time of a target, and where their time went.
fn most(target: &Target) -> Option<(Key, &Awaited, Where)> {
    let (name, awaited) = target.awaited.iter().max_by_key(|(name, awaited)| (awaited.time, name.0))?;
    if awaited.time <= total(target.wakers.values().copied()) / 2 {
        return None;
    }
    let inside = awaited.inside.iter().max_by_key(|(name, time)| (**time, name.0));
    let place = match inside {
        Some((inside, time)) if *time > awaited.time / 2 && *time > awaited.queued => Where::Inside(*inside),
        _ if awaited.queued > awaited.time / 2 => Where::Queue,
        _ if awaited.last_polls > awaited.time / 2 => Where::LastPoll,
        _ if total(awaited.late.values().copied()) > awaited.time / 2 => {
            let most = awaited.late.iter().max_by_key(|(name, time)| (**time, name.0));
            most.map_or(Where::Various, |(name, _)| Where::Late(*name))
        }
        _ => {
            let source = awaited.sources.iter().max_by_key(|(source, time)| (**time, **source));
            let source =
                source.filter(|(source, time)| !matches!(source, Source::On(_)) && **time > awaited.time / 2);
            source.map_or(Where::Various, |(source, _)| Where::Up(*source))
        }
    };
    Some((*name, awaited, place))
}

/// The cause, as a part of a sentence.
pub(super) fn cause(survey: &Survey, target: &Target) -> Option<String> {
    let (name, awaited, place) = most(target)?;
    let task = plain(survey.keys().text(name));
    let cause = match place {
        Where::Queue if survey.tasks.is_call(name) => {
            format!("the call `{task}`, which waits for a thread of the blocking pool")
        }
        Where::Queue => format!("the task `{task}`, which waits for a worker"),
        Where::Up(Source::Inside(inside)) => {
            let inside = plain(survey.keys().text(inside));
            format!("the task `{task}`, which waits for what wakes it inside `{inside}`")
        }
        Where::Up(_) => format!("the task `{task}`, which waits for a timer or a socket"),
        Where::Late(poll) => {
            let poll = plain(survey.keys().text(poll));
            format!(
                "the task `{task}`, perhaps as workers are busy with other polls, most of all of `{poll}`"
            )
        }
        Where::LastPoll if survey.tasks.is_call(name) => format!("the call `{task}`, which ran so long"),
        Where::LastPoll => format!("the task `{task}`, most of all its last poll"),
        Where::Various => format!("the task `{task}`, whose end wakes them"),
        Where::Inside(inside) => match survey.keys().text(inside) {
            wait if wait.starts_with(PREFIX) => {
                format!("the task `{task}`, which waits for `{}`", plain(lock_name(wait)))
            }
            inside => format!("the task `{task}`, most of all inside `{}`", plain(inside)),
        },
    };
    Some(if is_sure(survey, name, awaited) { cause } else { format!("perhaps {cause}") })
}

/// Whether nothing else can have woken them: after the end of a task, its thread may have polled one that is
/// not recorded.
fn is_sure(survey: &Survey, name: Key, awaited: &Awaited) -> bool {
    awaited.after <= awaited.time / 2 || survey.tasks.is_call(name) || survey.tasks.partial().is_none()
}

/// Says where the time of those tasks went.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let (name, awaited, place) = most(target)?;
    let text = |name: Key| plain(survey.keys().text(name));
    let share = |time: i64| percent(time.min(awaited.time), awaited.time);
    let of = |times: Option<&i64>| share(times.copied().unwrap_or_default());
    let of_wakes = percent(awaited.time, total(target.wakers.values().copied()));
    let is_call = survey.tasks.is_call(name);
    let time = match place {
        Where::Inside(inside) => {
            let more = command_for_wait(survey.keys().text(inside));
            let more = more.map_or_else(String::new, |command| format!(" What that waits for: {command}"));
            format!(
                "It was inside `{}` for {} of its time.{more}",
                text(inside),
                of(awaited.inside.get(&inside))
            )
        }
        Where::Queue => {
            let why = queue::of_awaited(survey, target).map_or_else(String::new, |why| format!(" {why}"));
            let share = share(awaited.queued);
            let pool = if is_call { "thread of the blocking pool" } else { "worker" };
            format!("It could run, but no {pool} was free, for {share} of its time.{why}")
        }
        Where::Up(source) => {
            let wakes = match source {
                Source::Inside(inside) => format!("It was woken inside `{}`", text(inside)),
                _ => "The runtime woke it (`parked`)".to_owned(),
            };
            format!("{wakes}, after {} of its time.", of(awaited.sources.get(&source)))
        }
        Where::Late(poll) => {
            let of = share(total(awaited.late.values().copied()));
            format!(
                "For {of} of its time no worker looked for what is ready: the one that woke it had just polled `{}`. \
                 It may have been ready before, or only then.",
                text(poll)
            )
        }
        Where::LastPoll => {
            let poll = if is_call { "It ran" } else { "It was in its last poll" };
            format!("{poll} for {} of its time: it computed, or a call blocked.", share(awaited.last_polls))
        }
        Where::Various => String::new(),
    };
    let inside = match wakes::most(&target.wakers) {
        Some(Source::Inside(inside)) if inside != name => format!(", inside `{}`", text(inside)),
        _ => String::new(),
    };
    let what = if is_call { "call" } else { "task" };
    let after = if is_sure(survey, name, awaited) { "" } else { ", or what its thread did right after it," };
    let said = format!(
        "The end of the {what} `{}`{after} wakes them{inside} ({of_wakes} of that time). {time}",
        text(name)
    );
    Some(said.trim_end().to_owned())
}
