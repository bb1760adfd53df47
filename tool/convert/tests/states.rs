//! What is new in TrackEvent: states of tracks, call stacks of events, and attributes of the trace.

use hairline_convert::{
    Context, EventKind, Item, TraceFormat, TraceReader, TrackEventReader, TrackKind, create,
};
use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{EventType, trace, trace_packet as packet, track_event};
use hairline_formats::track_event::{
    self as te, AttributeValue, CustomTrack, Frame, InternedStack, Mapping, SequenceId, ThreadTrack,
    TrackUuid,
};

fn event(out: &mut Vec<u8>, time: u64, kind: EventType, track: u64, more: impl Fn(&mut Vec<u8>)) {
    put_message(out, trace::PACKET, |p| {
        put_uint(p, packet::TIMESTAMP, time);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_message(p, packet::TRACK_EVENT, |e| {
            put_uint(e, track_event::TYPE, kind as u64);
            put_uint(e, track_event::TRACK_UUID, track);
            more(e);
        });
    });
}

/// A state of a track from a time on; "" for none.
fn state(out: &mut Vec<u8>, time: u64, track: u64, name: &str) {
    event(out, time, EventType::State, track, |e| {
        if !name.is_empty() {
            put_str(e, track_event::NAME, name);
        }
    });
}

