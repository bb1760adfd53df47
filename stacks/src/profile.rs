//! The samples of all processes.

use std::collections::HashMap;

use hairline_formats::track_event::{CpuMode, PerfSample, SequenceId, UnwindError};
use hairline_perf::{Record, Stamp, Task};

use crate::file::ProgramFile;
use crate::fxt::Records;
use crate::machine::Cache;
use crate::names::Names;
use crate::order::{Happening, Order, SampledAt};
use crate::packets::Packets;
use crate::present;
use crate::process::{Place, Process, Sampled};
use crate::symbols;
use crate::table::{Mapping, Table};

/// The files that are kept open for their symbols. Later ones are opened again by their path.
const MOST_OPEN: usize = 128;

/// The path of code that is in no file.
const UNKNOWN: &str = "[unknown]";

/// What a profile has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples.
    pub samples: u64,
    /// Samples of threads that leave their processors, which do not count above.
    pub switches: u64,
    /// Samples whose stack does not reach its root.
    pub cut: u64,
    /// Records that the kernel dropped because a ring was full.
    pub lost: u64,
    /// Samples of processes whose mappings are not known: they have one frame each.
    pub strange: u64,
}

/// Samples that become a part of a trace.
#[derive(Debug)]
pub struct Profile {
    order: Order,
    processes: HashMap<u32, Process>,
    /// The numbers of files by their paths.
    by_path: HashMap<String, u32>,
    files: Vec<ProgramFile>,
    table: Table,
    names: Names,
    unknown: u32,
    cache: Box<CacheOf>,
    places: Vec<Place>,
    packets: Packets,
    /// Those of threads that leave their processors.
    switches: Packets,
    /// In FXT.
    records: Option<Records>,
    /// Dropped records of each processor, for its next sample.
    lost: HashMap<u32, u64>,
    out: Vec<u8>,
    totals: Totals,
}

/// The unwinder's cache, without its content in [`Debug`].
struct CacheOf(Cache);

impl std::fmt::Debug for CacheOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl Profile {
    /// Creates a profile without samples, for packets of this sequence. Samples at switches are on the next.
    #[must_use]
    pub fn packets(sequence: SequenceId) -> Self {
        Self::new(sequence, None)
    }

    /// Creates a profile without samples, for FXT records.
    #[must_use]
    pub fn fxt() -> Self {
        Self::new(SequenceId(1), Some(Records::default()))
    }

    /// Creates a profile whose FXT records continue a stream: without its start.
    #[must_use]
    pub fn fxt_within() -> Self {
        Self::new(SequenceId(1), Some(Records::within()))
    }

    /// Adds the mappings and the thread names that a running process has.
    pub fn add_present(&mut self, pid: u32) {
        for present in present::mappings(pid) {
            self.map(
                pid,
                present.start,
                present.end.saturating_sub(present.start),
                present.offset,
                &present.path,
            );
        }
        for (tid, name) in present::names(pid) {
            self.names.set(tid, name);
        }
    }

    fn new(sequence: SequenceId, records: Option<Records>) -> Self {
        let mut profile = Self {
            order: Order::default(),
            processes: HashMap::new(),
            by_path: HashMap::new(),
            files: Vec::new(),
            table: Table::default(),
            names: Names::default(),
            unknown: 0,
            cache: Box::new(CacheOf(Cache::new())),
            places: Vec::new(),
            packets: Packets::new(sequence, SampledAt::CpuTime),
            switches: Packets::new(SequenceId(sequence.0.wrapping_add(1)), SampledAt::Switches),
            records,
            lost: HashMap::new(),
            out: Vec::new(),
            totals: Totals::default(),
        };
        let file = profile.file(0, UNKNOWN);
        let all = Mapping { file, start: 0, end: u64::MAX, offset: 0, bias: 0 };
        profile.unknown = profile.table.mappings.number(&all);
        profile
    }

    /// Adds a record of a ring, whose samples are taken at these moments. Records of one ring come in their
    /// order.
    pub fn add(&mut self, record: &Record<'_>, stamp: Stamp, at: SampledAt) {
        if let Some(happening) = Happening::of(record, at) {
            self.order.add(stamp, happening);
        }
    }

    /// Takes what has been added, after all rings have been read once, beginning at `start` (ns on
    /// `CLOCK_BOOTTIME`). The latest records wait for the next call.
    pub fn settle(&mut self, start: u64) {
        for (stamp, happening) in self.order.settled(start) {
            self.take(stamp, happening);
        }
    }

