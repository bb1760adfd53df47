//! TrackEvent: written packets are read back, and any input is read without harm.

#[path = "../common/mod.rs"]
mod common;
mod foreign;
mod layout;
mod malformed;
mod odd;
mod reading;
mod roundtrip;
mod stream;
mod tracks;
mod values;

use common::{Broken, LENGTHS, Owned, damaged, text, unsigned, value};
use hairline_formats::proto::{self, put_bytes, put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{self, clock, sequence_flags, trace, trace_packet};
use hairline_formats::track_event::{
    self as te, AnnotationValue, Callstack, ClockReading, Correlation, CounterTrack, CounterValue, Event,
    EventType, Interned, InternedKind, Location, LogMessage, Name, NestedValue, Packet, PacketData,
    PacketReader, Priority, ProcessTrack, SequenceId, SequenceStart, SourceLocation, ThreadTrack, TrackUuid,
    Unit,
};
use hairline_formats::{DecodeError, DecodeErrorKind, Value};
use proptest::prelude::*;
use values::{Named, Tree};

fn track_uuid() -> impl Strategy<Value = TrackUuid> {
    unsigned().prop_map(TrackUuid)
}

/// Reads a whole trace into text.
fn read(trace: impl std::io::Read) -> Vec<Result<(u64, String), DecodeError>> {
    let mut reader = PacketReader::new(trace);
    let mut all = Vec::new();
    loop {
        match reader.next() {
            Ok(Some((offset, packet))) => all.push(Ok((offset, describe(&packet)))),
            Ok(None) => return all,
            Err(e) => all.push(Err(e)),
        }
    }
}

fn describe(packet: &Packet<'_>) -> String {
    let interned: Vec<_> = packet.interned().collect();
    let data = match &packet.data {
        Some(PacketData::Event(e)) => {
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                e.category_iids().collect::<Vec<_>>(),
                e.categories().collect::<Vec<_>>(),
                e.flow_ids().collect::<Vec<_>>(),
                e.terminating_flow_ids().collect::<Vec<_>>(),
                e.annotations().map(|a| a.map(|a| nested(&a.value, 0))).collect::<Vec<_>>(),
                e.kind,
            ) + &format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                frames(e),
                e.extra_counters().collect::<Vec<_>>(),
                e.extra_counter_track_uuids().collect::<Vec<_>>(),
                e.correlation,
                e.location,
                e.log,
            )
        }
        Some(PacketData::Attributes(all)) => format!("{:?}", all.clone().collect::<Vec<_>>()),
        Some(PacketData::Clocks(clocks)) => format!("{:?}", clocks.clone().collect::<Vec<_>>()),
        Some(PacketData::Track(track)) => {
            format!("{track:?} {:?}", track.process.as_ref().map(|p| p.cmdline().collect::<Vec<_>>()))
        }
        Some(PacketData::Processes(processes)) => processes
            .clone()
            .map(|p| format!("{:?}", p.map(|p| (p.pid, p.parent, p.command_line().collect::<Vec<_>>()))))
            .collect(),
        other => format!("{other:?}"),
    };
    let defaults = packet
        .defaults
        .as_ref()
        .map(|d| (d.timestamp_clock_id, d.track_uuid, d.extra_counter_track_uuids().collect::<Vec<_>>()));
    format!("{:?} {} {:?} {defaults:?} {interned:?} {data}", packet.sequence, packet.flags, packet.timestamp)
}

fn frames<'a>(event: &te::TrackEvent<'a>) -> Option<Callstack<Result<Vec<SourceLocation<'a>>, String>>> {
    event.callstack.clone().map(|stack| match stack {
        Callstack::Iid(iid) => Callstack::Iid(iid),
        Callstack::Inline(frames) => {
            Callstack::Inline(frames.map(|frame| frame.map_err(|e| e.to_string())).collect())
        }
    })
}

fn nested(value: &AnnotationValue<'_>, depth: usize) -> String {
    match value {
        AnnotationValue::Dict(all) | AnnotationValue::Array(all) if depth < 20 => {
            all.clone().map(|a| a.map_or_else(|e| e.to_string(), |a| nested(&a.value, depth + 1))).collect()
        }
        AnnotationValue::Nested(value) => older(value, depth),
        other => format!("{other:?}"),
    }
}

fn older(value: &NestedValue<'_>, depth: usize) -> String {
    match value {
        NestedValue::Dict(all) | NestedValue::Array(all) if depth < 20 => {
            all.clone().map(|a| a.map_or_else(|e| e.to_string(), |(_, v)| older(&v, depth + 1))).collect()
        }
        other => format!("{other:?}"),
    }
}

