//! `hairline validate` says how much of a trace it understood.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{
    debug_annotation, sequence_flags, trace, trace_packet as packet, track_event,
};

/// The exit code of `hairline validate`, and its report.
fn validate(folder: &Path, trace: &[u8], more: &[&str]) -> (Option<i32>, String) {
    fs::write(folder.join("t"), trace).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let command = command.current_dir(folder).args(["validate", "t"]).args(more).stdin(Stdio::null());
    let output = command.output().expect("it ran");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn packets(many: usize, put: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    (0..many).for_each(|_| put_message(&mut out, trace::PACKET, |p| put(p)));
    out
}

/// `FtraceEventBundle` in `TracePacket`.
const FTRACE_EVENTS: u32 = 1;

#[test]
fn a_trace_of_kinds_that_are_not_read_is_not_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let ftrace = packets(3, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_message(p, FTRACE_EVENTS, |bundle| put_uint(bundle, 1, 0));
    });
    let (code, report) = validate(folder.path(), &ftrace, &[]);
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("not read: 3 x bundles of ftrace events\n"), "{report}");
    assert!(report.contains("0 events, so there is nothing to check; 3 records of kinds"), "{report}");
}

#[test]
fn a_trace_whose_events_are_all_unreadable_is_not_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    // Their clock is described nowhere.
    let trace = packets(4, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_uint(p, packet::TIMESTAMP_CLOCK_ID, 77);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_message(p, packet::TRACK_EVENT, |e| put_uint(e, track_event::TYPE, 3));
    });
    let (code, report) = validate(folder.path(), &trace, &[]);
    assert_eq!(code, Some(1), "{report}");
    assert!(report.starts_with("4 x events left out: their clock is unknown\n"), "{report}");
    assert!(report.ends_with("t: 0 events, 1 kind of defect\n"), "{report}");
    for unreadable in [r#"[{"ph":"B","pid":1,"tid":1}]"#, r#"[1,2,{"ph":"?","ts":1}]"#, "[]", r#"{"a":[]}"#] {
        let (code, report) = validate(folder.path(), unreadable.as_bytes(), &[]);
        assert!(code == Some(1) && !report.contains("nothing is wrong"), "{unreadable}: {report}");
    }
}

#[test]
fn one_event_that_is_not_understood_is_wrong_among_many_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = r#"[{"ph":"i","pid":1,"tid":1,"ts":1},{"ph":"X","pid":1,"tid":1,"ts":2}]"#;
    let (code, report) = validate(folder.path(), trace.as_bytes(), &[]);
    assert_eq!(
        (code, report.as_str()),
        (Some(1), "1 x slices without a duration\nt: 1 event, 1 kind of defect\n")
    );
    assert_eq!(validate(folder.path(), trace.as_bytes(), &["--ignore", "loss"]).0, Some(0));
}

#[test]
fn undefined_ids_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = packets(2, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_uint(p, packet::SEQUENCE_FLAGS, sequence_flags::CLEARED.into());
        put_message(p, packet::TRACK_EVENT, |e| {
            put_uint(e, track_event::TYPE, 3);
            put_uint(e, track_event::NAME_IID, 7);
            put_uint(e, track_event::CATEGORY_IIDS, 8);
            put_message(e, track_event::DEBUG_ANNOTATIONS, |a| {
                put_uint(a, debug_annotation::NAME_IID, 9);
                put_str(a, debug_annotation::STRING_VALUE, "text");
            });
            put_message(e, track_event::DEBUG_ANNOTATIONS, |a| {
                put_str(a, debug_annotation::NAME, "name");
                put_uint(a, debug_annotation::STRING_VALUE_IID, 10);
            });
        });
    });
    let (code, report) = validate(folder.path(), &trace, &[]);
    assert_eq!(code, Some(1), "{report}");
    for line in [
        "2 x events whose name has an undefined id: 7\n",
        "2 x events whose category has an undefined id: 8\n",
        "2 x arguments whose name has an undefined id: 9\n",
        "2 x arguments whose text has an undefined id: 10\n",
    ] {
        assert!(report.contains(line), "{line}{report}");
    }
}

#[test]
fn all_undefined_ids_of_an_event_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = packets(1, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_uint(p, packet::SEQUENCE_FLAGS, sequence_flags::CLEARED.into());
        put_message(p, packet::TRACK_EVENT, |e| {
            put_uint(e, track_event::TYPE, 3);
            for iid in 1..=3000 {
                put_message(e, track_event::DEBUG_ANNOTATIONS, |a| {
                    put_uint(a, debug_annotation::NAME_IID, iid);
                    put_str(a, debug_annotation::STRING_VALUE, "text");
                });
            }
        });
    });
    let report = validate(folder.path(), &trace, &[]).1;
    assert!(report.contains("3,000 x arguments whose name has an undefined id: 1, 2, 3\n"), "{report}");
}

#[test]
fn sound_traces_have_open_slices_and_flows_with_one_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = r#"[{"ph":"B","pid":1,"tid":1,"ts":1,"name":"a"},
        {"ph":"s","pid":1,"tid":1,"ts":2,"name":"f","id":1}]"#;
    let (code, report) = validate(folder.path(), trace.as_bytes(), &[]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("usual: 1 x slice without an end\n"), "{report}");
    assert!(report.contains("usual: 1 x flow with one end\n"), "{report}");
    assert!(report.ends_with("t: 2 events, nothing is wrong\n"), "{report}");
    let (code, report) = validate(folder.path(), trace.as_bytes(), &["--strict"]);
    assert_eq!(code, Some(1));
    assert!(report.starts_with("1 x slice without an end\n"), "{report}");
    assert!(report.ends_with("usual: 1 x flow with one end\nt: 2 events, 1 kind of defect\n"), "{report}");
}

/// A future that is polled once wakes nobody: each asynchronous program has such flows.
#[test]
fn a_flow_with_one_end_is_no_defect_of_a_strict_trace_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = r#"[{"ph":"B","pid":1,"tid":1,"ts":1,"name":"a"},
        {"ph":"s","pid":1,"tid":1,"ts":2,"name":"f","id":1}, {"ph":"E","pid":1,"tid":1,"ts":3,"name":"a"}]"#;
    let (code, report) = validate(folder.path(), trace.as_bytes(), &["--strict"]);
    assert_eq!((code, &*report), (Some(0), "usual: 1 x flow with one end\nt: 3 events, nothing is wrong\n"));
}
