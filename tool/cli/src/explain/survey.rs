//! The first reading: which names there are, what the scheduler did, and the stack samples.

use std::collections::{HashMap, HashSet};
use std::io;

use hairline_convert::slices::{Defect, Frame, Key, Keys, Slice, SliceSink, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{Item, TrackId};

use crate::explain::cpu_times::CpuTimes;
use crate::explain::functions::{At, Folders, Named};
use crate::explain::locks::Locks;
use crate::explain::memory::Memory;
use crate::explain::neighbours::Neighbours;
use crate::explain::own_polls::{OwnPolls, Poll};
use crate::explain::refused::Refused;
use crate::explain::tasks::{Tasks, is_no_work};
use crate::folded::without_symbols;
use crate::pattern::Pattern;
use crate::stats::{Row, Rows};
use crate::text::grouped_count;
use crate::thread_times;
use crate::trace::ItemVisitor;
use crate::track_names::TrackNames;
use hairline_convert::sampled::{Samples, StackId};

/// What the whole trace has.
pub(super) struct Survey {
    slices: Slices,
    found: Found,
    pub(super) track_names: TrackNames,
    pub(super) timeline: Timeline,
    pub(super) samples: Samples,
    /// The folders with the sources of libraries.
    folders: Folders,
    pub(super) locks: Locks,
    pub(super) tasks: Tasks,
    pub(super) cpu_times: CpuTimes,
    pub(super) refused: Refused,
    pub(super) neighbours: Neighbours,
    pub(super) memory: Memory,
}

/// The kinds of slices.
#[derive(Default)]
struct Found {
    numbers: HashMap<SliceName, u32>,
    names: Vec<SliceName>,
    rows: Rows,
    is_thread: Vec<bool>,
    is_late: bool,
    /// The slices that are not explained: of names beyond the limit, and without an end.
    unnamed: u64,
    open: u64,
    /// The places at which events are missing.
    losses: u64,
    own_polls: OwnPolls,
}

/// The slices that are explained together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SliceName {
    pub(super) category: Key,
    pub(super) name: Key,
    /// Whether they are on threads.
    pub(super) is_on_thread: bool,
}

/// A kind of slices that is to be explained.
pub(super) struct Chosen {
    pub(super) name: SliceName,
    pub(super) count: u64,
    pub(super) total: i64,
    /// The durations that 50, 90 and 99 % do not exceed, and the longest.
    pub(super) quantiles: [i64; 4],
    /// The range of the typical durations: the fifth in the middle.
    pub(super) typical: (i64, i64),
    /// The shortest duration of the slowest hundredth.
    pub(super) slow: i64,
    /// Whether the polls of an async task: intervals on other tracks have the same name.
    pub(super) is_poll: bool,
}

impl Chosen {
    /// What each of them is.
    pub(super) fn kind(&self) -> &'static str {
        match (self.name.is_on_thread, self.is_poll) {
            (false, _) => "interval",
            (true, true) => "poll",
            (true, false) => "slice",
        }
    }
}

/// The fraction up to and with the first of the slowest hundredth, which is one slice at least.
#[allow(clippy::cast_precision_loss)] // a rank, found again by rounding up
fn slowest(count: u64) -> f64 {
    let rank = count - count.div_ceil(100) + 1;
    (rank as f64 - 0.5) / count.max(1) as f64
}

/// The limit for kinds of slices. Further ones are counted, but not explained.
const MOST_NAMES: usize = 1 << 14;

