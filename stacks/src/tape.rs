//! What a killed process, or a snapshot, needs of the samples: entries that are written one after the other,
//! of which the oldest may be forgotten.
//!
//! | entry | content |
//! |---|---|
//! | start | sequences, what a sample stands for, format |
//! | file | number, build id, time of writing and size, path |
//! | mapping | number, file, start, end, offset, bias |
//! | name | thread, name |
//! | thread | process, thread, time of its first sample |
//! | sample | time, process, thread, cpu, losses, at, error, frames from the root |
//! | frames | those whose functions are not in the trace yet |
//! | named | a thread of the samples that has a better name in the trace |
//!
//! Numbers are varints, a frame is the number of its mapping and the difference to the address before it. An
//! entry refers to others by their numbers, which stay the same in a recording. Whoever keeps the entries
//! asks for those that do not forget ([`Tape::repeat`]) before it overwrites them.
//!
//! They are read from the memory of another process, which may be damaged: what is not understood is left
//! out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hairline_formats::proto::put_varint;
use hairline_formats::track_event::{CpuMode, PerfSample, SampledBy, SequenceId, UnwindError};
use hairline_perf::{Map, Set, Task};

use crate::file::ProgramFile;
use crate::names::Names;
use crate::order::SampledAt;
use crate::process::MOST_FRAMES;
use crate::table::{Frame, Mapping, Table};

/// What is on the tape, besides what it takes to name frames and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The samples. They are not in the trace.
    Samples,
    /// The frames of samples that are in the trace.
    Frames,
}

/// The parts of a trace that samples are in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) sequence: SequenceId,
    pub(crate) by: SampledBy,
    /// The sequence of samples at events.
    pub(crate) events: SequenceId,
    pub(crate) is_fxt: bool,
}

/// A sample that waits for a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) time: u64,
    /// Without its stack.
    pub(crate) sample: PerfSample,
    /// The numbers of the frames, from the root.
    pub(crate) stack: Arc<[u32]>,
    pub(crate) at: SampledAt,
}

const START: u8 = 1;
pub(crate) const FILE: u8 = 2;
pub(crate) const MAPPING: u8 = 3;
const NAME: u8 = 4;
const THREAD: u8 = 5;
const SAMPLE: u8 = 6;
const FRAMES: u8 = 7;
const NAMED: u8 = 8;

/// The most frames that are written again, some 100 KiB: the first ones, which most stacks have.
const MOST_REPEATED: usize = 20_000;

/// The writer of the entries.
#[derive(Debug)]
pub(crate) struct Tape {
    keeps: Keeps,
    entries: Entries,
    defined: Defined,
    /// The frames with lower numbers are on the tape.
    frames: usize,
    /// The threads of the samples.
    threads: Map<u32, Known>,
    /// Those of the last samples.
    sampled: Set<u32>,
    /// Those that are on the tape as named in the trace.
    named: Set<u32>,
}

/// What the tape has of a thread.
#[derive(Debug, Default)]
struct Known {
    /// Empty if it is not known.
    name: String,
    pid: u32,
    /// The time of its first sample.
    time: u64,
}

/// Entries, each with its end.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Entries {
    pub(crate) fn begin(&mut self, kind: u8, numbers: &[u64]) -> &mut Vec<u8> {
        self.end(); // of the entry before
        self.bytes.push(kind);
        numbers.iter().for_each(|number| put_varint(&mut self.bytes, *number));
        &mut self.bytes
    }

    fn end(&mut self) {
        if self.ends.last().copied().unwrap_or(0) < self.bytes.len() {
            self.ends.push(self.bytes.len());
        }
    }

    /// Calls `visit` with each entry since the last call.
    pub(crate) fn take(&mut self, mut visit: impl FnMut(&[u8])) {
        let mut entries = std::mem::take(self);
        entries.end();
        let mut from = 0;
        for end in entries.ends {
            visit(&entries.bytes[from..end]);
            from = end;
        }
    }
}

/// The files and mappings that a tape has: the numbers below these.
#[derive(Debug, Default)]
pub(crate) struct Defined {
    files: usize,
    mappings: usize,
}

