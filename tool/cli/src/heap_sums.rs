//! The heap profile of a trace: what each call stack has allocated, and what of it is live.

use std::collections::HashMap;

use hairline_convert::HeapSums;
use hairline_convert::sampled::{Samples, StackId};

/// The limit for call stacks with sums.
const MOST_STACKS: usize = 1 << 20;

/// The sums of a call stack: bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) stack: Option<StackId>,
    pub(crate) allocated: u64,
    freed: u64,
    /// What was live at the first dump of the process.
    pub(crate) first: u64,
    /// What was live at the dump in which most was.
    pub(crate) most: u64,
}

impl Sums {
    /// What is live at the last dump.
    pub(crate) fn live(&self) -> u64 {
        self.allocated.saturating_sub(self.freed)
    }
}

/// Collects a heap profile. Each dump has the new sums of the call stacks that have changed.
#[derive(Debug, Default)]
pub(crate) struct HeapProfile {
    /// By process, sequence and call stack.
    sums: HashMap<(u64, (u64, u64)), Sums>,
    /// The times of the first dump and the last one, by process.
    dumps: HashMap<u64, (i64, i64)>,
    /// The time of the current dump.
    time: Option<i64>,
    /// The live bytes of all dumps so far at the last one, and at the peak.
    live: u64,
    most: u64,
    /// Call stacks for which there was no room.
    pub(crate) left_out: u64,
}

impl HeapProfile {
    /// Adds the sums of a call stack, which becomes one of the samples.
    pub(crate) fn add(&mut self, new: &HeapSums<'_>, samples: &mut Samples) {
        if self.time.replace(new.time).is_some_and(|time| time != new.time) {
            self.end_dump();
        }
        let (first, last) = self.dumps.entry(new.pid).or_insert((new.time, new.time));
        *last = new.time;
        let is_first = *first == new.time;
        let key = (new.pid, new.key);
        if self.sums.len() >= MOST_STACKS && !self.sums.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let sums = self.sums.entry(key).or_default();
        if sums.stack.is_none() {
            sums.stack = samples.stack(new.stack);
            self.left_out += u64::from(sums.stack.is_none());
        }
        let before = sums.live();
        (sums.allocated, sums.freed) = (new.allocated, new.freed);
        if is_first {
            sums.first = sums.live();
        }
        self.live = self.live.saturating_sub(before).saturating_add(sums.live());
    }

    /// Notes the sums at a new peak. Call it after the last sums too.
    pub(crate) fn end_dump(&mut self) {
        if self.live > self.most {
            self.most = self.live;
            self.sums.values_mut().for_each(|sums| sums.most = sums.live());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.time.is_none()
    }

    /// The times of the first dump and of the last one.
    pub(crate) fn dumps(&self) -> Option<(i64, i64)> {
        let first = self.dumps.values().map(|(first, _)| *first).min()?;
        Some((first, self.dumps.values().map(|(_, last)| *last).max()?))
    }

    /// The sums of all call stacks, each with its process.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (u64, &Sums)> {
        self.sums.iter().map(|((pid, _), sums)| (*pid, sums))
    }
}
