//! The bytes that the writers write.

use super::*;
use te::{ChildOrdering, CounterType, CustomTrack, Process, SiblingMerge, SystemInfo, TraceStats};

#[test]
fn an_event_is_laid_out_as_the_hot_path_writes_it() {
    let mut out = Vec::new();
    te::event(&mut out, &Event { annotations: &[(Name::Iid(3), Value::I64(7))], ..BEGIN });
    #[rustfmt::skip]
    let expected = [
        0x0a, 21, // packet
        0x50, 3, // sequence
        0x68, 2, // flags
        0x5a, 12, 0x48, 1, 0x18, 1, 0x50, 2, 0x22, 4, 0x08, 3, 0x20, 7, // event
        0x40, 0x96, 0x01, // timestamp
    ];
    assert_eq!(out, expected);
}

#[test]
fn counters_are_laid_out_as_the_hot_path_writes_them() {
    let counter =
        Event { track_uuid: Some(TrackUuid(5)), ..Event::new(SequenceId(3), EventType::Counter, 0) };
    let mut out = Vec::new();
    te::event(&mut out, &Event { counter: Some(CounterValue::Int(1)), ..counter });
    assert_eq!(out, [0x0a, 15, 0x50, 3, 0x68, 2, 0x5a, 7, 0x48, 4, 0x58, 5, 0xf0, 0x01, 1, 0x40, 0]);
    out.clear();
    te::event(&mut out, &Event { counter: Some(CounterValue::Double(1.0)), ..counter });
    let (head, value) =
        ([0x0a, 22, 0x50, 3, 0x68, 2, 0x5a, 14, 0x48, 4, 0x58, 5, 0xe1, 0x02], 1.0_f64.to_le_bytes());
    assert_eq!((&out[..14], &out[14..22], &out[22..]), (&head[..], &value[..], &[0x40, 0][..]));
}

#[test]
fn an_end_is_eleven_bytes() {
    let mut out = Vec::new();
    te::event(&mut out, &Event::new(SequenceId(3), EventType::SliceEnd, 1));
    assert_eq!(out, [0x0a, 10, 0x50, 3, 0x68, 2, 0x5a, 2, 0x48, 2, 0x40, 1]);
}

#[test]
fn a_sequence_starts_with_its_clock_and_its_track() {
    for (first, dropped) in [(true, false), (false, true)] {
        let mut out = Vec::new();
        te::sequence_start(&mut out, &SequenceStart { first, dropped, ..START });
        with_packet(&out, |packet| {
            assert_eq!((packet.sequence, packet.first, packet.dropped), (SequenceId(3), first, dropped));
            assert_eq!(packet.flags, sequence_flags::CLEARED | sequence_flags::NEEDS);
            let defaults = packet.defaults.as_ref().unwrap();
            assert_eq!((defaults.timestamp_clock_id, packet.timestamp), (Some(fields::SEQUENCE_CLOCK), None));
            assert_eq!(defaults.track_uuid, Some(TrackUuid(77)));
            assert_eq!(all(defaults.extra_counter_track_uuids()), [TrackUuid(78), TrackUuid(79)]);
            let Some(PacketData::Clocks(clocks)) = &packet.data else { panic!("{packet:?}") };
            let reading = |clock_id, is_incremental| ClockReading {
                clock_id,
                timestamp: 1_000,
                is_incremental,
                unit_multiplier_ns: 1,
            };
            let clocks: Vec<_> = clocks.clone().map(Result::unwrap).collect();
            assert_eq!(clocks, [reading(fields::SEQUENCE_CLOCK, true), reading(clock::BOOTTIME, false)]);
        });
    }
}

#[test]
fn a_counter_has_its_unit() {
    for (unit, unit_name) in
        [(Unit::Unspecified, None), (Unit::SizeBytes, None), (Unit::Unspecified, Some("frames"))]
    {
        let mut out = Vec::new();
        te::counter_descriptor(
            &mut out,
            SequenceId(1),
            &CounterTrack { unit, unit_name, ..CounterTrack::new(TrackUuid(1), TrackUuid(2), "n") },
        );
        with_packet(&out, |packet| {
            let Some(PacketData::Track(track)) = &packet.data else { panic!("{packet:?}") };
            let counter = track.counter.as_ref().unwrap();
            assert_eq!((track.name, counter.unit, counter.unit_name), (Some("n"), Some(unit), unit_name));
        });
    }
}

#[test]
fn a_uuid_is_two_halves() {
    let mut out = Vec::new();
    te::trace_uuid(&mut out, SequenceId(1), 0x0102 << 64 | 0x0304);
    with_packet(&out, |packet| {
        assert_eq!(packet.bytes(), [0x50, 1, 0xca, 0x05, 6, 0x08, 0x82, 0x02, 0x10, 0x84, 0x06]);
        assert!(matches!(packet.data, Some(PacketData::TraceUuid(uuid)) if uuid == 0x0102 << 64 | 0x0304));
    });
}

