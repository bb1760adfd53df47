//! What is found out about the slices of one name.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Key, Slice};
use hairline_convert::timeline::Split;

use crate::explain::arguments::Arguments;
use crate::explain::locks::{HeldBy, Tags};
use crate::explain::memory::Allocations;
use crate::explain::shares::percent;
use crate::explain::survey::Chosen;
use crate::explain::turns::Turn;
use crate::stretches::in_common;
use hairline_convert::sampled::StackId;

/// The limit for different inner names, threads, stacks and the like.
pub(super) const MOST: usize = 4096;

/// The slices of one name.
pub(super) struct Target {
    pub(super) chosen: Chosen,
    /// All of them, the typical ones, and the slowest hundredth.
    pub(super) all: Band,
    pub(super) typical: Band,
    pub(super) slow: Band,
    /// The longest of the slowest and of the typical ones, and the longest sleeps inside the slowest.
    pub(super) slow_examples: Longest<128>,
    pub(super) typical_examples: Longest<128>,
    /// The arguments of those.
    pub(super) arguments: Arguments,
    /// The begin of the first slice of the trace.
    pub(super) first: i64,
    pub(super) sleeps: Longest<1024>,
    /// The longest waits for locks inside the slowest.
    pub(super) waits: Longest<1024>,
    /// The turns of those that had the locks during these waits, and the innermost slices that they had open
    /// during whole turns, by the name, with the time of the turns.
    pub(super) turns: Longest<1024>,
    pub(super) held_in: HashMap<(HeldBy, Key), i64>,
    /// The longest runs of other threads on the cores for which the slowest waited meanwhile, and how long
    /// those threads had which slice open then, by the thread and the name.
    pub(super) cores: Longest<1024>,
    pub(super) ran_in: HashMap<(u64, Key), i64>,
    /// The longest times in the queue inside the slowest, each with the track of the worker that polled the
    /// task then, if that is known; and the other polls of those workers meanwhile, by category and name.
    pub(super) queues: Longest<1024>,
    pub(super) polls: HashMap<(Key, Key), Polls>,
    /// The polls that begin while there is no interval of the name.
    pub(super) polls_alone: u64,
    /// How long of that the workers had nothing to do.
    pub(super) parked: i64,
    /// The longest times of the slowest up to when they could run, without those of intervals inside of them;
    /// and who woke them, with these times.
    pub(super) gaps: Longest<1024>,
    pub(super) wakers: HashMap<Option<Waker>, i64>,
    /// The longest times up to the last wake of each of the slowest, and who woke them then; and the same of
    /// what was open before a wake with which they went on without it.
    pub(super) lasts: Longest<1024>,
    pub(super) last_wakers: HashMap<Option<Waker>, i64>,
    pub(super) left: Longest<1024>,
    pub(super) left_wakers: HashMap<Option<Waker>, i64>,
    /// The tasks whose ends wake them after most of that time, by name.
    pub(super) awaited: HashMap<Key, Awaited>,
    pub(super) awaited_queues: Queued,
    /// Of those times, the ones that a worker ended when it looked for what is ready; and the longest poll
    /// that it had just ended, by name.
    pub(super) late: Longest<1024>,
    pub(super) late_polls: HashMap<Key, Polls>,
    /// Those that a thread ended in no slice; and the last poll that it had just ended, by name.
    pub(super) after: Longest<1024>,
    pub(super) after_polls: HashMap<Key, Polls>,
    /// Where the wakes are that ended waits of tasks, unless the one that had the lock has woken them, with
    /// the time of the waits.
    pub(super) woken: HashMap<(HeldBy, Place), i64>,
    /// The time of waits that were dropped, and that of those of them after which a slice that is none of
    /// the runtime's woke the task.
    pub(super) dropped_waits: (i64, i64),
    /// Slices of other threads, by what they had to do with those.
    pub(super) others: HashMap<(Key, Key, TrackId), Other>,
    /// During how many of the sleeps slices of those names are open by chance.
    pub(super) chances: HashMap<(Key, Key), Chance>,
}

