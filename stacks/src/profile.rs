//! The samples of all processes.

mod heap;

use std::sync::Arc;

use hairline_formats::track_event::{
    CpuMode, PerfSample, SampledBy, SequenceId, UnwindError, hidden_packets,
};
use hairline_perf::{Map, Record, Stamp, Task, Words};

use crate::file::{Inode, ProgramFile};
use crate::fxt::Records;
use crate::machine::{Cache, instruction};
use crate::names::Names;
use crate::order::{Happening, Order, SampledAt};
use crate::packets::{Packets, pieces};
use crate::present;
use crate::present::Present;
use crate::process::{Place, Process, Sampled};
use crate::symbols::Known;
use crate::table::{Mapping, Table, UNKNOWN};
use crate::tape::{Form, Keeps, Tape};
use crate::window::Functions;

pub use heap::{
    Allocated, HeapMoment, HeapProfile, HeapProgress, HeapTotals, HeapWindow, HeapWriter, KeptAt,
};

/// The files that are kept open for their symbols. Later ones are opened again by their path.
const MOST_OPEN: usize = 128;

/// The most bytes that are kept of all files for unwinding: some twenty times what a browser has. The other
/// files are unwound by frame pointers.
const MOST_KEPT: u64 = 1 << 30;

/// The sequence of samples at events in FXT, beside those of other samples and of the heap profile.
const FXT_EVENTS: SequenceId = SequenceId(4);

/// What a profile has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples.
    pub samples: u64,
    /// Samples of threads that leave their processors, which do not count above.
    pub switches: u64,
    /// Samples at events, which do not count above.
    pub events: u64,
    /// Samples whose stack does not reach its root.
    pub cut: u64,
    /// Those of them that have more frames than are kept.
    pub too_deep: u64,
    /// Records that the kernel dropped because a ring was full: samples, and what else the ring has.
    pub lost: u64,
    /// Samples of threads that leave their processors, which the kernel dropped for the same reason.
    pub switches_lost: u64,
    /// Samples of processes whose mappings are not known: they have one frame each.
    pub strange: u64,
}

/// Samples that become a part of a trace.
#[derive(Debug)]
pub struct Profile {
    order: Order,
    processes: Map<u32, Process>,
    /// The numbers of the latest files by their paths.
    by_path: Map<(String, Inode), u32>,
    /// The number of bytes that are kept of files for unwinding.
    kept: u64,
    files: Vec<Arc<ProgramFile>>,
    table: Table,
    names: Names,
    unknown: u32,
    cache: Box<CacheOf>,
    places: Vec<Place>,
    /// The words of the last stack that its unwinding has read.
    words: Vec<(usize, u64)>,
    packets: Packets,
    /// Those of threads that leave their processors.
    switches: Packets,
    /// Those of events.
    events: Packets,
    /// In FXT.
    records: Option<Records>,
    tape: Option<Tape>,
    /// Whether it closes files, and forgets threads that have ended: it may go on for months.
    is_long: bool,
    known: Arc<Known>,
    /// Dropped records of each processor, for its next sample.
    lost: Map<u32, u64>,
    out: Vec<u8>,
    /// Packets that Perfetto does not read: its UI would add up samples of threads that run and that leave
    /// their processors.
    hidden: Vec<u8>,
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

    /// Makes this a profile of the process that has it: it looks functions up at less cost, and finds no lines
    /// of libraries whose debug information is compressed.
    #[must_use]
    pub fn in_program(self) -> Self {
        Self { known: Arc::new(Known::in_program()), ..self }
    }

    /// Makes this a profile that writes no samples into the trace: they are in entries, which the caller
    /// keeps for a [`Window`](crate::Window).
    #[must_use]
    pub fn on_tape(self) -> Self {
        self.for_months().with_tape(Keeps::Samples)
    }

    /// Makes this a profile that also writes entries, by which the functions of its frames and the names of
    /// its threads are found if it does not [finish](Self::finish).
    #[must_use]
    pub fn beside_tape(self) -> Self {
        self.with_tape(Keeps::Frames)
    }

    /// Closes files once they are read, since threads with other open files look functions up, and forgets
    /// threads that have ended.
    fn for_months(self) -> Self {
        Self { is_long: true, ..self }
    }

    fn with_tape(mut self, keeps: Keeps) -> Self {
        self.tape = Some(Tape::new(keeps));
        self.repeat();
        self
    }

    /// Calls `visit` with each entry of the tape since the last call.
    pub fn take_entries(&mut self, visit: impl FnMut(&[u8])) {
        if let Some(tape) = &mut self.tape {
            tape.take(visit);
        }
    }

