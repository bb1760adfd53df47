//! Stack samples, and the functions of addresses.

use hairline_formats::DecodeError;
use hairline_formats::proto::{FieldValue, Fields};
use hairline_formats::track_event::{
    Callstack, InlineFrames, Line, ModuleSymbols, Packet, PerfSample, SourceLocation, TrackEvent,
    fields::trace_packet,
};

use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::Sequence;
use crate::track_event::read::stacks::{CurrentSample, CurrentStack, Stacks, inner};
use crate::track_event::read::state::State;
use crate::{Loss, Report, Sample, SampleKind, Stack, StackFrame, SymbolLine, Symbols};

impl Sequence {
    /// Stores the interned parts of call stacks in a packet.
    pub(super) fn intern_stacks(
        &mut self,
        packet: &Packet<'_>,
        report: &mut Report,
    ) -> Result<(), DecodeError> {
        let mut parts = packet.interned_stacks();
        for part in &mut parts {
            if !self.rest_mut().stacks.get_or_insert_default().add(part?)? {
                report.add("parts of call stacks left out: there are too many");
            }
        }
        report.add_many("unknown fields", parts.skipped().into());
        if packet.defaults.is_some() {
            for field in packet.fields().map_while(Result::ok) {
                if let (trace_packet::TRACE_PACKET_DEFAULTS, FieldValue::Bytes { bytes, offset }) =
                    (field.number, field.value)
                    && (self.rest().stacks.is_some() || inner(Fields::new(bytes, offset), 12).is_some())
                {
                    self.rest_mut().stacks.get_or_insert_default().set_timebase(Fields::new(bytes, offset));
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
            let what = "stack samples whose call stack has an undefined id";
            self.check_stack(index, sample.callstack, what, "frames of stack samples with an undefined id");
        }
        self.stack = CurrentStack::Interned(index, sample.callstack);
        self.sample =
            CurrentSample { time, sample: *sample, sequence: index, ..std::mem::take(&mut self.sample) };
        self.pending.push_back(Pending::Sample);
    }

    /// Counts undefined ids, of a call stack as `what` and of its frames as `frames`.
    fn check_stack(&mut self, index: usize, callstack: u64, what: &'static str, frames: &'static str) {
        let stacks = self.sequences[index].rest().stacks.as_deref();
        let Some(ids) = stacks.and_then(|stacks| stacks.callstacks.get(callstack)) else {
            return self.report.add_undefined(what, callstack);
        };
        for id in ids {
            if stacks.is_some_and(|stacks| stacks.frames.get(*id).is_none()) {
                self.report.add_undefined(frames, *id);
            }
        }
    }

    /// Stores the call stack of the current event.
    pub(super) fn take_stack(&mut self, index: usize, event: &TrackEvent<'_>) -> Result<(), DecodeError> {
        match &event.callstack {
            Some(Callstack::Iid(iid)) => {
                let what = "events whose call stack has an undefined id";
                self.check_stack(index, *iid, what, "frames of events with an undefined id");
                self.stack = CurrentStack::Interned(index, *iid);
            }
            Some(Callstack::Inline(frames)) => {
                for frame in frames.clone() {
                    frame?;
                }
                self.stack = CurrentStack::Inline(frames.bytes().to_vec());
            }
            None => {}
        }
        self.current.has_stack = event.callstack.is_some();
        self.current.stack_weight = event.callstack_weight;
        Ok(())
    }

    /// Returns whether the call stack is interned on the sequence.
    pub(super) fn has_stack(&self, index: usize, callstack: u64) -> bool {
        self.stacks(index).is_some_and(|stacks| stacks.callstacks.get(callstack).is_some())
    }

    fn stacks(&self, index: usize) -> Option<&Stacks> {
        self.sequences[index].rest().stacks.as_deref()
    }

    pub(super) fn current_sample(&self) -> Sample<'_> {
        let CurrentSample { time, sample, sequence, .. } = &self.sample;
        let stacks = self.stacks(*sequence);
        Sample {
            time: *time,
            pid: u64::from(sample.pid),
            tid: u64::from(sample.tid),
            cpu: sample.cpu,
            kind: stacks.map_or(SampleKind::OnCpu, |stacks| stacks.kind),
            period: stacks.map_or(0, |stacks| stacks.period),
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
        match &self.stack {
            CurrentStack::None => {}
            CurrentStack::Interned(sequence, callstack) => {
                if let Some(stacks) = self.stacks(*sequence) {
                    stacks.each_frame(*callstack, show);
                }
            }
            CurrentStack::Inline(message) => {
                for SourceLocation { file, function, line } in
                    InlineFrames::new(message, 0).map_while(Result::ok)
                {
                    show(StackFrame { function, file, line, ..StackFrame::default() });
                }
            }
        }
    }
}

impl Stacks {
    fn each_frame(&self, callstack: u64, show: &mut dyn FnMut(StackFrame<'_>)) {
        let frames = self.callstacks.get(callstack).map_or(&[][..], |frames| frames);
        for frame in frames.iter().filter_map(|id| self.frames.get(*id)) {
            let mapping = self.mappings.get(frame.mapping);
            let build_id = mapping.and_then(|mapping| self.build_ids.get(mapping.build_id));
            show(StackFrame {
                function: self.functions.get(frame.function).map_or("", |name| name),
                module: mapping.map_or("", |mapping| &mapping.path),
                build_id: build_id.map_or(&[], |id| id),
                address: frame.rel_pc,
                ..StackFrame::default()
            });
        }
    }
}
