//! Unusual but valid protobuf, and invalid protobuf at places that a reader easily overlooks.

use super::*;
use fields::{debug_annotation as annotation, interned_string, track_descriptor, track_event};
use hairline_formats::proto::{put_fixed64, put_varint};

fn packet(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, trace::PACKET, write);
    out
}

fn event(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    packet(|p| put_message(p, trace_packet::TRACK_EVENT, write))
}

/// A field that no message has, of each wire type.
fn put_unknown(out: &mut Vec<u8>) {
    put_uint(out, 5000, u64::MAX);
    put_fixed64(out, 5001, u64::MAX);
    put_bytes(out, 5002, b"\xff\xff");
    put_varint(out, 5003 << 3 | 5);
    out.extend([0xff; 4]);
}

#[test]
fn unknown_fields_of_every_wire_type_are_passed_over_at_every_level() {
    let mut trace = Vec::new();
    put_unknown(&mut trace);
    trace.extend(packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_unknown(e);
            put_message(e, track_event::DEBUG_ANNOTATIONS, |a| {
                put_unknown(a);
                put_uint(a, annotation::UINT_VALUE, 7);
            });
        });
        put_unknown(p);
        put_uint(p, trace_packet::TIMESTAMP, 9);
    }));
    put_unknown(&mut trace);
    let mut reader = PacketReader::new(&trace[..]);
    {
        let (_, packet) = reader.next().unwrap().unwrap();
        let Some(PacketData::Event(event)) = &packet.data else { panic!("{packet:?}") };
        assert_eq!((packet.timestamp, packet.skipped, event.skipped), (Some(9), 4, 4));
        let annotation = event.annotations().next().unwrap().unwrap();
        assert!(matches!(annotation.value, AnnotationValue::Value(Value::U64(7))), "{annotation:?}");
    }
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.skipped(), 8);
}

#[test]
fn an_empty_packet_has_no_data() {
    with_packet(&[0x0a, 0], |packet| {
        assert_eq!((packet.sequence, packet.flags, packet.timestamp), (SequenceId(0), 0, None));
        assert!(packet.data.is_none() && packet.bytes().is_empty());
        assert_eq!((packet.fields().count(), packet.interned().count()), (0, 0));
    });
}

#[test]
fn empty_messages_are_read() {
    with_event(&event(|_| {}), |e| assert_eq!((e.kind, e.name), (Some(EventType::Unspecified), None)));
    with_event(&event(|e| put_bytes(e, track_event::DEBUG_ANNOTATIONS, &[])), |e| {
        let annotations: Vec<_> = e.annotations().map(|a| a.unwrap().value).collect();
        assert!(matches!(annotations[..], [AnnotationValue::Value(Value::Null)]), "{annotations:?}");
    });
    let interned = packet(|p| {
        put_message(p, trace_packet::INTERNED_DATA, |d| put_bytes(d, InternedKind::EventName as u32, &[]));
    });
    with_packet(&interned, |packet| {
        let strings: Vec<_> = packet.interned().map(Result::unwrap).collect();
        assert_eq!(strings, [Interned::Text { kind: InternedKind::EventName, iid: 0, name: "" }]);
    });
}

#[test]
fn the_last_of_two_equal_fields_counts() {
    let trace = packet(|p| {
        put_uint(p, trace_packet::TIMESTAMP, 1);
        put_uint(p, trace_packet::TIMESTAMP, 2);
        put_message(p, trace_packet::TRACK_EVENT, |e| put_str(e, track_event::NAME, "first"));
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_str(e, track_event::NAME, "second");
            put_str(e, track_event::NAME, "third");
        });
        // The fields of an interned string can come in any order.
        put_message(p, trace_packet::INTERNED_DATA, |d| {
            put_message(d, InternedKind::EventName as u32, |s| {
                put_str(s, interned_string::NAME, "x");
                put_uint(s, interned_string::IID, 1);
                put_uint(s, interned_string::IID, 2);
            });
        });
    });
    with_packet(&trace, |packet| {
        let Some(PacketData::Event(event)) = &packet.data else { panic!("{packet:?}") };
        assert_eq!((packet.timestamp, event.name), (Some(2), Some("third")));
        assert_eq!(
            packet.interned().next().unwrap().unwrap(),
            Interned::Text { kind: InternedKind::EventName, iid: 2, name: "x" }
        );
    });
}