    /// Notes on the tape which threads of the samples since the last call have a better name in the trace.
    pub fn note_named(&mut self, has_name: &dyn Fn(u32) -> bool) {
        if let Some(tape) = &mut self.tape {
            tape.note_named(has_name);
        }
    }

    /// Writes again what samples on the tape refer to: the entries so far are needed by later ones no more.
    pub fn repeat(&mut self) {
        let form = Form {
            sequence: self.packets.sequence(),
            by: self.packets.by(),
            events: self.events.sequence(),
            is_fxt: self.records.is_some(),
        };
        if let Some(tape) = &mut self.tape {
            tape.repeat(&form, &self.files, &self.table);
        }
    }

    /// Returns the functions that were looked up so far, for windows of this profile's entries.
    #[must_use]
    pub fn functions(&self) -> Functions {
        Functions(Arc::clone(&self.known))
    }

    /// Whether the samples are on the tape, and not in the trace.
    fn keeps_samples(&self) -> bool {
        self.tape.as_ref().is_some_and(|tape| tape.keeps() == Keeps::Samples)
    }

    /// Returns whether the thread of this sample has a name here: else [`add_present`](Self::add_present) may
    /// help.
    #[must_use]
    pub fn knows_thread(&self, record: &Record<'_>, stamp: Stamp) -> bool {
        !matches!(record, Record::Sample { .. }) || self.names.has(stamp.tid)
    }

    /// Returns whether the instruction of this sample is in a mapping that is known: else
    /// [`add_present`](Self::add_present) may help.
    #[must_use]
    pub fn knows_code(&self, record: &Record<'_>, stamp: Stamp) -> bool {
        let Record::Sample { registers, call_chain, .. } = record else { return true };
        let words: Vec<u64> = registers.iter().collect();
        let innermost = call_chain.iter().next().or_else(|| instruction(&words));
        let is_mapped = |at| self.processes.get(&stamp.pid).is_some_and(|process| process.has_code(at));
        innermost.is_none_or(is_mapped)
    }

    /// Sets how many samples are taken in a second of CPU time, before the first one. The trace then has the
    /// time that a sample stands for.
    #[must_use]
    pub fn frequency(mut self, frequency: u32) -> Self {
        // The kernel's clock divides in the same way.
        self.packets.set_by(SampledBy::CpuTime { period: 1_000_000_000 / u64::from(frequency.max(1)) });
        self
    }

    /// Makes this a profile of samples by the clock, so many in a second, before the first one.
    #[must_use]
    pub fn by_clock(mut self, frequency: u32) -> Self {
        self.packets.set_by(SampledBy::WallTime { period: 1_000_000_000 / u64::from(frequency.max(1)) });
        self
    }

    /// Sets the sequence for samples at events, before the first one. In FXT it has one.
    #[must_use]
    pub fn events_on(self, sequence: SequenceId) -> Self {
        Self { events: Packets::new(sequence, SampledBy::Events), ..self }
    }

    /// Adds the mappings and the thread names that a running process has. Returns whether there are new
    /// names: a thread is called as the one that has started it at first.
    pub fn add_present(&mut self, pid: u32) -> bool {
        present::mappings(pid).iter().for_each(|present| self.map(pid, present));
        self.processes.entry(pid).or_default().set_endless();
        let names = present::names(pid);
        if self.is_long {
            self.names.take_others(&names);
        }
        self.tape.iter_mut().for_each(|tape| tape.retain(|tid| names.contains_key(&tid)));
        let has_new = names.iter().any(|(tid, name)| self.names.get(*tid) != Some(name));
        names.into_iter().for_each(|(tid, name)| self.set_name(tid, name));
        has_new
    }

