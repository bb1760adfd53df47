//! Streams that come in pieces, end early, or fail.

use super::*;

#[test]
fn a_trace_in_pieces_reads_the_same_and_a_cut_one_returns_its_whole_records() {
    common::check_pieces(&everything(), 21, |trace| read(trace));
}

#[test]
fn many_records_pass_through_the_buffer() {
    let mut trace = Vec::new();
    for i in 0..20_000 {
        fxt::event(
            &mut trace,
            &Event { timestamp: i, ..instant(&[(StringRef::Index(1), Value::U64((i + 1) << 32))]) },
        );
    }
    let (mut reader, mut expected) = (RecordReader::new(&trace[..]), 0);
    while let Some((offset, Record::Event(event))) = reader.next().unwrap() {
        assert_eq!((offset, event.timestamp), (expected * 32, expected));
        expected += 1;
    }
    assert_eq!(expected, 20_000);
}

#[test]
fn a_failing_input_is_an_error_once() {
    let mut reader = RecordReader::new(Broken);
    assert!(matches!(reader.next(), Err(DecodeError { offset: 0, kind: DecodeErrorKind::Io(_) })));
    assert!(reader.next().unwrap().is_none());
}
