//! TrackEvent: valid packets, damage inside messages whose lengths stay right, and a walk through them.

use std::fmt;
use std::io::Read;

use hairline_formats::proto::{
    FieldValue, Fields, put_bytes, put_double, put_fixed64, put_message, put_str, put_uint, put_varint,
};
use hairline_formats::track_event::fields::{
    clock, clock_reading, clock_snapshot, debug_annotation as annotation, interned_string, trace,
    trace_packet, track_descriptor, track_event as event,
};
use hairline_formats::track_event::{
    self as te, Annotation, AnnotationValue, Annotations, CounterValue, Event, EventType, Interned,
    InternedKind, Name, Packet, PacketData, PacketReader, SequenceId, TrackUuid, Unit,
};
use hairline_formats::{DecodeError, Value};

use super::alloc::uncounted;
use super::mutate::varint;
use super::random::Random;
use super::walk::Walk;
use super::{Format, Units};

/// [`te::PacketReader`].
#[derive(Debug)]
pub(crate) struct TrackEvent;

impl Format for TrackEvent {
    const NAME: &'static str = "track-event";
    const MIN_ITEM: usize = 2;
    const UNITS: &'static [fn(Units<'_>)] = &[stream, tracks, events, foreign];

    fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
        *bytes = mutated(bytes, 0, random);
    }

    fn walk(reader: impl Read, walk: &mut Walk) -> Result<(), String> {
        let mut reader = PacketReader::new(reader);
        loop {
            match reader.next() {
                Ok(Some((offset, packet))) => {
                    walk.item(offset, &packet)?;
                    parts(&packet, walk)?;
                }
                Ok(None) => break,
                Err(e) => walk.failed(&e)?,
            }
        }
        walk.skipped(reader.skipped())?;
        match reader.next() {
            Ok(None) => Ok(()),
            other => Err(format!("after the end: {other:?}")),
        }
    }
}

fn parts(packet: &Packet<'_>, walk: &mut Walk) -> Result<(), String> {
    all(packet.fields(), walk)?;
    all(packet.interned(), walk)?;
    match &packet.data {
        Some(PacketData::Event(event)) => {
            all(event.category_iids(), walk)?;
            all(event.categories(), walk)?;
            all(event.flow_ids(), walk)?;
            all(event.terminating_flow_ids(), walk)?;
            all(event.extra_counters(), walk)?;
            all(event.extra_counter_track_uuids(), walk)?;
            annotations(event.annotations(), walk)
        }
        Some(PacketData::Clocks(clocks)) => all(clocks.clone(), walk),
        Some(PacketData::Track(track)) => {
            track.process.as_ref().map_or(Ok(()), |process| all(process.cmdline(), walk))?;
            track.counter.as_ref().map_or(Ok(()), |counter| all(counter.categories(), walk))
        }
        Some(PacketData::Processes(processes)) => {
            all(processes.threads(), walk)?;
            processes.clone().try_for_each(|process| match process {
                Ok(process) => all(process.command_line(), walk),
                Err(e) => walk.part::<()>(Err(e)).map(drop),
            })
        }
        _ => packet.defaults.as_ref().map_or(Ok(()), |d| all(d.extra_counter_track_uuids(), walk)),
    }
}

fn all<T: fmt::Debug>(
    mut parts: impl Iterator<Item = Result<T, DecodeError>>,
    walk: &mut Walk,
) -> Result<(), String> {
    parts.try_for_each(|part| walk.part(part).map(drop))
}

/// Walks to any depth, without recursion.
fn annotations<'a>(top: Annotations<'a>, walk: &mut Walk) -> Result<(), String> {
    let mut open = uncounted(|| vec![top]);
    while let Some(last) = open.last_mut() {
        match last.next() {
            Some(part) => {
                use AnnotationValue::{Array, Dict};
                if let Some(Brief(Annotation { value: Dict(nested) | Array(nested), .. })) =
                    walk.part(part.map(Brief))?
                {
                    uncounted(|| open.push(nested));
                }
            }
            None => drop(open.pop()),
        }
    }
    uncounted(|| drop(open));
    Ok(())
}

/// An annotation without its nested ones, which are walked separately.
struct Brief<'a>(Annotation<'a>);

impl fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Annotation { name_iid, name, value, .. }) = self;
        match value {
            AnnotationValue::Dict(_) => write!(f, "{name_iid:?} {name:?} dict"),
            AnnotationValue::Array(_) => write!(f, "{name_iid:?} {name:?} array"),
            value => write!(f, "{name_iid:?} {name:?} {value:?}"),
        }
    }
}

