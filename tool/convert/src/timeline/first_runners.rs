//! The threads that ran when the states of a trace begin.

use std::collections::HashMap;

use crate::Scheduling;

/// Which threads ran when the states begin.
///
/// The first change of such a thread is that it leaves its processor. No thread came there before, and of
/// several threads only the last one can have been there: the others are new, and the one that ran has
/// started them.
#[derive(Debug, Default)]
pub struct FirstRunners {
    /// The time of the first change of each thread, and the processor that it leaves then.
    pub(super) threads: HashMap<u64, (i64, Option<u32>)>,
    /// The first time at which a thread came to a processor.
    pub(super) runs: HashMap<u32, i64>,
}

impl FirstRunners {
    /// Adds changes, in any order.
    pub fn add(&mut self, scheduling: &Scheduling<'_>) {
        for change in scheduling.changes {
            let is_leaving = !change.is_wakeup && !change.state.is_running();
            let first = (change.time, change.cpu.filter(|_| is_leaving));
            let known = self.threads.entry(change.tid).or_insert(first);
            if first.0 < known.0 {
                *known = first;
            }
            if let Some(cpu) = change.cpu.filter(|_| change.state.is_running()) {
                let run = self.runs.entry(cpu).or_insert(change.time);
                *run = (*run).min(change.time);
            }
        }
    }

    /// The time of the first change of all.
    #[must_use]
    pub fn begin(&self) -> Option<i64> {
        self.threads.values().map(|(time, _)| *time).min()
    }

    /// The ids of the threads that ran.
    #[must_use]
    pub fn threads(&self) -> Vec<u64> {
        let mut last_there: HashMap<u32, (i64, u64)> = HashMap::new();
        for (tid, (time, leaves)) in &self.threads {
            let Some(cpu) = leaves else { continue };
            if self.runs.get(cpu).is_none_or(|run| run >= time) {
                let last = last_there.entry(*cpu).or_insert((*time, *tid));
                *last = (*last).max((*time, *tid));
            }
        }
        last_there.into_values().map(|(_, tid)| tid).collect()
    }
}
