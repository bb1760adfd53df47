//! `hairline explain` names the cause that was planted in a trace.

mod awaited;
mod ended;
mod functions;
mod locks;
mod planted;
mod tasks;
mod threads;
mod truth;

use std::fs;
use std::process::Command;

use hairline_formats::track_event::{
    self as te, Frame, InternedStack, Mapping, PerfSample, SequenceId, ThreadTrack, TrackUuid,
};

use crate::planted::{
    HOG, LIVES, MS, OTHER, Planted, SERVER, Shape, State, command, explain, requests, sleeps,
};

/// Requires these words in the first five lines, whatever the shape of the scheduling.
#[track_caller]
fn require(name: &str, plant: impl Fn() -> Planted, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    for shape in [Shape::States, Shape::Ftrace] {
        let text = explain(folder.path(), &plant().finish(shape), &[name]);
        let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
        for word in words {
            assert!(first.contains(word), "{shape:?}: no {word:?} in the first lines of\n{text}");
        }
        if std::env::var_os("SHOW").is_some() {
            println!("{text}\n");
        }
    }
}

#[test]
fn lock_contention_is_named_with_the_slice_that_holds_the_lock() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, OTHER);
            trace.slice(OTHER, (middle - MS, middle + 50 * MS - MS / 100), "cache", "rebuild");
            Some(("cache", "lookup"))
        })
    };
    require(
        "net/request",
        plant,
        &[
            "Cause: sleep.",
            "50.0 ms of that",
            "inside `lookup`",
            "2 of 2 sleeps end when `rebuild` ends on the thread rebuilder (102)",
        ],
    );
}

#[test]
fn cpu_starvation_is_named_with_the_thread_that_had_the_core() {
    let plant = || {
        requests("request", |trace, middle| {
            trace.switch(middle, (SERVER, State::Preempted), HOG);
            trace.switch(middle + 50 * MS, (HOG, State::Preempted), SERVER);
            None
        })
    };
    require("net/request", plant, &["Cause: no free core.", "50.0 ms of that", "`hog (900)` 100 %"]);
}

#[test]
fn the_slice_of_the_thread_that_had_the_core_is_named() {
    let during = |slices: &'static [(&'static str, u64, u64)]| {
        move || {
            requests("request", |trace, middle| {
                trace.switch(middle, (SERVER, State::Preempted), OTHER);
                trace.switch(middle + 50 * MS, (OTHER, State::Preempted), SERVER);
                for (name, from, to) in slices {
                    trace.slice(OTHER, (middle + from, middle + to), "", name);
                }
                None
            })
        }
    };
    // It begins after the thread has the core, and lasts beyond that, as a poll does.
    let report = during(&[("row", 3 * MS, 4 * MS), ("row", 5 * MS, 6 * MS), ("report", 2 * MS, 51 * MS)]);
    require("net/request", report, &["busy with the threads `rebuilder (102)` inside `report` 100 %"]);
    let innermost = during(&[("read", 3 * MS, 40 * MS), ("report", 2 * MS, 51 * MS)]);
    require("net/request", innermost, &["`rebuilder (102)` inside `read` 100 %"]);
    let none = during(&[("row", 3 * MS, 10 * MS), ("row", 15 * MS, 30 * MS)]);
    require("net/request", none, &["`rebuilder (102)` 100 %"]);
}

#[test]
fn a_slow_disk_is_named() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Disk, 0);
            Some(("disk", "read"))
        })
    };
    require("net/request", plant, &["Cause: sleep.", "inside `read`", "uninterruptible", "disk"]);
}

#[test]
fn a_signal_or_a_debugger_that_stops_a_thread_is_named_and_no_other_thread() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Stopped, 0);
            trace.slice(OTHER, (middle - MS, middle + 50 * MS), "app", "serve");
            Some(("app", "render"))
        })
    };
    let words = [
        "Cause: stopped by a signal or a debugger.",
        "and their thread is stopped for 50.0 ms of that",
        "inside `render`",
        "Why: a signal, like SIGSTOP, or a debugger stopped their thread.",
    ];
    require("net/request", plant, &words);
}

#[test]
fn a_blocking_call_in_a_poll_is_named() {
    let plant = || {
        let mut trace = requests("handler", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            None
        });
        let now = trace.now;
        trace.slice(LIVES, (1_000 * MS, now), "net", "handler");
        trace
    };
    require("net/handler", plant, &["Cause: sleep.", "a poll of an async task", "a blocking call"]);
}

#[test]
fn a_slow_dependency_is_named() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            Some(("rpc", "inventory"))
        })
    };
    require("net/request", plant, &["Cause: sleep.", "inside `inventory`", "Why: not known", "the network"]);
}

