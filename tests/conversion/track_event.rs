//! A Perfetto trace that is written again says what it said.

use std::thread;
use std::time::Duration;

use hairline::{Flow, Format, Level, Ordering, Session, SessionBuilder, Track, Unit};
use hairline::{
    scope, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_log, trace_scope,
};
use hairline_convert::{Report, TraceFormat};
use hairline_tests::equal::Shown;
use hairline_tests::judge::{self, encode};
use hairline_tests::recording::record_with;

use crate::{convert, read};

/// Requires that the judge sees the same in a trace and in what it becomes, and that nothing had to be said
/// about it.
#[track_caller]
fn stays_the_same(trace: &[u8]) -> Vec<u8> {
    let (converted, report) = convert(trace, TraceFormat::TrackEvent);
    assert_eq!(report, Report::default());
    Shown::of_clean(trace).require_equal(&Shown::of_clean(&converted));
    converted
}

fn record(
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Vec<u8> {
    read(record_with(Format::TrackEvent, configure, program).path())
}

/// Something of everything.
pub(crate) fn everything() {
    let flow = Flow::new();
    let lane = Track::process().child("lanes").ordering(Ordering::Explicit).description("two of them");
    let (first, second) = (lane.child("first").rank(2), lane.child("second").rank(1));
    thread::scope(|threads| {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let worker = named("worker").spawn_scoped(threads, || {
            trace_scope!("net,db", "work", flow: &flow, list = [1_u8, 2, 3], share = 0.25, text = "é\"\n");
            trace_begin!("disk", "write", track: &first, bytes = 10);
            trace_instant!("disk", "sync", track: &second);
            trace_counter!("disk", "written", 4096, unit: Unit::Bytes);
            trace_end!(&first);
            trace_log!(Level::Warn, "net", "only {} left", 3);
        });
        worker.expect("a thread").join().expect("no panic");
    });
    let mut outer = scope!("net", "outer", name: format!("outer {}", 1), end_flow: &flow);
    let interval = trace_async!("jobs", "job");
    for n in 0..3_i64 {
        trace_scope!("net", "inner", n = -n, is_last = n == 2);
        trace_counter!("net", "queue", n);
        trace_counter!("net", "level", 0.5, track: &Track::thread());
        thread::sleep(Duration::from_millis(3)); // longer than a timestamp of 3 bytes
    }
    drop(interval);
    outer.arg("result", "late");
}

#[test]
fn a_recording_of_everything() {
    stays_the_same(&record(|builder| builder, |_| everything()));
}

#[test]
fn a_recording_with_places_and_cpu_time() {
    stays_the_same(&record(|builder| builder.source_locations(true).thread_time(true), |_| everything()));
}

#[test]
fn a_compressed_recording() {
    stays_the_same(&record(|builder| builder.compress(true), |_| everything()));
}

/// The examples of Perfetto's document on TrackEvents that are written by hand.
#[test]
fn the_examples_of_the_document() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabulary/examples");
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let text = std::fs::read_to_string(entry.expect("an example").path()).expect("text");
        let trace = encode(&text);
        let (converted, report) = convert(&trace, TraceFormat::TrackEvent);
        let (before, after) = (Shown::of_clean(&trace), Shown::of_clean(&converted));
        if report.is_empty() {
            before.require_equal(&after);
        } else {
            // Some give a name to a process's own track, beside the process's. The model has no place for it.
            let named = "track names that differ from the name of their process or thread";
            assert!(report.iter().all(|(what, _)| what == named), "{report:?}");
            before.without(&["slices", "tracks"]).require_equal(&after.without(&["slices", "tracks"]));
        }
    }
}

const PROCESS: &str = r#"packet { trusted_packet_sequence_id: 1 track_descriptor {
    uuid: 5 process { pid: 70 process_name: "shown" cmdline: "program" cmdline: "-v" } } }"#;
const THREAD: &str = r#"packet { trusted_packet_sequence_id: 1 track_descriptor {
    uuid: 8 thread { pid: 70 tid: 71 thread_name: "worker" } } }"#;
const TREE: &str = r#"packet { timestamp: 500 process_tree {
    processes { pid: 70 ppid: 60 cmdline: "/bin/program" cmdline: "-v" } } }"#;
const SLICE: &str = r#"
    packet { timestamp: 1000 trusted_packet_sequence_id: 1 track_event {
        type: TYPE_SLICE_BEGIN track_uuid: 8 name: "s" } }
    packet { timestamp: 2000 trusted_packet_sequence_id: 1 track_event {
        type: TYPE_SLICE_END track_uuid: 8 } }"#;

/// A process tree comes before the descriptions of its processes, or after them.
#[test]
fn processes_of_a_process_tree_keep_their_name_and_parent() {
    for parts in [
        [TREE, PROCESS, THREAD, SLICE],
        [PROCESS, TREE, THREAD, SLICE],
        [PROCESS, THREAD, SLICE, TREE],
        ["", TREE, THREAD, SLICE],
        [PROCESS, "", THREAD, SLICE],
        [&TREE.replace(" ppid: 60", ""), PROCESS, THREAD, SLICE],
        [
            &TREE.replace("processes {", "threads { tid: 71 tgid: 70 name: \"w\" } processes {"),
            THREAD,
            SLICE,
            "",
        ],
        [TREE, THREAD, SLICE, TREE],
    ] {
        let trace = encode(&parts.concat());
        stays_the_same(&trace);
        let through_fxt = convert(&convert(&trace, TraceFormat::Fxt).0, TraceFormat::TrackEvent).0;
        let processes = "select name, cmdline, (select pid from process p where p.id = process.parent_upid) \
             from process where pid = 70";
        let rows = |trace: &[u8]| judge::load_bytes(trace, &[processes]).results[0].text();
        assert_eq!(rows(&through_fxt), rows(&trace), "{parts:?}");
    }
}