/// The number of levels to which damage descends.
const MAX_DEPTH: usize = 100;

/// Returns the message with one change, at its own level or deeper. The lengths around the change are
/// correct.
fn mutated(message: &[u8], depth: usize, random: &mut Random) -> Vec<u8> {
    let fields: Vec<_> = Fields::new(message, 0).map_while(Result::ok).collect();
    let mut out = Vec::new();
    if fields.is_empty() {
        put_field(&mut out, random);
        return out;
    }
    let chosen = random.below(fields.len());
    let start = |i: usize| fields.get(i).map_or(message.len(), |field| field.offset as usize);
    let (before, whole, after) = (
        &message[..start(chosen)],
        &message[start(chosen)..start(chosen + 1)],
        &message[start(chosen + 1)..],
    );
    let number = fields[chosen].number;
    out.extend_from_slice(before);
    match fields[chosen].value {
        FieldValue::Bytes { bytes, .. } if depth < MAX_DEPTH && !random.one_in(3) => {
            let inner = mutated(bytes, depth + 1, random);
            put_bytes(&mut out, number, &inner);
        }
        _ => change(&mut out, number, whole, random),
    }
    out.extend_from_slice(after);
    out
}

/// Replaces the field that is in `whole`.
fn change(out: &mut Vec<u8>, number: u32, whole: &[u8], random: &mut Random) {
    match random.below(9) {
        0 => {}
        1 => out.extend([whole, whole].concat()),
        2 => {
            put_field(out, random);
            out.extend_from_slice(whole);
        }
        3 => put_uint(out, number, random.number()),
        4 => put_fixed64(out, number, random.number()),
        5 => {
            let len = random.below(30);
            put_bytes(out, number, &random.bytes(len));
        }
        6 => {
            // Packed numbers.
            let mut numbers = Vec::new();
            (0..random.below(5)).for_each(|_| put_varint(&mut numbers, random.number()));
            put_bytes(out, number, &numbers);
        }
        7 => {
            // The field nested in itself many times, as annotations can be.
            let mut inner = whole.to_vec();
            for _ in 0..[1, 2, 300][random.below(3)] {
                let mut outer = Vec::new();
                put_bytes(&mut outer, number, &inner);
                inner = outer;
            }
            out.extend(inner);
        }
        _ => {
            // The same value with the tag of another field, a varint.
            let tag = whole.iter().take_while(|byte| **byte >= 0x80).count() + 1;
            put_varint(out, (random.below(64) as u64 + 1) << 3);
            out.extend_from_slice(whole.get(tag..).unwrap_or_default());
        }
    }
}

/// A field of any number and any wire type, including groups and types that do not exist.
fn put_field(out: &mut Vec<u8>, random: &mut Random) {
    let number = if random.one_in(4) { random.number() >> 3 } else { random.below(64) as u64 };
    let wire = random.below(8) as u64;
    put_varint(out, number << 3 | wire);
    match wire {
        0 => out.extend(varint(random)),
        1 => out.extend(random.bytes(8)),
        2 => {
            let len = random.below(20);
            put_varint(out, len as u64);
            out.extend(random.bytes(len));
        }
        5 => out.extend(random.bytes(4)),
        _ => {}
    }
}

