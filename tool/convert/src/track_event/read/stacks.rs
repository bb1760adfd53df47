//! The interned parts of call stacks, and the current sample.

use std::sync::Arc;

use hairline_formats::DecodeError;
use hairline_formats::proto::{Field, FieldValue, Fields};
use hairline_formats::track_event::{
    EVENT_TRACEPOINT, Frame, HeapSample, InternedStack, Numbers, PerfSample, WALL_TRACEPOINT,
};

use crate::track_event::read::table::Table;
use crate::{SampleKind, SymbolLine};

/// The limit for the interned parts of one sequence, in units of about 50 bytes.
const MOST_PARTS: usize = 1 << 21;
/// The limit for the bytes of their texts.
const MOST_BYTES: usize = 32 << 20;

/// The limit for the frames of one call stack: the outermost ones, and the innermost. Each sample shows them.
const MOST_FRAMES: usize = 1 << 12;

/// Of `PerfEvents.Counter`: the clocks of CPU time, the counter of context switches; the tracepoint for the
/// latter.
const CPU_CLOCK: u64 = 1;
const TASK_CLOCK: u64 = 3;
const CONTEXT_SWITCHES: u64 = 4;
const SCHED_SWITCH: &[u8] = b"sched:sched_switch";

/// The interned parts of call stacks.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) functions: Table<Arc<str>>,
    pub(super) paths: Table<Arc<str>>,
    pub(super) build_ids: Table<Arc<[u8]>>,
    pub(super) mappings: Table<StackModule>,
    pub(super) frames: Table<Frame>,
    pub(super) callstacks: Table<Box<[u64]>>,
    pub(super) kind: SampleKind,
    /// The CPU time between two samples, in nanoseconds; 0 if unknown.
    pub(super) period: u64,
    pub(super) parts: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct StackModule {
    pub(super) build_id: u64,
    pub(super) path: Arc<str>,
}

/// The call stack of the current event or sample.
#[derive(Debug, Default)]
pub(super) enum CurrentStack {
    #[default]
    None,
    /// The index of a sequence, and the interning id.
    Interned(usize, u64),
    /// The message.
    Inline(Vec<u8>),
}

/// The current sample, and the current packet of symbols.
#[derive(Debug, Default)]
pub(super) struct CurrentSample {
    pub(super) time: i64,
    pub(super) sample: PerfSample,
    pub(super) sequence: usize,
    pub(super) module: String,
    pub(super) build_id: Vec<u8>,
    pub(super) addresses: Vec<(u64, Vec<SymbolLine>)>,
    /// The dumps of the current packet: processes and sums.
    pub(super) sums: Vec<(u32, HeapSample)>,
}

impl Stacks {
    /// Stores an interned part. Returns `false` if there are too many, or too many frames in it.
    pub(super) fn add(&mut self, part: InternedStack<'_, Numbers<'_>>) -> Result<bool, DecodeError> {
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
                let (mut kept, mut innermost) = (Vec::new(), None);
                for frame in frames {
                    let frame = frame?;
                    if kept.len() < MOST_FRAMES {
                        kept.push(frame);
                    } else {
                        innermost = Some(frame);
                    }
                }
                if let (Some(last), Some(innermost)) = (kept.last_mut(), innermost) {
                    *last = innermost;
                }
                self.parts += kept.len() / 4;
                self.callstacks.set(iid, kept.into());
                return Ok(innermost.is_none());
            }
        }
        Ok(true)
    }

    /// Reads what the samples of the sequence were taken at.
    pub(super) fn set_timebase(&mut self, defaults: Fields<'_>) {
        // TracePacketDefaults.perf_sample_defaults.timebase
        let Some(timebase) = inner(defaults, 12).and_then(|samples| inner(samples, 1)) else { return };
        let (mut period, mut counter) = (0, CPU_CLOCK);
        self.kind = SampleKind::OnCpu;
        for field in timebase.map_while(Result::ok) {
            match (field.number, field.value) {
                (1, FieldValue::Varint(nanoseconds)) => period = nanoseconds,
                (2, FieldValue::Varint(frequency)) => {
                    period = 1_000_000_000_u64.checked_div(frequency).unwrap_or(0);
                }
                (4, FieldValue::Varint(of)) => counter = of,
                (3, FieldValue::Bytes { bytes, offset }) => {
                    counter = 0;
                    self.kind = of_tracepoint(Fields::new(bytes, offset));
                }
                (5, _) => counter = 0, // a raw event
                _ => {}
            }
        }
        if counter == CONTEXT_SWITCHES {
            self.kind = SampleKind::OffCpu;
        }
        let has_time = [CPU_CLOCK, TASK_CLOCK].contains(&counter) || self.kind == SampleKind::Wall;
        self.period = if has_time { period } else { 0 };
    }
}

/// What the samples of a tracepoint were taken for: those of context switches, and of events, have kinds of
/// their own.
fn of_tracepoint(mut tracepoint: Fields<'_>) -> SampleKind {
    let name = tracepoint.find_map(|field| match field {
        Ok(Field { number: 1, value: FieldValue::Bytes { bytes, .. }, .. }) => Some(bytes),
        _ => None,
    });
    match name {
        Some(SCHED_SWITCH) => SampleKind::OffCpu,
        Some(name) if name == EVENT_TRACEPOINT.as_bytes() => SampleKind::Event,
        Some(name) if name == WALL_TRACEPOINT.as_bytes() => SampleKind::Wall,
        _ => SampleKind::OnCpu,
    }
}

/// The message in a field.
pub(super) fn inner(mut message: Fields<'_>, number: u32) -> Option<Fields<'_>> {
    message.find_map(|field| match field.ok()? {
        Field { number: found, value: FieldValue::Bytes { bytes, offset }, .. } if found == number => {
            Some(Fields::new(bytes, offset))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use hairline_formats::track_event::{self as te, PacketReader, SequenceId};

    use super::*;

    #[test]
    fn a_deep_stack_keeps_its_outermost_frames_and_its_innermost() {
        let (frames, mut trace) = ((1..=100_000).collect::<Vec<_>>(), Vec::new());
        let parts = [InternedStack::Callstack { iid: 1, frames: &frames[..] }];
        te::interned_stacks(&mut trace, SequenceId(1), true, &parts);
        let mut reader = PacketReader::new(&trace[..]);
        let (_, packet) = reader.next().unwrap().unwrap();
        let mut stacks = Stacks::default();
        for part in packet.interned_stacks() {
            assert!(!stacks.add(part.unwrap()).unwrap(), "frames are left out");
        }
        let kept = stacks.callstacks.get(1).unwrap();
        assert_eq!((kept.len(), kept[MOST_FRAMES - 2], kept[MOST_FRAMES - 1]), (4096, 4095, 100_000));
    }
}