    fn new(sequence: SequenceId, records: Option<Records>) -> Self {
        let mut profile = Self {
            order: Order::default(),
            processes: Map::default(),
            by_path: Map::default(),
            kept: 0,
            files: Vec::new(),
            table: Table::default(),
            names: Names::default(),
            unknown: 0,
            cache: Box::new(CacheOf(Cache::new())),
            places: Vec::new(),
            words: Vec::new(),
            packets: Packets::new(sequence, SampledBy::CpuTime { period: 0 }),
            switches: Packets::new(SequenceId(sequence.0.wrapping_add(1)), SampledBy::Switches),
            events: Packets::new(FXT_EVENTS, SampledBy::Events),
            records,
            tape: None,
            is_long: false,
            known: Arc::default(),
            lost: Map::default(),
            out: Vec::new(),
            hidden: Vec::new(),
            totals: Totals::default(),
        };
        let file = profile.file(0, UNKNOWN, Inode::default());
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

    /// As [`add`](Self::add), of a sample that stands for `count` earlier ones too, each `interval` ns
    /// before.
    pub fn add_several(
        &mut self,
        record: &Record<'_>,
        stamp: Stamp,
        at: SampledAt,
        (count, interval): (u32, u64),
    ) {
        if let Some(mut happening) = Happening::of(record, at) {
            if let Happening::Sample { earlier, .. } = &mut happening {
                *earlier = (count, interval);
            }
            self.order.add(stamp, happening);
        }
    }

    /// Takes what has been added, after all rings have been read once, beginning at `start` (ns on
    /// `CLOCK_BOOTTIME`). The latest records wait for the next call.
    pub fn settle(&mut self, start: u64) {
        self.settle_with(start, |_| {});
    }

    /// Like [`settle`](Self::settle). Unwinding many stacks takes long, so `between` is called after each 256
    /// of them: it may read rings that would be full at the end, and [add](Self::add) their records.
    pub fn settle_with(&mut self, start: u64, mut between: impl FnMut(&mut Self)) {
        const AT_ONCE: usize = 256;
        for (index, (stamp, happening)) in self.order.settled(start).into_iter().enumerate() {
            if index % AT_ONCE == AT_ONCE - 1 {
                between(self);
            }
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
        if self.keeps_samples() {
            return; // a window has them
        }
        self.names.write(&mut self.out, self.packets.sequence(), has_name);
        let sequence = self.packets.sequence();
        self.known.look_up(&self.files, &self.table, self.table.frames.values().iter());
        // Importers want a frame for each address that has functions.
        let [shown, hidden] = [true, false].map(|is_shown| self.table.frames_shown(is_shown));
        self.known.write(&mut self.out, sequence, &self.files, &self.table, shown);
        self.known.write(&mut self.hidden, self.switches.sequence(), &self.files, &self.table, hidden);
    }

    /// Returns the part of the trace that has been written since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        let mut packets = std::mem::take(&mut self.out);
        pieces(&self.hidden).for_each(|hidden| hidden_packets(&mut packets, hidden));
        self.hidden.clear();
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
            Happening::Map { pid, start, size, offset, path, inode } => {
                let path = String::from_utf8_lossy(&path).into_owned();
                let Some(end) = start.checked_add(size) else { return };
                self.map(pid, &Present { start, end, offset, inode, path });
            }
            Happening::Fork { parent, child } => {
                self.names.inherit(parent.tid, child.tid);
                if parent.pid == child.pid {
                    self.processes.entry(child.pid).or_default().thread_started();
                } else {
                    let process = self.processes.get(&parent.pid).map(Process::forked).unwrap_or_default();
                    self.processes.insert(child.pid, process);
                }
            }
            Happening::Exit { task } => self.ended(task),
            Happening::Comm { task, is_exec, name } => {
                self.set_name(task.tid, String::from_utf8_lossy(&name).into_owned());
                if is_exec {
                    self.processes.insert(task.pid, Process::default());
                }
            }
            // A thread that ends has no registers at its last switch.
            Happening::Sample { registers, at: SampledAt::Switches, .. } if registers.is_empty() => {}
            Happening::Sample { address, call_chain, registers, stack, at, earlier } => {
                let call_chain = Words::of_bytes(&call_chain);
                let sampled = Sampled { address, call_chain, registers: &registers, stack: &stack };
                self.sample(stamp, &sampled, at, earlier);
            }
            Happening::Lost { records, at: SampledAt::CpuTime | SampledAt::WallTime } => {
                *self.lost.entry(stamp.cpu).or_default() += records;
                self.totals.lost += records;
            }
            Happening::Lost { records, at: SampledAt::Switches } => self.totals.switches_lost += records,
            Happening::Lost { at: SampledAt::Events, .. } => {} // whoever takes them counts them
        }
    }

    /// Forgets what is needed no more of a thread that has ended.
    fn ended(&mut self, task: Task) {
        if self.is_long {
            self.names.take(task.tid);
        } else {
            self.names.ended(task);
        }
        if let Some(tape) = &mut self.tape {
            tape.ended(task.tid);
        }
        let process = self.processes.get_mut(&task.pid);
        if process.is_some_and(|process| process.thread_ended(task.pid == task.tid)) {
            self.processes.remove(&task.pid);
            if let Some(records) = &mut self.records {
                records.ended(task.pid);
            }
        }
    }

