//! The ring's behaviour through its public API, on real threads.
//!
//! In the drawings `[...]` is a chunk, `C` its context, `|` says that its owner gave it back, `...` that it is
//! still being written.

#![cfg(not(loom))]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use hairline_shm::abi::MAGIC;
use hairline_shm::{
    About, Backing, BackingChoice, ChunkInfo, Drain, LossReason, Pass, Region, RegionConfig, RegionError,
    WriteChunk,
};
use proptest::prelude::*;

use common::Sink;

const CHUNK: u32 = 4096;

fn config(chunks: u32) -> RegionConfig {
    RegionConfig { buffer_size: u64::from(chunks * CHUNK), ..RegionConfig::small() }
}

fn ring(chunks: u32) -> (Arc<Region>, Drain) {
    let region = Region::create(&config(chunks)).unwrap();
    let drain = Drain::new(Arc::clone(&region));
    (region, drain)
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8]) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, context)
}

/// A whole life of a chunk: one record, and given back.
fn write_chunk(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8], record: &[u8]) {
    let mut chunk = claim(region, sequence, index, context).unwrap();
    assert!(chunk.append(record, 1));
}

// ---- room in a chunk

// [r........................r]   the record fills the payload to its last byte
#[test]
fn a_chunk_takes_a_record_that_fills_it_exactly() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    let record: Vec<u8> = (0..chunk.capacity()).map(|i| (i % 251) as u8).collect();
    assert!(chunk.append(&record, 1));
    assert_eq!(chunk.committed().bytes(), chunk.capacity());
    assert!(!chunk.append(b"x", 1));
    assert!(chunk.append(b"", 0), "nothing still fits a full chunk");
    let mut sink = Sink::default();
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, record);
}

// [C][r......................|r]   one byte too long; then one that fits
#[test]
fn a_record_one_byte_too_long_is_refused_and_changes_nothing() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"ctx").unwrap();
    let before = chunk.committed();
    assert_eq!((before.bytes(), before.records()), (3, 0));
    let room = chunk.capacity() as usize - 3;
    assert!(!chunk.append(&vec![b'x'; room + 1], 1));
    assert_eq!(chunk.committed(), before);
    let mut sink = Sink::default();
    assert_eq!(drain.pass(&mut sink).unwrap(), Pass::default());
    assert!(chunk.append(&vec![b'y'; room], 1));
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, [&b"ctx"[..], &vec![b'y'; room]].concat());
}

// [C]...   [C]|   committed, but there is no byte to put a context before
#[test]
fn an_append_of_nothing_counts_its_records_and_writes_no_byte() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"ctx").unwrap();
    assert!(chunk.append(b"", 1));
    let mut sink = Sink::default();
    let pass = drain.pass(&mut sink).unwrap();
    assert_eq!(pass, Pass { bytes: 0, records: 1, freed: 0 });
    drop(chunk);
    assert_eq!(drain.pass(&mut sink).unwrap().freed, 1);
    assert_eq!((sink.bytes.len(), sink.calls), (0, 0));
}

#[test]
fn a_context_that_leaves_no_room_is_refused_and_costs_no_chunk() {
    let (region, _drain) = ring(4);
    let context = vec![0; region.payload_len() as usize];
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| claim(&region, 1, 0, &context)));
    assert!(refused.is_err());
    assert_eq!(region.free_chunks(), 4);
}

// ---- free chunks

// [1][2][3][4]   -> None;   [1]|[2][3][4] -> None;   drained -> chunk 0
#[test]
fn a_full_ring_has_a_chunk_again_when_the_drain_has_taken_a_complete_one() {
    let (region, mut drain) = ring(4);
    let mut held: Vec<_> = (1..=4).map(|s| claim(&region, s, 0, b"").unwrap()).collect();
    assert!(claim(&region, 5, 0, b"").is_none());
    drop(held.remove(0));
    assert!(claim(&region, 5, 0, b"").is_none(), "given back is not yet drained");
    assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 1);
    assert_eq!(claim(&region, 5, 0, b"").unwrap().number(), 0);
}