#[test]
fn computing_is_named_with_the_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut times = Vec::new();
    let trace = requests("request", |_, middle| {
        times.push(middle);
        Some(("", "parse"))
    });
    let mut trace = trace.finish(Shape::States);
    let sequence = SequenceId(9);
    let frame = |function| Frame { function, mapping: 1, rel_pc: function };
    te::interned_stacks(
        &mut trace,
        sequence,
        true,
        &[
            InternedStack::Function { iid: 1, name: "main" },
            InternedStack::Function { iid: 2, name: "hash" },
            InternedStack::Mapping { iid: 1, mapping: Mapping { path: &[][..], ..Mapping::default() } },
            InternedStack::Frame { iid: 1, frame: frame(1) },
            InternedStack::Frame { iid: 2, frame: frame(2) },
            InternedStack::Callstack { iid: 1, frames: &[1, 2] },
        ],
    );
    for time in times {
        let sample = PerfSample { pid: 100, tid: SERVER as u32, callstack: 1, ..PerfSample::default() };
        (0..50).for_each(|n| te::perf_sample(&mut trace, sequence, time + n * MS, &sample));
    }
    let text = explain(folder.path(), &trace, &["net/request", "--svg", "f.svg"]);
    let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
    for word in ["Cause: computing.", "inside `parse`", "`hash` 100 %"] {
        assert!(first.contains(word), "{word}: {text}");
    }
    let svg = fs::read_to_string(folder.path().join("f.svg")).expect("drawn");
    assert!(svg.contains("hash") && svg.contains("net/request"));
}

#[test]
fn a_trace_without_scheduling_shows_what_it_can_and_says_how_to_get_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = requests("request", |trace, middle| {
        trace.slice(OTHER, (middle - MS, middle + 50 * MS), "cache", "rebuild");
        Some(("cache", "lookup"))
    });
    let text = explain(folder.path(), &trace.finish(Shape::Nothing), &["request"]);
    let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
    for word in
        ["no scheduling", "inside `lookup`", "`rebuild`", "HAIRLINE_SCHED=on hairline record --sample"]
    {
        assert!(first.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_sums_in_json_are_those_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, OTHER);
        None
    });
    let text = explain(folder.path(), &trace.finish(Shape::States), &["--json"]);
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let of = &all["names"][0];
    assert_eq!((of["count"].as_u64(), of["cause"]["state"].as_str()), (Some(200), Some("asleep")));
    let split = &of["all"]["split"];
    let ns = |name: &str| split[name].as_u64();
    assert_eq!((ns("running_ns"), ns("asleep_ns")), (Some(200 * 5 * MS), Some(2 * 50 * MS)));
    assert_eq!((ns("waiting_ns"), ns("unknown_ns")), (Some(0), Some(0)));
    assert_eq!(of["slowest"]["count"].as_u64(), Some(2));
}

#[test]
fn a_name_that_is_not_there_is_an_error_that_says_where_names_are() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.pftrace"), requests("request", |_, _| None).finish(Shape::States))
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let output = command.current_dir(folder.path()).args(["explain", "t.pftrace", "x/*"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("x/*") && text.contains("hairline stats"), "{text}");
}

#[test]
fn stats_has_the_times_running_and_waiting_where_there_is_scheduling() {
    let folder = tempfile::tempdir().expect("a folder");
    let starved = || {
        requests("request", |trace, middle| {
            trace.switch(middle, (SERVER, State::Preempted), HOG);
            trace.switch(middle + 50 * MS, (HOG, State::Preempted), SERVER);
            None
        })
    };
    for shape in [Shape::States, Shape::Ftrace] {
        fs::write(folder.path().join("t.pftrace"), starved().finish(shape)).expect("written");
        let text = command(folder.path(), &["stats", "t.pftrace", "--json"]);
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for row in [&all["names"][0], &all["categories"][0], &all["by_thread"][0]] {
            let ns = |name: &str| row[name].as_u64();
            assert_eq!((ns("running_ns"), ns("waiting_ns")), (Some(1_000 * MS), Some(100 * MS)), "{row}");
        }
    }
    fs::write(folder.path().join("t.pftrace"), starved().finish(Shape::Nothing)).expect("written");
    assert!(!command(folder.path(), &["stats", "t.pftrace"]).contains("running"), "there is none to show");
}

#[test]
fn the_report_and_the_picture_do_not_share_stdout() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.pftrace"), requests("request", |_, _| None).finish(Shape::States))
        .expect("written");
    let mut hairline = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let hairline = hairline.current_dir(folder.path()).args(["explain", "t.pftrace", "--svg", "-"]);
    let output = hairline.output().expect("it ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("give the name of a file"), "{said}");
    let help = command(folder.path(), &["explain", "--help"]);
    assert!(!help.contains("stdin"), "it reads the trace several times: {help}");
}

