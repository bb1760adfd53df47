//! Call stacks to packets, for Perfetto traces and for Perfetto blobs in FXT.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use hairline_formats::track_event::{
    self as te, AddressSymbols, Frame, InternedStack, Line, Mapping, PerfSample, SampledBy, SequenceId,
};

use crate::{Report, Sample, SampleKind, Stack, StackFrame, Symbols};

/// The packet sequences: for samples of each kind, in the order of the kinds.
const SEQUENCES: [SequenceId; 4] =
    [SequenceId(u32::MAX - 2), SequenceId(u32::MAX - 1), SequenceId(u32::MAX - 3), SequenceId(u32::MAX - 5)];

/// The limit for interned parts. Beyond it, the sequence starts anew.
const MOST_PARTS: usize = 1 << 18;

/// The limit for addresses that are known as shown. Beyond it, all are.
const MOST_SHOWN: usize = 1 << 20;

/// Writes samples and the functions of their addresses. Those of threads that leave their processors are
/// hidden from Perfetto, whose UI would add them to those of running threads.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    sequences: [Interned; SEQUENCES.len()],
    pub(crate) shown: Shown,
    hidden: Vec<u8>,
}

/// The addresses in call stacks that Perfetto reads: importers want a frame for each address that has
/// functions.
#[derive(Debug, Default)]
pub(crate) struct Shown(HashSet<u64>);

impl Shown {
    fn add(&mut self, stack: &dyn Stack) {
        stack.each(&mut |frame| {
            if self.0.len() < MOST_SHOWN {
                self.0.insert(place(frame.module, frame.build_id, frame.address));
            }
        });
    }

    fn has(&self, symbols: &Symbols<'_>) -> bool {
        let place = place(symbols.module, symbols.build_id, symbols.address);
        self.0.len() >= MOST_SHOWN || self.0.contains(&place)
    }
}

/// A number for an address in a file. Symbols name `[vdso]` as `/[vdso]`.
fn place(module: &str, build_id: &[u8], address: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (module.trim_start_matches('/'), build_id, address).hash(&mut hasher);
    hasher.finish()
}

/// The interned parts of one sequence.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    functions: HashMap<Box<str>, u64>,
    modules: HashMap<(Box<str>, Box<[u8]>), u64>,
    /// By function, mapping and address.
    frames: HashMap<[u64; 3], u64>,
    callstacks: HashMap<Box<[u64]>, u64>,
    /// The period of the samples on the CPU.
    period: u64,
}

impl Interned {
    /// Writes the parts of a call stack that are new, and returns its id; 0 if it has no frames. `shown`: for
    /// a stack that Perfetto reads.
    pub(crate) fn callstack(
        &mut self,
        out: &mut Vec<u8>,
        sequence: SequenceId,
        stack: &dyn Stack,
        shown: Option<&mut Shown>,
    ) -> u64 {
        let mut frames = Vec::new();
        stack.each(&mut |frame| frames.push(self.frame(out, sequence, &frame)));
        if frames.is_empty() {
            return 0;
        }
        if let Some(iid) = self.callstacks.get(&frames[..]) {
            return *iid;
        }
        if let Some(shown) = shown {
            shown.add(stack);
        }
        let iid = self.callstacks.len() as u64 + 1;
        te::interned_stacks(out, sequence, false, &[InternedStack::Callstack { iid, frames: &frames }]);
        self.callstacks.insert(frames.into(), iid);
        iid
    }