// [0..63][64..127][128..129]   three words of the bitmap, the last one with two bits
#[test]
fn every_chunk_of_a_bitmap_with_a_broken_last_word_is_claimed_once_lowest_first() {
    let (region, mut drain) = ring(130);
    let numbers: Vec<u32> = (0..130).map(|s| claim(&region, s, 0, b"").unwrap().number()).collect();
    assert_eq!(numbers, (0..130).collect::<Vec<_>>());
    assert!(claim(&region, 130, 0, b"").is_none());
    assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 130);
    assert_eq!(region.free_chunks(), 130);
}

// ---- order in a sequence

// sequence 1:  [a]...  [b]|     both in the owner's hands for a moment, as at every change of chunk
#[test]
fn a_complete_chunk_waits_for_the_one_before_it() {
    let (region, mut drain) = ring(4);
    let mut first = claim(&region, 1, 0, b"").unwrap();
    assert!(first.append(b"a", 1));
    write_chunk(&region, 1, 1, b"", b"b");
    let mut sink = Sink::default();
    assert_eq!(drain.pass(&mut sink).unwrap().freed, 0);
    assert_eq!(sink.bytes, b"a");
    assert!(first.append(b"A", 1));
    drop(first);
    assert_eq!(drain.pass(&mut sink).unwrap().freed, 2);
    assert_eq!(sink.bytes, b"aAb");
}

// sequence 1:  [a]| [b]| last      sequence 1 once more, from index 0:  [c]|
#[test]
fn a_finished_sequence_begins_anew_at_index_zero() {
    let (region, mut drain) = ring(4);
    write_chunk(&region, 1, 0, b"", b"a");
    let mut last = claim(&region, 1, 1, b"").unwrap();
    assert!(last.append(b"b", 1));
    last.finish_sequence();
    let mut sink = Sink::default();
    drain.pass(&mut sink).unwrap();
    write_chunk(&region, 1, 0, b"", b"c");
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"abc");
    assert_eq!(region.free_chunks(), 4);
}

// ---- context

// 1: [C1 a]|            [b]|         output: C1a  C2x  C1b
// 2:        [C2 x]...                a context where the sequence changes, and nowhere else
#[test]
fn a_context_stands_before_a_fragment_exactly_when_the_sequence_changed() {
    let (region, mut drain) = ring(4);
    let mut sink = Sink::default();
    let mut one = claim(&region, 1, 0, b"<1>").unwrap();
    assert!(one.append(b"a", 1));
    drain.pass(&mut sink).unwrap();
    assert!(one.append(b"b", 1));
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>ab", "the same chunk goes on");
    drop(one);
    write_chunk(&region, 1, 1, b"<1>", b"c");
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>abc", "the next chunk of the same sequence goes on");
    let mut two = claim(&region, 2, 0, b"<2>").unwrap();
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>abc", "a chunk without a record has no fragment");
    assert!(two.append(b"x", 1));
    write_chunk(&region, 1, 2, b"<1>", b"d");
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>abcd<2>x", "sequences are taken in the order of their numbers");
    write_chunk(&region, 1, 3, b"<1>", b"e");
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>abcd<2>x<1>e");
}

#[test]
fn a_sequence_without_context_still_separates_two_fragments_of_another() {
    let (region, mut drain) = ring(4);
    let mut sink = Sink::default();
    for (sequence, index, context, record) in
        [(1, 0, &b"<1>"[..], b"a"), (2, 0, b"", b"x"), (1, 1, b"<1>", b"b")]
    {
        write_chunk(&region, sequence, index, context, record);
        drain.pass(&mut sink).unwrap();
    }
    assert_eq!(sink.bytes, b"<1>ax<1>b");
}

#[test]
fn the_context_comes_again_after_something_else_was_put_into_the_output() {
    let (region, mut drain) = ring(4);
    let mut sink = Sink::default();
    let mut chunk = claim(&region, 1, 0, b"<1>").unwrap();
    for record in [b"a", b"b"] {
        assert!(chunk.append(record, 1));
        drain.pass(&mut sink).unwrap();
        sink.bytes.extend_from_slice(b"!");
        drain.forget_last_sequence();
    }
    assert_eq!(sink.bytes, b"<1>a!<1>b!");
}