/// The events of a trace and what is particular about their track, and what the reader says.
fn read(trace: &[u8]) -> (Vec<String>, Vec<(&'static str, u64)>) {
    let (mut reader, mut context) = (TrackEventReader::new(trace), Context::new());
    let (mut events, mut tracks) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next(&mut context).unwrap() {
        match item {
            Item::Track(track) => tracks.push(track),
            Item::Event(event) => {
                let kind = match event.kind {
                    EventKind::Begin => "begin",
                    EventKind::End => "end",
                    _ => "other",
                };
                let track = tracks.iter().rfind(|track| track.id == event.track).unwrap();
                let of = if track.kind == TrackKind::States { " state" } else { "" };
                let mut line = format!("{} {}{of} {kind} {}", event.time, track.name, event.name.text);
                if let Some(stack) = event.stack() {
                    stack.each(&mut |frame| line += &format!(" < {frame}"));
                }
                events.push(line.trim_end().to_owned());
            }
            _ => {}
        }
    }
    (events, reader.report().iter().collect())
}

/// The trace in a format, and what the writer says.
fn converted(trace: &[u8], format: TraceFormat) -> (Vec<u8>, Vec<(&'static str, u64)>) {
    let (mut reader, mut context) = (TrackEventReader::new(trace), Context::new());
    let mut out = Vec::new();
    let mut writer = create(format, &mut out);
    while let Some(item) = reader.next(&mut context).unwrap() {
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    let said = writer.report().iter().collect();
    drop(writer);
    (out, said)
}

/// The type and the name of each event of a trace of packets, with its time.
fn packets(trace: &[u8]) -> Vec<(EventType, String)> {
    let mut reader = te::PacketReader::new(trace);
    let (mut all, mut names) = (Vec::new(), std::collections::HashMap::new());
    while let Some((_, packet)) = reader.next().unwrap() {
        for string in packet.interned() {
            if let te::Interned::Text { kind: te::InternedKind::EventName, iid, name } = string.unwrap() {
                names.insert(iid, name.to_owned());
            }
        }
        if let Some(te::PacketData::Event(event)) = packet.data {
            let name = event.name.map(str::to_owned).or_else(|| names.get(&event.name_iid?).cloned());
            all.push((event.kind.unwrap(), name.unwrap_or_default()));
        }
    }
    all
}

fn track(out: &mut Vec<u8>, uuid: u64, name: &str, has_states: bool) {
    let track = CustomTrack { uuid: TrackUuid(uuid), name, has_states, ..CustomTrack::default() };
    te::custom_descriptor(out, SequenceId(1), &track);
}

fn states() -> Vec<u8> {
    let mut trace = Vec::new();
    track(&mut trace, 5, "screen", true);
    track(&mut trace, 6, "radio", true);
    state(&mut trace, 10, 5, "on");
    state(&mut trace, 20, 6, "idle");
    state(&mut trace, 30, 5, "dim");
    state(&mut trace, 40, 5, "");
    state(&mut trace, 50, 5, "");
    state(&mut trace, 60, 5, "on");
    trace
}

#[test]
fn a_state_is_a_slice_up_to_the_next_state_of_its_track() {
    let (events, said) = read(&states());
    let expected = [
        "10 screen state begin on",
        "20 radio state begin idle",
        "30 screen state end",
        "30 screen state begin dim",
        "40 screen state end",
        "60 screen state begin on",
    ];
    assert_eq!((&events[..], &said[..]), (&expected.map(String::from)[..], &[][..]));
}

#[test]
fn states_stay_states_in_packets() {
    let trace = states();
    let (out, said) = converted(&trace, TraceFormat::TrackEvent);
    assert_eq!(said, []);
    assert_eq!(read(&out), read(&trace));
    let named = |name: &str| (EventType::State, name.to_owned());
    // The end of a state that another one follows at once has no packet.
    assert_eq!(packets(&out), ["on", "idle", "dim", "", "on"].map(named));
}

#[test]
fn states_are_slices_in_other_formats() {
    for (format, others) in [(TraceFormat::Fxt, 0), (TraceFormat::Json, 1)] {
        let (out, said) = converted(&states(), format);
        assert_eq!(said.len(), 1 + others, "{said:?}");
        assert!(said.contains(&("tracks of states became tracks of slices", 2)), "{said:?}");
        let mut reader = hairline_convert::open(&out[..], Some(format)).unwrap();
        let (mut context, mut kinds) = (Context::new(), Vec::new());
        while let Some(item) = reader.next(&mut context).unwrap() {
            if let Item::Event(event) = item {
                kinds.push(event.kind);
            }
        }
        kinds.sort_by_key(|kind| *kind == EventKind::End);
        assert_eq!(kinds, [&[EventKind::Begin; 4][..], &[EventKind::End; 2]].concat(), "{format:?}");
    }
}

#[test]
fn a_state_that_is_set_again_lasts_on() {
    let mut trace = Vec::new();
    track(&mut trace, 5, "screen", true);
    state(&mut trace, 10, 5, "on");
    state(&mut trace, 20, 5, "on");
    event(&mut trace, 30, EventType::State, 5, |e| {
        put_str(e, track_event::NAME, "on");
        put_message(e, track_event::DEBUG_ANNOTATIONS, |arg| put_str(arg, 10, "level"));
    });
    state(&mut trace, 40, 5, "");
    let (events, said) = read(&trace);
    assert_eq!(events, ["10 screen state begin on", "40 screen state end"]);
    assert_eq!(said, [("arguments and details of events that begin no state, left out", 1)]);
}

#[test]
fn states_and_slices_of_one_track_do_not_end_each_other() {
    let mut trace = Vec::new();
    track(&mut trace, 5, "screen", true);
    track(&mut trace, 6, "radio", false);
    let (uuid, parent_uuid) = (TrackUuid(7), TrackUuid(0));
    te::thread_descriptor(
        &mut trace,
        SequenceId(1),
        &ThreadTrack { uuid, parent_uuid, pid: 7, tid: 8, name: "main" },
    );
    for track in 5..9 {
        state(&mut trace, 10, track, "on");
        event(&mut trace, 20, EventType::SliceBegin, track, |e| put_str(e, track_event::NAME, "draw"));
        state(&mut trace, 30, track, "off");
        event(&mut trace, 40, EventType::SliceEnd, track, |_| {});
        state(&mut trace, 50, track, "");
    }
    let (events, said) = read(&trace);
    let expected = |states: &str, slices: &str| {
        [
            format!("10 {states} state begin on"),
            format!("20 {slices} begin draw"),
            format!("30 {states} state end"),
            format!("30 {states} state begin off"),
            format!("40 {slices} end"),
            format!("50 {states} state end"),
        ]
    };
    let tracks = [("screen", "screen"), ("radio", "radio"), ("states", "main"), ("", "")];
    assert_eq!(events, tracks.map(|(states, slices)| expected(states, slices)).concat());
    assert_eq!(said, []);
    let (out, said) = converted(&trace, TraceFormat::TrackEvent);
    assert_eq!(said, []);
    assert_eq!(read(&out).1, []);
    let sorted = |trace: &[u8]| {
        let mut events = read(trace).0;
        events.sort();
        events
    };
    assert_eq!(sorted(&out), sorted(&trace));
}

/// Events with call stacks of both kinds, of a thread.
fn stacks() -> Vec<u8> {
    let mut trace = Vec::new();
    let (uuid, parent_uuid) = (TrackUuid(7), TrackUuid(0));
    te::thread_descriptor(
        &mut trace,
        SequenceId(1),
        &ThreadTrack { uuid, parent_uuid, pid: 7, tid: 8, name: "main" },
    );
    let parts = [
        InternedStack::Path { iid: 1, path: "/bin/app" },
        InternedStack::BuildId { iid: 1, bytes: b"id" },
        InternedStack::Function { iid: 1, name: "main" },
        InternedStack::Mapping {
            iid: 1,
            mapping: Mapping { path: &[1][..], build_id: 1, ..Mapping::default() },
        },
        InternedStack::Frame { iid: 1, frame: Frame { function: 1, mapping: 1, rel_pc: 16 } },
        InternedStack::Frame { iid: 2, frame: Frame { function: 0, mapping: 1, rel_pc: 32 } },
        InternedStack::Callstack { iid: 3, frames: &[1, 2][..] },
    ];
    te::interned_stacks(&mut trace, SequenceId(1), true, &parts);
    event(&mut trace, 1, EventType::Instant, 7, |e| put_uint(e, track_event::CALLSTACK_IID, 3));
    event(&mut trace, 2, EventType::SliceBegin, 7, |e| {
        put_message(e, track_event::CALLSTACK, |stack| {
            for (file, function, line) in [("", "main", 0), ("net.rs", "send", 7)] {
                te::put_inline_frame(stack, &te::SourceLocation { file, function, line });
            }
        });
        hairline_formats::proto::put_double(e, track_event::CALLSTACK_WEIGHT, 0.5);
    });
    event(&mut trace, 3, EventType::SliceEnd, 7, |e| put_uint(e, track_event::CALLSTACK_IID, 3));
    trace
}

#[test]
fn an_event_has_the_frames_of_its_call_stack() {
    let expected = [
        "1 main other  < main < /bin/app+0x20",
        "2 main begin  < main < send (net.rs:7)",
        "3 main end  < main < /bin/app+0x20",
    ];
    assert_eq!(read(&stacks()), (expected.map(String::from).to_vec(), vec![]));
}

#[test]
fn call_stacks_of_events_stay_in_packets_and_in_json() {
    let (out, said) = converted(&stacks(), TraceFormat::TrackEvent);
    assert_eq!(said, []);
    assert_eq!(read(&out), read(&stacks()));
    // A call stack that is there already is not written again.
    let mut reader = te::PacketReader::new(&out[..]);
    let (mut interned, mut weights) = (0, Vec::new());
    while let Some((_, packet)) = reader.next().unwrap() {
        interned += packet.interned_stacks().count();
        if let Some(te::PacketData::Event(event)) = packet.data {
            weights.extend(event.callstack_weight);
        }
    }
    assert_eq!((interned, &weights[..]), (7, &[0.5][..]));

    let (json, said) = converted(&stacks(), TraceFormat::Json);
    assert_eq!(said, [("addresses and build ids of call stacks left out", 2)]);
    let json = String::from_utf8(json).unwrap();
    for part in [
        r#""ph":"i","ts":0.001,"pid":7,"tid":8,"#,
        r#""sf":2"#,
        r#""sf":4"#,
        r#""callstack_weight":0.5"#,
        r#""1":{"name":"main","category":"/bin/app"}"#,
        r#""2":{"name":"/bin/app+0x20","category":"/bin/app","parent":1}"#,
        r#""3":{"name":"main","category":""}"#,
        r#""4":{"name":"send (net.rs:7)","category":"","parent":3}"#,
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }

    let (_, said) = converted(&stacks(), TraceFormat::Fxt);
    assert_eq!(said, [("call stacks of events left out", 3)]);
}

#[test]
fn what_frames_have_beside_their_function_and_address_is_counted() {
    use hairline_formats::track_event::fields::{frame, interned_data};
    const SOURCE_PATH_IID: u32 = 5;
    const LINE_NUMBER: u32 = 6;
    let mut trace = Vec::new();
    put_message(&mut trace, trace::PACKET, |p| {
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_message(p, packet::INTERNED_DATA, |data| {
            put_message(data, interned_data::FRAMES, |entry| {
                for field in [frame::IID, frame::FUNCTION_NAME_ID, SOURCE_PATH_IID, LINE_NUMBER] {
                    put_uint(entry, field, 1);
                }
            });
        });
    });
    assert_eq!(read(&trace).1, [("unknown fields", 2)]);
}

#[test]
fn undefined_call_stacks_of_events_are_counted() {
    let mut trace = Vec::new();
    event(&mut trace, 1, EventType::Instant, 5, |e| put_uint(e, track_event::CALLSTACK_IID, 3));
    assert_eq!(read(&trace).1, [("events whose call stack has an undefined id", 1)]);
}

#[test]
fn attributes_of_the_trace_stay_in_packets_and_are_counted_elsewhere() {
    let mut trace = Vec::new();
    let attributes = [("build", AttributeValue::Text("release")), ("shard", AttributeValue::Int(-3))];
    te::trace_attributes(&mut trace, SequenceId(1), &attributes);
    let (out, said) = converted(&trace, TraceFormat::TrackEvent);
    assert_eq!(said, []);
    let mut reader = te::PacketReader::new(&out[..]);
    let mut read = Vec::new();
    while let Some((_, packet)) = reader.next().unwrap() {
        if let Some(te::PacketData::Attributes(all)) = packet.data {
            for attribute in all {
                let (name, value) = attribute.unwrap();
                read.push(format!("{name} {value:?}"));
            }
        }
    }
    assert_eq!(read, [r#"build Some(Text("release"))"#, "shard Some(Int(-3))"]);
    for format in [TraceFormat::Fxt, TraceFormat::Json] {
        assert_eq!(converted(&trace, format).1, [("attributes of the trace", 1)]);
    }
}