/// Where a wake comes from: the track of a thread, and the name of the innermost slice there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waker {
    pub(super) track: TrackId,
    pub(super) inside: Option<Key>,
    /// The name of the poll around it.
    pub(super) poll: Option<Key>,
    /// The name of the poll that had ended right before, where there is none around it.
    pub(super) after: Option<Key>,
    /// Whether a worker has nothing to do there, and looks for what is ready.
    pub(super) is_parked: bool,
}

/// Where wakes come from, as they are said together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Source {
    /// A worker that looks for what is ready.
    Runtime,
    /// This slice, on any thread.
    Inside(Key),
    /// A thread in no slice.
    On(TrackId),
}

impl Waker {
    pub(super) fn source(&self) -> Source {
        match self.inside {
            _ if self.is_parked => Source::Runtime,
            Some(inside) => Source::Inside(inside),
            None => Source::On(self.track),
        }
    }
}

/// What is known of the tasks of one name whose ends wake intervals.
#[derive(Default)]
pub(super) struct Awaited {
    /// The part of the time up to those wakes in which they were alive.
    pub(super) time: i64,
    /// How much of that ends with wakes after their last polls, and not in them.
    pub(super) after: i64,
    /// How much of that they were in the queue.
    pub(super) queued: i64,
    /// The time in other intervals inside of them, by name.
    pub(super) inside: HashMap<Key, i64>,
    /// The time beside those, by what woke the tasks then.
    pub(super) sources: HashMap<Source, i64>,
    /// Of that, the time up to when a worker looked for what is ready, by the poll that it had just ended.
    pub(super) late: HashMap<Key, i64>,
    /// The time in their last polls.
    pub(super) last_polls: i64,
}

/// The times in the queue of those tasks, and what their threads polled meanwhile.
#[derive(Default)]
pub(super) struct Queued {
    pub(super) times: Longest<1024>,
    pub(super) polls: HashMap<(Key, Key), Polls>,
    pub(super) parked: i64,
}

/// Where the wake is that ended a wait: in the innermost slice, or on a thread that had none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    Inside(Key),
    On(TrackId),
}

/// How many of several things happen by chance: the mean, and the variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chance {
    mean: f64,
    variance: f64,
}

impl Chance {
    /// Adds a thing with this probability.
    pub(super) fn and(self, probability: f64) -> Self {
        Self { mean: self.mean + probability, variance: self.variance + probability * (1.0 - probability) }
    }

    /// Whether so many are no surprise.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub(super) fn explains(self, count: u64) -> bool {
        count as f64 <= self.mean + 3.0 * self.variance.sqrt()
    }
}

/// A range of durations.
#[derive(Default)]
pub(super) struct Band {
    pub(super) count: u64,
    pub(super) duration: i64,
    pub(super) split: Split,
    /// The inner slices, and the slices' own time under their own name.
    pub(super) inside: Inside,
    /// The threads that had the processor for which the slices waited, and how long.
    pub(super) holders: HashMap<u64, i64>,
    /// The threads that woke them, with the time slept.
    pub(super) wakers: HashMap<u64, i64>,
    /// Samples on the CPU.
    pub(super) on_cpu: HashMap<StackId, i64>,
    /// Stacks in which they slept, with the time.
    pub(super) off_cpu: HashMap<StackId, i64>,
    /// Stacks of samples by the clock.
    pub(super) by_clock: HashMap<StackId, i64>,
    /// Stacks of the events in them, and of slow ones.
    pub(super) events: HashMap<StackId, i64>,
    /// Of intervals: their polls, as far as they are known, and the time of those.
    pub(super) polls: u64,
    pub(super) polled: i64,
    /// The time of the longest poll of each.
    pub(super) longest_polls: i64,
    /// Of intervals: the time in the queue, and the time that waits for locks cover, without and with those
    /// that were dropped.
    pub(super) in_queue: i64,
    pub(super) in_waits: [InWaits; 2],
    /// Large allocations of their threads.
    pub(super) large: Allocations,
}

/// The time that waits for locks cover.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InWaits {
    pub(super) time: i64,
    /// The same, with the time in the queue.
    pub(super) or_in_queue: i64,
}