#[test]
fn stats_has_no_times_of_a_thread_id_that_two_processes_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let thread = ThreadTrack { uuid: TrackUuid(5), parent_uuid: TrackUuid(0), pid: 777, tid: 101, name: "x" };
    let mut other = Vec::new();
    te::thread_descriptor(&mut other, SequenceId(1), &thread);
    let trace = requests("request", |_, _| None).finish(Shape::States);
    for out in [[&other[..], &trace].concat(), [&trace[..], &other].concat()] {
        fs::write(folder.path().join("t.pftrace"), out).expect("written");
        let text = command(folder.path(), &["stats", "t.pftrace", "--json"]);
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let row = &all["names"][0];
        let ns = |name: &str| row[name].as_u64();
        assert_eq!((ns("running_ns"), ns("waiting_ns")), (None, None), "whose are they? {row}");
        assert!(row["running_ns"].is_null() && row["waiting_ns"].is_null(), "{row}");
        let csv = command(folder.path(), &["stats", "t.pftrace", "--by", "name", "--csv"]);
        let lines: Vec<_> = csv.lines().collect();
        assert!(lines[0].ends_with(",running_ns,waiting_ns") && lines[1].ends_with(",,"), "{csv}");
        let table = command(folder.path(), &["stats", "t.pftrace", "--by", "name"]);
        let row = table.lines().find(|line| line.starts_with("request ")).expect("a row");
        assert_eq!(row.split_whitespace().rev().take(2).collect::<Vec<_>>(), ["-", "-"], "{table}");
    }
}

#[test]
fn flame_draws_the_functions_of_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = Planted::new().finish(Shape::Nothing);
    let sequence = SequenceId(9);
    let mapping = Mapping { path: &[][..], build_id: 1, ..Mapping::default() };
    te::interned_stacks(
        &mut trace,
        sequence,
        true,
        &[
            InternedStack::BuildId { iid: 1, bytes: &[1] },
            InternedStack::Function { iid: 1, name: "main" },
            InternedStack::Mapping { iid: 1, mapping },
            InternedStack::Frame { iid: 1, frame: Frame { function: 1, mapping: 1, rel_pc: 1 } },
            InternedStack::Frame { iid: 2, frame: Frame { function: 0, mapping: 1, rel_pc: 2 } },
            InternedStack::Callstack { iid: 1, frames: &[1, 2] },
        ],
    );
    for time in [5, 6, 7] {
        let sample = PerfSample { pid: 100, tid: SERVER as u32, callstack: 1, ..PerfSample::default() };
        te::perf_sample(&mut trace, sequence, time, &sample);
    }
    let line = |function| te::Line { function, file: "", line: 1 };
    let symbols = te::AddressSymbols { address: 2, lines: vec![line("inlined"), line("around")] };
    te::module_symbols(&mut trace, sequence, "", &[1], &[symbols]);
    fs::write(folder.path().join("t.pftrace"), trace).expect("written");
    let folded = command(folder.path(), &["flame", "t.pftrace", "--samples", "--by", "all"]);
    assert_eq!(folded, "main;around;inlined 3\n");
    let by_thread = command(folder.path(), &["flame", "t.pftrace", "--samples"]);
    assert!(by_thread.contains("server (101);main;around;inlined 3"), "{by_thread}");
}

#[test]
fn a_program_without_symbols_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = requests("request", |_, _| None).finish(Shape::States);
    let sequence = SequenceId(9);
    let mapping = Mapping { path: &[1][..], build_id: 1, ..Mapping::default() };
    te::interned_stacks(
        &mut trace,
        sequence,
        true,
        &[
            InternedStack::BuildId { iid: 1, bytes: &[1] },
            InternedStack::Path { iid: 1, path: "server" },
            InternedStack::Mapping { iid: 1, mapping },
            InternedStack::Frame { iid: 1, frame: Frame { function: 0, mapping: 1, rel_pc: 2 } },
            InternedStack::Callstack { iid: 1, frames: &[1] },
        ],
    );
    for time in [5, 6, 7] {
        let sample = PerfSample { pid: 100, tid: SERVER as u32, callstack: 1, ..PerfSample::default() };
        te::perf_sample(&mut trace, sequence, time, &sample);
    }
    fs::write(folder.path().join("t.pftrace"), trace).expect("written");
    let said = "server: no names for the functions of 3 samples, shown as addresses: in a release profile, \
                `strip = false` and `debug = \"line-tables-only\"` give it names and lines";
    let text = command(folder.path(), &["explain", "t.pftrace"]);
    assert!(text.contains(said), "{text}");
}