// 1: [C1 a]...             in the output
// 2: [C2 x]... [y]...      x discarded, y in the output: nobody has said yet that 2 speaks
#[test]
fn what_was_discarded_is_not_the_last_fragment_of_the_output() {
    let (region, mut drain) = ring(4);
    let mut sink = Sink::default();
    let mut one = claim(&region, 1, 0, b"<1>").unwrap();
    let mut two = claim(&region, 2, 0, b"<2>").unwrap();
    assert!(one.append(b"a", 1));
    drain.pass(&mut sink).unwrap();
    assert!(two.append(b"x", 1));
    assert_eq!(drain.discard().records, 1);
    assert!(two.append(b"y", 1));
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>a<2>y");
}

// ---- an output that fails

// pass 1 refused; pass 2: everything, once
#[test]
fn what_a_failing_output_refused_is_offered_again_once() {
    let (region, mut drain) = ring(8);
    let mut sink = Sink { fails_after: Some(0), ..Sink::default() };
    let mut writing = claim(&region, 1, 0, b"<1>").unwrap();
    assert!(writing.append(b"a", 1));
    write_chunk(&region, 2, 0, b"<2>", b"x");
    drain.pass(&mut sink).unwrap_err();
    assert_eq!((region.free_chunks(), drain.records_by_sequence().len()), (6, 0), "nothing is settled");
    assert!(writing.append(b"b", 1));
    let pass = drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>ab<2>x");
    assert_eq!(pass, Pass { bytes: 9, records: 3, freed: 1 });
    assert_eq!(drain.pass(&mut sink).unwrap(), Pass::default());
    assert_eq!(sink.bytes.len(), 9);
    assert_eq!(region.lost(LossReason::Output), 0);
}

// 1200 sequences, a context each: 2400 parts, more than one write takes; the second write fails
#[test]
fn a_pass_of_several_writes_that_fails_midway_loses_nothing_and_repeats_nothing() {
    let (region, mut drain) = ring(1200);
    let mut expected = BTreeSet::new();
    for sequence in 0..1200_u32 {
        let record = sequence.to_le_bytes();
        write_chunk(&region, sequence, 0, b"C", &record);
        expected.insert(record);
    }
    let mut sink = Sink { fails_after: Some(1), ..Sink::default() };
    drain.pass(&mut sink).unwrap_err();
    let first = sink.bytes.len();
    assert!(first > 0 && first < 1200 * 5);
    assert_eq!(region.free_chunks() as usize, first / 5, "what was written is free");
    assert_eq!(output_bytes(&region), first as u64, "what was written is counted, though the pass failed");
    drain.pass(&mut sink).unwrap();
    let records: Vec<[u8; 4]> = sink.bytes.chunks(5).map(|c| [c[1], c[2], c[3], c[4]]).collect();
    assert_eq!(records.len(), 1200);
    assert_eq!(records.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(output_bytes(&region), 1200 * 5);
}

fn output_bytes(region: &Region) -> u64 {
    region.header().output_bytes.load(Ordering::Relaxed)
}

#[test]
fn discarded_records_are_counted_as_lost_to_the_output_and_their_chunks_are_freed() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"ctx").unwrap();
    assert!(chunk.append(b"ab", 2));
    assert!(chunk.append(b"string", 0));
    drop(chunk);
    let mut sink = Sink { fails_after: Some(0), ..Sink::default() };
    drain.pass(&mut sink).unwrap_err();
    let pass = drain.discard();
    assert_eq!((pass.records, pass.freed), (2, 1));
    assert_eq!(region.lost(LossReason::Output), 2);
    assert_eq!(region.free_chunks(), 4);
    assert_eq!(output_bytes(&region), 0);
    assert_eq!(drain.records_by_sequence().get(&1), None);
    assert_eq!(drain.pass(&mut sink).unwrap(), Pass::default());
}

// ---- threads

/// A stream of framed records, written as fast as the ring lets it; waits where the ring is full.
///
/// ```text
/// context: C sequence:u32          record: R sequence:u32 number:u32 len:u16 bytes
/// ```
struct Writer {
    region: Arc<Region>,
    sequence: u32,
    index: u32,
    chunk: Option<WriteChunk>,
}

impl Writer {
    fn new(region: &Arc<Region>) -> Self {
        Self { region: Arc::clone(region), sequence: region.new_sequence(), index: 0, chunk: None }
    }