/// Polls of one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polls {
    pub(super) count: u64,
    /// How long they overlap the times in the queue.
    pub(super) time: i64,
    /// The duration of the longest one.
    pub(super) longest: i64,
    /// The one that was counted last: its track and begin.
    pub(super) last: Option<(TrackId, i64)>,
}

impl Polls {
    /// Adds a poll. It counts once for several tasks.
    pub(super) fn add(&mut self, poll: &Slice, overlap: i64) {
        self.time = self.time.saturating_add(overlap);
        self.longest = self.longest.max(poll.duration);
        let is_new = self.last != Some((poll.track, poll.start));
        self.count += u64::from(is_new);
        self.last = Some((poll.track, poll.start));
    }
}

/// The slices inside of others.
#[derive(Clone, Default)]
pub(super) struct Inside {
    /// All of them, by name.
    pub(super) names: HashMap<Key, Inner>,
    /// Those of them that are waits for locks, and waits that were dropped.
    pub(super) waits: HashMap<Wait, Inner>,
    /// Intervals that were dropped before their end, without which the one around went on.
    pub(super) dropped: HashMap<Key, Inner>,
    /// How long intervals were open while another one was waited for.
    pub(super) beside: HashMap<Key, i64>,
    /// How long they were waited for, or what is not recorded: the trace does not tell.
    pub(super) in_doubt: i64,
}

/// A kind of waits for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Wait {
    /// The name of the slices.
    pub(super) name: Key,
    pub(super) tags: Tags,
    /// The name of the slice around them.
    pub(super) around: Key,
    /// Who had the lock meanwhile. A wait in which several had it is one of each, with its part of the time.
    pub(super) held: HeldBy,
}

/// Inner slices of one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inner {
    pub(super) count: u64,
    /// The time with slices inside them.
    pub(super) total: i64,
    /// The time without.
    pub(super) own: Split,
}

/// A part of a thread's time: a slice, or a sleep or a wait for a lock inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) track: TrackId,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Whether the trace has the wake-up that ended the sleep: else the sleep contains the wait for a core
    /// after it.
    pub(super) has_wakeup: bool,
    /// Whether it tells what ended the sleep, and the thread that did it, if it was no interrupt. Of a wait,
    /// the thread that had the lock or the core.
    pub(super) is_woken: bool,
    pub(super) waker: Option<u64>,
    /// What a wait for a lock is.
    pub(super) wait: Wait,
    /// The track of the worker that polled the task after its time in the queue.
    pub(super) worker: Option<TrackId>,
}

/// The `MOST` longest parts.
#[derive(Default)]
pub(super) struct Longest<const MOST: usize>(Vec<Part>);

/// Slices of one name on another thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Other {
    /// The time that they overlap slow examples, and typical ones.
    pub(super) overlap_slow: i64,
    pub(super) overlap_typical: i64,
    /// The sleeps during which such a slice was open: their number and time. A sleep counts on one thread.
    pub(super) open: Option<u64>,
    pub(super) open_time: i64,
    /// The time in which its thread was asleep meanwhile. Who ended the sleep is not known then.
    pub(super) asleep: i64,
    /// Those of them that ended when the slice did.
    pub(super) ended: u64,
}

impl Target {
    pub(super) fn is_slow(&self, duration: i64) -> bool {
        duration >= self.chosen.slow
    }

    /// What the slowest are called. Where many take equally long, they are more than a hundredth.
    pub(super) fn slowest(&self) -> String {
        let (slow, all) = (self.slow.count, self.all.count);
        match slow {
            _ if slow.saturating_mul(50) <= all => "slowest 1 %".to_owned(),
            1 => "slowest one".to_owned(),
            _ => {
                let [slow, all] = [slow, all].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
                format!("slowest {}", percent(slow, all))
            }
        }
    }

    /// Whether waits that were dropped before their end took time. If something else woke the task, it waited
    /// for that. Else the time may have run out that it had for the wait.
    pub(super) fn counts_dropped(&self) -> bool {
        let (time, elsewhere) = self.dropped_waits;
        elsewhere <= time / 2
    }

