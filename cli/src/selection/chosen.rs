//! The part of a trace that is read.

use std::collections::{BTreeSet, HashSet};

use hairline_convert::TrackId;

/// The chosen threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) tracks: HashSet<TrackId>,
    pub(super) tids: HashSet<u64>,
    /// The ids of their processes.
    pub(super) pids: HashSet<u64>,
    /// The thread ids that several processes have.
    pub(super) shared: HashSet<u64>,
}

/// What is read of a trace.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(super) from: i64,
    pub(super) to: i64,
    /// The first and last time of the trace.
    pub(super) begin: i64,
    pub(super) end: i64,
    /// The threads; `None` for all tracks.
    pub(super) threads: Option<Threads>,
    pub(super) unsorted: BTreeSet<TrackId>,
    /// The times of the first and of the last thread state.
    pub(super) states_begin: i64,
    pub(super) states_end: i64,
    /// The threads that ran then.
    pub(super) first_runners: HashSet<u64>,
}

impl Chosen {
    /// The part of the trace's time that is read.
    pub(crate) fn span(&self) -> (i64, i64) {
        (self.from.max(self.begin), self.to.min(self.end))
    }

    pub(super) fn has(&self, time: i64) -> bool {
        (self.from..self.to).contains(&time)
    }
}

impl Threads {
    /// Whether a thread is chosen. A process id is 0 if it is unknown.
    pub(super) fn has(&self, pid: u64, tid: u64) -> bool {
        self.tids.contains(&tid) && (pid == 0 || self.pids.contains(&pid) || self.pids.contains(&0))
    }
}