    fn set_name(&mut self, tid: u32, name: String) {
        if let Some(tape) = &mut self.tape {
            tape.renamed(tid, &name);
        }
        self.names.set(tid, name);
    }

    fn map(&mut self, pid: u32, present: &Present) {
        let Present { start, end, offset, inode, ref path } = *present;
        let number = self.file(pid, path, inode);
        let file = &self.files[number as usize];
        let bias = file.bias(start, offset).unwrap_or(0);
        let mapping = self.table.mappings.number(&Mapping { file: number, start, end, offset, bias });
        self.processes.entry(pid).or_default().map(start, end, offset, mapping, file);
    }

    /// Returns the number of the file that has this path now.
    fn file(&mut self, pid: u32, path: &str, inode: Inode) -> u32 {
        let key = (path.to_owned(), inode);
        if let Some(number) = self.by_path.get(&key)
            && !self.files[*number as usize].is_changed()
        {
            return *number;
        }
        let mut file = ProgramFile::open(pid, path, MOST_KEPT.saturating_sub(self.kept));
        self.kept += file.kept();
        if self.files.len() >= MOST_OPEN || self.is_long {
            file.close(); // a snapshot may be written by any thread, which may have other open files
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(Arc::new(file));
        self.by_path.insert(key, number);
        number
    }

    /// Unwinds a stack of a process into `places`. Returns why it ends before its root.
    fn unwind(&mut self, pid: u32, sampled: &Sampled<'_>) -> UnwindError {
        self.places.clear();
        self.words.clear();
        let unknown = Process::default();
        let process = self.processes.get(&pid).unwrap_or(&unknown);
        process.unwind(sampled, &mut self.cache.0, &mut self.places, &mut self.words)
    }

    fn sample(
        &mut self,
        stamp: Stamp,
        sampled: &Sampled<'_>,
        at: SampledAt,
        (earlier, interval): (u32, u64),
    ) {
        let error = self.unwind(stamp.pid, sampled);
        for before in (0..=u64::from(earlier)).rev() {
            let time = stamp.time.saturating_sub(before * interval);
            self.put(Stamp { time, ..stamp }, error, at);
        }
    }

    /// Writes a sample with the stack in `places`.
    fn put(&mut self, stamp: Stamp, error: UnwindError, at: SampledAt) {
        let is_cut = !matches!(error, UnwindError::None);
        if !self.keeps_samples() {
            self.names.sampled(stamp.pid, stamp.tid, stamp.time); // a window has the threads of its own samples
        }
        match at {
            SampledAt::CpuTime | SampledAt::WallTime => self.totals.samples += 1,
            SampledAt::Switches => self.totals.switches += 1,
            SampledAt::Events => self.totals.events += 1,
        }
        self.totals.cut += u64::from(is_cut);
        self.totals.too_deep += u64::from(matches!(error, UnwindError::MaxFramesExceeded));
        self.totals.strange += u64::from(self.places.first().is_some_and(|place| place.mapping.is_none()));
        let stack = self.table.stack(&self.places, self.unknown);
        let is_counted = matches!(at, SampledAt::CpuTime | SampledAt::WallTime);
        let sample = PerfSample {
            cpu: (at != SampledAt::Events).then_some(stamp.cpu),
            pid: stamp.pid,
            tid: stamp.tid,
            callstack: u64::from(stack) + 1,
            mode: CpuMode::User,
            unwind_error: if is_cut { error } else { UnwindError::Unknown },
            lost: if is_counted { self.lost.remove(&stamp.cpu).unwrap_or(0) } else { 0 },
        };
        if at != SampledAt::Switches {
            self.table.show(stack);
        }
        if let Some(tape) = &mut self.tape
            && let Some(frames) = self.table.stacks.get(stack)
        {
            let refers_to = (&self.files[..], &self.table, &self.names);
            tape.sample((stamp.time, at), &sample, refers_to, frames);
            if tape.keeps() == Keeps::Samples {
                return;
            }
        }
        // A backtrace says that its thread runs.
        if let Some(records) = self.records.as_mut().filter(|_| at == SampledAt::CpuTime) {
            records.sample(&self.files, &self.table, stamp.time, &sample, &self.places);
        }
        let (packets, out) = match at {
            SampledAt::CpuTime | SampledAt::WallTime => (&mut self.packets, &mut self.out),
            SampledAt::Switches => (&mut self.switches, &mut self.hidden),
            SampledAt::Events => (&mut self.events, &mut self.out),
        };
        packets.sample(out, &self.files, &self.table, stamp.time, &sample);
    }
}

#[cfg(test)]
mod tests;