#[test]
fn strings_of_every_length_survive() {
    for len in LENGTHS {
        let text = "x".repeat(len);
        let mut out = Vec::new();
        te::event(&mut out, &Event { annotations: &[(Name::Iid(3), Value::Str(&text))], ..BEGIN });
        with_event(&out, |event| {
            let annotation = event.annotations().next().unwrap().unwrap();
            assert!(matches!(annotation.value, AnnotationValue::Value(Value::Str(s)) if s == text));
        });
    }
}

#[test]
fn references_of_an_event_are_laid_out() {
    let mut out = Vec::new();
    te::event(&mut out, &FULL);
    #[rustfmt::skip]
    let expected = [
        0x0a, 71, // packet
        0x50, 3, // sequence
        0x68, 2, // flags
        0x5a, 62, // event
        0x48, 3, // type
        0x18, 1, // category
        0xba, 0x01, 2, b'g', b'o', // name
        0x60, 5, 0x60, 6, // extra counters
        0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0, // flow
        0x81, 0x03, 2, 0, 0, 0, 0, 0, 0, 0x80, // flow that ends
        0xaa, 0x03, 2, b'c', b'1', // correlation
        0x8a, 0x02, 12, 0x12, 4, b'a', b'.', b'r', b's', 0x1a, 1, b'f', 0x20, 0xac, 0x02, // source location
        0xaa, 0x01, 6, 0x08, 7, 0x10, 6, 0x18, 5, // log message
        0x40, 0x96, 0x01, // timestamp
    ];
    assert_eq!(out, expected);
}

#[test]
fn interned_references_of_an_event_are_laid_out() {
    let event = Event {
        clock_id: Some(6),
        needs_state: false,
        location: Some(Location::Iid(9)),
        ..Event::new(SequenceId(3), EventType::Instant, 1)
    };
    let mut out = Vec::new();
    te::event(&mut out, &Event { correlation: Some(Correlation::Id(300)), ..event });
    let end = [0x90, 0x02, 9, 0x40, 1, 0xd0, 0x03, 6];
    assert_eq!(out[..12], [0x0a, 18, 0x50, 3, 0x5a, 9, 0x48, 3, 0xa0, 0x03, 0xac, 0x02]);
    assert_eq!(out[12..], end);
    out.clear();
    te::event(&mut out, &Event { correlation: Some(Correlation::Name(Name::Iid(4))), ..event });
    assert_eq!(out[..11], [0x0a, 17, 0x50, 3, 0x5a, 8, 0x48, 3, 0xb0, 0x03, 4]);
    assert_eq!(out[11..], end);
}

#[test]
fn a_call_stack_of_an_event_is_laid_out() {
    let event = Event { needs_state: false, ..Event::new(SequenceId(3), EventType::State, 1) };
    let mut out = Vec::new();
    te::event(&mut out, &Event { callstack: Some(Callstack::Inline(&FRAMES)), ..event });
    #[rustfmt::skip]
    let expected = [
        0x0a, 33, 0x50, 3, // packet
        0x5a, 27, 0x48, 5, // event
        0xba, 0x03, 22, // call stack
        0x0a, 6, 0x0a, 4, b'm', b'a', b'i', b'n',
        0x0a, 12, 0x0a, 1, b'f', 0x12, 4, b'a', b'.', b'r', b's', 0x18, 0xac, 0x02, // function, file, line
        0x40, 1, // timestamp
    ];
    assert_eq!(out, expected);
    with_event(&out, |event| assert_eq!(frames(event), Some(Callstack::Inline(Ok(FRAMES.to_vec())))));
    out.clear();
    let interned = Some(Callstack::Iid(300));
    te::event(&mut out, &Event { callstack: interned, callstack_weight: Some(0.5), ..event });
    let expected = [0x48, 5, 0xc0, 0x03, 0xac, 0x02, 0xc9, 0x03, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0x40, 1];
    assert_eq!(out[6..], expected);
    with_event(&out, |event| assert_eq!((frames(event), event.skipped), (Some(Callstack::Iid(300)), 0)));
}

#[test]
fn attributes_of_the_trace_are_laid_out() {
    let attributes = [("build", te::AttributeValue::Text("rel")), ("n", te::AttributeValue::Int(3))];
    let mut out = Vec::new();
    te::trace_attributes(&mut out, SequenceId(3), &attributes);
    #[rustfmt::skip]
    let expected = [
        0x0a, 26, 0x50, 3, // packet
        0xf2, 0x07, 21, // attributes
        0x0a, 12, 0x0a, 5, b'b', b'u', b'i', b'l', b'd', 0x1a, 3, b'r', b'e', b'l',
        0x0a, 5, 0x0a, 1, b'n', 0x10, 3,
    ];
    assert_eq!(out, expected);
}