    /// Whether the sequence is to start anew.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > MOST_PARTS
    }

    fn len(&self) -> usize {
        self.functions.len() + self.modules.len() + self.frames.len() + self.callstacks.len()
    }

    fn frame(&mut self, out: &mut Vec<u8>, sequence: SequenceId, frame: &StackFrame<'_>) -> u64 {
        let frame = Frame {
            function: self.function(out, sequence, frame.function),
            mapping: self.module(out, sequence, frame),
            rel_pc: frame.address,
        };
        let next = self.frames.len() as u64 + 1;
        *self.frames.entry([frame.function, frame.mapping, frame.rel_pc]).or_insert_with(|| {
            te::interned_stacks(out, sequence, false, &[InternedStack::Frame { iid: next, frame }]);
            next
        })
    }

    fn function(&mut self, out: &mut Vec<u8>, sequence: SequenceId, name: &str) -> u64 {
        if name.is_empty() {
            return 0;
        }
        if let Some(iid) = self.functions.get(name) {
            return *iid;
        }
        let iid = self.functions.len() as u64 + 1;
        te::interned_stacks(out, sequence, false, &[InternedStack::Function { iid, name }]);
        self.functions.insert(name.into(), iid);
        iid
    }

    /// Importers drop a call stack with a frame without a mapping, so a frame without a module has one too.
    fn module(&mut self, out: &mut Vec<u8>, sequence: SequenceId, frame: &StackFrame<'_>) -> u64 {
        let key = (Box::from(frame.module), Box::from(frame.build_id));
        let next = self.modules.len() as u64 + 1;
        *self.modules.entry(key).or_insert_with(|| {
            let mapping = Mapping { build_id: next, path: &[next][..], ..Mapping::default() };
            te::interned_stacks(
                out,
                sequence,
                false,
                &[
                    InternedStack::Path { iid: next, path: frame.module },
                    InternedStack::BuildId { iid: next, bytes: frame.build_id },
                    InternedStack::Mapping { iid: next, mapping },
                ],
            );
            next
        })
    }
}

impl Stacks {
    /// Writes a sample, after the parts of its call stack that are new.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, sample: &Sample<'_>, report: &mut Report) {
        let (Ok(time), Ok(pid), Ok(tid)) =
            (u64::try_from(sample.time), u32::try_from(sample.pid), u32::try_from(sample.tid))
        else {
            return report.add("stack samples before 0 or of ids beyond 32 bits left out");
        };
        let index = sample.kind as usize;
        let (sequence, interned) = (SEQUENCES[index], &mut self.sequences[index]);
        // Those of threads that leave their processors are hidden.
        let (to, shown) = match sample.kind {
            SampleKind::OffCpu => (&mut self.hidden, None),
            _ => (&mut *out, Some(&mut self.shown)),
        };
        if interned.len() == 0 || interned.is_full() || interned.period != sample.period {
            *interned = Interned { period: sample.period, ..Interned::default() };
            let by = match sample.kind {
                SampleKind::OnCpu => SampledBy::CpuTime { period: sample.period },
                SampleKind::OffCpu => SampledBy::Switches,
                SampleKind::Event => SampledBy::Events,
                SampleKind::Wall => SampledBy::WallTime { period: sample.period },
            };
            te::start_of_samples(to, sequence, by);
        }
        let callstack = interned.callstack(to, sequence, sample.stack, shown);
        let Sample { cpu, mode, unwind_error, .. } = *sample;
        let sample = PerfSample { cpu, pid, tid, callstack, mode, unwind_error, lost: 0 };
        te::perf_sample(to, sequence, time, &sample);
        self.put_hidden(out);
    }

    /// Writes the functions of an address.
    pub(crate) fn put_symbols(&mut self, out: &mut Vec<u8>, symbols: &Symbols<'_>) {
        let lines = symbols.lines.iter();
        let lines = lines.map(|of| Line { function: &of.function, file: &of.file, line: of.line }).collect();
        let of = AddressSymbols { address: symbols.address, lines };
        let to = if self.shown.has(symbols) { &mut *out } else { &mut self.hidden };
        te::module_symbols(to, SEQUENCES[0], symbols.module, symbols.build_id, &[of]);
        self.put_hidden(out);
    }

    fn put_hidden(&mut self, out: &mut Vec<u8>) {
        if !self.hidden.is_empty() {
            te::hidden_packets(out, &self.hidden);
            self.hidden.clear();
        }
    }
}