impl Defined {
    /// Writes the new files and mappings.
    pub(crate) fn define(&mut self, entries: &mut Entries, files: &[Arc<ProgramFile>], table: &Table) {
        for (number, file) in (0_u64..).zip(files).skip(self.files) {
            let (nanos, size) = file.written().map_or((0, 0), |(at, size)| {
                let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                (u64::try_from(since.as_nanos()).unwrap_or(0), size)
            });
            let numbers = [number, nanos, size, file.build_id.len() as u64];
            let entry = entries.begin(FILE, &numbers);
            entry.extend_from_slice(&file.build_id);
            entry.extend_from_slice(file.path.as_bytes());
        }
        for (number, of) in (0_u64..).zip(table.mappings.values()).skip(self.mappings) {
            let numbers = [number, of.file.into(), of.start, of.end, of.offset, of.bias];
            entries.begin(MAPPING, &numbers);
        }
        (self.files, self.mappings) = (files.len(), table.mappings.values().len());
    }
}

impl Tape {
    pub(crate) fn new(keeps: Keeps) -> Self {
        let entries = Entries::default();
        let (threads, sampled, named) = (Map::default(), Set::default(), Set::default());
        Self { keeps, entries, defined: Defined::default(), frames: 0, threads, sampled, named }
    }

    pub(crate) fn keeps(&self) -> Keeps {
        self.keeps
    }

    /// Calls `visit` with each entry since the last call.
    pub(crate) fn take(&mut self, visit: impl FnMut(&[u8])) {
        self.entries.take(visit);
    }

    /// Writes again what later entries refer to: those before may be forgotten from here on.
    pub(crate) fn repeat(&mut self, form: &Form, files: &[Arc<ProgramFile>], table: &Table) {
        let (is_wall, period) = match form.by {
            SampledBy::CpuTime { period } => (0, period),
            SampledBy::WallTime { period } => (1, period),
            SampledBy::Switches | SampledBy::Events => (0, 0), // on sequences of their own
        };
        let numbers = [form.sequence.0.into(), form.events.0.into(), period, form.is_fxt.into(), is_wall];
        self.entries.begin(START, &numbers);
        self.defined = Defined::default();
        self.defined.define(&mut self.entries, files, table);
        for (tid, Known { name, pid, time }) in self.threads.iter().filter(|(_, of)| !of.name.is_empty()) {
            self.entries.begin(NAME, &[u64::from(*tid)]).extend_from_slice(name.as_bytes());
            if self.keeps == Keeps::Frames {
                self.entries.begin(THREAD, &[u64::from(*pid), u64::from(*tid), *time]);
            }
        }
        if self.keeps == Keeps::Frames {
            let first = table.frames.values().iter().take(MOST_REPEATED).take(self.frames);
            put_frames(self.entries.begin(FRAMES, &[]), first);
        }
        for tid in &self.named {
            self.entries.begin(NAMED, &[u64::from(*tid)]);
        }
    }

    /// Notes which threads of the samples since the last call have a better name in the trace.
    pub(crate) fn note_named(&mut self, has_name: &dyn Fn(u32) -> bool) {
        for tid in self.sampled.drain() {
            if !self.named.contains(&tid) && has_name(tid) {
                self.named.insert(tid);
                self.entries.begin(NAMED, &[tid.into()]);
            }
        }
    }

    /// Writes a sample of a thread, or what a trace with it needs.
    pub(crate) fn sample(
        &mut self,
        (time, at): (u64, SampledAt),
        sample: &PerfSample,
        (files, table, names): (&[Arc<ProgramFile>], &Table, &Names),
        stack: &[u32],
    ) {
        self.defined.define(&mut self.entries, files, table);
        let task = Task { pid: sample.pid, tid: sample.tid };
        let is_new = !self.threads.contains_key(&task.tid);
        self.sampled.insert(task.tid);
        for tid in [task.pid, task.tid] {
            self.threads.entry(tid).or_insert_with(|| Known { pid: task.pid, time, ..Known::default() });
            self.name(tid, names.get(tid));
        }
        if self.keeps == Keeps::Frames {
            if is_new {
                self.entries.begin(THREAD, &[task.pid.into(), task.tid.into(), time]);
            }
            let new = &table.frames.values()[self.frames..];
            if !new.is_empty() {
                put_frames(self.entries.begin(FRAMES, &[]), new);
            }
            self.frames = table.frames.values().len();
            return;
        }
        let cpu = sample.cpu.map_or(0, |cpu| u64::from(cpu) + 1);
        let at = match at {
            SampledAt::CpuTime | SampledAt::Switches => 0,
            SampledAt::Events => 1,
            SampledAt::WallTime => 2,
        };
        let error = sample.unwind_error as u64;
        let numbers = [time, task.pid.into(), task.tid.into(), cpu, sample.lost, at, error];
        let entry = self.entries.begin(SAMPLE, &numbers);
        let frames = table.frames.values();
        put_frames(entry, stack.iter().filter_map(|frame| frames.get(*frame as usize)));
    }