#[test]
fn a_name_of_another_wire_type_is_passed_over_and_replaces_nothing() {
    let trace = event(|e| {
        put_str(e, track_event::NAME, "name");
        put_uint(e, track_event::NAME, 1);
        put_message(e, track_event::DEBUG_ANNOTATIONS, |a| {
            put_str(a, annotation::NAME, "key");
            put_fixed64(a, annotation::NAME, 1);
        });
    });
    let mut reader = PacketReader::new(&trace[..]);
    let Some((_, Packet { data: Some(PacketData::Event(event)), .. })) = reader.next().unwrap() else {
        panic!()
    };
    assert_eq!((event.name, event.skipped), (Some("name"), 1));
    assert_eq!(event.annotations().next().unwrap().unwrap().name, Some("key"));

    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_DESCRIPTOR, |d| {
            put_str(d, track_descriptor::NAME, "track");
            put_uint(d, track_descriptor::NAME, 1);
            for (part, name) in [
                (track_descriptor::PROCESS, fields::process_descriptor::PROCESS_NAME),
                (track_descriptor::THREAD, fields::thread_descriptor::THREAD_NAME),
                (track_descriptor::COUNTER, fields::counter_descriptor::UNIT_NAME),
            ] {
                put_message(d, part, |m| {
                    put_str(m, name, "name");
                    put_uint(m, name, 1);
                });
            }
        });
    });
    with_packet(&trace, |packet| {
        let Some(PacketData::Track(track)) = &packet.data else { panic!("{packet:?}") };
        assert_eq!((track.name, track.skipped), (Some("track"), 4));
        assert_eq!(track.process.as_ref().unwrap().name, Some("name"));
        assert_eq!(track.thread.unwrap().name, Some("name"));
        assert_eq!(track.counter.as_ref().unwrap().unit_name, Some("name"));
    });
}

#[test]
fn repeated_numbers_are_read_packed_or_not_and_mixed() {
    let trace = event(|e| {
        put_uint(e, track_event::CATEGORY_IIDS, 1);
        put_bytes(e, track_event::CATEGORY_IIDS, &[]);
        put_bytes(e, track_event::CATEGORY_IIDS, &[2, 0x80, 0x80, 0x00]); // the second is not in its shortest form
        put_uint(e, track_event::CATEGORY_IIDS, u64::MAX);
        put_fixed64(e, track_event::FLOW_IDS, 1);
        put_bytes(e, track_event::FLOW_IDS, &[0xff; 16]);
        put_fixed64(e, track_event::FLOW_IDS, 2);
    });
    with_event(&trace, |e| {
        let numbers = |numbers: te::Numbers<'_>| numbers.map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(numbers(e.category_iids()), [1, 2, 0, u64::MAX]);
        assert_eq!(numbers(e.flow_ids()), [1, u64::MAX, u64::MAX, 2]);
    });
}

#[test]
fn a_packed_number_without_an_end_affects_no_other_field() {
    let long = [[0x80; 10].as_slice(), &[0]].concat();
    for (packed, what) in [(&[2, 0x80][..], "byte 7: a packed number"), (&long, "byte 6: a varint of more")] {
        let trace = event(|e| {
            put_bytes(e, track_event::CATEGORY_IIDS, packed);
            put_uint(e, track_event::CATEGORY_IIDS, 3);
        });
        with_event(&trace, |e| {
            let all: Vec<_> = e.category_iids().map(|n| n.map_err(|e| e.to_string())).collect();
            let bad = all.iter().find_map(|n| n.as_ref().err()).unwrap();
            assert!(bad.starts_with(what), "{bad}");
            assert_eq!(all.last(), Some(&Ok(3)));
        });
    }
    let trace = event(|e| put_bytes(e, track_event::FLOW_IDS, &[1; 15]));
    with_event(&trace, |e| {
        let all: Vec<_> = e.flow_ids().collect();
        assert!(
            matches!(all[..], [Ok(0x0101_0101_0101_0101), Err(DecodeError { offset: 15, .. })]),
            "{all:?}"
        );
    });
}