    fn write(&mut self, number: u32, len: u16) {
        let mut record = vec![b'R'];
        record.extend_from_slice(&self.sequence.to_le_bytes());
        record.extend_from_slice(&number.to_le_bytes());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend((0..len).map(|i| filling(self.sequence, number, i)));
        while !self.chunk.as_mut().is_some_and(|chunk| chunk.append(&record, 1)) {
            self.chunk = None; // gives the full one back before it asks for another
            let mut context = vec![b'C'];
            context.extend_from_slice(&self.sequence.to_le_bytes());
            self.chunk = claim(&self.region, self.sequence, self.index, &context);
            match self.chunk {
                Some(_) => self.index += 1,
                None => thread::yield_now(),
            }
        }
    }

    fn finish(self) {
        if let Some(chunk) = self.chunk {
            chunk.finish_sequence();
        }
    }
}

fn filling(sequence: u32, number: u32, i: u16) -> u8 {
    sequence.wrapping_mul(31).wrapping_add(number).wrapping_add(u32::from(i)).to_le_bytes()[0]
}

/// Reads what `Writer`s wrote: every record whole, under its own context, in order, once; a context only where
/// the sequence changes. Says how many records each sequence has.
fn read_back(mut bytes: &[u8]) -> BTreeMap<u32, u32> {
    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }
    let mut records = BTreeMap::new();
    let mut speaking = None;
    while !bytes.is_empty() {
        let sequence = u32_at(bytes, 1);
        if bytes[0] == b'C' {
            assert_ne!(speaking, Some(sequence), "a context that says nothing new");
            speaking = Some(sequence);
            bytes = &bytes[5..];
            assert_eq!(bytes[0], b'R', "a context with no record after it");
            continue;
        }
        assert_eq!(bytes[0], b'R');
        assert_eq!(speaking, Some(sequence), "a record under another's context");
        let number = u32_at(bytes, 5);
        let next = records.entry(sequence).or_insert(0);
        assert_eq!(number, *next, "a record out of order in sequence {sequence}");
        *next += 1;
        let len = u16::from_le_bytes([bytes[9], bytes[10]]);
        let filled = bytes[11..11 + usize::from(len)].iter().enumerate();
        for (i, &byte) in filled {
            assert_eq!(
                byte,
                filling(sequence, number, u16::try_from(i).unwrap()),
                "a byte of another record"
            );
        }
        bytes = &bytes[11 + usize::from(len)..];
    }
    records
}

/// Drains until `done`, then what is left.
fn drain_until(drain: &mut Drain, done: &AtomicBool) -> Sink {
    let mut sink = Sink::default();
    loop {
        let last = done.load(Ordering::Acquire);
        if drain.pass(&mut sink).unwrap() == Pass::default() {
            thread::yield_now();
        }
        if last {
            return sink;
        }
    }
}

// w1: [..]|[..]|[..]...   \
// w2: [..]|[..]...         +--> five chunks, so a writer waits more often than not; the drain never rests
// w3, w4                  /
#[test]
fn four_writers_in_a_tiny_ring_lose_nothing_while_the_drain_runs() {
    const RECORDS: u32 = if cfg!(debug_assertions) { 4_000 } else { 20_000 };
    let (region, mut drain) = ring(5);
    let done = AtomicBool::new(false);
    let sink = thread::scope(|scope| {
        let drainer = scope.spawn(|| drain_until(&mut drain, &done));
        let writers: Vec<_> = (0..4_u16)
            .map(|w| {
                let region = &region;
                scope.spawn(move || {
                    let mut writer = Writer::new(region);
                    for n in 0..RECORDS {
                        let len = (n % 97) as u16 * (w + 1);
                        writer.write(n, len);
                    }
                    writer.finish();
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Release);
        drainer.join().unwrap()
    });
    let records = read_back(&sink.bytes);
    assert_eq!(records, (1..=4).map(|s| (s, RECORDS)).collect());
    assert_eq!(region.free_chunks(), 5);
    assert_eq!(output_bytes(&region), sink.bytes.len() as u64);
}

// 300 threads, all alive at once, a chunk each in a ring of five words of bitmap
#[test]
fn three_hundred_threads_each_have_a_sequence_of_their_own() {
    const THREADS: u32 = 300;
    let (region, mut drain) = ring(THREADS);
    let done = AtomicBool::new(false);
    let all_alive = Barrier::new(THREADS as usize);
    let sink = thread::scope(|scope| {
        let drainer = scope.spawn(|| drain_until(&mut drain, &done));
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut writer = Writer::new(&region);
                    writer.write(0, 10);
                    all_alive.wait();
                    (1..4).for_each(|n| writer.write(n, 10));
                    writer.finish();
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Release);
        drainer.join().unwrap()
    });
    assert_eq!(read_back(&sink.bytes), (1..=THREADS).map(|s| (s, 4)).collect());
    assert_eq!(region.free_chunks(), THREADS);
    let counted: BTreeMap<u32, u64> = drain.records_by_sequence().iter().map(|(&s, &n)| (s, n)).collect();
    assert_eq!(counted, (1..=THREADS).map(|s| (s, 4)).collect());
}

// t1: claims, appends  -- moves the chunk -->  t2: appends, gives it back
#[test]
fn a_chunk_may_be_handed_to_another_thread() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"a", 1));
    thread::spawn(move || assert!(chunk.append(b"b", 1))).join().unwrap();
    let mut sink = Sink::default();
    assert_eq!(drain.pass(&mut sink).unwrap().freed, 1);
    assert_eq!(sink.bytes, b"ab");
}