#[test]
fn nested_annotations_are_laid_out() {
    let nested = nested_value();
    let annotations = [(Name::Iid(3), nested.value()), (Name::Iid(4), Value::Null)];
    let mut out = Vec::new();
    te::event(&mut out, &Event { annotations: &annotations, ..BEGIN });
    #[rustfmt::skip]
    let expected = [
        0x0a, 65, 0x50, 3, 0x68, 2, // packet
        0x5a, 56, 0x48, 1, 0x18, 1, 0x50, 2, // event
        0x22, 48, 0x08, 3, // annotation
        0x5a, 35, 0x52, 1, b'a', // .a
        0x62, 16, // .a[0]
        0x5a, 5, 0x52, 1, b'c', 0x10, 1, // .a[0].c, true
        0x5a, 7, 0x52, 1, b'd', 0x32, 2, b'{', b'}', // .a[0].d, an empty dict
        0x62, 6, 0x32, 4, b'n', b'u', b'l', b'l', // .a[1], null
        0x62, 4, 0x32, 2, b'[', b']', // .a[2], an empty array
        0x5a, 7, 0x52, 1, b'e', 0x32, 2, b'{', b'}', // .e, a dict of null
        0x40, 0x96, 0x01, // timestamp
    ];
    assert_eq!(out, expected);
}

#[test]
fn interned_text_is_laid_out_as_its_id_and_nested_as_text() {
    let text = Tree::Interned(300, "t".to_owned());
    let array = Tree::Array(Named(vec![(String::new(), text.clone())]));
    let annotations = [(Name::Text("k"), text.value()), (Name::Iid(3), array.value())];
    let mut out = Vec::new();
    te::event(
        &mut out,
        &Event { annotations: &annotations, ..Event::new(SequenceId(3), EventType::Instant, 1) },
    );
    #[rustfmt::skip]
    let expected = [
        0x0a, 28, 0x50, 3, 0x68, 2, 0x5a, 20, 0x48, 3, // packet, event
        0x22, 7, 0x52, 1, b'k', 0x88, 0x01, 0xac, 0x02,
        0x22, 7, 0x08, 3, 0x62, 3, 0x32, 1, b't',
        0x40, 1, // timestamp
    ];
    assert_eq!(out, expected);
}

