//! Reads heap profiles.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{heap_sample, process_heap_samples, profile_packet};
use crate::track_event::heap::{HeapDump, HeapSample};

/// The dumps of a packet, one for each process and heap. Heap profiles of other tools can have their call
/// stacks in the packet itself: these are not read.
#[derive(Clone, Debug)]
pub struct HeapDumps<'a> {
    index: u64,
    is_continued: bool,
    message: Fields<'a>,
}

impl<'a> HeapDumps<'a> {
    pub(super) fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut dumps = Self { index: 0, is_continued: false, message: message.clone() };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (profile_packet::INDEX, FieldValue::Varint(v)) => dumps.index = v,
                (profile_packet::CONTINUED, FieldValue::Varint(v)) => dumps.is_continued = v != 0,
                _ => {}
            }
        }
        Ok(dumps)
    }
}

impl<'a> Iterator for HeapDumps<'a> {
    type Item = Result<(HeapDump<'a>, HeapSamples<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.message.next_message(profile_packet::PROCESS_DUMPS)?;
        Some(message.and_then(|message| {
            let mut dump =
                HeapDump { index: self.index, is_continued: self.is_continued, ..HeapDump::default() };
            for field in message.clone() {
                let field = field?;
                match (field.number, field.value) {
                    (process_heap_samples::PID, FieldValue::Varint(v)) => dump.pid = v as u32,
                    (process_heap_samples::TIMESTAMP, FieldValue::Varint(v)) => dump.coarse_ns = v,
                    (process_heap_samples::SAMPLING_INTERVAL_BYTES, FieldValue::Varint(v)) => {
                        dump.interval = v;
                    }
                    (process_heap_samples::BUFFER_OVERRAN, FieldValue::Varint(v)) => dump.has_losses = v != 0,
                    (process_heap_samples::HEAP_NAME, value) => dump.heap = value.text().unwrap_or(""),
                    _ => {}
                }
            }
            Ok((dump, HeapSamples(message)))
        }))
    }
}

/// The call stacks of a dump.
#[derive(Clone, Debug)]
pub struct HeapSamples<'a>(Fields<'a>);

impl Iterator for HeapSamples<'_> {
    type Item = Result<HeapSample, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_message(process_heap_samples::SAMPLES)?.and_then(sample))
    }
}

fn sample(message: Fields<'_>) -> Result<HeapSample, DecodeError> {
    let mut sample = HeapSample::default();
    let (mut max, mut max_count) = (None, None);
    for field in message {
        let field = field?;
        let FieldValue::Varint(v) = field.value else { continue };
        match field.number {
            heap_sample::CALLSTACK_ID => sample.callstack = v,
            heap_sample::SELF_ALLOCATED => sample.allocated = v,
            heap_sample::SELF_FREED => sample.freed = v,
            heap_sample::ALLOC_COUNT => sample.allocations = v,
            heap_sample::FREE_COUNT => sample.frees = v,
            heap_sample::SELF_MAX => max = Some(v),
            heap_sample::SELF_MAX_COUNT => max_count = Some(v),
            _ => {}
        }
    }
    // heapprofd, when it dumps at the maximum.
    sample.allocated = max.unwrap_or(sample.allocated);
    sample.allocations = max_count.unwrap_or(sample.allocations);
    Ok(sample)
}
