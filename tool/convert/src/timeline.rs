//! The states of all threads over time, for questions about any stretch of it.
//!
//! Changes of states arrive in any order: a tracer writes those of one processor after those of another. So
//! they are stored (16 bytes each, at most 4,194,304) and sorted by [`Timeline::finish`]. After that, the
//! sums of a stretch take a binary search and a look at 32 changes at most.

mod first_runners;

use std::collections::HashMap;
use std::sync::Arc;

pub use self::first_runners::FirstRunners;
use crate::{RunState, Scheduling, StateChange};

/// The limit for changes: 64 MiB, and less than as much again for the processors.
const MOST_CHANGES: usize = 1 << 22;
/// The number of changes between two stored sums.
const BLOCK: usize = 32;

/// How long a thread was in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// On a processor, in nanoseconds.
    pub running: i64,
    /// Ready to run, but without a processor.
    pub waiting: i64,
    /// Asleep: waiting for anything else. Includes `uninterruptible` and `stopped`.
    pub asleep: i64,
    /// Asleep and not to be interrupted, as a rule for a disk.
    pub uninterruptible: i64,
    /// Stopped by a signal or a debugger: a part of `asleep` too.
    pub stopped: i64,
    /// On no processor, so waiting or asleep. A timeline has no such time: it is of readers that know only
    /// the CPU time of a thread.
    pub off_cpu: i64,
    /// The trace does not say.
    pub unknown: i64,
}

impl Split {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, i64::saturating_add)
    }

    /// The difference of both, never negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, |a, b| a.saturating_sub(b).max(0))
    }

    fn with(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            running: f(self.running, other.running),
            waiting: f(self.waiting, other.waiting),
            asleep: f(self.asleep, other.asleep),
            uninterruptible: f(self.uninterruptible, other.uninterruptible),
            stopped: f(self.stopped, other.stopped),
            off_cpu: f(self.off_cpu, other.off_cpu),
            unknown: f(self.unknown, other.unknown),
        }
    }

    /// Each of its times, changed.
    #[must_use]
    pub fn map(self, f: impl Fn(i64) -> i64) -> Self {
        self.with(Self::default(), |time, _| f(time))
    }

    fn add(&mut self, state: Option<RunState>, duration: i64) {
        let sum = match state {
            Some(RunState::Running) => &mut self.running,
            Some(RunState::Runnable) => &mut self.waiting,
            Some(state) if state.is_asleep() => {
                if state == RunState::Uninterruptible {
                    self.uninterruptible = self.uninterruptible.saturating_add(duration);
                }
                if state == RunState::Stopped {
                    self.stopped = self.stopped.saturating_add(duration);
                }
                &mut self.asleep
            }
            _ => &mut self.unknown,
        };
        *sum = sum.saturating_add(duration);
    }
}

/// A time in which the state of a thread did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its begin, in nanoseconds.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// The state, if it is known.
    pub state: Option<RunState>,
    /// The processor on which the thread runs, or runs next.
    pub cpu: Option<u32>,
    /// Whether the thread's state changes at `end`, or only the question ends there.
    pub is_whole: bool,
    /// Whether a wake-up ends this sleep: `end` is then not the time at which the thread runs again.
    pub is_woken: bool,
    /// The thread that ended this sleep, if the trace says so.
    pub waker: Option<u64>,
    /// Whether an interrupt has ended it.
    pub is_interrupted: bool,
}

/// A thread that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// When it ended, in nanoseconds.
    pub end: i64,
    /// The id of the thread.
    pub tid: u64,
    /// Its begin, or its first change if that is not known.
    pub start: i64,
}

/// The states of all threads over time.
///
/// ```
/// use hairline_convert::timeline::{Split, Timeline};
/// use hairline_convert::{RunState, Scheduling, StateChange};
///
/// let changes = [
///     StateChange { cpu: Some(0), ..StateChange::new(1_000, 8, RunState::Running) },
///     StateChange { cpu: Some(0), ..StateChange::new(3_000, 8, RunState::Runnable) }, // preempted
///     StateChange { cpu: Some(0), ..StateChange::new(7_000, 8, RunState::Running) },
/// ];
/// let mut timeline = Timeline::default();
/// timeline.add(&Scheduling { changes: &changes, copy: None, others: 0 });
/// timeline.finish();
/// let split = timeline.split(8, 2_000, 8_000);
/// assert_eq!(split, Split { running: 2_000, waiting: 4_000, ..Split::default() });
/// ```
#[derive(Debug, Default)]
pub struct Timeline {
    threads: HashMap<u64, Thread>,
    names: HashMap<u64, Arc<str>>,
    /// The stretches in which a thread ran, for each processor, in order of time.
    cpus: HashMap<u32, Vec<Run>>,
    changes: usize,
    left_out: u64,
    /// The time of the first change of all.
    begin: Option<i64>,
    /// The time of the last change of all.
    end: Option<i64>,
    has_wakeups: bool,
    has_wakers: bool,
    has_uninterruptible: bool,
    /// The threads that ended, in order of time.
    ends: Vec<Life>,
}