/// Reads the one packet of a trace and passes it to `check`.
fn with_packet(trace: &[u8], check: impl FnOnce(&Packet<'_>)) {
    let mut reader = PacketReader::new(trace);
    let (offset, packet) = reader.next().unwrap().unwrap();
    assert_eq!((offset, packet.skipped), (0, 0));
    check(&packet);
    assert!(reader.next().unwrap().is_none());
}

fn with_event(trace: &[u8], check: impl FnOnce(&te::TrackEvent<'_>)) {
    with_packet(trace, |packet| match &packet.data {
        Some(PacketData::Event(event)) => check(event),
        other => panic!("{other:?}"),
    });
}

fn with_track(trace: &[u8], check: impl FnOnce(&te::TrackDescriptor<'_>)) {
    with_packet(trace, |packet| match &packet.data {
        Some(PacketData::Track(track)) => check(track),
        other => panic!("{other:?}"),
    });
}

/// All elements of an iterator, without an error.
fn all<T>(list: impl Iterator<Item = Result<T, DecodeError>>) -> Vec<T> {
    list.map(Result::unwrap).collect()
}

const BEGIN: Event<'static> = Event {
    categories: &[Name::Iid(1)],
    name: Some(Name::Iid(2)),
    ..Event::new(SequenceId(3), EventType::SliceBegin, 150)
};

const START: SequenceStart<'static> = SequenceStart {
    sequence: SequenceId(3),
    first: true,
    dropped: false,
    track_uuid: TrackUuid(77),
    extra_counters: &[TrackUuid(78), TrackUuid(79)],
    timestamp_ns: 1_000,
};

/// An event with all references.
const FULL: Event<'static> = Event {
    name: Some(Name::Text("go")),
    extra_counters: &[5, 6],
    flow_ids: &[1],
    terminating_flow_ids: &[0x8000_0000_0000_0002],
    correlation: Some(Correlation::Name(Name::Text("c1"))),
    location: Some(Location::At(SourceLocation { file: "a.rs", function: "f", line: 300 })),
    log: Some(LogMessage { body_iid: 6, priority: Priority::Warn, source_location_iid: 7 }),
    kind: EventType::Instant,
    ..BEGIN
};

const FRAMES: [SourceLocation<'static>; 2] = [
    SourceLocation { file: "", function: "main", line: 0 },
    SourceLocation { file: "a.rs", function: "f", line: 300 },
];

