//! What is said of threads of programs without slices.

use std::fs;
use std::process::Command;

use hairline_formats::Value;
use hairline_formats::track_event::{
    self as te, EventType, Frame, InternedStack, PerfSample, SampledBy, SequenceId, ThreadTrack, TrackUuid,
};

use crate::planted::{HOG, MS, OTHER, Planted, SERVER, Shape, State, command, explain, explain_both};

/// The server computes for 100 ms, can run for 100 ms more, and computes again. The processor has each of
/// these threads for so many milliseconds meanwhile, and then none.
fn waits(holders: &[(u64, u64)]) -> Planted {
    let mut trace = Planted::new();
    let start = trace.now;
    trace.switch(start, (0, State::Preempted), SERVER);
    let (mut time, mut runs) = (start + 100 * MS, (SERVER, State::Preempted));
    for (holder, held) in holders {
        trace.switch(time, runs, *holder);
        (time, runs) = (time + held * MS, (*holder, State::Preempted));
    }
    trace.switch(time, runs, 0);
    trace.switch(start + 200 * MS, (0, State::Preempted), SERVER);
    trace.switch(start + 300 * MS, (SERVER, State::Preempted), 0);
    trace.now = start + 300 * MS;
    let others = [("recorded", Value::U64(300 * MS)), ("make (7)", Value::U64(60 * MS))];
    trace.event(SERVER, (EventType::Instant, trace.now), ("hairline", "other processes"), &others);
    trace
}

/// The cells of the row with this title.
#[track_caller]
fn row<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    let found = text.lines().find_map(|line| line.strip_prefix(title));
    let row = found.unwrap_or_else(|| panic!("no row {title} in\n{text}"));
    row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

const NO_THREAD: &str = "(no thread of the trace: perhaps another program)";
const OTHERS: &str = "Of the whole recording, other programs had cores for: `make (7)` 20 %.";

#[test]
fn the_threads_on_the_core_and_the_rest_add_up_to_the_wait_for_it() {
    let trace = waits(&[(OTHER, 30)]).finish(Shape::States);
    for text in explain_both(&trace, &["--thread", "server"]) {
        assert_eq!(row(&text, "rebuilder (102)"), ["30.0 ms", "30 %"], "{text}");
        assert_eq!(row(&text, NO_THREAD), ["70.0 ms", "70 %"], "{text}");
    }
    for text in explain_both(&waits(&[(OTHER, 100)]).finish(Shape::States), &["--thread", "server"]) {
        assert!(!text.contains(NO_THREAD), "{text}");
    }
}

#[test]
fn other_programs_are_named_where_threads_wait_for_a_core_that_no_thread_of_the_trace_has() {
    for text in explain_both(&waits(&[(OTHER, 30)]).finish(Shape::States), &[]) {
        assert!(text.contains(OTHERS), "{text}");
    }
    let trace = waits(&[(OTHER, 100)]).finish(Shape::States);
    for text in explain_both(&trace, &["--thread", "server"]) {
        assert!(!text.contains(OTHERS), "{text}");
    }
    for text in explain_both(&trace, &["--thread", "server", "--verbose"]) {
        assert!(text.contains(OTHERS), "{text}");
    }
    for json in explain_both(&trace, &["--json"]) {
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let expected = serde_json::json!({
            "recorded_ns": 300 * MS, "processes": [{ "name": "make (7)", "running_ns": 60 * MS }]
        });
        assert_eq!(json["other_processes"], expected);
    }
}

#[test]
fn rows_beyond_the_limit_are_a_row_with_their_sum() {
    let holders: Vec<_> = (0..8).map(|number| (1_000 + number, 10)).collect();
    let mut trace = waits(&holders);
    for number in 0..8 {
        let (uuid, tid) = (TrackUuid(5_000 + number), 1_000 + number as i64);
        let name = format!("holder{number}");
        let thread = ThreadTrack { uuid, parent_uuid: TrackUuid(0), pid: tid as i32, tid, name: &name };
        te::thread_descriptor(&mut trace.out, SequenceId(1), &thread);
    }
    let mut whole = trace.finish(Shape::States);
    for text in explain_both(&whole, &["--thread", "server"]) {
        assert_eq!(row(&text, "and 2 more"), ["20.0 ms", "20 %"], "{text}");
        assert_eq!(row(&text, NO_THREAD), ["20.0 ms", "20 %"], "{text}");
    }
    for text in explain_both(&whole, &["--top", "2"]) {
        assert!(text.contains("\nand 7 threads more (--top shows up to 100)\n"), "{text}");
    }
    // Twelve processes.
    let mut more = Planted::new();
    for number in 0..4 {
        let (uuid, tid) = (TrackUuid(6_000 + number), 2_000 + number as i64);
        let thread = ThreadTrack { uuid, parent_uuid: TrackUuid(0), pid: tid as i32, tid, name: "more" };
        te::thread_descriptor(&mut more.out, SequenceId(1), &thread);
        more.switch(1_400 * MS + number * MS, (0, State::Preempted), tid as u64);
        more.switch(1_401 * MS + number * MS, (tid as u64, State::Asleep), 0);
    }
    whole.extend(more.finish(Shape::States));
    for text in explain_both(&whole, &[]) {
        let table = text.split("\n\n").next().unwrap_or_default();
        assert_eq!(row(table, "and 3 more")[..2], ["3", "3.00 ms"], "{text}");
    }
}