#[test]
fn interned_data_is_laid_out() {
    let at = SourceLocation { file: "a", function: "f", line: 9 };
    let strings = [
        Interned::Text { kind: InternedKind::LogBody, iid: 1, name: "hi" },
        Interned::Text { kind: InternedKind::CorrelationId, iid: 2, name: "c" },
        Interned::Location { iid: 3, at },
        Interned::Text { kind: InternedKind::AnnotationText, iid: 4, name: "t" },
        Interned::Location { iid: 5, at: SourceLocation { file: "b", ..SourceLocation::default() } },
    ];
    let mut out = Vec::new();
    te::interned(&mut out, SequenceId(3), &strings);
    #[rustfmt::skip]
    let expected = [
        0x0a, 50, 0x50, 3, 0x68, 2, // packet
        0x62, 44, // interned data
        0xa2, 0x01, 6, 0x08, 1, 0x12, 2, b'h', b'i', // log message's body
        0xda, 0x02, 5, 0x08, 2, 0x12, 1, b'c', // correlation id
        0x22, 10, 0x08, 3, 0x12, 1, b'a', 0x1a, 1, b'f', 0x20, 9, // source location
        0xea, 0x01, 5, 0x08, 4, 0x12, 1, b't', // annotation's text
        0x22, 5, 0x08, 5, 0x12, 1, b'b', // a source location of which only the file is known
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_custom_track_is_laid_out() {
    let track = CustomTrack {
        uuid: TrackUuid(79),
        parent_uuid: Some(TrackUuid(70)),
        name: "req",
        description: "Waits",
        child_ordering: ChildOrdering::Explicit,
        rank: -2,
        merge: SiblingMerge::None,
        merge_key: "",
        has_states: true,
    };
    let mut out = Vec::new();
    te::custom_descriptor(&mut out, SequenceId(3), &track);
    #[rustfmt::skip]
    let expected = [
        0x0a, 39, 0x50, 3, // packet
        0xe2, 0x03, 34, // track descriptor
        0x08, 79, 0x28, 70, // uuid, parent
        0x12, 3, b'r', b'e', b'q', // name
        0x58, 3, // order of the tracks below
        0x60, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // rank
        0x72, 5, b'W', b'a', b'i', b't', b's', // description
        0x78, 2, // merging
        0x92, 0x01, 0, // states
    ];
    assert_eq!(out, expected);
    out.clear();
    te::custom_descriptor(
        &mut out,
        SequenceId(3),
        &CustomTrack { uuid: TrackUuid(79), name: "r", ..CustomTrack::default() },
    );
    assert_eq!(out, [0x0a, 10, 0x50, 3, 0xe2, 0x03, 5, 0x08, 79, 0x12, 1, b'r']);
}

#[test]
fn a_builtin_counter_is_laid_out() {
    let track = CounterTrack {
        unit: Unit::TimeNs,
        multiplier: 1000,
        is_incremental: true,
        builtin: CounterType::ThreadTimeNs,
        ..CounterTrack::new(TrackUuid(78), TrackUuid(77), "cpu")
    };
    let mut out = Vec::new();
    te::counter_descriptor(&mut out, SequenceId(3), &track);
    #[rustfmt::skip]
    let expected = [
        0x0a, 25, 0x50, 3, // packet
        0xe2, 0x03, 20, 0x08, 78, 0x28, 77, 0x12, 3, b'c', b'p', b'u', // track descriptor
        0x42, 9, 0x08, 1, 0x18, 1, 0x20, 0xe8, 0x07, 0x28, 1, // counter descriptor
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_machine_is_laid_out() {
    let info = SystemInfo {
        sysname: "Linux",
        release: "6.1",
        version: "#1",
        machine: "x86",
        tracer: "hl",
        page_size: 4096,
        num_cpus: 8,
        timezone_off_mins: -60,
        ram_bytes: 1 << 30,
    };
    let mut out = Vec::new();
    te::system_info(&mut out, SequenceId(1), &info);
    #[rustfmt::skip]
    let expected = [
        0x0a, 55, 0x50, 1, // packet
        0xea, 0x02, 50, // system info
        0x0a, 21, // utsname
        0x0a, 5, b'L', b'i', b'n', b'u', b'x', // sysname
        0x12, 2, b'#', b'1', // version
        0x1a, 3, b'6', b'.', b'1', // release
        0x22, 3, b'x', b'8', b'6', // machine
        0x22, 2, b'h', b'l', // version of who wrote it
        0x30, 0x80, 0x20, // page size
        0x38, 0xc4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // time zone
        0x40, 8, // processors
        0x80, 0x01, 0x80, 0x80, 0x80, 0x80, 0x04, // memory
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_process_tree_is_laid_out() {
    let mut out = Vec::new();
    let process = Process { pid: 7, parent: Some(1), command_line: &["app", "-v"] };
    te::process_tree(&mut out, SequenceId(1), 5, &process);
    #[rustfmt::skip]
    let expected = [
        0x0a, 24, 0x50, 1, 0x40, 5, 0xd0, 0x03, 6, // packet, timestamp and its clock
        0x12, 15, 0x0a, 13, 0x08, 7, 0x10, 1, 0x1a, 3, b'a', b'p', b'p', 0x1a, 2, b'-', b'v',
    ];
    assert_eq!(out, expected);
}

#[test]
fn statistics_are_laid_out() {
    let mut out = Vec::new();
    te::trace_stats(
        &mut out,
        SequenceId(1),
        &TraceStats {
            size: 4096,
            bytes_written: 100,
            chunks_written: 5,
            chunks_discarded: 1,
            events_lost: 2,
            flushes_requested: 4,
            flushes_succeeded: 3,
        },
    );
    #[rustfmt::skip]
    let expected = [
        0x0a, 35, 0x50, 1, // packet
        0x9a, 0x02, 30, // trace stats
        0x0a, 18, // buffer stats
        0x08, 100, 0x10, 5, // bytes and chunks written
        0x60, 0x80, 0x20, // size
        0x70, 100, 0x88, 0x01, 5, // bytes and chunks read
        0x90, 0x01, 1, // chunks discarded
        0x98, 0x01, 2, // losses
        0x10, 1, 0x38, 1, 0x50, 0, // producers, buffers, invalid packets
        0x60, 4, 0x68, 3, // flushes
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_marker_and_compressed_packets_are_laid_out() {
    let mut out = Vec::new();
    te::synchronization_marker(&mut out, SequenceId(1));
    #[rustfmt::skip]
    let marker = [
        0x0a, 21, 0x50, 1, 0xa2, 0x02, 16,
        0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79,
    ];
    assert_eq!(out, marker);
    out.clear();
    te::compressed_packets(&mut out, &[0x78, 0x9c, 3]);
    assert_eq!(out, [0x0a, 6, 0x92, 0x03, 3, 0x78, 0x9c, 3]);
}