    /// Writes the name of a thread of the samples, if it has another one on the tape. A thread that has ended
    /// may have no name any more, and has it on the tape.
    fn name(&mut self, tid: u32, name: Option<&str>) {
        if let Some(name) = name
            && let Some(known) = self.threads.get_mut(&tid)
            && known.name != name
        {
            name.clone_into(&mut known.name);
            self.entries.begin(NAME, &[tid.into()]).extend_from_slice(name.as_bytes());
        }
    }

    /// Notes that a thread is called so now.
    pub(crate) fn renamed(&mut self, tid: u32, name: &str) {
        self.name(tid, Some(name));
    }

    /// Forgets the threads that are not present.
    pub(crate) fn retain(&mut self, is_present: impl Fn(u32) -> bool) {
        let ended: Vec<u32> = self.threads.keys().copied().filter(|tid| !is_present(*tid)).collect();
        ended.into_iter().for_each(|tid| self.ended(tid));
    }

    /// Forgets a thread that has ended. Its name is on the tape as long as its last sample.
    pub(crate) fn ended(&mut self, tid: u32) {
        if let Some(known) = self.threads.remove(&tid)
            && !known.name.is_empty()
        {
            self.entries.begin(NAME, &[tid.into()]).extend_from_slice(known.name.as_bytes());
        }
        if self.named.remove(&tid) {
            self.entries.begin(NAMED, &[tid.into()]);
        }
    }
}

fn put_frames<'f>(entry: &mut Vec<u8>, frames: impl IntoIterator<Item = &'f Frame>) {
    let mut before = 0_u64;
    for frame in frames {
        put_varint(entry, frame.mapping.into());
        let difference = frame.rel_pc.wrapping_sub(before).cast_signed();
        put_varint(entry, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
        before = frame.rel_pc;
    }
}

/// The content of entries.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) form: Form,
    pub(crate) files: Vec<Arc<ProgramFile>>,
    /// Without stacks.
    pub(crate) table: Table,
    pub(crate) names: Names,
    pub(crate) samples: Vec<Kept>,
    /// The frames of samples that are in the trace.
    pub(crate) frames: Vec<u32>,
    /// The threads that have a better name in the trace.
    pub(crate) named: Set<u32>,
}

/// The most different frames and samples that are read, some 200 MiB: of a tape that this crate has written
/// there are fewer.
const MOST_FRAMES_READ: usize = 1 << 20;
const MOST_SAMPLES_READ: usize = 1 << 20;

/// Whether an entry is a sample.
#[must_use]
pub fn is_sample(entry: &[u8]) -> bool {
    entry.first() == Some(&SAMPLE)
}

