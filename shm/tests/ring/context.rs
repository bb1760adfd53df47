//! Contexts: the bytes that name the sequence of the fragments after them.

use crate::common::Sink;
use crate::{claim, ring, write_chunk};

// 1: [C1 a]|            [b]|         output: C1a  C2x  C1b
// 2:        [C2 x]...                a context at each change of sequence, and nowhere else
#[test]
fn a_fragment_has_a_context_exactly_if_the_sequence_has_changed() {
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

// 1: [C1 a]...             in the output
// 2: [C2 x]... [y]...      x discarded, y in the output: it needs the context of 2
#[test]
fn discarded_bytes_are_not_the_last_fragment_of_the_output() {
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
