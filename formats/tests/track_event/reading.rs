//! Streams that come in pieces, end early, or fail.

use super::*;

#[test]
fn a_trace_in_pieces_reads_the_same_and_a_cut_one_returns_its_whole_packets() {
    common::check_pieces(&everything(), 21, |trace| read(trace));
}

#[test]
fn a_packet_larger_than_the_buffer_is_read() {
    let text = "x".repeat(1 << 20);
    let mut out = Vec::new();
    te::event(&mut out, &Event { annotations: &[(Name::Iid(1), Value::Str(&text))], ..BEGIN });
    te::event(&mut out, &BEGIN);
    assert_eq!(read(&out[..]).into_iter().map(Result::unwrap).count(), 2);
}

#[test]
fn a_failing_input_is_an_error_once() {
    let mut reader = PacketReader::new(Broken);
    assert!(matches!(reader.next(), Err(DecodeError { offset: 0, kind: DecodeErrorKind::Io(_) })));
    assert!(reader.next().unwrap().is_none());
}