    pub(super) fn is_typical(&self, duration: i64) -> bool {
        (self.chosen.typical.0..=self.chosen.typical.1).contains(&duration)
    }

    /// The bands that a slice of this duration is in.
    pub(super) fn bands(&mut self, duration: i64) -> impl Iterator<Item = &mut Band> {
        let (is_typical, is_slow) = (self.is_typical(duration), self.is_slow(duration));
        let bands = [(true, &mut self.all), (is_typical, &mut self.typical), (is_slow, &mut self.slow)];
        bands.into_iter().filter(|(is_in, _)| *is_in).map(|(_, band)| band)
    }
}

impl Band {
    /// The mean duration.
    pub(super) fn mean(&self) -> i64 {
        self.per_slice(self.duration)
    }

    /// A sum divided by the number of slices.
    pub(super) fn per_slice(&self, sum: i64) -> i64 {
        sum.checked_div(i64::try_from(self.count).unwrap_or(i64::MAX)).unwrap_or(0)
    }

    pub(super) fn mean_split(&self) -> Split {
        self.split_per_slice(self.split)
    }

    /// A sum of times divided by the number of slices.
    pub(super) fn split_per_slice(&self, sum: Split) -> Split {
        let Split { running, waiting, asleep, uninterruptible, stopped, off_cpu, unknown } = sum;
        Split {
            running: self.per_slice(running),
            waiting: self.per_slice(waiting),
            asleep: self.per_slice(asleep),
            uninterruptible: self.per_slice(uninterruptible),
            stopped: self.per_slice(stopped),
            off_cpu: self.per_slice(off_cpu),
            unknown: self.per_slice(unknown),
        }
    }
}

impl Part {
    /// A slice, or a part of one of which nothing else is known.
    pub(super) fn new(track: TrackId, start: i64, end: i64) -> Self {
        Self {
            track,
            start,
            end,
            has_wakeup: false,
            is_woken: false,
            waker: None,
            wait: Wait::default(),
            worker: None,
        }
    }

    pub(super) fn duration(&self) -> i64 {
        self.end.saturating_sub(self.start)
    }

    pub(super) fn place(&self) -> (TrackId, i64, i64) {
        (self.track, self.start, self.end)
    }

    /// What of it is between two times, if that is something.
    pub(super) fn within(self, from: i64, to: i64) -> Option<Self> {
        let (start, end) = (self.start.max(from), self.end.min(to));
        (start < end).then_some(Self { start, end, ..self })
    }

    /// The parts of it in these times.
    pub(super) fn during(self, times: &[(i64, i64)]) -> impl Iterator<Item = Self> {
        in_common((self.start, self.end), times).map(move |(start, end)| Self { start, end, ..self })
    }

    /// A wait in something that was dropped.
    pub(super) fn dropped(self) -> Self {
        Self { wait: self.wait.dropped(), ..self }
    }
}

impl<const MOST: usize> Longest<MOST> {
    pub(super) fn add(&mut self, part: Part) {
        self.0.push(part);
        if self.0.len() >= 16 * MOST {
            self.shorten();
        }
    }

    /// Drops all parts but the longest.
    pub(super) fn shorten(&mut self) {
        self.0.sort_by_key(|part| std::cmp::Reverse(part.duration()));
        self.0.truncate(MOST);
    }

    pub(super) fn all(&self) -> &[Part] {
        &self.0
    }

    pub(super) fn all_mut(&mut self) -> &mut [Part] {
        &mut self.0
    }

    /// The sum of the durations.
    pub(super) fn total(&self) -> i64 {
        total(self.0.iter().map(Part::duration))
    }
}

/// A sum that a made-up trace cannot let overflow.
pub(super) fn total(all: impl IntoIterator<Item = i64>) -> i64 {
    all.into_iter().fold(0, i64::saturating_add)
}

/// The time in all states.
pub(super) fn whole(split: &Split) -> i64 {
    total([split.running, split.waiting, split.asleep, split.off_cpu, split.unknown])
}

/// Adds to an entry, unless there are too many.
pub(super) fn add<K: Eq + std::hash::Hash>(sums: &mut HashMap<K, i64>, key: K, value: i64) {
    if sums.len() < MOST || sums.contains_key(&key) {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(value);
    }
}

