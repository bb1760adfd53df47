//! What is found out about the slices of one name.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::Key;
use hairline_convert::timeline::Split;

use crate::explain::survey::Chosen;
use crate::samples::StackId;

/// The limit for different inner names, threads, stacks and the like.
pub(super) const MOST: usize = 4096;

/// The slices of one name.
pub(super) struct Target {
    pub(super) chosen: Chosen,
    /// All of them, the typical ones, and the slowest hundredth.
    pub(super) all: Band,
    pub(super) typical: Band,
    pub(super) slow: Band,
    /// Some of the slowest and of the typical ones, the longest first.
    pub(super) examples: Vec<Example>,
    /// Sleeps inside the slowest ones, the longest first.
    pub(super) sleeps: Vec<Sleep>,
    /// Slices of other threads, by what they had to do with those.
    pub(super) others: HashMap<(Key, Key, TrackId), Other>,
}

/// A range of durations.
#[derive(Default)]
pub(super) struct Band {
    pub(super) count: u64,
    pub(super) duration: i64,
    pub(super) split: Split,
    /// Inner slices by name, and the slices' own time under their own name.
    pub(super) inner: HashMap<Key, Inner>,
    /// The threads that had the processor for which the slices waited, and how long.
    pub(super) holders: HashMap<u64, i64>,
    /// The threads that woke them, with the time slept.
    pub(super) wakers: HashMap<u64, i64>,
    /// Samples on the CPU.
    pub(super) on_cpu: HashMap<StackId, i64>,
    /// Stacks in which they slept, with the time.
    pub(super) off_cpu: HashMap<StackId, i64>,
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

/// A slice, to compare others with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Example {
    pub(super) track: TrackId,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) is_slow: bool,
}

/// A sleep inside a slow slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub(super) track: TrackId,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Slices of one name on another thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Other {
    /// The time that they overlap slow examples, and typical ones.
    pub(super) overlap_slow: i64,
    pub(super) overlap_typical: i64,
    /// The sleeps that ended when such a slice did: their number and time.
    pub(super) ended: u64,
    pub(super) ended_time: i64,
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
        let Split { running, waiting, asleep, uninterruptible, unknown } = self.split;
        Split {
            running: self.per_slice(running),
            waiting: self.per_slice(waiting),
            asleep: self.per_slice(asleep),
            uninterruptible: self.per_slice(uninterruptible),
            unknown: self.per_slice(unknown),
        }
    }
}

/// Adds to an entry, unless there are too many.
pub(super) fn add<K: Eq + std::hash::Hash>(sums: &mut HashMap<K, i64>, key: K, value: i64) {
    if sums.len() < MOST || sums.contains_key(&key) {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(value);
    }
}

impl Inner {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.plus(other.own);
    }
}
