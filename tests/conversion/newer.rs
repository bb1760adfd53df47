//! What trace_processor v52 does not know of packets, judged by the newer schema of Perfetto's own package.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use hairline_convert::TraceFormat;
use hairline_formats::track_event::{
    self as te, AttributeValue, Callstack, CustomTrack, Event, EventType, Frame, InternedStack, Mapping,
    Name, SequenceId, SourceLocation, TrackUuid, fields::clock,
};
use hairline_tests::judge;
use serde_json::Value;

use crate::convert;

const SEQUENCE: SequenceId = SequenceId(1);

/// The packets of a trace.
fn decoded(trace: &[u8]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.pftrace");
    std::fs::write(&path, trace).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/packets.py");
    let done = Command::new("python3").arg(script).arg(path).stdin(Stdio::null()).output().expect("python3");
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "run tests/oracle/setup.sh first: {complaint}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// The tracks of states, the attributes, and the events with the functions of their call stacks, in the order
/// of the file.
fn shown(packets: &[Value]) -> Vec<String> {
    let (mut all, mut interned) = (Vec::new(), HashMap::new());
    for packet in packets {
        for (kind, entries) in packet["interned_data"].as_object().into_iter().flatten() {
            for entry in entries.as_array().expect("a list") {
                interned.insert((kind.as_str(), entry["iid"].as_str().expect("an id")), entry);
            }
        }
        let known = |kind: &'static str, iid: &'_ Value| {
            interned.get(&(kind, iid.as_str().unwrap_or_default())).copied().unwrap_or(&Value::Null)
        };
        let track = &packet["track_descriptor"];
        if track["state"].is_object() {
            all.push(format!("states of {}", track["name"]));
        }
        for attribute in packet["trace_attributes"]["attribute"].as_array().into_iter().flatten() {
            all.push(format!(
                "{} is {}{}",
                attribute["key"], attribute["string_value"], attribute["long_value"]
            ));
        }
        let Some(event) = packet["track_event"].as_object() else { continue };
        let name = event.get("name_iid").map(|iid| &known("event_names", iid)["name"]);
        let name = name.or_else(|| event.get("name")).unwrap_or(&Value::Null);
        let mut frames = Vec::new();
        if let Some(iid) = event.get("callstack_iid") {
            for frame in known("callstacks", iid)["frame_ids"].as_array().expect("frames") {
                let frame = known("frames", frame);
                frames.push(format!(
                    "{} at {}",
                    known("function_names", &frame["function_name_id"])["str"],
                    frame["rel_pc"]
                ));
            }
        }
        let inline = event.get("callstack").and_then(|stack| stack["frames"].as_array());
        for frame in inline.into_iter().flatten() {
            frames.push(format!("{} in {}", frame["function_name"], frame["line_number"]));
        }
        let weight = event.get("callstack_weight").unwrap_or(&Value::Null);
        all.push(format!("{} {name} {frames:?} {weight}", event["type"]).replace(['"', '\\'], ""));
    }
    all
}

fn trace() -> Vec<u8> {
    let mut trace = Vec::new();
    let screen =
        CustomTrack { uuid: TrackUuid(5), name: "screen", has_states: true, ..CustomTrack::default() };
    te::custom_descriptor(&mut trace, SEQUENCE, &screen);
    let of_work = CustomTrack { uuid: TrackUuid(6), name: "work", ..CustomTrack::default() };
    te::custom_descriptor(&mut trace, SEQUENCE, &of_work);
    let attributes = [("build", AttributeValue::Text("release")), ("shard", AttributeValue::Int(-3))];
    te::trace_attributes(&mut trace, SEQUENCE, &attributes);
    let mapping = Mapping { path: &[1][..], ..Mapping::default() };
    let parts = [
        InternedStack::Path { iid: 1, path: "/bin/app" },
        InternedStack::Function { iid: 1, name: "main" },
        InternedStack::Mapping { iid: 1, mapping },
        InternedStack::Frame { iid: 9, frame: Frame { function: 1, mapping: 1, rel_pc: 16 } },
        InternedStack::Callstack { iid: 3, frames: &[9][..] },
    ];
    te::interned_stacks(&mut trace, SEQUENCE, true, &parts);
    let at = |time, kind, uuid| Event {
        track_uuid: Some(TrackUuid(uuid)),
        clock_id: Some(clock::BOOTTIME),
        ..Event::new(SEQUENCE, kind, time)
    };
    for (time, name) in [(1_000, "on"), (2_000, "dim"), (4_000, ""), (5_000, "on"), (5_500, "")] {
        let name = Some(Name::Text(name)).filter(|_| !name.is_empty());
        te::event(&mut trace, &Event { name, ..at(time, EventType::State, 5) });
    }
    let frames = [SourceLocation { file: "net.rs", function: "send", line: 7 }];
    let begin = Event { name: Some(Name::Text("draw")), ..at(6_000, EventType::SliceBegin, 6) };
    te::event(
        &mut trace,
        &Event { callstack: Some(Callstack::Inline(&frames)), callstack_weight: Some(0.5), ..begin },
    );
    te::event(&mut trace, &Event { callstack: Some(Callstack::Iid(3)), ..at(7_000, EventType::SliceEnd, 6) });
    trace
}

#[test]
fn states_call_stacks_and_attributes_are_those_of_the_newer_schema_before_and_after() {
    let expected = [
        r#"states of "screen""#,
        r#""build" is "release"null"#,
        r#""shard" is null"-3""#,
        "TYPE_STATE on [] null",
        "TYPE_STATE dim [] null",
        "TYPE_STATE null [] null",
        "TYPE_STATE on [] null",
        "TYPE_STATE null [] null",
        "TYPE_SLICE_BEGIN draw [send in 7] 0.5",
        "TYPE_SLICE_END null [bWFpbg== at 16] null", // bytes in base64: main
    ];
    let (trace, mut expected) = (trace(), expected.map(String::from));
    assert_eq!(shown(&decoded(&trace)), expected);
    let (converted, report) = convert(&trace, TraceFormat::TrackEvent);
    assert!(report.is_empty(), "{report:?}");
    // A track is described before its first event. The end of the last state is written when no other one can
    // begin at its time: last.
    expected[7..].rotate_left(1);
    let mut after = shown(&decoded(&converted));
    after[..3].sort();
    expected[..3].sort();
    assert_eq!(after, expected);
}

#[test]
fn in_json_a_state_lasts_up_to_the_next_one() {
    for trace in [trace(), convert(&trace(), TraceFormat::TrackEvent).0] {
        let (converted, _) = convert(&trace, TraceFormat::Json);
        let [rows] =
            judge::rows(&converted, ["select ts, dur, name from slice where name <> 'draw' order by ts"]);
        assert_eq!(rows, "1000\t1000\ton\n2000\t2000\tdim\n5000\t500\ton");
    }
}