impl Survey {
    pub(super) fn new(slices: Slices) -> Self {
        Self {
            slices,
            found: Found::default(),
            track_names: TrackNames::default(),
            timeline: Timeline::default(),
            samples: Samples::default(),
            folders: Folders::default(),
            locks: Locks::default(),
            tasks: Tasks::default(),
            cpu_times: CpuTimes::default(),
            refused: Refused::default(),
            neighbours: Neighbours::default(),
            memory: Memory::default(),
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.slices.finish(&mut self.found)?;
        let mut own_polls = std::mem::take(&mut self.found.own_polls);
        own_polls.finish(&self.track_names, |category, name| self.has_polls(category, name));
        self.found.own_polls = own_polls;
        self.timeline.finish();
        self.samples.finish();
        self.locks.finish(&self.track_names, self.found.losses > 0);
        self.folders = Folders::of(&self.samples);
        self.cpu_times.finish();
        self.memory.finish();
        Ok(())
    }

    /// Whether events came too late to be put in order.
    pub(super) fn is_late(&self) -> bool {
        self.found.is_late
    }

    /// Whether the trace says that events are missing.
    pub(super) fn has_losses(&self) -> bool {
        self.found.losses > 0
    }

    /// The names. Each reading of the trace gives the same ones the same keys.
    pub(super) fn keys(&self) -> &Keys {
        self.slices.keys()
    }

    /// Whether slices of a name on threads are the polls of a future: intervals have the same name.
    pub(super) fn is_poll(&self, category: Key, name: Key) -> bool {
        self.found.numbers.contains_key(&SliceName { category, name, is_on_thread: false })
    }

    /// The same, or the polls of tasks, whose lives say so.
    pub(super) fn has_polls(&self, category: Key, name: Key) -> bool {
        self.is_poll(category, name) || self.tasks.are_polls(category, name)
    }

    /// The polls of a life that is over, in order. None if they are not known.
    pub(super) fn polls_of(&self, name: (Key, Key), life: (TrackId, i64, i64), is_dropped: bool) -> &[Poll] {
        self.found.own_polls.of(&self.track_names, name, life, is_dropped)
    }

    /// The kinds of slices that a pattern means, or that took most: the longest first. Last are the polls of
    /// the chosen intervals: who asks for an interval asks for that, but its polls may explain it.
    pub(super) fn choose(&self, pattern: Option<&Pattern>, most: usize) -> Vec<Chosen> {
        let of = |row: &Row| Some(self.found.names[row.what? as usize]);
        let is_meant = |name: &SliceName| {
            let (category, text) = (self.keys().text(name.category), self.keys().text(name.name));
            match pattern {
                Some(pattern) => pattern.matches(category, text),
                None => !is_no_work((category, text), name.is_on_thread),
            }
        };
        let is_poll = |name: &SliceName| name.is_on_thread && self.is_poll(name.category, name.name);
        let meant = self.found.rows.iter().filter_map(|row| Some((of(row)?, row)));
        let mut rows: Vec<_> = meant.filter(|(name, _)| is_meant(name)).collect();
        rows.sort_by_key(|(name, row)| {
            (std::cmp::Reverse(row.total), name.name.0, name.category.0, name.is_on_thread)
        });
        let (polls, mut rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(name, _)| is_poll(name));
        rows.truncate(most);
        let intervals: HashSet<_> = rows.iter().map(|(name, _)| *name).collect();
        let is_of_chosen = |name: &SliceName| intervals.contains(&SliceName { is_on_thread: false, ..*name });
        rows.extend(polls.into_iter().filter(|(name, _)| is_of_chosen(name)));
        let chosen = |(name, row): (SliceName, &Row)| {
            let [p40, p50, p60, p90, p99, slow] =
                row.quantiles([0.4, 0.5, 0.6, 0.9, 0.99, slowest(row.count)]);
            // Quantiles of many slices are within 0.8 %.
            let typical = (p40 - p40 / 64, p60.saturating_add(p60 / 64));
            let (quantiles, slow) = ([p50, p90, p99, row.max], slow - slow / 128);
            Chosen {
                name,
                count: row.count,
                total: row.total,
                quantiles,
                typical,
                slow,
                is_poll: is_poll(&name),
            }
        };
        rows.into_iter().map(chosen).collect()
    }

    /// What is not part of the result.
    pub(super) fn left_out(&self) -> Vec<String> {
        let of = |count, one: &str, what: &str| {
            (count > 0).then(|| format!("{} {what}", grouped_count(count, one)))
        };
        let Found { unnamed, open, losses, .. } = self.found;
        let (changes, samples) = (self.timeline.left_out(), self.samples.left_out);
        let shared = if self.timeline.is_empty() { 0 } else { self.track_names.shared() };
        let notes = [
            of(losses, "place", "with missing events: times and states around them may be wrong"),
            of(open, "slice", "without an end left out"),
            of(unnamed, "slice", "of names beyond the first 16,384 left out"),
            of(changes, "change", "of thread states beyond the first 4,194,304 left out"),
            of(samples, "stack sample", "beyond the limit left out"),
            of(self.locks.left_out, "wait", "for locks beyond 65,534 different ones have no holder here"),
            of(self.tasks.left_out, "task", "beyond the first 1,048,576 has no name here"),
            of(self.cpu_times.left_out, "reading", "of thread CPU times beyond the first 4,194,304 left out"),
            of(self.memory.left_out, "large allocation", "beyond the first 4,194,304 left out"),
            of(self.memory.profile.left_out, "call stack", "of the heap profile beyond the limit left out"),
            of(shared, "thread id", "of several processes, whose states are left out"),
        ];
        let refused = self.refused.parts.iter().map(|why| format!("Not all is recorded: {why}."));
        notes.into_iter().flatten().chain(refused).chain(without_symbols(&self.samples)).collect()
    }

    /// The function that stands for a stack.
    pub(super) fn function(&self, stack: StackId, at: At) -> Named {
        Named::of((&self.samples, &self.folders), stack, at)
    }

    /// The name of a thread: that of its track, or the scheduler's.
    pub(super) fn thread_name(&self, tid: u64) -> String {
        thread_times::name(&self.track_names, &self.timeline, tid)
    }
}

impl ItemVisitor for Survey {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => {
                self.track_names.set(track);
                let index = track.id.0 as usize;
                if self.found.is_thread.len() <= index {
                    self.found.is_thread.resize(index + 1, false);
                }
                self.found.is_thread[index] = self.track_names.tid(track.id).is_some();
            }
            Item::Scheduling(scheduling) => self.timeline.add(scheduling),
            Item::Loss(_) => self.found.losses += 1,
            Item::Event(event) => {
                self.locks.add(event);
                self.locks.release(event);
                self.refused.add(event);
                self.neighbours.add(event);
                self.memory.event(event);
                self.tasks.add(event, &self.track_names, self.slices.keys_mut());
                if self.track_names.tid(event.track).is_some() {
                    self.found.own_polls.event(event);
                }
            }
            Item::Heap(sums) => self.memory.profile.add(sums, &mut self.samples),
            _ => self.samples.item(item),
        }
        self.cpu_times.item(item);
        self.slices.item(item, &mut self.found);
    }
}

impl SliceSink for Found {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        let is_on_thread = self.is_thread.get(slice.track.0 as usize) == Some(&true);
        if is_on_thread {
            self.own_polls.slice(slice);
        }
        let name = SliceName { category: slice.category, name: slice.name, is_on_thread };
        let next = self.names.len();
        let number = match self.numbers.get(&name) {
            Some(number) => *number,
            None if next >= MOST_NAMES => {
                self.unnamed += 1;
                return;
            }
            None => {
                self.names.push(name);
                self.numbers.insert(name, next as u32);
                next as u32
            }
        };
        self.rows.add(number, std::slice::from_ref(slice));
    }

    fn open_slice(&mut self, _: &Slice, _: &mut [Frame]) {
        self.open += 1;
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= matches!(what, Defect::Late | Defect::AfterInner);
    }
}