#[derive(Debug, Default)]
struct Thread {
    changes: Vec<Change>,
    /// As that of the timeline: before it, no state is known.
    begin: i64,
    /// Whether the thread ran from there to its first change.
    ran_first: bool,
    /// The sums up to every 32nd change.
    sums: Vec<Split>,
    /// The first change that was dropped.
    until: Option<i64>,
}

/// The trace does not tell who has woken.
const NO_WAKER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Change {
    time: i64,
    /// 0: an interrupt.
    waker: u32,
    cpu: u16,
    state: RunState,
    is_wakeup: bool,
}

impl Change {
    /// The processor on which the thread may have run until now.
    fn leaves(&self) -> Option<u32> {
        let is_leaving = !self.is_wakeup && self.cpu != NO_CPU && !self.state.is_running();
        is_leaving.then(|| u32::from(self.cpu))
    }
}

/// Stands for a processor that is unknown.
const NO_CPU: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Run {
    start: i64,
    end: i64,
    tid: u64,
}

impl Timeline {
    /// Adds changes, in any order.
    pub fn add(&mut self, scheduling: &Scheduling<'_>) {
        scheduling.changes.iter().for_each(|change| self.change(change));
    }

    fn change(&mut self, change: &StateChange) {
        if self.changes >= MOST_CHANGES {
            self.left_out += 1;
            if let Some(thread) = self.threads.get_mut(&change.tid) {
                thread.until = Some(thread.until.map_or(change.time, |until| until.min(change.time)));
            }
            return;
        }
        if let Some(name) = &change.name {
            self.names.insert(change.tid, Arc::clone(name));
        }
        self.changes += 1;
        self.has_wakeups |= change.is_wakeup;
        self.has_wakers |= change.is_wakeup && change.waker.is_some();
        self.has_uninterruptible |= change.state == RunState::Uninterruptible;
        self.begin = Some(self.begin.map_or(change.time, |begin| begin.min(change.time)));
        self.end = self.end.max(Some(change.time));
        let thread = self.threads.entry(change.tid).or_default();
        thread.changes.push(Change {
            time: change.time,
            waker: change.waker.and_then(|waker| u32::try_from(waker).ok()).unwrap_or(NO_WAKER),
            cpu: change.cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NO_CPU),
            state: change.state,
            is_wakeup: change.is_wakeup,
        });
    }

    /// Forgets the changes before a time, except for the last one of each thread. Further changes may be
    /// added, and [`finish`](Self::finish) called again.
    pub fn forget_before(&mut self, time: i64) {
        self.threads.values_mut().for_each(|thread| thread.forget_before(time));
        self.threads.retain(|_, thread| {
            !thread.changes.is_empty()
                && thread.changes.last().is_none_or(|last| last.state != RunState::Dead)
        });
        self.changes = self.threads.values().map(|thread| thread.changes.len()).sum();
    }

    /// Sorts the changes. Call it before the first question.
    pub fn finish(&mut self) {
        self.cpus.clear();
        self.ends.clear();
        for (tid, thread) in &mut self.threads {
            (thread.begin, thread.ran_first) = (self.begin.unwrap_or_default(), false);
            thread.finish();
            for (index, change) in thread.changes.iter().enumerate() {
                if change.state == RunState::Dead {
                    let before =
                        thread.changes[..index].iter().rev().take_while(|of| of.state != RunState::Dead);
                    let start = before.last().map_or(change.time, |first| first.time);
                    self.ends.push(Life { end: change.time, tid: *tid, start });
                }
                if change.state.is_running() && change.cpu != NO_CPU {
                    let end = thread.changes.get(index + 1).map_or(i64::MAX, |next| next.time);
                    let run = Run { start: change.time, end, tid: *tid };
                    self.cpus.entry(u32::from(change.cpu)).or_default().push(run);
                }
            }
        }
        self.cpus.values_mut().for_each(|runs| runs.sort_unstable_by_key(|run| run.start));
        self.ends.sort_unstable();
        let mut first = FirstRunners::default();
        for (tid, thread) in &self.threads {
            if let Some(change) = thread.changes.first() {
                first.threads.insert(*tid, (change.time, change.leaves()));
            }
        }
        first.runs.extend(self.cpus.iter().filter_map(|(cpu, runs)| Some((*cpu, runs.first()?.start))));
        for tid in first.threads() {
            self.threads.entry(tid).and_modify(|thread| thread.ran_first = true);
        }
    }

    /// Whether there are wake-ups.
    #[must_use]
    pub fn has_wakeups(&self) -> bool {
        self.has_wakeups
    }

    /// Whether wake-ups say who has woken, which those of FXT do not. Then no thread that the trace knows has
    /// ended a sleep without one.
    #[must_use]
    pub fn has_wakers(&self) -> bool {
        self.has_wakers
    }

    /// Whether there are uninterruptible sleeps. A trace without them may have been recorded by someone who
    /// cannot tell them from others.
    #[must_use]
    pub fn has_uninterruptible(&self) -> bool {
        self.has_uninterruptible
    }

    /// The threads that ended, in order of time.
    ///
    /// ```
    /// use hairline_convert::timeline::{Life, Timeline};
    /// use hairline_convert::{RunState, Scheduling, StateChange};
    ///
    /// let change = |time, state| StateChange::new(time, 8, state);
    /// let mut timeline = Timeline::default();
    /// let changes = [change(1_000, RunState::Running), change(3_000, RunState::Dead)];
    /// timeline.add(&Scheduling { changes: &changes, copy: None, others: 0 });
    /// timeline.finish();
    /// assert_eq!(timeline.ends(), [Life { end: 3_000, tid: 8, start: 1_000 }]);
    /// ```
    #[must_use]
    pub fn ends(&self) -> &[Life] {
        &self.ends
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// The number of changes beyond the limit, which are not part of any answer.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The times of the first and the last change, in nanoseconds. Returns `None` if there are no changes.
    ///
    /// ```
    /// use hairline_convert::timeline::Timeline;
    /// use hairline_convert::{RunState, Scheduling, StateChange};
    ///
    /// let change = |time| StateChange::new(time, 8, RunState::Running);
    /// let mut timeline = Timeline::default();
    /// assert_eq!(timeline.span(), None);
    /// timeline.add(&Scheduling { changes: &[change(3_000), change(1_000)], copy: None, others: 0 });
    /// assert_eq!(timeline.span(), Some((1_000, 3_000)));
    /// ```
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        self.begin.zip(self.end)
    }

    /// The scheduler's name of a thread.
    #[must_use]
    pub fn name(&self, tid: u64) -> Option<&str> {
        self.names.get(&tid).map(|name| &**name)
    }

    /// The ids of all threads with changes, in ascending order.
    #[must_use]
    pub fn threads(&self) -> Vec<u64> {
        let has_changes = self.threads.iter().filter(|(_, thread)| !thread.changes.is_empty());
        let mut all: Vec<u64> = has_changes.map(|(tid, _)| *tid).collect();
        all.sort_unstable();
        all
    }

    /// Whether the trace has changes of this thread.
    #[must_use]
    pub fn has(&self, tid: u64) -> bool {
        self.threads.get(&tid).is_some_and(|thread| !thread.changes.is_empty())
    }

    /// How long a thread was in each state from `start` to `end`.
    #[must_use]
    pub fn split(&self, tid: u64, start: i64, end: i64) -> Split {
        match self.threads.get(&tid) {
            Some(thread) => thread.until(end.max(start)).minus(thread.until(start)),
            None => Split { unknown: end.saturating_sub(start).max(0), ..Split::default() },
        }
    }

    /// The state of a thread at a time.
    #[must_use]
    pub fn state(&self, tid: u64, time: i64) -> Option<RunState> {
        let thread = self.threads.get(&tid)?;
        let index = thread.changes.partition_point(|change| change.time <= time);
        thread.state_before(index, time)
    }

    /// Shows the stretches of a thread from `start` to `end`, cut to that time.
    pub fn stretches(&self, tid: u64, start: i64, end: i64, show: &mut dyn FnMut(&Stretch)) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let mut from = start;
        if from < thread.begin.min(end) {
            from = thread.begin.min(end);
            let unknown = Stretch {
                start,
                end: from,
                state: None,
                cpu: None,
                is_whole: false,
                is_woken: false,
                waker: None,
                is_interrupted: false,
            };
            show(&unknown);
        }
        let mut index = thread.changes.partition_point(|change| change.time <= from);
        while from < end {
            let next = thread.changes.get(index);
            let until = next.map_or(end, |next| next.time.min(end));
            let state = thread.state_before(index, from);
            let next_run = thread.changes[index..].iter().take(4).find(|change| change.state.is_running());
            let own = index.checked_sub(1).map(|index| thread.changes[index]);
            let at = if state == Some(RunState::Running) { own } else { next_run.copied() };
            let wakeup = next.filter(|next| next.is_wakeup);
            show(&Stretch {
                start: from,
                end: until,
                state,
                cpu: at.map(|change| change.cpu).filter(|cpu| *cpu != NO_CPU).map(u32::from),
                is_whole: next.is_some_and(|next| next.time <= end),
                is_woken: wakeup.is_some(),
                waker: wakeup
                    .map(|next| next.waker)
                    .filter(|waker| ![0, NO_WAKER].contains(waker))
                    .map(u64::from),
                is_interrupted: wakeup.is_some_and(|next| next.waker == 0),
            });
            from = until;
            index += 1;
        }
    }

    /// Shows the threads that ran on a processor from `start` to `end`, each with its begin and end in that
    /// time.
    pub fn ran_on(&self, cpu: u32, start: i64, end: i64, show: &mut dyn FnMut(u64, i64, i64)) {
        let Some(runs) = self.cpus.get(&cpu) else { return };
        let first = runs.partition_point(|run| run.start < start).saturating_sub(1);
        for run in runs[first..].iter().take_while(|run| run.start < end) {
            let (from, to) = (run.start.max(start), run.end.min(end));
            if from < to {
                show(run.tid, from, to);
            }
        }
    }
}