/// A dict in an array in a dict, empty ones, and null.
fn nested_value() -> Tree {
    let leaf = |value| Tree::Leaf(Owned::Plain(value));
    let named = |all: Vec<(&str, Tree)>| Named(all.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    let inner =
        vec![("b", leaf(Value::Null)), ("c", leaf(Value::Bool(true))), ("d", Tree::Dict(Named(vec![])))];
    let array =
        vec![("", Tree::Dict(named(inner))), ("", leaf(Value::Null)), ("", Tree::Array(Named(vec![])))];
    let null = named(vec![("n", leaf(Value::Null))]);
    Tree::Dict(named(vec![
        ("a", Tree::Array(named(array))),
        ("e", Tree::Dict(null)),
        ("n", leaf(Value::Null)),
    ]))
}

/// One of each packet.
fn everything() -> Vec<u8> {
    let mut out = Vec::new();
    te::trace_uuid(&mut out, SequenceId(1), u128::MAX - 5);
    te::clock_snapshot(&mut out, SequenceId(1), &[(clock::BOOTTIME, 1_000), (clock::REALTIME, u64::MAX)]);
    te::process_descriptor(
        &mut out,
        SequenceId(1),
        &ProcessTrack { uuid: TrackUuid(70), pid: 7, name: "app", cmdline: &["app", "-v"] },
    );
    te::sequence_start(&mut out, &START);
    te::thread_descriptor(
        &mut out,
        SequenceId(3),
        &ThreadTrack { uuid: TrackUuid(77), parent_uuid: TrackUuid(70), pid: 7, tid: 8, name: "main" },
    );
    let track = CounterTrack {
        unit: Unit::Count,
        unit_name: Some("frames"),
        multiplier: 1024,
        is_incremental: true,
        ..CounterTrack::new(TrackUuid(78), TrackUuid(70), "n")
    };
    te::counter_descriptor(&mut out, SequenceId(3), &track);
    let strings = [
        Interned::Text { kind: InternedKind::Category, iid: 1, name: "net" },
        Interned::Text { kind: InternedKind::EventName, iid: 2, name: "read" },
        Interned::Text { kind: InternedKind::AnnotationName, iid: 3, name: "bytes" },
        Interned::Text { kind: InternedKind::AnnotationText, iid: 4, name: "value" },
        Interned::Text { kind: InternedKind::CorrelationId, iid: 5, name: "request" },
        Interned::Text { kind: InternedKind::LogBody, iid: 6, name: "odd" },
        Interned::Location { iid: 7, at: SourceLocation { file: "a.rs", function: "f", line: 300 } },
    ];
    te::interned(&mut out, SequenceId(3), &strings);
    let values = [Value::U64(512), Value::Str("text"), Value::F64(0.5), Value::Blob(b"\x0f\xf0")];
    let annotations = values.map(|value| (Name::Iid(3), value));
    te::event(&mut out, &Event { annotations: &annotations, ..BEGIN });
    let counter =
        Event { track_uuid: Some(TrackUuid(78)), ..Event::new(SequenceId(3), EventType::Counter, 150) };
    te::event(&mut out, &Event { counter: Some(CounterValue::Int(-1)), ..counter });
    te::event(&mut out, &Event { counter: Some(CounterValue::Double(1.5)), ..counter });
    let nested = nested_value();
    te::event(&mut out, &Event { annotations: &[(Name::Text("nested"), nested.value())], ..FULL });
    let by_number =
        Event { correlation: Some(Correlation::Id(5)), location: Some(Location::Iid(7)), ..BEGIN };
    te::event(&mut out, &by_number);
    let custom = te::CustomTrack {
        uuid: TrackUuid(80),
        parent_uuid: Some(TrackUuid(70)),
        name: "requests",
        description: "All of them",
        child_ordering: te::ChildOrdering::Explicit,
        rank: -1,
        merge: te::SiblingMerge::None,
        merge_key: "k",
        has_states: true,
    };
    te::custom_descriptor(&mut out, SequenceId(3), &custom);
    te::event(&mut out, &Event { callstack: Some(Callstack::Inline(&FRAMES)), ..BEGIN });
    let interned = Some(Callstack::Iid(300));
    te::event(&mut out, &Event { callstack: interned, callstack_weight: Some(0.5), ..BEGIN });
    let attributes = [("build", te::AttributeValue::Text("release")), ("shard", te::AttributeValue::Int(-3))];
    te::trace_attributes(&mut out, SequenceId(1), &attributes);
    te::synchronization_marker(&mut out, SequenceId(1));
    let machine = te::SystemInfo {
        sysname: "Linux",
        release: "6.1",
        timezone_off_mins: -60,
        ..te::SystemInfo::default()
    };
    te::system_info(&mut out, SequenceId(1), &machine);
    let process = te::Process { pid: 7, parent: Some(1), command_line: &["app", "-v"] };
    te::process_tree(&mut out, SequenceId(1), 5, &process);
    te::trace_stats(
        &mut out,
        SequenceId(1),
        &te::TraceStats { size: 4096, events_lost: 2, ..te::TraceStats::default() },
    );
    te::compressed_packets(&mut out, &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]);
    out
}

proptest! {
    #[test]
    fn random_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        require_sane(&bytes);
    }

    #[test]
    fn a_packet_of_random_bytes_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let mut out = Vec::new();
        put_bytes(&mut out, trace::PACKET, &bytes);
        for field in MESSAGES {
            put_message(&mut out, trace::PACKET, |p| put_bytes(p, field, &bytes));
        }
        require_sane(&out);
    }

    #[test]
    fn a_damaged_trace_is_read_to_its_end(bytes in damaged(everything())) {
        require_sane(&bytes);
    }
}

/// The fields of a packet whose content is read.
const MESSAGES: [u32; 10] = [
    trace_packet::TRACK_EVENT,
    trace_packet::INTERNED_DATA,
    trace_packet::TRACE_PACKET_DEFAULTS,
    trace_packet::TRACK_DESCRIPTOR,
    trace_packet::CLOCK_SNAPSHOT,
    trace_packet::TRACE_UUID,
    trace_packet::SYSTEM_INFO,
    trace_packet::PROCESS_TREE,
    trace_packet::TRACE_STATS,
    trace_packet::TRACE_ATTRIBUTES,
];

/// Reads without a panic and without endless errors, and every error has an offset in the input.
fn require_sane(bytes: &[u8]) {
    let all = read(bytes);
    assert!(all.len() <= bytes.len() / 2 + 1);
    for error in all.into_iter().filter_map(Result::err) {
        assert!(error.offset <= bytes.len() as u64, "{error}");
    }
}
