//! Each command says how much of a trace it understood.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{
    clock, debug_annotation, sequence_flags, trace, trace_packet as packet, trace_uuid, track_event,
};
use hairline_formats::track_event::{SequenceId, clock_snapshot};

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
    assert!(report.starts_with("4 x events left out: no clock snapshot joins their clock"), "{report}");
    assert!(report.lines().next().is_some_and(|line| line.ends_with(": 77")), "{report}");
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

/// A zstd frame with one block that is stored as it is.
fn zstd(content: &[u8]) -> Vec<u8> {
    let size = u8::try_from(content.len()).expect("few");
    let block = (u32::from(size) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size], &block[..3], content].concat()
}

fn hairline(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let output = command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn packets_that_are_compressed_with_zstd_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = |time, kind| {
        packets(1, |p| {
            put_uint(p, packet::TIMESTAMP, time);
            put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
            put_message(p, packet::TRACK_EVENT, |e| {
                put_uint(e, track_event::TYPE, kind);
                put_str(e, track_event::NAME, "work");
            });
        })
    };
    let plain = [event(5, 1), event(9, 2)].concat();
    let compressed = |frames: &[u8]| {
        packets(1, |p| {
            hairline_formats::proto::put_bytes(p, packet::ZSTD_COMPRESSED_PACKETS, frames);
        })
    };
    fs::write(folder.path().join("plain.pftrace"), &plain).expect("written");
    fs::write(folder.path().join("zstd.pftrace"), compressed(&zstd(&plain))).expect("written");
    for name in ["plain", "zstd"] {
        let (input, output) = (format!("{name}.pftrace"), format!("{name}.fxt"));
        let done = hairline(folder.path(), &["convert", &input, &output]);
        assert_eq!(done, (Some(0), String::new(), String::new()), "{name}");
    }
    let read = |name| fs::read(folder.path().join(name)).expect("a trace");
    assert!(read("plain.fxt") == read("zstd.fxt"));
    let (code, stats, _) = hairline(folder.path(), &["stats", "zstd.pftrace"]);
    assert!(code == Some(0) && stats.contains("1 interval"), "{stats}");

    // Frames that are damaged are counted, and what is before and after them is read.
    let mut damaged = zstd(&plain);
    damaged[6] |= 3 << 1; // a kind of block that there is not
    let after = [event(15, 1), event(19, 2)].concat();
    fs::write(folder.path().join("damaged.pftrace"), [plain, compressed(&damaged), after].concat())
        .expect("written");
    let (code, stats, said) = hairline(folder.path(), &["stats", "damaged.pftrace"]);
    assert!(code == Some(0) && stats.contains("2 intervals"), "{stats}");
    let counted = "whose content is damaged, not read to its end";
    assert!(format!("{stats}{said}").contains(counted), "{stats}{said}");
    let (code, said, _) = hairline(folder.path(), &["validate", "damaged.pftrace"]);
    assert!(code == Some(1) && said.contains(counted), "{code:?} {said}");
}

#[test]
fn every_command_says_what_it_passes_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let ftrace = packets(3, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_message(p, FTRACE_EVENTS, |bundle| put_uint(bundle, 1, 0));
    });
    fs::write(folder.path().join("t.pftrace"), ftrace).expect("written");
    let commands: [&[&str]; 8] = [
        &["stats", "t.pftrace"],
        &["stats", "t.pftrace", "--csv"],
        &["stats", "t.pftrace", "--json"],
        &["flame", "t.pftrace"],
        &["validate", "t.pftrace"],
        &["export", "t.pftrace", "-o", "tables"],
        &["convert", "t.pftrace", "t.json"],
        &["convert", "t.pftrace", "t.otlp"],
    ];
    for command in commands {
        let (_, out, said) = hairline(folder.path(), command);
        let all = out + &said;
        let line = all.lines().find(|line| line.contains("bundles of ftrace events"));
        assert!(line.is_some_and(|line| line.contains('3')), "{command:?}: {all}");
    }
}