#[test]
fn a_chunk_outlives_every_other_handle_on_its_region() {
    let (region, drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    drop((region, drain));
    assert!(chunk.append(&[7; 1000], 1));
}

// ---- a naive model

#[derive(Clone, Debug)]
enum Op {
    Claim(usize),
    Append { slot: usize, len: u16, records: u32 },
    Complete(usize),
    Finish(usize),
    Drain,
    DrainRefused,
    Discard,
    Forget,
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
        1 => Just(Op::Forget),
    ]
}

const MODEL_SLOTS: usize = 5;
const MODEL_CHUNKS: u32 = 4;

/// One thread writer: its chunk in the ring, and beside it plain vectors of the same bytes.
#[derive(Default)]
struct Slot {
    chunk: Option<WriteChunk>,
    index: u32,
    /// Payload bytes of the chunk in hand, context included.
    used: usize,
    /// Committed and not drained.
    pending: Vec<u8>,
    records: u64,
    /// Chunks given back and not drained.
    complete: Vec<u32>,
    /// Everything the output should have of this sequence.
    total: u64,
}

/// The whole ring as a single thread sees it.
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
    /// What a pass should say, and what it should leave.
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
                        // The number may be used anew when the drain has seen the end.
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
                    // Without a byte to write there is nothing to refuse.
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
                Op::Forget => {
                    drain.forget_last_sequence();
                    model.last = None;
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

// ---- memory

/// One body for every kind of memory.
fn works_on(choice: BackingChoice) -> Arc<Region> {
    let config = RegionConfig { backing: choice, process_name: "a-name".into(), ..config(5) };
    let region = Region::create(&config).unwrap();
    region.populate(1..usize::MAX); // what lies beyond the end does not count
    region.populate(region.len()..region.len() + 1);
    region.populate(0..0);
    let mut drain = Drain::new(Arc::clone(&region));
    let mut sink = Sink::default();
    for round in 0..4 {
        let mut writer = Writer::new(&region);
        (0..30).for_each(|n| writer.write(n, 400));
        assert_eq!(region.free_chunks(), 1, "round {round}");
        writer.finish();
        drain.pass(&mut sink).unwrap();
        assert_eq!(region.free_chunks(), 5);
    }
    assert_eq!(read_back(&sink.bytes), (1..=4).map(|s| (s, 30)).collect());
    assert_eq!(region.header().magic, MAGIC);
    assert_eq!(region.header().pid, std::process::id());
    assert!(region.header().process_name.starts_with(b"a-name\0"));
    region
}

#[test]
fn the_ring_works_on_the_heap() {
    assert_eq!(*works_on(BackingChoice::Heap).backing(), Backing::Heap);
}

#[test]
fn the_ring_works_on_a_memfd() {
    assert_eq!(*works_on(BackingChoice::Memfd).backing(), Backing::Memfd);
}

#[test]
fn the_ring_works_on_a_file() {
    assert!(matches!(works_on(BackingChoice::File).backing(), Backing::File(_)));
}

#[test]
fn the_ring_works_on_whatever_memory_there_is() {
    works_on(BackingChoice::Auto);
}

fn ring_in_a_file() -> (Arc<Region>, String) {
    let region = Region::create(&RegionConfig { backing: BackingChoice::File, ..config(4) }).unwrap();
    let Backing::File(path) = region.backing().clone() else { panic!("{:?}", region.backing()) };
    (region, path)
}

#[test]
fn a_regions_file_is_its_owners_alone_and_holds_the_region() {
    let (region, path) = ring_in_a_file();
    assert!(path.starts_with("/dev/shm/"));
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"seen from outside", 1));
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file.len() as u64, metadata.len());
    assert!(file.starts_with(&MAGIC));
    let payload = usize::try_from(region.header().chunks_offset).unwrap() + 64;
    assert!(file[payload..].starts_with(b"seen from outside"));
}

