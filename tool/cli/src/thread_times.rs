//! How long each thread of a trace ran, waited for a core and slept, and how many samples it has. Of programs
//! without slices a trace has nothing else.

use std::collections::HashMap;

use hairline_convert::timeline::{Split, Timeline};
use hairline_convert::{Item, SampleKind};

use crate::track_names::TrackNames;

/// A thread.
#[derive(Debug)]
pub(crate) struct ThreadTimes {
    pub(crate) tid: u64,
    /// The process id; 0 if unknown.
    pub(crate) pid: u64,
    pub(crate) name: String,
    /// The name of the process; empty if unknown.
    pub(crate) process: String,
    /// The states from the first change of any thread to the last one. `None` if the trace does not have them.
    pub(crate) split: Option<Split>,
    /// The samples on the CPU.
    pub(crate) samples: u64,
}

impl ThreadTimes {
    pub(crate) fn running(&self) -> i64 {
        self.split.map_or(0, |split| split.running)
    }

    pub(crate) fn waiting(&self) -> i64 {
        self.split.map_or(0, |split| split.waiting)
    }

    pub(crate) fn asleep(&self) -> i64 {
        self.split.map_or(0, |split| split.asleep)
    }
}

/// The numbers of samples on the CPU, by process and thread.
#[derive(Debug, Default)]
pub(crate) struct SampleCounts(HashMap<(u64, u64), u64>);

impl SampleCounts {
    /// Counts an item, if it is such a sample.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        if let Item::Sample(sample) = item
            && sample.kind == SampleKind::OnCpu
        {
            self.add((sample.pid, sample.tid));
        }
    }

    pub(crate) fn add(&mut self, thread: (u64, u64)) {
        *self.0.entry(thread).or_default() += 1;
    }
}

/// All threads that have states or samples. Those that ran longest are first.
pub(crate) fn of_all(names: &TrackNames, timeline: &Timeline, samples: &SampleCounts) -> Vec<ThreadTimes> {
    let mut places = HashMap::new();
    let mut all: Vec<ThreadTimes> = Vec::new();
    let (start, end) = timeline.span().unwrap_or_default();
    // The states of threads that share an id are not told apart.
    for tid in timeline.threads().into_iter().filter(|tid| !names.is_shared(*tid)) {
        places.insert(tid, all.len());
        let split = Some(timeline.split(tid, start, end));
        all.push(ThreadTimes { split, ..thread(names, timeline, (0, tid)) });
    }
    for (&(pid, tid), &count) in &samples.0 {
        match places.get(&tid) {
            Some(place) => all[*place].samples += count,
            None => all.push(ThreadTimes { samples: count, ..thread(names, timeline, (pid, tid)) }),
        }
    }
    all.sort_by_key(|thread| (std::cmp::Reverse((thread.running(), thread.samples)), thread.tid, thread.pid));
    all
}

fn thread(names: &TrackNames, timeline: &Timeline, (pid, tid): (u64, u64)) -> ThreadTimes {
    let track = names.thread(tid).filter(|track| pid == 0 || names.pid(*track) == pid);
    let pid = track.map_or(pid, |track| names.pid(track));
    // The first thread of a process has its id.
    let process = names.process(if pid == 0 { tid } else { pid });
    ThreadTimes {
        tid,
        pid,
        name: name(names, timeline, tid),
        process: process.map_or_else(String::new, |process| names.name(process)),
        split: None,
        samples: 0,
    }
}

/// The name of a thread: that of its track, or the scheduler's.
pub(crate) fn name(names: &TrackNames, timeline: &Timeline, tid: u64) -> String {
    match (names.thread(tid), timeline.name(tid)) {
        (Some(track), _) => names.name(track),
        (None, Some(name)) => format!("{name} ({tid})"),
        (None, None) => format!("thread {tid}"),
    }
}