#[test]
fn values_that_an_older_tracer_has_nested() {
    let event = r#"packet { timestamp: 1500 trusted_packet_sequence_id: 1 track_event {
        type: TYPE_INSTANT track_uuid: 8 name: "i" debug_annotations { name: "map" nested_value {
            nested_type: DICT dict_keys: "list" dict_keys: "text" dict_keys: "share" dict_keys: "is"
            dict_values { nested_type: ARRAY array_values { int_value: 1 } array_values { int_value: -2 } }
            dict_values { string_value: "x" } dict_values { double_value: 0.5 } dict_values { bool_value: true }
        } } debug_annotations { name: "plain" nested_value { string_value: "y" } } } }"#;
    stays_the_same(&encode(&[PROCESS, THREAD, event].concat()));
}

/// As in trace_processor, an event without a track is of the thread that its sequence described last, if the
/// state of the sequence had been cleared before.
#[test]
fn events_without_a_track() {
    let event = |time: u32, track: &str| {
        format!(
            "packet {{ timestamp: {time} trusted_packet_sequence_id: 1 track_event {{ \
             type: TYPE_INSTANT name: \"{time}\" {track} }} }}"
        )
    };
    let cleared = "packet { trusted_packet_sequence_id: 1 sequence_flags: 1 }";
    let other = THREAD.replace("8", "9").replace("71", "72");
    let old = "packet { trusted_packet_sequence_id: 1 thread_descriptor { pid: 70 tid: 71 } }";
    for parts in [
        vec![cleared, THREAD, &event(1000, ""), &event(1100, "track_uuid: 0"), cleared, &event(1200, "")],
        vec![THREAD, &event(1000, "")],
        vec![cleared, THREAD, &other, &event(1000, ""), &event(1100, "track_uuid: 8")],
        vec![cleared, old, &event(1000, ""), cleared, &event(1200, "")],
    ] {
        stays_the_same(&encode(&parts.concat()));
    }
}

/// Before 2020 Chrome wrote times in microseconds since the last event of the sequence, and events of other
/// threads with the ids of their thread.
#[test]
fn times_and_threads_as_older_tracers_wrote_them() {
    let clocks = "packet { clock_snapshot { clocks { clock_id: 6 timestamp: 5000000 } \
                  clocks { clock_id: 3 timestamp: 1000000 } } }";
    let begin = "packet { trusted_packet_sequence_id: 1 sequence_flags: 1 thread_descriptor { pid: 70 tid: 71 \
                 reference_timestamp_us: 2000 } }";
    let track =
        begin.replace("thread_descriptor {", "track_descriptor { uuid: 8 thread {").replace("} }", "} } }");
    let event = |time: &str, name: &str, legacy: &str| {
        format!(
            "packet {{ trusted_packet_sequence_id: 1 {} track_event {{ {} legacy_event {{ phase: {legacy} }} \
             name: \"{name}\" }} }}",
            if time.starts_with("timestamp:") { time } else { "" },
            if time.starts_with("timestamp:") { "" } else { time },
        )
    };
    let events = [
        event("timestamp_delta_us: 5", "a", "73"),
        event("timestamp_absolute_us: 3000", "b", "88 duration_us: 3"),
        event("timestamp_delta_us: 7", "c", "66 pid_override: 7 tid_override: 8"),
        event("timestamp_delta_us: 1", "d", "66 tid_override: 9"),
        event("timestamp_delta_us: 1", "c", "69 pid_override: 7 tid_override: 8"),
        event("timestamp_delta_us: 1", "d", "69 tid_override: 9"),
        event("timestamp: 9000000", "e", "73 pid_override: 6"),
    ];
    for begin in [begin, &track, &track.replace("reference_timestamp_us: 2000", "")] {
        let trace = encode(&[clocks, begin, &events.concat()].concat());
        let slices = "select s.ts, s.dur, s.name, tid, pid from slice s join thread_track t on t.id = s.track_id \
                      join thread using (utid) join process using (upid) order by ts";
        let rows = |trace: &[u8]| judge::load_bytes(trace, &[slices]).results[0].text();
        assert_eq!(rows(&trace).lines().count(), 5, "{begin}");
        // A thread's id has 32 bits here, where the judge has -1.
        let converted = convert(&trace, TraceFormat::TrackEvent).0;
        assert_eq!(rows(&converted).replace("4294967295", "-1"), rows(&trace), "{begin}");
    }
    // Without a thread, the time since which the first one counts is not known.
    let (converted, report) = convert(&encode(&[clocks, &events[0]].concat()), TraceFormat::TrackEvent);
    assert_eq!(judge::load_bytes(&converted, &["select count(*) from slice"]).results[0].single_i64(), 0);
    let unknown = ("events left out: the time since which theirs counts is not known", 1);
    assert!(report.iter().any(|counted| counted == unknown), "{report:?}");
}