/// Reads entries. `None`: there is no start among them, so nothing was recorded.
pub(crate) fn read(entries: &[&[u8]]) -> Option<Read> {
    let form = entries.iter().rev().find_map(|entry| start(Reader::of(entry, START)?))?;
    let (mut files, mut by_number) = (Vec::new(), Map::<u64, u32>::default());
    let (mut table, mut mappings) = (Table::default(), Map::<u64, u32>::default());
    let (mut names, mut named) = (Names::default(), Set::default());
    for entry in entries {
        if let Some(mut file) = Reader::of(entry, FILE)
            && let Some((number, file)) = file.number().zip(read_file(file))
        {
            let at = u32::try_from(files.len()).ok()?;
            by_number.entry(number).or_insert_with(|| {
                files.push(Arc::new(file));
                at
            });
        }
        if let Some(mut mapping) = Reader::of(entry, MAPPING)
            && let Some([number, file, start, end, offset, bias]) = mapping.numbers()
            && let Some(file) = by_number.get(&file)
        {
            let mapping = Mapping { file: *file, start, end, offset, bias };
            mappings.insert(number, table.mappings.number(&mapping));
        }
        if let Some(mut name) = Reader::of(entry, NAME)
            && let Some(tid) = name.number_of_32()
        {
            names.set(tid, String::from_utf8_lossy(name.0).into_owned());
        }
        named.extend(Reader::of(entry, NAMED).and_then(|mut named| named.number_of_32()));
    }
    let (mut samples, mut frames) = (Vec::new(), Vec::new());
    let mut numbered = |mut of: Reader<'_>, most: usize| {
        let (mut stack, mut before) = (Vec::new(), 0_u64);
        while let Some([mapping, difference]) = of.numbers() {
            if stack.len() == most || table.frames.values().len() >= MOST_FRAMES_READ {
                return None;
            }
            before = before.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg());
            let mapping = *mappings.get(&mapping)?;
            stack.push(table.frames.number(&Frame { mapping, rel_pc: before }));
        }
        of.0.is_empty().then_some(stack)
    };
    for entry in entries {
        if let Some(mut thread) = Reader::of(entry, THREAD)
            && let Some((pid, tid)) = thread.number_of_32().zip(thread.number_of_32())
            && let Some(time) = thread.number()
        {
            names.sampled(pid, tid, time);
        }
        if let Some(new) = Reader::of(entry, FRAMES).and_then(|of| numbered(of, MOST_FRAMES_READ)) {
            frames.extend(new);
        }
        if let Some(mut sample) = Reader::of(entry, SAMPLE)
            && let Some((time, at, read)) = read_sample(&mut sample)
            && samples.len() < MOST_SAMPLES_READ
            && let Some(stack) = numbered(sample, MOST_FRAMES)
        {
            samples.push(Kept { time, sample: read, stack: stack.into(), at });
        }
    }
    Some(Read { form, files, table, names, samples, frames, named })
}

fn start(mut start: Reader<'_>) -> Option<Form> {
    let (sequence, events) = start.number_of_32().zip(start.number_of_32())?;
    let [period, is_fxt, is_wall] = start.numbers()?;
    Some(Form {
        sequence: SequenceId(sequence),
        by: if is_wall == 0 { SampledBy::CpuTime { period } } else { SampledBy::WallTime { period } },
        events: SequenceId(events),
        is_fxt: is_fxt != 0,
    })
}

pub(crate) fn read_file(mut file: Reader<'_>) -> Option<ProgramFile> {
    let [nanos, size, length] = file.numbers()?;
    let (build_id, path) = file.0.split_at_checked(usize::try_from(length).ok()?)?;
    let written = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(nanos)).map(|at| (at, size));
    let path = String::from_utf8_lossy(path).into_owned();
    Some(ProgramFile::known(path, build_id.to_owned(), written.filter(|_| nanos != 0)))
}

fn read_sample(sample: &mut Reader<'_>) -> Option<(u64, SampledAt, PerfSample)> {
    let time = sample.number()?;
    let (pid, tid) = sample.number_of_32().zip(sample.number_of_32())?;
    let [cpu, lost, at, error] = sample.numbers()?;
    let read = PerfSample {
        cpu: cpu.checked_sub(1).and_then(|cpu| u32::try_from(cpu).ok()),
        pid,
        tid,
        callstack: 0,
        mode: CpuMode::User,
        unwind_error: UnwindError::from_number(error).unwrap_or_default(),
        lost,
    };
    let at = match at {
        0 => SampledAt::CpuTime,
        1 => SampledAt::Events,
        _ => SampledAt::WallTime,
    };
    Some((time, at, read))
}

/// The rest of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'t>(pub(crate) &'t [u8]);

impl<'t> Reader<'t> {
    /// Returns the content of an entry of this kind.
    pub(crate) fn of(entry: &'t [u8], kind: u8) -> Option<Self> {
        entry.split_first().filter(|(of, _)| **of == kind).map(|(_, rest)| Self(rest))
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let length = self.0.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        let bits = |(place, byte): (u32, &u8)| u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
        Some((0..).zip(bytes).map(bits).fold(0, |sum, bits| sum | bits))
    }

    pub(crate) fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(numbers)
    }

    fn number_of_32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }
}
