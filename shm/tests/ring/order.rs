//! Order in a sequence: chunks are drained in the order of their claims.

use crate::common::Sink;
use crate::{claim, ring, write_chunk};

// sequence 1:  [a]...  [b]|     the owner has both for a moment, as at each change of chunks
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
fn a_finished_sequence_can_start_again_at_index_zero() {
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
