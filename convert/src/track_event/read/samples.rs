//! Stack samples, and the functions of addresses.

use hairline_formats::DecodeError;
use hairline_formats::proto::{FieldValue, Fields};
use hairline_formats::track_event::{Line, ModuleSymbols, Packet, PerfSample, fields::trace_packet};

use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::Sequence;
use crate::track_event::read::stacks::{CurrentSample, inner};
use crate::track_event::read::state::State;
use crate::{Loss, Report, Sample, SampleKind, Stack, StackFrame, SymbolLine, Symbols};

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
            mode: sample.mode,
            unwind_error: sample.unwind_error,
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
            let line = |line: &Line<'_>| SymbolLine {
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
