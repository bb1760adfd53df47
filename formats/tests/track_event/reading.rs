//! Streams that come in pieces, end early, or fail.

use super::*;

#[test]
fn a_stream_of_single_bytes_reads_the_same() {
    let trace = everything();
    let whole: Vec<_> = read(&trace[..]).into_iter().map(Result::unwrap).collect();
    let slow: Vec<_> = read(Slow::new(&trace)).into_iter().map(Result::unwrap).collect();
    assert_eq!(whole, slow);
    assert_eq!(whole.len(), 18);
}

#[test]
fn a_trace_cut_anywhere_returns_its_whole_packets_and_then_a_truncation() {
    let trace = everything();
    let whole: Vec<_> = read(&trace[..]).into_iter().map(Result::unwrap).collect();
    for len in 0..trace.len() {
        let mut cut = read(&trace[..len]);
        let end = cut.pop_if(|last| last.is_err());
        let packets: Vec<_> = cut.into_iter().map(Result::unwrap).collect();
        assert_eq!(packets, whole[..packets.len()]);
        let next = whole[packets.len()].0;
        match end {
            Some(Err(e)) => assert!(e.is_truncated() && e.offset == next, "{len}: {e}"),
            _ => assert_eq!(len as u64, next),
        }
    }
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
