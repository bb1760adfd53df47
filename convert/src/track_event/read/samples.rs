//! Stack samples: the interned parts of call stacks, and the functions of addresses.

use std::sync::Arc;

use hairline_formats::DecodeError;
use hairline_formats::proto::{Field, FieldValue, Fields};
use hairline_formats::track_event::{
    Frame, InternedStack, ModuleSymbols, Packet, PerfSample, fields::trace_packet,
};

use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::Sequence;
use crate::track_event::read::state::State;
use crate::track_event::read::table::Table;
use crate::{Loss, Report, Sample, SampleKind, Stack, StackFrame, SymbolLine, Symbols};

/// The limit for the interned parts of one sequence, in units of about 50 bytes.
const MOST_PARTS: usize = 1 << 21;
/// The limit for the bytes of their texts.
const MOST_BYTES: usize = 32 << 20;

/// The counter of context switches in `PerfEvents.Counter`, and the tracepoint for the same.
const CONTEXT_SWITCHES: u64 = 4;
const SCHED_SWITCH: &[u8] = b"sched:sched_switch";

/// The interned parts of call stacks.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    functions: Table<Arc<str>>,
    paths: Table<Arc<str>>,
    build_ids: Table<Arc<[u8]>>,
    mappings: Table<StackModule>,
    frames: Table<Frame>,
    callstacks: Table<Box<[u64]>>,
    kind: SampleKind,
    parts: usize,
    bytes: usize,
}

#[derive(Debug)]
struct StackModule {
    build_id: u64,
    path: Arc<str>,
}

/// The current sample, and the current packet of symbols.
#[derive(Debug, Default)]
pub(super) struct CurrentSample {
    time: i64,
    sample: PerfSample,
    sequence: usize,
    module: String,
    build_id: Vec<u8>,
    addresses: Vec<(u64, Vec<SymbolLine>)>,
}

impl Stacks {
    /// Stores an interned part. Returns `false` if there are too many.
    fn add(
        &mut self,
        part: InternedStack<'_, hairline_formats::track_event::Numbers<'_>>,
    ) -> Result<bool, DecodeError> {
        self.parts += 1;
        if self.parts > MOST_PARTS || self.bytes > MOST_BYTES {
            return Ok(false);
        }
        match part {
            InternedStack::BuildId { iid, bytes } => {
                self.bytes += bytes.len();
                self.build_ids.set(iid, bytes.into());
            }
            InternedStack::Path { iid, path } => {
                self.bytes += path.len();
                self.paths.set(iid, path.into());
            }
            InternedStack::Function { iid, name } => {
                self.bytes += name.len();
                self.functions.set(iid, name.into());
            }
            InternedStack::Mapping { iid, mapping } => {
                let mut path = String::new();
                for part in mapping.path {
                    if let Some(part) = self.paths.get(part?)
                        && path.len() + part.len() < 4096
                    {
                        if !part.starts_with('/') && !path.is_empty() {
                            path.push('/');
                        }
                        path.push_str(part);
                    }
                }
                self.bytes += path.len();
                self.mappings.set(iid, StackModule { build_id: mapping.build_id, path: path.into() });
            }
            InternedStack::Frame { iid, frame } => self.frames.set(iid, frame),
            InternedStack::Callstack { iid, frames } => {
                let frames = frames.collect::<Result<Box<[u64]>, _>>()?;
                self.parts += frames.len() / 4;
                self.callstacks.set(iid, frames);
            }
        }
        Ok(true)
    }

    /// Reads what the samples of the sequence were taken for.
    fn set_kind(&mut self, defaults: Fields<'_>) {
        // TracePacketDefaults.perf_sample_defaults.timebase
        let Some(timebase) = inner(defaults, 12).and_then(|samples| inner(samples, 1)) else { return };
        let is_switch = timebase.map_while(Result::ok).any(|field| match field.value {
            FieldValue::Varint(counter) => field.number == 4 && counter == CONTEXT_SWITCHES,
            FieldValue::Bytes { bytes, offset } if field.number == 3 => {
                let name = Fields::new(bytes, offset).map_while(Result::ok).find(|field| field.number == 1);
                name.is_some_and(
                    |name| matches!(name.value, FieldValue::Bytes { bytes, .. } if bytes == SCHED_SWITCH),
                )
            }
            _ => false,
        });
        self.kind = if is_switch { SampleKind::OffCpu } else { SampleKind::OnCpu };
    }
}

