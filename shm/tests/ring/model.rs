//! The ring beside a naive model. The same operations on both give the same results.

use std::collections::BTreeSet;

use hairline_shm::{LossReason, Pass, WriteChunk};
use proptest::prelude::*;

use crate::common::Sink;
use crate::{claim, output_bytes, ring};

#[derive(Clone, Debug)]
enum Op {
    Claim(usize),
    Append { slot: usize, len: u16, records: u32 },
    Complete(usize),
    Finish(usize),
    Drain,
    DrainRefused,
    Discard,
}

fn op() -> impl Strategy<Value = Op> {
    let slot = 0..MODEL_SLOTS;
    prop_oneof![
        4 => slot.clone().prop_map(Op::Claim),
        8 => (slot.clone(), prop_oneof![0..40_u16, 1500..4100_u16], 0..3_u32)
            .prop_map(|(slot, len, records)| Op::Append { slot, len, records }),
        3 => slot.clone().prop_map(Op::Complete),
        1 => slot.prop_map(Op::Finish),
        3 => Just(Op::Drain),
        1 => Just(Op::DrainRefused),
        1 => Just(Op::Discard),
    ]
}

const MODEL_SLOTS: usize = 5;
const MODEL_CHUNKS: u32 = 4;

/// A chunk writer: its chunk in the ring, and plain vectors with the same bytes.
#[derive(Default)]
struct Slot {
    chunk: Option<WriteChunk>,
    index: u32,
    /// The bytes in the present chunk, context included.
    used: usize,
    /// The bytes that are committed and not drained.
    pending: Vec<u8>,
    records: u64,
    /// The chunks that are complete and not drained.
    complete: Vec<u32>,
    /// The bytes that the output should have of this sequence.
    total: u64,
}

/// The model of the ring, for a single thread.
#[derive(Default)]
struct Model {
    slots: [Slot; MODEL_SLOTS],
    free: BTreeSet<u32>,
    output: Vec<u8>,
    last: Option<usize>,
    lost: u64,
}

fn context_of(slot: usize) -> &'static [u8] {
    [&b""[..], b"<one>", b"<2>", b"", b"<the fourth>"][slot]
}

impl Model {
    /// The expected results of a pass.
    fn drain(&mut self, keep: bool) -> Pass {
        let mut pass = Pass::default();
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if keep && !slot.pending.is_empty() {
                let before = self.output.len();
                if self.last != Some(i) {
                    self.output.extend_from_slice(context_of(i));
                }
                self.output.append(&mut slot.pending);
                self.last = Some(i);
                pass.bytes += (self.output.len() - before) as u64;
            }
            slot.pending.clear();
            pass.records += slot.records;
            slot.total += if keep { slot.records } else { 0 };
            slot.records = 0;
            pass.freed += u32::try_from(slot.complete.len()).unwrap();
            self.free.extend(slot.complete.drain(..));
        }
        pass
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ring_does_what_vectors_do(ops in proptest::collection::vec(op(), 0..120)) {
        let (region, mut drain) = ring(MODEL_CHUNKS);
        let mut sink = Sink::default();
        let mut model = Model { free: (0..MODEL_CHUNKS).collect(), ..Model::default() };
        let capacity = region.payload_len() as usize;
        for (step, op) in ops.into_iter().chain([Op::Drain]).enumerate() {
            match op {
                Op::Claim(i) => {
                    let slot = &mut model.slots[i];
                    if slot.chunk.is_none() {
                        slot.chunk = claim(&region, u32::try_from(i).unwrap(), slot.index, context_of(i));
                        let number = slot.chunk.as_ref().map(WriteChunk::number);
                        prop_assert_eq!(number, model.free.pop_first());
                        slot.used = context_of(i).len();
                        slot.index += u32::from(number.is_some());
                    }
                }
                Op::Append { slot, len, records } => {
                    let slot = &mut model.slots[slot];
                    if let Some(chunk) = &mut slot.chunk {
                        let bytes = vec![step.to_le_bytes()[0]; usize::from(len)];
                        let fits = slot.used + bytes.len() <= capacity;
                        prop_assert_eq!(chunk.append(&bytes, records), fits);
                        if fits {
                            slot.used += bytes.len();
                            slot.pending.extend_from_slice(&bytes);
                            slot.records += u64::from(records);
                        }
                    }
                }
                Op::Complete(i) => {
                    let slot = &mut model.slots[i];
                    slot.complete.extend(slot.chunk.take().map(|chunk| chunk.number()));
                }
                Op::Finish(i) => {
                    let slot = &mut model.slots[i];
                    if let Some(chunk) = slot.chunk.take() {
                        slot.complete.push(chunk.number());
                        chunk.finish_sequence();
                        // The same number may be used again after the drain has seen the end.
                        let pass = drain.pass(&mut sink).unwrap();
                        model.slots[i].index = 0;
                        prop_assert_eq!(pass, model.drain(true));
                    }
                }
                Op::Drain => {
                    let pass = drain.pass(&mut sink).unwrap();
                    prop_assert_eq!(pass, model.drain(true));
                }
                Op::DrainRefused => {
                    sink.fails_after = Some(0);
                    let refused = drain.pass(&mut sink);
                    // A pass without bytes does not write, so it cannot fail.
                    let nothing = model.slots.iter().all(|slot| slot.pending.is_empty());
                    prop_assert_eq!(refused.is_ok(), nothing);
                    if let Ok(pass) = refused {
                        prop_assert_eq!(pass, model.drain(true));
                    }
                    sink.fails_after = None;
                }
                Op::Discard => {
                    let pass = drain.discard();
                    let expected = model.drain(false);
                    prop_assert_eq!((pass.records, pass.freed), (expected.records, expected.freed));
                    model.lost += expected.records;
                }
            }
            prop_assert_eq!(region.free_chunks() as usize, model.free.len());
            prop_assert_eq!(region.has_free_chunk(), !model.free.is_empty());
            prop_assert_eq!(&sink.bytes, &model.output);
            prop_assert_eq!(output_bytes(&region), sink.bytes.len() as u64);
            prop_assert_eq!(region.lost(LossReason::Output), model.lost);
        }
        for (i, slot) in model.slots.iter().enumerate() {
            let counted = drain.records_by_sequence().get(&u32::try_from(i).unwrap()).copied();
            prop_assert_eq!(counted.unwrap_or(0), slot.total);
        }
    }
}