#[test]
fn varints_of_ten_bytes_are_read_and_of_eleven_refused_everywhere() {
    let ten = |first: u8| [&[first | 0x80][..], &[0x80; 8], &[0]].concat();
    let eleven = |first: u8| [&[first | 0x80][..], &[0x80; 9], &[0]].concat();
    // The packet's tag and length and its field's tag and value take 10 bytes each, for numbers below 128.
    let good = [ten(0x0a), ten(20), ten(0x40), ten(5)].concat();
    with_packet(&good, |packet| assert_eq!(packet.timestamp, Some(5)));
    // Bits above the 64th are dropped.
    let trace = [&[0x0a, 11, 0x40][..], &[0xff; 9], &[0x7f]].concat();
    with_packet(&trace, |packet| assert_eq!(packet.timestamp, Some(u64::MAX)));

    for (trace, offset) in [
        (eleven(0x0a), 0),
        ([&[0x0a][..], &eleven(2)].concat(), 1),
        ([&[0x08][..], &eleven(2)].concat(), 1),
        ([&[0x0a, 11][..], &eleven(0x40)].concat(), 2),
        ([&[0x0a, 12, 0x40][..], &eleven(1)].concat(), 3),
        ([&[0x0a, 12, 0x5a][..], &eleven(0)].concat(), 3),
    ] {
        let all = read(&trace[..]);
        assert!(
            matches!(&all[..], [Err(DecodeError { offset: at, kind: DecodeErrorKind::LongVarint })] if *at == offset),
            "{offset}: {all:?}"
        );
    }
}

#[test]
fn a_group_is_refused_at_its_tag() {
    // Field 1 as a group: its start of wire type 3, its content, and its end of wire type 4.
    let group = [0x0b, 0x08, 1, 0x0c];
    for (trace, offset) in [
        (group.to_vec(), 0),
        (packet(|p| p.extend(group)), 2),
        (event(|e| e.extend(group)), 4),
        (packet(|p| put_message(p, trace_packet::TRACK_DESCRIPTOR, |d| d.extend(group))), 5),
    ] {
        let all = read(&trace[..]);
        assert!(
            matches!(&all[..], [Err(DecodeError { offset: at, kind: DecodeErrorKind::WireType(3) })] if *at == offset),
            "{offset}: {all:?}"
        );
    }
    // In an annotation, only that annotation has an error.
    let trace = event(|e| {
        put_message(e, track_event::DEBUG_ANNOTATIONS, |a| a.extend(group));
        put_message(e, track_event::DEBUG_ANNOTATIONS, |a| put_uint(a, annotation::UINT_VALUE, 7));
    });
    with_event(&trace, |e| {
        let all: Vec<_> = e.annotations().collect();
        assert!(
            matches!(all[0], Err(DecodeError { offset: 6, kind: DecodeErrorKind::WireType(3) })),
            "{all:?}"
        );
        assert!(matches!(all[1], Ok(te::Annotation { value: AnnotationValue::Value(Value::U64(7)), .. })));
    });
}

#[test]
fn annotations_nested_ten_thousand_deep_are_read_to_the_bottom() {
    const DEPTH: usize = 10_000;
    let mut inner = Vec::new();
    put_uint(&mut inner, annotation::UINT_VALUE, 7);
    for level in 0..DEPTH {
        let mut outer = Vec::new();
        let field = if level % 2 == 0 { annotation::DICT_ENTRIES } else { annotation::ARRAY_VALUES };
        put_bytes(&mut outer, field, &inner);
        inner = outer;
    }
    with_event(&event(|e| put_bytes(e, track_event::DEBUG_ANNOTATIONS, &inner)), |e| {
        let (mut annotations, mut depth) = (e.annotations(), 0);
        loop {
            match annotations.next().unwrap().unwrap().value {
                AnnotationValue::Dict(nested) | AnnotationValue::Array(nested) => annotations = nested,
                value => {
                    assert!(matches!(value, AnnotationValue::Value(Value::U64(7))), "{value:?}");
                    break;
                }
            }
            depth += 1;
        }
        assert_eq!(depth, DEPTH);
    });
}

#[test]
fn bytes_after_the_last_packet_are_an_error_at_their_begin() {
    let good = event(|e| put_str(e, track_event::NAME, "x"));
    let at = good.len() as u64;
    for (garbage, what) in [
        (&[0x08][..], "a field of the trace"), // a tag without a value
        (b"garbage", "wire type 7"),
        (b"\x0a\x05abc", "a packet"),
        (b"\x12\x05abc", "a field of the trace"),
        (b"\x11abc", "a field of the trace"),
        (b"\xff", "a field of the trace"),
    ] {
        let all = read(&[&good[..], garbage].concat()[..]);
        match &all[..] {
            [Ok((0, _)), Err(e)] => {
                assert!(e.offset == at && e.to_string().contains(what), "{garbage:x?}: {e}");
            }
            other => panic!("{garbage:x?}: {other:?}"),
        }
    }
}
