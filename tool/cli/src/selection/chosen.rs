//! The part of a trace that is read.

use std::collections::{BTreeSet, HashSet};

use hairline_convert::{ByTrack, Sample, Track, TrackId, TrackKind};

/// The chosen threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    pub(super) tracks: HashSet<TrackId>,
    pub(super) tids: HashSet<u64>,
    /// The ids of their processes.
    pub(super) pids: HashSet<u64>,
    /// The thread ids that several processes have.
    pub(super) shared: HashSet<u64>,
}

/// What is read of a trace.
#[derive(Clone, Debug)]
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

    /// The same of a trace whose times are moved.
    pub(crate) fn moved(&self, by: i64) -> Self {
        let is_end = |time: i64| time == i64::MIN || time == i64::MAX;
        let move_range = |time: i64| if is_end(time) { time } else { time.saturating_add(by) };
        Self { from: move_range(self.from), to: move_range(self.to), ..self.clone() }
    }

    /// Whether the range has no begin and no end.
    pub(super) fn has_all_times(&self) -> bool {
        (self.from, self.to) == (i64::MIN, i64::MAX)
    }

    pub(super) fn has(&self, time: i64) -> bool {
        (self.from..self.to).contains(&time)
    }

    /// Whether the states of a thread are read. The scheduler does not tell threads of one id apart.
    pub(super) fn has_states(&self, tid: u64) -> bool {
        self.threads.as_ref().is_none_or(|all| all.tids.contains(&tid) && !all.shared.contains(&tid))
    }

    pub(super) fn has_sample(&self, sample: &Sample<'_>) -> bool {
        let is_chosen = self.threads.as_ref().is_none_or(|all| all.has(sample.pid, sample.tid));
        is_chosen && self.has(sample.time)
    }
}

impl Threads {
    /// Whether a thread is chosen. A process id is 0 if it is unknown.
    fn has(&self, pid: u64, tid: u64) -> bool {
        self.tids.contains(&tid) && (pid == 0 || self.pids.contains(&pid) || self.pids.contains(&0))
    }
}

/// Which tracks of a trace are chosen threads, or below one.
#[derive(Debug, Default)]
pub(super) struct Tracks(ByTrack<bool>);

impl Tracks {
    /// Notes a track. Returns whether its description is needed.
    pub(super) fn see(&mut self, track: &Track, chosen: &Chosen) -> bool {
        let Some(threads) = &chosen.threads else { return true };
        let is_below = track.parent.is_some_and(|above| self.has(above, chosen));
        let has = is_below || threads.tracks.contains(&track.id);
        *self.0.at(track.id) = has;
        has || matches!(track.kind, TrackKind::Process { pid, .. } if threads.pids.contains(&pid))
    }

    pub(super) fn has(&self, track: TrackId, chosen: &Chosen) -> bool {
        chosen.threads.is_none() || self.0.get(track) == Some(&true)
    }
}