impl Wait {
    /// The same of a task that went on without it.
    pub(super) fn dropped(self) -> Self {
        Self { tags: Tags { is_dropped: true, ..self.tags }, ..self }
    }
}

impl Inside {
    /// Adds slices of one name.
    pub(super) fn slices(&mut self, name: Key, inner: &Inner) {
        add_inner(&mut self.names, name, Key::OTHER, inner);
    }

    /// Adds a wait for a lock, in which these had it in turn.
    pub(super) fn wait(&mut self, wait: Wait, turns: &[Turn], inner: &Inner) {
        let whole = total(turns.iter().map(|turn| turn.end.saturating_sub(turn.start)));
        let mut rest = *inner;
        for (number, turn) in turns.iter().enumerate() {
            let time = turn.end.saturating_sub(turn.start);
            let is_last = number + 1 == turns.len();
            let part = if is_last { rest } else { inner.part(time, whole) };
            rest = Inner {
                count: 0,
                total: rest.total.saturating_sub(part.total),
                own: rest.own.minus(part.own),
            };
            self.add_wait(Wait { held: turn.held, ..wait }, &part);
        }
    }

    fn add_wait(&mut self, wait: Wait, inner: &Inner) {
        let tags = Tags { is_dropped: wait.tags.is_dropped, ..Tags::default() };
        add_inner(&mut self.waits, wait, Wait { name: Key::OTHER, tags, ..Wait::default() }, inner);
    }

    /// Adds what is inside of a part.
    pub(super) fn add(&mut self, other: &Self) {
        other.names.iter().for_each(|(name, inner)| self.slices(*name, inner));
        other.waits.iter().for_each(|(wait, inner)| self.add_wait(*wait, inner));
        other.dropped.iter().for_each(|(name, inner)| add_inner(&mut self.dropped, *name, Key::OTHER, inner));
        other.beside.iter().for_each(|(name, time)| self.beside(*name, *time));
        self.in_doubt = self.in_doubt.saturating_add(other.in_doubt);
    }

    /// Adds an interval that was open so long while another one was waited for.
    pub(super) fn beside(&mut self, name: Key, time: i64) {
        if time > 0 {
            add(&mut self.beside, name, time);
        }
    }

    /// Adds what was dropped before its end.
    pub(super) fn leave(&mut self, name: Key, inner: &Inner) {
        add_inner(&mut self.dropped, name, Key::OTHER, inner);
    }

    /// The time of all waits for locks.
    pub(super) fn waited(&self) -> Split {
        self.waits.values().fold(Split::default(), |sum, inner| sum.plus(inner.own))
    }
}

/// Adds to an entry, or to that of the rest if there are too many.
fn add_inner<K: Copy + Eq + std::hash::Hash>(sums: &mut HashMap<K, Inner>, key: K, rest: K, inner: &Inner) {
    let key = if sums.len() < MOST || sums.contains_key(&key) { key } else { rest };
    sums.entry(key).or_default().add(inner);
}

impl Inner {
    /// One, of whose own time nothing is said.
    pub(super) fn without_own(total: i64) -> Self {
        Self { count: 1, total, own: Split::default() }
    }

    /// What falls into a part of the time.
    fn part(&self, time: i64, whole: i64) -> Self {
        let share = |of: i64| {
            let share = i128::from(of) * i128::from(time) / i128::from(whole.max(1));
            i64::try_from(share).unwrap_or(i64::MAX)
        };
        Self { count: self.count, total: share(self.total), own: self.own.map(share) }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.plus(other.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_by_chance_are_explained_by_it() {
        let chance = |things, probability| (0..things).fold(Chance::default(), |all, _| all.and(probability));
        assert!(
            chance(30, 0.08).explains(2) && chance(30, 0.08).explains(6) && !chance(30, 0.08).explains(12)
        );
        assert!(chance(10, 1.0).explains(10) && !chance(10, 0.01).explains(10));
        assert!(chance(1, 0.5).explains(1) && !chance(1, 0.05).explains(1) && !chance(0, 0.0).explains(1));
    }
}