/// What a command says of a trace, on stdout and on stderr.
fn said(folder: &Path, name: &str, trace: &[u8], command: &[&str]) -> [String; 2] {
    fs::write(folder.join(name), trace).expect("written");
    let mut hairline = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let output = hairline.current_dir(folder).args(command).stdin(Stdio::null()).output().expect("it ran");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn packets_of_other_kinds_are_said_also_if_they_depend_on_the_state_of_their_sequence() {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = packets(1, |p| {
        put_uint(p, packet::TIMESTAMP, 5);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_uint(p, packet::SEQUENCE_FLAGS, u64::from(sequence_flags::CLEARED));
        put_message(p, packet::TRACK_EVENT, |e| put_uint(e, track_event::TYPE, 3));
    });
    let of_state = |n: usize, flags| {
        packets(n, move |p| {
            put_uint(p, packet::TIMESTAMP, 5);
            put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
            put_uint(p, packet::SEQUENCE_FLAGS, flags);
            put_message(p, FTRACE_EVENTS, |bundle| put_uint(bundle, 1, 0));
        })
    };
    let trace = [begin, of_state(3, u64::from(sequence_flags::NEEDS)), of_state(2, 0)].concat();
    let [_, stderr] = said(folder.path(), "t.pftrace", &trace, &["flame", "t.pftrace"]);
    assert!(stderr.contains("not shown: 5 bundles of ftrace events"), "{stderr}");
    let [json, _] = said(folder.path(), "t.pftrace", &trace, &["stats", "--json", "t.pftrace"]);
    assert!(json.contains("\"bundles of ftrace events\": 5"), "{json}");
    let convert = ["convert", "t.pftrace", "o.pftrace"];
    let [_, stderr] = said(folder.path(), "t.pftrace", &trace, &convert);
    assert!(
        stderr.contains("3 bundles of ftrace events"),
        "those that do not depend on it are copied: {stderr}"
    );
}

#[test]
fn what_was_repaired_is_shown_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = br#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{"n":NaN}}]"#;
    let [_, stderr] = said(folder.path(), "t.json", trace, &["flame", "t.json"]);
    assert!(stderr.contains("t.json: 1 event that is not quite JSON, repaired"), "{stderr}");
}

