//! Malformed packets.

use std::io::{Cursor, Read, repeat};

use super::*;

/// Checks that a valid packet after a malformed one is read.
fn reads_on_after(body: &[u8], offset: u64, what: &str) {
    let mut trace = Vec::new();
    put_bytes(&mut trace, trace::PACKET, body);
    te::event(&mut trace, &BEGIN);
    match &read(&trace[..])[..] {
        [Err(e), Ok(_)] => {
            assert_eq!(e.offset, offset, "{e}");
            assert!(e.to_string().contains(what) && e.to_string().contains(&format!("byte {offset}")), "{e}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_length_beyond_the_packet_is_refused() {
    reads_on_after(&[0x5a, 0x7f, 0, 0], 4, "a field reaches past");
}

#[test]
fn a_length_beyond_any_memory_is_refused() {
    reads_on_after(
        &[0x5a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        13,
        "a field reaches past",
    );
}

#[test]
fn a_varint_beyond_the_packet_is_refused() {
    reads_on_after(&[0x40, 0x80], 3, "a varint reaches past");
}

#[test]
fn a_varint_without_an_end_is_refused() {
    reads_on_after(&[&[0x40][..], &[0x80; 20]].concat(), 3, "more than 10 bytes");
}

#[test]
fn groups_and_wire_types_that_do_not_exist_are_refused() {
    for wire in [3, 4, 6, 7] {
        reads_on_after(&[0x40 | wire, 0], 2, &format!("wire type {wire}"));
    }
}

#[test]
fn invalid_field_numbers_are_refused() {
    reads_on_after(&[0x00, 0], 2, "field number 0");
    reads_on_after(&[0x80, 0x80, 0x80, 0x80, 0x10, 0], 2, "field number 536870912");
}

#[test]
fn a_malformed_nested_message_is_refused_at_its_own_offset() {
    reads_on_after(&[0x40, 1, 0x5a, 3, 0x48, 1, 0x52], 9, "a field's length");
    reads_on_after(&[0x40, 1, 0x5a, 4, 0x48, 1, 0x12, 9], 10, "a field reaches past");
}

#[test]
fn a_packet_longer_than_the_input_is_truncated_and_costs_no_memory() {
    for len in [100, u64::from(u32::MAX), u64::MAX] {
        let mut trace = vec![0x0a];
        proto::put_varint(&mut trace, len);
        trace.extend([0x40, 1]);
        match &read(&trace[..])[..] {
            [Err(e)] => assert!(e.is_truncated() && e.offset == 0, "{e}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_packet_above_the_limit_is_passed_over_and_costs_no_memory() {
    let large = |len: usize| {
        let mut head = vec![0x0a];
        proto::put_varint(&mut head, len as u64);
        Cursor::new(head).chain(repeat(0).take(len as u64))
    };
    let mut good = Vec::new();
    te::event(&mut good, &BEGIN);
    match &read(large(te::MAX_PACKET + 1).chain(&good[..]))[..] {
        [Err(e), Ok(_)] => {
            assert_eq!((e.offset, e.is_truncated()), (0, false));
            assert_eq!(e.to_string(), "byte 0: a packet of more than 67108864 bytes");
        }
        other => panic!("{other:?}"),
    }
    // One at the limit is read, though it is malformed.
    match &read(large(te::MAX_PACKET).chain(&good[..]))[..] {
        [Err(e), Ok(_)] => assert_eq!(e.to_string(), "byte 5: field number 0"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_packet_cut_inside_its_length_is_truncated_at_its_begin() {
    for cut in [&[0x0a][..], &[0x0a, 0x80], &[0x0a, 0xff, 0xff], &[0x08, 0x80], &[0x8a], &[0x8a, 0x80]] {
        let mut trace = vec![0x0a, 2, 0x40, 1];
        trace.extend(cut);
        match &read(&trace[..])[..] {
            [Ok((0, _)), Err(e)] => assert!(e.is_truncated() && e.offset == 4, "{cut:x?}: {e}"),
            other => panic!("{cut:x?}: {other:?}"),
        }
    }
}

#[test]
fn an_input_that_is_no_trace_is_an_error_once() {
    let all = read(&b"\x1f\x8b\x08 a gzip file"[..]);
    assert!(
        matches!(all[..], [Err(DecodeError { offset: 0, kind: DecodeErrorKind::WireType(7) })]),
        "{all:?}"
    );
}

#[test]
fn a_malformed_log_message_or_location_is_refused_at_its_own_offset() {
    reads_on_after(&[0x5a, 5, 0xaa, 0x01, 2, 0x10, 0x80], 8, "a varint reaches past");
    reads_on_after(&[0x5a, 5, 0x8a, 0x02, 2, 0x12, 9], 9, "a field reaches past");
}

#[test]
fn a_malformed_stream_packet_is_refused_at_its_own_offset() {
    reads_on_after(&[0xea, 0x02, 4, 0x0a, 2, 0x0a, 9], 9, "a field reaches past"); // SystemInfo, Utsname, sysname
    reads_on_after(&[0x9a, 0x02, 4, 0x0a, 2, 0x60, 0x80], 8, "a varint reaches past"); // TraceStats, buffer, size
    reads_on_after(&[0xca, 0x05, 2, 0x08, 0x80], 6, "a varint reaches past"); // TraceUuid, msb
}

#[test]
fn a_malformed_process_tree_is_refused_when_it_is_read() {
    let trace = [0x0a, 7, 0x12, 5, 0x0a, 1, 0x80, 0x0a, 9];
    with_packet(&trace, |packet| {
        let Some(PacketData::Processes(processes)) = &packet.data else { panic!("{packet:?}") };
        let read: Vec<_> = processes.clone().map(|p| p.map(|p| p.pid).map_err(|e| e.offset)).collect();
        assert_eq!(read, [Err(6), Err(9)]);
    });
}