#[test]
fn the_time_asleep_of_threads_without_wakeups_contains_the_wait_for_a_core() {
    let note = "the time asleep contains the wait for a core";
    let mut trace = waits(&[]);
    trace.switch(trace.now + 50 * MS, (0, State::Preempted), OTHER);
    trace.switch(trace.now + 60 * MS, (OTHER, State::Asleep), 0);
    trace.switch(trace.now + 70 * MS, (0, State::Preempted), OTHER);
    let mut whole = trace.finish(Shape::States);
    for text in explain_both(&whole, &[]) {
        assert_eq!(text.matches(note).count(), 1, "{text}");
    }
    for text in explain_both(&whole, &["--thread", "server"]) {
        assert!(!text.contains(note), "it does not sleep: {text}");
    }
    let of = te::Waking { cpu: 0, waker: SERVER as u32, is_interrupt: false, tid: OTHER as u32 };
    te::waking(&mut whole, SequenceId(3), 1_365 * MS, &of);
    for text in explain_both(&whole, &[]) {
        assert!(!text.contains(note), "{text}");
    }
}

#[test]
fn uninterruptible_sleep_is_null_where_the_trace_has_none() {
    let json = |trace: &[u8]| {
        explain_both(trace, &["--json", "--thread", "server"]).map(|json| {
            let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            json["threads"][0]["did"]["split"]["uninterruptible_ns"].clone()
        })
    };
    let trace = |state| {
        let mut trace = waits(&[]);
        trace.switch(trace.now + 10 * MS, (SERVER, state), 0);
        trace.switch(trace.now + 20 * MS, (0, State::Preempted), SERVER);
        trace.finish(Shape::States)
    };
    assert_eq!(json(&trace(State::Asleep)), [serde_json::Value::Null, serde_json::Value::Null]);
    // FXT has no such state.
    assert_eq!(json(&trace(State::Disk)), [serde_json::json!(10 * MS), serde_json::Value::Null]);
}

/// The server runs for 200 ms with so many samples, and the other thread for half a millisecond; both sleep.
fn sampled(samples: u64, sleeps: u64) -> Vec<u8> {
    let mut trace = waits(&[]);
    let now = trace.now;
    trace.switch(now + 10 * MS, (SERVER, State::Asleep), OTHER);
    trace.switch(now + 10 * MS + MS / 2, (OTHER, State::Asleep), 0);
    trace.switch(now + 110 * MS, (0, State::Preempted), SERVER);
    trace.switch(now + 111 * MS, (SERVER, State::Preempted), HOG);
    trace.switch(now + 112 * MS, (HOG, State::Preempted), 0);
    let mut out = trace.finish(Shape::States);
    let interned = [
        InternedStack::Function { iid: 1, name: "work" },
        InternedStack::Frame { iid: 1, frame: Frame { function: 1, mapping: 0, rel_pc: 16 } },
        InternedStack::Callstack { iid: 1, frames: &[1][..] },
    ];
    let sample = PerfSample { pid: 100, tid: SERVER as u32, callstack: 1, ..PerfSample::default() };
    let sequence = SequenceId(9);
    te::start_of_samples(&mut out, sequence, SampledBy::CpuTime { period: MS });
    te::interned_stacks(&mut out, sequence, false, &interned);
    for number in 0..samples {
        te::perf_sample(&mut out, sequence, 1_000 * MS + number * MS / 2, &sample);
    }
    let sequence = SequenceId(10);
    te::start_of_samples(&mut out, sequence, SampledBy::Switches);
    te::interned_stacks(&mut out, sequence, false, &interned);
    for _ in 0..sleeps {
        te::perf_sample(&mut out, sequence, now + 10 * MS, &sample);
    }
    out
}