#[test]
fn more_slices_than_a_few_thousand_can_be_open_before_a_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = |phase, n: u64| format!(r#"{{"ph":"{phase}","name":"s","pid":1,"tid":1,"ts":{n}}}"#);
    let begins = (0..5_000).map(|n| event("B", n));
    let ends = (0..5_000).map(|n| event("E", 10_000 + n));
    let trace = format!("[{}]", begins.chain(ends).collect::<Vec<_>>().join(","));
    let convert = ["convert", "--time-range", "6ms..", "t.json", "o.pftrace"];
    said(folder.path(), "t.json", trace.as_bytes(), &convert);
    let part = fs::read(folder.path().join("o.pftrace")).expect("the part");
    let [json, _] = said(folder.path(), "o.pftrace", &part, &["stats", "--json", "o.pftrace"]);
    let json: String = json.split_whitespace().collect();
    assert!(json.contains(r#""slices":5000,"#) && json.contains(r#""slices_without_end":0,"#), "{json}");
}

#[test]
fn a_slice_that_another_end_closed_before_a_part_is_not_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let event =
        |phase, name, time| format!(r#"{{"ph":"{phase}","name":"{name}","pid":1,"tid":1,"ts":{time}}}"#);
    let events = [
        event("B", "outer", 0),
        event("B", "inner", 1),
        event("E", "outer", 10),
        event("B", "later", 100),
        event("E", "later", 110),
    ];
    let trace = format!("[{}]", events.join(","));
    let convert = ["convert", "--time-range", "50us..", "t.json", "o.pftrace"];
    said(folder.path(), "t.json", trace.as_bytes(), &convert);
    let part = fs::read(folder.path().join("o.pftrace")).expect("the part");
    let [json, _] = said(folder.path(), "o.pftrace", &part, &["stats", "--json", "o.pftrace"]);
    let json: String = json.split_whitespace().collect();
    assert!(json.contains(r#""slices":1,"#) && json.contains(r#""slices_without_end":0,"#), "{json}");
}

#[test]
fn a_part_of_some_threads_has_them_whole_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let event =
        |phase, thread, time| format!(r#"{{"ph":"{phase}","name":"s","pid":1,"tid":{thread},"ts":{time}}}"#);
    let events = [
        event("B", 2, 10),
        event("E", 2, 20),
        event("B", 2, 5),
        event("E", 2, 8),
        event("B", 3, 1),
        event("E", 3, 9),
    ];
    let trace = format!("[{}]", events.join(","));
    let convert = |part: &[&str]| {
        let arguments = [&["convert", "t.json", "o.pftrace"], part].concat();
        let [_, stderr] = said(folder.path(), "t.json", trace.as_bytes(), &arguments);
        stderr
    };
    assert!(!convert(&["--thread", "2"]).contains("in order of time"));
    assert!(!convert(&["--thread", "3", "--time-range", "6us.."]).contains("in order of time"));
    let stderr = convert(&["--time-range", "6us.."]);
    assert!(
        stderr.contains("1 track") && stderr.contains("not in order of time, of which all are kept"),
        "{stderr}"
    );
}

#[test]
fn lines_about_the_inputs_are_said_once_though_a_merge_is_tried_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = packets(1, |p| {
        put_uint(p, packet::TIMESTAMP, u64::MAX - 5); // before 0
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_message(p, packet::TRACK_EVENT, |e| put_uint(e, track_event::TYPE, 3));
    });
    let uuid = packets(1, |p| put_message(p, packet::TRACE_UUID, |uuid| put_uint(uuid, trace_uuid::MSB, 7)));
    let trace = [uuid, trace].concat();
    fs::write(folder.path().join("b.pftrace"), &trace).expect("written");
    let merge = ["merge", "a.pftrace", "b.pftrace", "-o", "o.pftrace"];
    let [_, stderr] = said(folder.path(), "a.pftrace", &trace, &merge);
    assert!(stderr.contains("because some were before 0"), "{stderr}");
    assert_eq!(stderr.matches("it has the UUID of").count(), 1, "{stderr}");
}

#[test]
fn an_input_without_a_reading_is_named_if_others_are_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_day = |hours: u64| {
        let mut trace = Vec::new();
        let day = 1_700_000_000_000_000_000 + hours * 3_600_000_000_000;
        clock_snapshot(&mut trace, SequenceId(1), &[(clock::BOOTTIME, 1_000), (clock::REALTIME, day)]);
        trace.extend(packets(1, |p| {
            put_uint(p, packet::TIMESTAMP, 5);
            put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
            put_message(p, packet::TRACK_EVENT, |e| put_uint(e, track_event::TYPE, 3));
        }));
        trace
    };
    let event = r#"[{"ph":"i","name":"s","pid":1,"tid":1,"ts":1}]"#;
    fs::write(folder.path().join("c.json"), event).expect("written");
    for (hours, is_named) in [(0, false), (1, true)] {
        fs::write(folder.path().join("b.pftrace"), of_day(hours)).expect("written");
        let merge = ["merge", "a.pftrace", "b.pftrace", "c.json", "-o", "o.pftrace"];
        let [_, stderr] = said(folder.path(), "a.pftrace", &of_day(0), &merge);
        assert_eq!(
            stderr.contains("c.json: it has no reading of the clock of the day"),
            is_named,
            "{stderr}"
        );
        assert_eq!(stderr.contains("or the clock of the day was set"), is_named, "{stderr}");
    }
}