fn stream(unit: Units<'_>) {
    unit(&|out| te::trace_uuid(out, SequenceId(1), u128::MAX - 5));
    unit(&|out| {
        te::clock_snapshot(out, SequenceId(1), &[(clock::BOOTTIME, 1_000), (clock::REALTIME, u64::MAX)]);
    });
    for first in [true, false] {
        let start = te::SequenceStart {
            sequence: SequenceId(3),
            first,
            dropped: !first,
            track_uuid: TrackUuid(77),
            extra_counters: &[TrackUuid(78), TrackUuid(u64::MAX)],
            timestamp_ns: 1 << 40,
        };
        unit(&|out| te::sequence_start(out, &start));
    }
    let process = te::Process { pid: 7, parent: Some(1), command_line: &["app", "-v"] };
    unit(&|out| te::process_tree(out, SequenceId(1), 5, &process));
    unit(&|out| te::process_threads(out, SequenceId(1), 5, &[te::Thread { tid: 8, pid: 7, name: "t" }]));
    let stats =
        te::TraceStats { size: 1 << 20, bytes_written: 5, events_lost: 3, ..te::TraceStats::default() };
    unit(&|out| te::trace_stats(out, SequenceId(1), &stats));
    for state in [te::TaskState::Running, te::TaskState::Dead] {
        let event = te::TaskStateEvent { cpu: Some(-1), comm: "main", tid: 71, state, prio: Some(120) };
        unit(&|out| te::task_state(out, SequenceId(1), 5, &event));
    }
    unit(&|out| te::synchronization_marker(out, SequenceId(1)));
    unit(&|out| te::compressed_packets(out, &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]));
    let system = te::SystemInfo {
        sysname: "Linux",
        release: "6",
        timezone_off_mins: -60,
        ..te::SystemInfo::default()
    };
    unit(&|out| te::system_info(out, SequenceId(1), &system));
    let strings = [
        Interned::Text { kind: InternedKind::Category, iid: 1, name: "net" },
        Interned::Text { kind: InternedKind::EventName, iid: 200, name: "read" },
        Interned::Text { kind: InternedKind::AnnotationName, iid: u64::MAX, name: "" },
        Interned::Text { kind: InternedKind::AnnotationText, iid: 0, name: "é€𝄞\0" },
        Interned::Text { kind: InternedKind::LogBody, iid: 1, name: "body" },
        Interned::Text { kind: InternedKind::CorrelationId, iid: 2, name: "id" },
        Interned::Location { iid: 3, at: te::SourceLocation { file: "f", function: "g", line: 7 } },
    ];
    unit(&|out| te::interned(out, SequenceId(3), &strings));
}

fn tracks(unit: Units<'_>) {
    let process = te::ProcessTrack { uuid: TrackUuid(70), pid: -7, name: "app", cmdline: &["app", "-v", ""] };
    unit(&|out| te::process_descriptor(out, SequenceId(1), &process));
    let thread = te::ThreadTrack {
        uuid: TrackUuid(77),
        parent_uuid: TrackUuid(70),
        pid: 7,
        tid: i64::MIN,
        name: "main",
    };
    unit(&|out| te::thread_descriptor(out, SequenceId(3), &thread));
    for (unit_of, unit_name) in [(Unit::Unspecified, Some("frames")), (Unit::SizeBytes, None)] {
        let (uuid, parent_uuid, name) = (TrackUuid(78), TrackUuid(70), "n");
        let track = te::CounterTrack {
            unit: unit_of,
            unit_name,
            multiplier: -5,
            is_incremental: true,
            builtin: te::CounterType::ThreadTimeNs,
            categories: &["net", ""],
            y_axis_share_key: "key",
            ..te::CounterTrack::new(uuid, parent_uuid, name)
        };
        unit(&|out| te::counter_descriptor(out, SequenceId(3), &track));
    }
    let custom = te::CustomTrack {
        uuid: TrackUuid(79),
        parent_uuid: Some(TrackUuid(70)),
        name: "custom",
        description: "about it",
        child_ordering: te::ChildOrdering::Explicit,
        rank: -7,
        merge: te::SiblingMerge::ByKey,
        merge_key: "key",
        has_states: false,
    };
    unit(&|out| te::custom_descriptor(out, SequenceId(3), &custom));
}

fn events(unit: Units<'_>) {
    let plain = Event {
        categories: &[Name::Iid(1), Name::Text("net")],
        name: Some(Name::Iid(2)),
        ..Event::new(SequenceId(3), EventType::SliceBegin, 150)
    };
    unit(&|out| te::event(out, &plain));
    unit(&|out| te::event(out, &Event::new(SequenceId(3), EventType::SliceEnd, 1)));
    let rich = Event {
        clock_id: Some(6),
        needs_state: false,
        name: Some(Name::Text("in full")),
        extra_counters: &[-1, i64::MAX],
        flow_ids: &[7, u64::MAX],
        terminating_flow_ids: &[8],
        correlation: Some(te::Correlation::Name(Name::Text("request 7"))),
        location: Some(te::Location::At(te::SourceLocation { file: "f", function: "g", line: 7 })),
        log: Some(te::LogMessage { body_iid: 1, priority: te::Priority::Warn, source_location_iid: 3 }),
        ..plain
    };
    unit(&|out| te::event(out, &rich));
    let frame = te::SourceLocation { file: "f", function: "g", line: 7 };
    for callstack in [te::Callstack::Iid(300), te::Callstack::Inline(&[frame, frame][..])] {
        let with_stack = Event { callstack: Some(callstack), callstack_weight: Some(0.5), ..plain };
        unit(&|out| te::event(out, &with_stack));
    }
    let attributes = [("a", te::AttributeValue::Text("text")), ("b", te::AttributeValue::Int(-1))];
    unit(&|out| te::trace_attributes(out, SequenceId(3), &attributes));
    for counter in [CounterValue::Int(-1), CounterValue::Double(1.5)] {
        let counter = Event {
            kind: EventType::Counter,
            track_uuid: Some(TrackUuid(78)),
            counter: Some(counter),
            ..plain
        };
        unit(&|out| te::event(out, &counter));
    }
    let values = [
        Value::Bool(true),
        Value::I64(-5),
        Value::U64(u64::MAX),
        Value::F64(0.25),
        Value::Str("text"),
        Value::Pointer(0xdead_beef),
        Value::Blob(b"\x0f\xf0"),
    ];
    let all: Vec<_> = (1..).map(Name::Iid).zip(values).collect();
    for one in &all {
        unit(&|out| te::event(out, &Event { annotations: &[*one], ..plain }));
    }
    unit(&|out| te::event(out, &Event { annotations: &all, ..plain }));
    let text = "x".repeat(20_000);
    unit(&|out| te::event(out, &Event { annotations: &[(Name::Iid(1), Value::Str(&text))], ..plain }));
}