#[test]
fn threads_that_ran_for_less_than_a_period_have_no_sample_and_are_said_to_have_none() {
    let whole = sampled(190, 1);
    for text in explain_both(&whole, &["--thread", "rebuilder"]) {
        let why = "No stack sample is of it: it ran for less than the time of one, 1.00 ms.";
        assert!(text.contains(why) && !text.contains("functions are not known"), "{text}");
    }
    for text in explain_both(&whole, &["--thread", "server"]) {
        assert!(!text.contains("No stack sample") && !text.contains("The samples are of"), "{text}");
    }
    for text in explain_both(&sampled(20, 1), &["--thread", "server"]) {
        let part = "The samples are of 10 % of the time on the CPU. They are of user code: the rest may be in \
                    the kernel (system calls, page faults).";
        assert!(text.contains(part), "{text}");
    }
    // A slice without a sample, of a trace that has some.
    let mut slice = Planted::new();
    slice.slice(SERVER, (1_220 * MS, 1_290 * MS), "net", "request");
    let mut with_slice = sampled(20, 1);
    with_slice.extend(slice.finish(Shape::Nothing));
    for text in explain_both(&with_slice, &["net/request"]) {
        let why = "Functions: unknown, because no stack sample is inside. The trace has one for each 1.00 ms of CPU time";
        assert!(text.contains(why) && !text.contains("--sample records them"), "{text}");
    }
    // Most of the time is that of short threads.
    let mut trace = Planted::new();
    for number in 0..100 {
        let tid = 3_000 + number;
        trace.switch(1_000 * MS + number * MS, (0, State::Preempted), tid);
        trace.switch(1_000 * MS + number * MS + MS / 2, (tid, State::Asleep), 0);
    }
    let mut short = sampled(190, 1);
    short.extend(trace.finish(Shape::States));
    for text in explain_both(&short, &[]) {
        let part = "No stack sample is of 101 threads that ran for 50.5 ms in all, 20 %";
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_part_of_the_sleep_that_has_stacks_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = explain(folder.path(), &sampled(190, 1), &["--thread", "server"]);
    assert!(text.contains("stacks in which it slept") && !text.contains("There are stacks of"), "{text}");
    // A second sleep, of 300 ms, without a stack.
    let mut trace = Planted::new();
    trace.switch(1_500 * MS, (SERVER, State::Asleep), 0);
    trace.switch(1_800 * MS, (0, State::Preempted), SERVER);
    let mut whole = sampled(190, 1);
    whole.extend(trace.finish(Shape::States));
    for text in explain_both(&whole, &["--thread", "server"]) {
        let part = "There are stacks of 25 % of the time asleep. Those of the rest were lost or not taken.";
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn flame_says_that_a_part_has_no_samples_and_that_a_trace_has_no_slices() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.pftrace"), sampled(190, 1)).expect("written");
    command(folder.path(), &["convert", "t.pftrace", "t.fxt"]);
    for trace in ["t.pftrace", "t.fxt"] {
        let said = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
            let command = command.current_dir(folder.path()).arg("flame").arg(trace).args(arguments);
            let output = command.output().expect("it ran");
            assert!(output.stdout.is_empty(), "{arguments:?}");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (code, none) = said(&["--samples", "--thread", "rebuilder"]);
        assert!(code == Some(1) && none.contains("the chosen part of it"), "{none}");
        assert!(!none.contains("record --sample"), "{none}");
        let (code, none) = said(&[]);
        assert!(code == Some(0) && none.contains("it has no slices: `--samples`"), "{none}");
        let (code, none) = said(&["--svg"]);
        assert!(code == Some(1) && none.contains("it has no slices: `--samples`"), "{none}");
    }
}

#[test]
fn what_is_not_recorded_is_said_with_the_reason_as_the_trace_has_it() {
    let lost = "257 stacks of threads that began to wait lost, because the kernel's ring for them was full";
    let ended = "the command had 790 ms of CPU time, and the states of its threads have 6.26 us";
    let none = "no stack sample fell into the command";
    let mut trace = waits(&[]);
    for (what, why) in
        [("all stacks of waits", lost), ("all thread states", ended), ("stack samples by the command", none)]
    {
        let remark = [(what, Value::Str(why))];
        trace.event(SERVER, (EventType::Instant, trace.now), ("hairline", "not recorded"), &remark);
    }
    let trace = trace.finish(Shape::States);
    for text in explain_both(&trace, &[]) {
        for why in [lost, ended] {
            assert!(text.contains(&format!("\nNot all is recorded: {why}.\n")), "{text}");
        }
        assert!(text.contains(&format!("The functions are not known: {none}.")), "{text}");
        assert!(!text.contains("--sample` records"), "{text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    explain(folder.path(), &trace, &[]);
    command(folder.path(), &["convert", "t.pftrace", "t.fxt"]);
    for trace in ["t.pftrace", "t.fxt"] {
        let text = command(folder.path(), &["validate", trace]);
        for why in [lost, ended, none] {
            assert_eq!(text.matches(&format!("not recorded: {why}\n")).count(), 1, "{text}");
        }
        let mut flame = Command::new(env!("CARGO_BIN_EXE_hairline"));
        let flame = flame.current_dir(folder.path()).args(["flame", "--samples", trace]).output();
        let said = String::from_utf8_lossy(&flame.expect("it ran").stderr).into_owned();
        assert!(said.ends_with(&format!("it has no stack samples: {none}\n")), "{said}");
    }
}
