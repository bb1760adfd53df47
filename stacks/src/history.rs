//! The last samples of a flight recorder, and a window of them as a part of a trace.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hairline_formats::track_event::{PerfSample, SampledBy, SequenceId};
use hairline_perf::Task;

use crate::file::ProgramFile;
use crate::fxt::Records;
use crate::names::Names;
use crate::order::SampledAt;
use crate::packets::Packets;
use crate::process::Place;
use crate::symbols::Known;
use crate::table::Table;

/// A sample that waits for a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) time: u64,
    /// Without its stack.
    pub(crate) sample: PerfSample,
    /// The numbers of the frames.
    pub(crate) stack: Arc<[u32]>,
    pub(crate) at: SampledAt,
}

/// The last samples.
#[derive(Debug)]
pub(crate) struct History {
    samples: VecDeque<Kept>,
    most: usize,
    /// The names of the last threads that have ended, which may have samples here.
    ended: VecDeque<(u32, String)>,
}

/// The most names of threads that have ended: a recorder runs for months.
const MOST_ENDED: usize = 4096;

impl History {
    pub(crate) fn new(most: usize) -> Self {
        Self { samples: VecDeque::new(), most, ended: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, kept: Kept) {
        if self.samples.len() >= self.most {
            self.samples.pop_front();
        }
        self.samples.push_back(kept);
    }

    /// Keeps the name of a thread that has ended.
    pub(crate) fn ended(&mut self, tid: u32, name: String) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((tid, name));
    }

    /// Returns these names of living threads, and those of ended ones.
    pub(crate) fn names(&self, living: &Names) -> Names {
        let mut names = living.clone();
        for (tid, name) in self.ended.iter().rev() {
            if !names.has(*tid) {
                names.set(*tid, name.clone());
            }
        }
        names
    }

    /// Whether the next samples would displace others soon.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.samples.len() >= self.most / 2
    }

    pub(crate) fn clear(&mut self) {
        self.samples.clear();
    }

    pub(crate) fn samples(&self) -> Vec<Kept> {
        self.samples.iter().cloned().collect()
    }
}

/// The samples of a flight recorder at one moment. Nothing of the recording waits while it is written, which
/// takes as long as it takes to read the debug information of functions that were not looked up before.
#[derive(Debug)]
pub struct Window {
    pub(crate) sequence: SequenceId,
    pub(crate) by: SampledBy,
    /// The sequence of samples at events.
    pub(crate) events: SequenceId,
    pub(crate) is_fxt: bool,
    pub(crate) samples: Vec<Kept>,
    pub(crate) files: Vec<Arc<ProgramFile>>,
    /// Without stacks.
    pub(crate) table: Table,
    pub(crate) names: Names,
    pub(crate) unknown: u32,
    pub(crate) known: Arc<Known>,
}

impl Window {
    /// Returns the number of its samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Returns the samples, the functions of their frames and the names of their threads, as a part of a trace.
    /// A thread that `has_name` gets none, and neither does the process of a first thread that has.
    #[must_use]
    pub fn write(mut self, has_name: &dyn Fn(Task) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut packets = Packets::new(self.sequence, self.by);
        let mut events = Packets::new(self.events, SampledBy::Events);
        let mut records = self.is_fxt.then(Records::within);
        let mut frames = BTreeSet::new();
        for kept in &self.samples {
            self.names.sampled(kept.sample.pid, kept.sample.tid, kept.time);
            frames.extend(kept.stack.iter().copied());
            let number = self.table.stacks.number(&kept.stack);
            let sample = PerfSample { callstack: u64::from(number) + 1, ..kept.sample };
            if let Some(records) = records.as_mut().filter(|_| kept.at == SampledAt::CpuTime) {
                let places: Vec<Place> =
                    kept.stack.iter().rev().filter_map(|frame| self.place(*frame)).collect();
                records.sample(&self.files, &self.table, kept.time, &sample, &places);
            }
            let packets = if kept.at == SampledAt::Events { &mut events } else { &mut packets };
            packets.sample(&mut out, &self.files, &self.table, kept.time, &sample);
        }
        self.names.write(&mut out, self.sequence, has_name);
        let frames = frames.iter().filter_map(|frame| self.table.frames.values().get(*frame as usize));
        self.known.write(&mut out, self.sequence, &self.files, &self.table, frames);
        match &mut records {
            Some(records) => records.take(&out),
            None => out,
        }
    }

    fn place(&self, frame: u32) -> Option<Place> {
        let frame = self.table.frames.values().get(frame as usize)?;
        let mapping = self.table.mappings.values().get(frame.mapping as usize)?;
        let is_known = frame.mapping != self.unknown;
        Some(Place {
            mapping: is_known.then_some(frame.mapping),
            rel_pc: frame.rel_pc,
            address: frame.rel_pc.wrapping_add(mapping.bias),
        })
    }
}