#[test]
fn closing_a_region_removes_its_file_though_chunks_are_still_held() {
    let (region, path) = ring_in_a_file();
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    region.close();
    assert!(!Path::new(&path).exists());
    assert!(chunk.append(b"into memory that nobody reads", 1));
    drop(chunk);
    region.close(); // once more is no harm
}

#[test]
fn the_last_handle_removes_the_file_of_a_region_that_was_not_closed() {
    let (region, path) = ring_in_a_file();
    let chunk = claim(&region, 1, 0, b"").unwrap();
    drop(region);
    assert!(Path::new(&path).exists(), "a chunk is a handle too");
    drop(chunk);
    assert!(!Path::new(&path).exists());
}

#[test]
fn two_regions_of_one_process_have_files_of_their_own() {
    let ((_one, a), (_two, b)) = (ring_in_a_file(), ring_in_a_file());
    assert_ne!(a, b);
}

// ---- sizes that make no sense

#[test]
fn a_chunk_size_that_is_no_power_of_two_in_range_is_refused_by_name() {
    for chunk_size in [0, 1, 2048, 4095, 4097, 6000, (1 << 24) + 1, 1 << 25, u32::MAX] {
        let config = RegionConfig { chunk_size, buffer_size: 1 << 30, ..RegionConfig::small() };
        match Region::create(&config) {
            Err(RegionError::ChunkSize(size)) => assert_eq!(size, chunk_size),
            other => panic!("{chunk_size}: {other:?}"),
        }
    }
}

#[test]
fn a_buffer_with_too_few_or_too_many_chunks_is_refused_with_their_number() {
    let cases = [
        (0, 0),
        (4096, 1),
        (4 * 4096 - 1, 3),
        ((1 << 36) + 4096, (1 << 24) + 1),
        (u64::MAX, u64::MAX / 4096),
    ];
    for (buffer_size, expected) in cases {
        match Region::create(&RegionConfig { buffer_size, ..RegionConfig::small() }) {
            Err(RegionError::BufferSize { buffer, chunk: CHUNK, chunks }) => {
                assert_eq!((buffer, chunks), (buffer_size, expected));
            }
            other => panic!("{buffer_size}: {other:?}"),
        }
    }
}

#[test]
fn a_path_or_a_head_that_is_too_long_is_refused_with_its_length() {
    for (path, prelude) in [(4097, 0), (10, (1 << 20) + 1)] {
        let about = About { output: "x".repeat(path).into(), prelude: vec![0; prelude], process_track: 0 };
        let refused = Region::create(&RegionConfig { about, ..config(4) });
        let Err(RegionError::About { path: p, prelude: h }) = refused else { panic!("{path}, {prelude}") };
        assert_eq!((p, h), (path, prelude));
    }
    let about = About { output: "x".repeat(4096).into(), prelude: vec![0; 1 << 20], process_track: 0 };
    Region::create(&RegionConfig { about, ..config(4) }).expect("the longest");
}

#[test]
fn a_buffer_is_rounded_down_to_whole_chunks() {
    let region =
        Region::create(&RegionConfig { buffer_size: 5 * 4096 - 1, ..RegionConfig::small() }).unwrap();
    assert_eq!((region.chunk_count(), region.free_chunks()), (4, 4));
}

// 2^24 chunks of 2^24 bytes: more than an address space
#[test]
fn memory_that_cannot_be_had_is_an_error_and_not_an_abort() {
    let config = RegionConfig { buffer_size: 1 << 48, chunk_size: 1 << 24, ..RegionConfig::small() };
    match Region::create(&config) {
        Err(RegionError::Memory { what, .. }) => assert_eq!(what, "the heap"),
        other => panic!("{other:?}"),
    }
}