impl Thread {
    /// Drops the changes before the one that is in effect at a time.
    fn forget_before(&mut self, time: i64) {
        let first = self.changes.partition_point(|change| change.time <= time).saturating_sub(1);
        self.changes.drain(..first);
        self.until = None;
    }

    /// Sorts the changes, removes those without effect, and adds up.
    fn finish(&mut self) {
        self.sums.clear();
        // A thread may leave its processor and come to another one at the same time.
        self.changes.sort_by_key(|change| change.time);
        let mut state = None;
        self.changes.retain(|change| {
            let has_effect = !change.is_wakeup || state.is_none_or(RunState::is_asleep);
            let is_new = state != Some(change.state) || change.state.is_running();
            if has_effect && is_new {
                state = Some(change.state);
            }
            has_effect && is_new
        });
        if let Some(until) = self.until {
            self.changes.retain(|change| change.time < until);
        }
        self.changes.shrink_to_fit();
        let mut sum = Split::default();
        for index in 0..self.changes.len() {
            if index % BLOCK == 0 {
                self.sums.push(sum);
            }
            if let Some(next) = self.changes.get(index + 1) {
                sum.add(Some(self.changes[index].state), next.time.saturating_sub(self.changes[index].time));
            }
        }
    }

    /// The state before the change with this index, at a time since the change before that.
    fn state_before(&self, index: usize, time: i64) -> Option<RunState> {
        match index.checked_sub(1) {
            Some(_) if index == self.changes.len() && self.until.is_some() => None,
            Some(before) => Some(self.changes[before].state).filter(|state| *state != RunState::Dead),
            None => (self.ran_first && time >= self.begin).then_some(RunState::Running),
        }
    }

    /// The sums from the first change to a time. Negative before it, so that differences are right.
    fn until(&self, time: i64) -> Split {
        let index = self.changes.partition_point(|change| change.time <= time);
        let Some(last) = index.checked_sub(1) else {
            let mut split = Split::default();
            let first = self.changes.first().map_or(self.begin, |first| first.time);
            split.add(self.state_before(0, self.begin), time.max(self.begin).saturating_sub(first));
            split.add(None, time.min(self.begin).saturating_sub(self.begin));
            return split;
        };
        let block = last / BLOCK;
        let mut split = self.sums.get(block).copied().unwrap_or_default();
        for index in block * BLOCK..last {
            let (change, next) = (self.changes[index], self.changes[index + 1]);
            split.add(Some(change.state), next.time.saturating_sub(change.time));
        }
        split.add(self.state_before(index, time), time.saturating_sub(self.changes[last].time));
        split
    }
}

#[cfg(test)]
mod tests;
