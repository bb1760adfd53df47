//! Room in a chunk: records that fit, and records that do not and change nothing.

use hairline_shm::Pass;

use crate::common::Sink;
use crate::{claim, ring};

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

// [C]...   [C]|   committed, but no byte needs the context
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
fn a_context_that_leaves_no_room_is_refused_and_no_chunk_is_lost() {
    let (region, _drain) = ring(4);
    let context = vec![0; region.payload_len() as usize];
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| claim(&region, 1, 0, &context)));
    assert!(refused.is_err());
    assert_eq!(region.free_chunks(), 4);
}