    /// Takes all that has been added, and writes the functions of all frames and the names of threads and
    /// processes. Nothing may follow. A thread that `has_name` gets none, and neither does the process of a
    /// first thread that has: they are in the trace with better ones.
    pub fn finish(&mut self, has_name: &dyn Fn(Task) -> bool) {
        for (stamp, happening) in self.order.rest() {
            self.take(stamp, happening);
        }
        self.names.write(&mut self.out, self.packets.sequence(), has_name);
        symbols::write(&mut self.out, self.packets.sequence(), &self.files, &self.table);
    }

    /// Returns the part of the trace that has been written since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        let packets = std::mem::take(&mut self.out);
        match &mut self.records {
            Some(records) => records.take(&packets),
            None => packets,
        }
    }

    /// Returns the numbers of samples and losses.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn take(&mut self, stamp: Stamp, happening: Happening) {
        match happening {
            Happening::Map { pid, start, size, offset, path } => {
                let path = String::from_utf8_lossy(&path);
                self.map(pid, start, size, offset, &path);
            }
            Happening::Fork { parent, child } => {
                self.names.inherit(parent.tid, child.tid);
                if parent.pid != child.pid {
                    let process = self.processes.get(&parent.pid).cloned().unwrap_or_default();
                    self.processes.insert(child.pid, process);
                }
            }
            Happening::Comm { task, is_exec, name } => {
                self.names.set(task.tid, String::from_utf8_lossy(&name).into_owned());
                if is_exec {
                    self.processes.insert(task.pid, Process::default());
                }
            }
            // A thread that ends has no registers at its last switch.
            Happening::Sample { registers, at: SampledAt::Switches, .. } if registers.is_empty() => {}
            Happening::Sample { address, registers, stack, at } => {
                self.sample(stamp, &Sampled { address, registers: &registers, stack: &stack }, at);
            }
            Happening::Lost { records } => {
                *self.lost.entry(stamp.cpu).or_default() += records;
                self.totals.lost += records;
            }
        }
    }

    fn map(&mut self, pid: u32, start: u64, size: u64, offset: u64, path: &str) {
        let Some(end) = start.checked_add(size) else { return };
        let number = self.file(pid, path);
        let file = &self.files[number as usize];
        let bias = file.bias(start, offset).unwrap_or(0);
        let mapping = self.table.mappings.number(&Mapping { file: number, start, end, offset, bias });
        self.processes.entry(pid).or_default().map(start, end, offset, mapping, file);
    }

    /// Returns the number of the file with this path.
    fn file(&mut self, pid: u32, path: &str) -> u32 {
        if let Some(number) = self.by_path.get(path) {
            return *number;
        }
        let mut file = ProgramFile::open(pid, path);
        if self.files.len() >= MOST_OPEN {
            file.close();
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(file);
        self.by_path.insert(path.to_owned(), number);
        number
    }

    fn sample(&mut self, stamp: Stamp, sampled: &Sampled<'_>, at: SampledAt) {
        self.places.clear();
        let process = self.processes.entry(stamp.pid).or_default();
        let error = process.unwind(sampled, &mut self.cache.0, &mut self.places);
        let is_cut = !matches!(error, UnwindError::None);
        self.names.sampled(stamp.pid, stamp.tid, stamp.time);
        let is_switch = at == SampledAt::Switches;
        *(if is_switch { &mut self.totals.switches } else { &mut self.totals.samples }) += 1;
        self.totals.cut += u64::from(is_cut);
        self.totals.strange += u64::from(self.places.first().is_some_and(|place| place.mapping.is_none()));
        let stack = self.table.stack(&self.places, self.unknown);
        let sample = PerfSample {
            cpu: Some(stamp.cpu),
            pid: stamp.pid,
            tid: stamp.tid,
            callstack: u64::from(stack) + 1,
            mode: CpuMode::User,
            unwind_error: if is_cut { error } else { UnwindError::Unknown },
            lost: self.lost.remove(&stamp.cpu).unwrap_or(0),
        };
        // A backtrace says that its thread runs.
        if let Some(records) = self.records.as_mut().filter(|_| !is_switch) {
            records.sample(&self.files, &self.table, stamp.time, &sample, &self.places);
        }
        let packets = if is_switch { &mut self.switches } else { &mut self.packets };
        packets.sample(&mut self.out, &self.files, &self.table, stamp.time, &sample);
    }
}
