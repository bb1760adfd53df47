//! Streams that come in pieces, end early, or fail.

use super::*;

#[test]
fn a_stream_of_single_bytes_reads_the_same() {
    let trace = everything();
    let whole: Vec<_> = read(&trace[..]).into_iter().map(Result::unwrap).collect();
    let slow: Vec<_> = read(Slow::new(&trace)).into_iter().map(Result::unwrap).collect();
    assert_eq!(whole, slow);
    assert_eq!(whole.len(), 21);
}

#[test]
fn a_trace_cut_anywhere_returns_its_whole_records_and_then_a_truncation() {
    let trace = everything();
    let whole: Vec<_> = read(&trace[..]).into_iter().map(Result::unwrap).collect();
    for len in 0..trace.len() {
        let mut cut = read(&trace[..len]);
        let end = cut.pop_if(|last| last.is_err());
        let records: Vec<_> = cut.into_iter().map(Result::unwrap).collect();
        assert_eq!(records, whole[..records.len()]);
        let next = whole[records.len()].0;
        match end {
            Some(Err(e)) => assert!(e.is_truncated() && e.offset == next, "{len}: {e}"),
            _ => assert_eq!(len as u64, next),
        }
    }
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