/// Packets of other writers.
fn foreign(unit: Units<'_>) {
    let event_with = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
        put_message(out, trace::PACKET, |p| put_message(p, trace_packet::TRACK_EVENT, write));
    };
    unit(&|out| put_bytes(out, trace::PACKET, &[]));
    unit(&|out| {
        event_with(out, &|e| {
            put_str(e, event::NAME, "a name");
            put_str(e, event::CATEGORIES, "a");
            put_str(e, event::CATEGORIES, "b");
            put_bytes(e, event::CATEGORY_IIDS, &[1, 0x96, 0x01]);
            put_uint(e, event::CATEGORY_IIDS, 3);
            put_fixed64(e, event::FLOW_IDS, 9);
            put_bytes(e, event::FLOW_IDS, &[7; 24]);
            put_bytes(e, event::TERMINATING_FLOW_IDS, &7_u64.to_le_bytes());
        });
    });
    for depth in [1, 2, 40, 400] {
        unit(&|out| event_with(out, &|e| put_bytes(e, event::DEBUG_ANNOTATIONS, &nested(depth))));
    }
    unit(&|out| {
        put_message(out, trace::PACKET, |p| {
            put_uint(p, trace_packet::INCREMENTAL_STATE_CLEARED, 1);
            put_uint(p, trace_packet::TIMESTAMP_CLOCK_ID, 6);
            put_message(p, trace_packet::CLOCK_SNAPSHOT, |s| {
                put_message(s, clock_snapshot::CLOCKS, |c| {
                    put_uint(c, clock_reading::UNIT_MULTIPLIER_NS, 1000);
                });
            });
            put_message(p, trace_packet::INTERNED_DATA, |d| {
                put_message(d, InternedKind::EventName as u32, |s| put_uint(s, interned_string::IID, 1));
                put_message(d, 16, |s| put_str(s, interned_string::NAME, "of another kind"));
            });
            put_str(p, 4000, "an unknown field");
        });
    });
    unit(&|out| {
        put_message(out, trace::PACKET, |p| {
            put_message(p, trace_packet::TRACK_DESCRIPTOR, |d| {
                put_str(d, track_descriptor::STATIC_NAME, "static");
                put_uint(d, track_descriptor::CHILD_ORDERING, 1);
            });
        });
    });
    // Fields of the trace that are no packets.
    unit(&|out| put_uint(out, 7, 7));
    unit(&|out| put_str(out, 8, "a field"));
    unit(&|out| put_double(out, 9, 9.0));
    unit(&|out| out.extend([0x55, 1, 2, 3, 4]));
}

/// An annotation with dicts and arrays nested in each other.
fn nested(depth: usize) -> Vec<u8> {
    let mut inner = Vec::new();
    put_uint(&mut inner, annotation::STRING_VALUE_IID, 1);
    put_str(&mut inner, annotation::LEGACY_JSON_VALUE, "{}");
    for level in 0..depth {
        let mut outer = Vec::new();
        if level % 2 == 0 {
            put_str(&mut outer, annotation::NAME, "n");
            put_bytes(&mut outer, annotation::DICT_ENTRIES, &inner);
        } else {
            put_bytes(&mut outer, annotation::ARRAY_VALUES, &inner);
            put_bytes(&mut outer, annotation::ARRAY_VALUES, &[]);
        }
        inner = outer;
    }
    inner
}