fn inner(mut message: Fields<'_>, number: u32) -> Option<Fields<'_>> {
    message.find_map(|field| match field.ok()? {
        Field { number: found, value: FieldValue::Bytes { bytes, offset }, .. } if found == number => {
            Some(Fields::new(bytes, offset))
        }
        _ => None,
    })
}

impl Sequence {
    /// Stores the interned parts of call stacks in a packet.
    pub(super) fn intern_stacks(
        &mut self,
        packet: &Packet<'_>,
        report: &mut Report,
    ) -> Result<(), DecodeError> {
        for part in packet.interned_stacks() {
            if !self.stacks.get_or_insert_default().add(part?)? {
                report.add("parts of call stacks left out: there are too many");
            }
        }
        if packet.defaults.is_some() {
            for field in packet.fields().map_while(Result::ok) {
                if let (trace_packet::TRACE_PACKET_DEFAULTS, FieldValue::Bytes { bytes, offset }) =
                    (field.number, field.value)
                    && (self.stacks.is_some() || inner(Fields::new(bytes, offset), 12).is_some())
                {
                    self.stacks.get_or_insert_default().set_kind(Fields::new(bytes, offset));
                }
            }
        }
        Ok(())
    }
}

impl State {
    /// Queues a sample.
    pub(super) fn sample(&mut self, index: usize, sample: &PerfSample, time: Option<i64>) {
        if sample.lost > 0 {
            self.pending.push_back(Pending::Loss(Loss { time, events: sample.lost, ..Loss::default() }));
        }
        let Some(time) = time else {
            self.report.add_defects("stack samples left out: their time is unknown", 1);
            return;
        };
        if sample.callstack != 0 {
            self.check_stack(index, sample.callstack);
        }
        self.sample =
            CurrentSample { time, sample: *sample, sequence: index, ..std::mem::take(&mut self.sample) };
        self.pending.push_back(Pending::Sample);
    }

    /// Counts undefined ids.
    fn check_stack(&mut self, index: usize, callstack: u64) {
        let stacks = self.sequences[index].stacks.as_deref();
        let Some(frames) = stacks.and_then(|stacks| stacks.callstacks.get(callstack)) else {
            return self
                .report
                .add_undefined("stack samples whose call stack has an undefined id", callstack);
        };
        for id in frames {
            if stacks.is_some_and(|stacks| stacks.frames.get(*id).is_none()) {
                self.report.add_undefined("frames of stack samples with an undefined id", *id);
            }
        }
    }

    pub(super) fn current_sample(&self) -> Sample<'_> {
        let CurrentSample { time, sample, sequence, .. } = &self.sample;
        Sample {
            time: *time,
            pid: u64::from(sample.pid),
            tid: u64::from(sample.tid),
            cpu: sample.cpu,
            kind: self.sequences[*sequence].stacks.as_deref().map_or(SampleKind::OnCpu, |stacks| stacks.kind),
            stack: self,
            copy: None,
        }
    }

    /// Queues the functions of addresses.
    pub(super) fn symbols(&mut self, symbols: &ModuleSymbols<'_>) -> Result<(), DecodeError> {
        let current = &mut self.sample;
        symbols.path.clone_into(&mut current.module);
        symbols.build_id.clone_into(&mut current.build_id);
        current.addresses.clear();
        for of in symbols.clone() {
            let of = of?;
            let line = |line: &hairline_formats::track_event::Line<'_>| SymbolLine {
                function: line.function.to_owned(),
                file: line.file.to_owned(),
                line: line.line,
            };
            current.addresses.push((of.address, of.lines.iter().map(line).collect()));
        }
        let all = 0..current.addresses.len();
        self.pending.extend(all.map(Pending::Symbols));
        Ok(())
    }

    pub(super) fn current_symbols(&self, index: usize) -> Symbols<'_> {
        let CurrentSample { module, build_id, addresses, .. } = &self.sample;
        let (address, lines) = &addresses[index];
        Symbols { module, build_id, address: *address, lines }
    }
}

impl Stack for State {
    fn each(&self, show: &mut dyn FnMut(StackFrame<'_>)) {
        let CurrentSample { sample, sequence, .. } = &self.sample;
        let Some(stacks) = self.sequences[*sequence].stacks.as_deref() else { return };
        let frames = stacks.callstacks.get(sample.callstack).map_or(&[][..], |frames| frames);
        for frame in frames.iter().filter_map(|id| stacks.frames.get(*id)) {
            let mapping = stacks.mappings.get(frame.mapping);
            show(StackFrame {
                function: stacks.functions.get(frame.function).map_or("", |name| name),
                module: mapping.map_or("", |mapping| &mapping.path),
                build_id: mapping
                    .and_then(|mapping| stacks.build_ids.get(mapping.build_id))
                    .map_or(&[], |id| id),
                address: frame.rel_pc,
            });
        }
    }
}
