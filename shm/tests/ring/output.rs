//! An output that fails, and discarded bytes: all losses are counted, and nothing is written twice.

use std::collections::BTreeSet;

use hairline_shm::{LossReason, Pass};

use crate::common::Sink;
use crate::{claim, output_bytes, ring, write_chunk};

// pass 1 fails; pass 2 writes all bytes once
#[test]
fn bytes_that_an_output_did_not_take_are_offered_again_once() {
    let (region, mut drain) = ring(8);
    let mut sink = Sink { fails_after: Some(0), ..Sink::default() };
    let mut writing = claim(&region, 1, 0, b"<1>").unwrap();
    assert!(writing.append(b"a", 1));
    write_chunk(&region, 2, 0, b"<2>", b"x");
    drain.pass(&mut sink).unwrap_err();
    assert_eq!((region.free_chunks(), drain.records_by_sequence().len()), (6, 0), "no chunk is freed");
    assert!(writing.append(b"b", 1));
    let pass = drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"<1>ab<2>x");
    assert_eq!(pass, Pass { bytes: 9, records: 3, freed: 1 });
    assert_eq!(drain.pass(&mut sink).unwrap(), Pass::default());
    assert_eq!(sink.bytes.len(), 9);
    assert_eq!(region.lost(LossReason::Output), 0);
}

// 1200 sequences, each with a context: 2400 parts, more than fit one write; the second write fails
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
