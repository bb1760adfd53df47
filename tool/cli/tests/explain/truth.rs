//! `hairline explain` claims no more than the trace has.

use std::fs;

use hairline_formats::Value;
use hairline_formats::proto::{put_message, put_uint};
use hairline_formats::track_event::fields::trace;
use hairline_formats::track_event::{
    self as te, Frame, InternedStack, Mapping, PerfSample, SequenceId, TaskState, TaskStateEvent,
    ThreadTrack, TrackUuid,
};
use serde_json::Value as Json;

use crate::planted::{
    LIVES, MS, OTHER, Planted, SEQUENCE, SERVER, Shape, State, command, explain, explain_both, requests,
    sleeps,
};

/// The first name of `explain --json`.
pub(crate) fn first(trace: &[u8], name: &str) -> Json {
    let folder = tempfile::tempdir().expect("a folder");
    let all: Json = serde_json::from_str(&explain(folder.path(), trace, &[name, "--json"])).expect("JSON");
    all["names"][0].clone()
}

pub(crate) fn text(trace: &[u8], name: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    explain(folder.path(), trace, &[name])
}

/// The change of a thread's state, on processor 0 or on an unknown one.
fn state(trace: &mut Vec<u8>, time: u64, tid: u64, state: TaskState, cpu: Option<i32>) {
    let event = TaskStateEvent { cpu, ..TaskStateEvent::new(tid as i64, state) };
    te::task_state(trace, SequenceId(3), time, &event);
}

#[test]
fn the_typical_slices_of_many_are_compared_too() {
    let mut trace = Planted::new();
    for number in 0..20_000 {
        let start = trace.now;
        let end = start + if number % 50 == 0 { 3 * MS } else { MS };
        trace.slice(SERVER, (start, end), "net", "request");
        trace.slice(OTHER, (start, end), "", "always");
        trace.now = end + MS;
    }
    let meanwhile = &first(&trace.finish(Shape::Nothing), "net/request")["meanwhile"][0];
    let per_mille = |band: &str| meanwhile[band].as_u64();
    assert_eq!(per_mille("slowest_per_mille"), Some(1000), "{meanwhile}");
    assert_eq!(per_mille("typical_per_mille"), Some(1000), "{meanwhile}");
}

#[test]
fn several_slices_that_end_with_one_sleep_end_one_sleep() {
    let mut number = 0;
    let mut trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        if number == 0 {
            for thread in 0..6 {
                state(&mut trace.out, middle, 200 + thread, TaskState::Running, Some(1 + thread as i32));
                trace.slice(200 + thread, (middle - MS, middle + 50 * MS), "cache", "rebuild");
            }
        }
        number += 1;
        None
    });
    for thread in 0..6 {
        let (uuid, parent_uuid) = (TrackUuid(200 + thread), TrackUuid(0));
        let tid = 200 + thread as i64;
        let thread = ThreadTrack { uuid, parent_uuid, pid: 100, tid, name: "t" };
        let mut descriptor = Vec::new();
        te::thread_descriptor(&mut descriptor, SequenceId(1), &thread);
        trace.out.splice(0..0, descriptor);
    }
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(text.contains("1 of 2 sleeps end when `rebuild` ends on 6 threads"), "{text}");
}

#[test]
fn no_share_is_more_than_all() {
    // Typical requests are 5 ms of `fast`, the slow ones 10 ms of `slow`: all of the 5 ms more are in `slow`.
    let mut trace = Planted::new();
    trace.switch(trace.now, (0, State::Preempted), SERVER);
    for number in 0..200 {
        let start = trace.now;
        let (end, inner) = if number % 100 == 50 { (10, "slow") } else { (5, "fast") };
        trace.slice(SERVER, (start + 1, start + end * MS - 1), "", inner);
        trace.slice(SERVER, (start, start + end * MS), "net", "request");
        trace.now = start + end * MS + MS;
    }
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(text.contains("Where: 5.00 ms (100 %) inside `slow`."), "{text}");
}

#[test]
fn slices_without_states_are_not_compared_with() {
    // States are known from the slow slices on only: 4 ms running and 2 ms asleep, where typical ones take 4.
    let mut trace = Planted::new();
    for number in 0..200 {
        let start = trace.now;
        let end = start + if number < 198 { 4 * MS } else { 6 * MS };
        trace.slice(SERVER, (start, end), "net", "request");
        trace.now = end + MS;
    }
    let (last, mut out) = (trace.now, trace.finish(Shape::Nothing));
    for start in [last - 14 * MS, last - 7 * MS] {
        state(&mut out, start - MS, SERVER, TaskState::Running, Some(0));
        state(&mut out, start + 3 * MS, SERVER, TaskState::InterruptibleSleep, Some(0));
        state(&mut out, start + 5 * MS, SERVER, TaskState::Running, Some(0));
    }
    let text = text(&out, "net/request");
    assert!(!text.contains("Cause: computing"), "they may have slept for longer: {text}");
    assert!(text.contains("Cause: not known"), "{text}");
}

#[test]
fn a_core_that_is_not_known_is_not_called_busy() {
    for cpu in [None, Some(0)] {
        let mut trace = requests("request", |_, _| None);
        let times: Vec<_> = trace.switches.drain(..).map(|(time, ..)| time).collect();
        let mut out = trace.finish(Shape::Nothing);
        state(&mut out, times[0], SERVER, TaskState::Running, cpu);
        // Both slow requests wait; with a known processor, it is idle as far as the trace shows.
        for number in [50, 150] {
            let before = u64::from(number == 150);
            let middle = 1_000 * MS + number * 6 * MS + before * 50 * MS + 2 * MS;
            state(&mut out, middle, SERVER, TaskState::Runnable, cpu);
            state(&mut out, middle + 50 * MS, SERVER, TaskState::Running, cpu);
        }
        state(&mut out, times[1], SERVER, TaskState::InterruptibleSleep, cpu);
        let text = text(&out, "net/request");
        assert!(text.contains("Cause: no free core."), "{text}");
        assert!(!text.contains("was busy"), "{cpu:?}: {text}");
    }
}

#[test]
fn an_idle_core_is_not_called_busy_where_the_trace_has_all_threads() {
    // A thread is woken, and the idle processor takes 50 ms to run it.
    let trace = || {
        requests("request", |trace, middle| {
            trace.switch(middle, (SERVER, State::Preempted), 0);
            trace.switch(middle + 50 * MS, (0, State::Preempted), SERVER);
            None
        })
    };
    let text = text(&trace().finish(Shape::Ftrace), "net/request");
    assert!(text.contains("no free core") && !text.contains("was busy"), "{text}");
}

#[test]
fn states_that_are_known_in_part_are_not_called_missing() {
    let trace = requests("request", |_, _| None);
    let (start, mut out) = (1_000 * MS, trace.finish(Shape::Nothing));
    state(&mut out, start, SERVER, TaskState::Running, Some(0));
    state(&mut out, start + 400 * MS, SERVER, TaskState::Dead, Some(0));
    let text = text(&out, "net/request");
    assert!(text.contains("Cause: not known") && !text.contains("has no scheduling"), "{text}");
    assert!(text.contains("not known\n") || text.contains("not known  "), "a column of its own: {text}");
}

#[test]
fn slices_without_a_duration_have_no_cause() {
    let mut trace = Planted::new();
    trace.switch(trace.now, (0, State::Preempted), SERVER);
    for _ in 0..10 {
        let now = trace.now;
        trace.slice(SERVER, (now, now), "net", "request");
        trace.now += MS;
    }
    let now = trace.now;
    trace.switch(now, (SERVER, State::Asleep), 0);
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(!text.contains("no scheduling") && !text.contains("Where"), "{text}");
}

#[test]
fn an_interval_of_the_same_name_makes_no_poll_certain() {
    let mut trace = requests("handler", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        None
    });
    let now = trace.now;
    trace.slice(LIVES, (1_000 * MS, now), "net", "handler");
    let text = text(&trace.finish(Shape::States), "net/handler");
    assert!(!text.contains("this is a poll"), "the trace does not say so: {text}");
}

#[test]
fn names_beyond_the_limit_are_counted() {
    let mut trace = Planted::new();
    for number in 0..(1 << 14) + 10 {
        let start = trace.now;
        trace.slice(SERVER, (start, start + 1), "", &format!("n{number}"));
        trace.now += 10;
    }
    let out = trace.finish(Shape::Nothing);
    let all = text(&out, "n1");
    assert!(all.contains("10 slices of names beyond the first 16,384"), "{all}");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.pftrace"), &out).expect("written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hairline"));
    let output =
        command.current_dir(folder.path()).args(["explain", "t.pftrace", "n16390"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("16,384"), "it is there: {error}");
}

#[test]
fn a_slice_without_an_end_is_counted() {
    let trace = requests("request", |_, _| None);
    let now = trace.now;
    let mut out = trace.finish(Shape::Nothing);
    let categories = [te::Name::Text("net")];
    let begin = te::Event {
        needs_state: false,
        track_uuid: Some(TrackUuid(SERVER)),
        name: Some(te::Name::Text("request")),
        categories: &categories,
        ..te::Event::new(SequenceId(1), te::EventType::SliceBegin, now)
    };
    te::event(&mut out, &begin);
    let text = text(&out, "net/request");
    assert!(text.contains("200 slices") && text.contains("1 slice without an end"), "{text}");
}

/// A stack of the functions `f1` to `f<depth>`, sampled at some times.
fn samples(trace: &mut Vec<u8>, depth: u64, pid: u32, times: &[u64]) {
    let names: Vec<_> = (1..=depth).map(|n| format!("f{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    samples_in(trace, (true, &names), pid, times);
}

/// The same of these functions. The first packet of the samples may be there.
fn samples_in(trace: &mut Vec<u8>, (is_first, names): (bool, &[&str]), pid: u32, times: &[u64]) {
    let sequence = SequenceId(9);
    let ids: Vec<_> = (1..=names.len() as u64).collect();
    let mapping = Mapping { path: &[][..], ..Mapping::default() };
    let mut parts = vec![InternedStack::Mapping { iid: 1, mapping }];
    for (iid, name) in (1..).zip(names.iter().copied()) {
        parts.push(InternedStack::Function { iid, name });
        let frame = Frame { function: iid, mapping: 1, rel_pc: iid };
        parts.push(InternedStack::Frame { iid, frame });
    }
    parts.push(InternedStack::Callstack { iid: 1, frames: &ids });
    te::interned_stacks(trace, sequence, is_first, &parts);
    for time in times {
        let sample = PerfSample { pid, tid: SERVER as u32, callstack: 1, ..PerfSample::default() };
        te::perf_sample(trace, sequence, *time, &sample);
    }
}

#[test]
fn the_function_of_a_deep_stack_is_its_innermost() {
    let mut out = requests("request", |_, _| None).finish(Shape::States);
    samples(&mut out, 600, 100, &[1_310 * MS]);
    let text = text(&out, "net/request");
    assert!(text.contains("Functions on the CPU, of 1 sample: `f600` 1."), "{text}");
}

#[test]
fn few_samples_have_no_shares() {
    let of = |count: u64| {
        let mut out = requests("request", |_, _| None).finish(Shape::States);
        let times: Vec<_> = (0..count).map(|n| 1_310 * MS + n).collect();
        samples(&mut out, 2, 100, &times);
        text(&out, "net/request")
    };
    let nine = of(9);
    assert!(nine.contains("Functions on the CPU, of 9 samples: `f2` 9."), "{nine}");
    let ten = of(10);
    assert!(ten.contains("Functions on the CPU: `f2` 100 %."), "{ten}");
}

/// A user without rights has no samples of the kernel: the shares are of the rest.
#[test]
fn samples_of_a_part_of_the_time_say_of_which() {
    let of = |every: u64| {
        let mut began = Vec::new();
        let mut out = requests("request", |_, middle| {
            began.push(middle);
            None
        })
        .finish(Shape::States);
        te::start_of_samples(&mut out, SequenceId(9), te::SampledBy::CpuTime { period: MS / 10 });
        let in_one = |middle| (0..500 / every).map(move |n| middle + n * every * MS / 10);
        let times: Vec<_> = began.into_iter().flat_map(in_one).collect();
        samples_in(&mut out, (false, &["main", "work"]), 100, &times);
        text(&out, "net/request")
    };
    let half = of(2);
    assert!(half.contains("Functions on the CPU: `work` 100 %.\nThe samples are of 4"), "{half}");
    assert!(!of(1).contains("The samples are of"), "{}", of(1));
}

#[test]
fn the_internals_of_the_c_library_are_not_where_a_thread_sleeps() {
    let mut times = Vec::new();
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        times.push(middle);
        None
    });
    let mut out = trace.finish(Shape::States);
    te::start_of_samples(&mut out, SequenceId(9), te::SampledBy::Switches);
    let stack = [
        "main",
        "c_threads",
        "__pthread_clockjoin_ex",
        "__GI___futex_abstimed_wait_cancelable64",
        "__futex_abstimed_wait_common",
        "__futex_abstimed_wait_common64",
    ];
    samples_in(&mut out, (false, &stack), 100, &times);
    let text = text(&out, "net/request");
    assert!(text.contains("Functions that sleep: `__pthread_clockjoin_ex` 100 %."), "{text}");
    assert!(text.contains("\n__pthread_clockjoin_ex < c_threads < main "), "{text}");
}

#[test]
fn a_path_is_cut_at_its_begin_and_a_command_not_at_all() {
    let mut trace = requests("request", |_, _| None);
    let (start, path) = (trace.now, format!("/{}/perfetto-ui/service_worker.js", "folder/".repeat(20)));
    let arguments = [("words", Value::U64(7)), ("path", Value::Str(&path))];
    trace.slice_with(SERVER, (start, start + 500 * MS), ("net", "request"), [&arguments, &[]]);
    let folder = tempfile::tempdir().expect("a folder");
    let long = folder.path().join("a_folder_with_a_name_that_is_longer_than_a_column");
    fs::create_dir(&long).expect("a folder");
    let text = explain(&long, &trace.finish(Shape::States), &["net/request"]);
    let row = text.lines().find(|line| line.contains("hairline view --at")).expect("an example");
    assert!(row.contains("words = 7, path = \u{2026}") && row.contains("/service_worker.js  hair"), "{row}");
    let from = long.join("t.pftrace").display().to_string();
    let text = command(folder.path(), &["explain", &from, "net/request"]);
    assert!(text.lines().any(|line| line.ends_with(&from)), "{text}");
}

#[test]
fn samples_of_another_process_with_the_same_thread_id_do_not_count() {
    let mut out = requests("request", |_, _| None).finish(Shape::States);
    samples(&mut out, 3, 777, &[1_310 * MS]);
    let text = text(&out, "net/request");
    assert!(!text.contains("f3"), "{text}");
}

#[test]
fn states_of_a_thread_id_that_two_processes_have_are_not_known() {
    let thread = ThreadTrack { uuid: TrackUuid(5), parent_uuid: TrackUuid(0), pid: 777, tid: 101, name: "x" };
    let mut out = Vec::new();
    te::thread_descriptor(&mut out, SequenceId(1), &thread);
    out.extend(
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            None
        })
        .finish(Shape::States),
    );
    let of = first(&out, "net/request");
    assert_eq!(of["cause"]["state"].as_str(), Some("unknown"), "they may be those of the other one: {of}");
}

#[test]
fn a_flame_graph_of_samples_alone_counts_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut out = requests("request", |_, _| None).finish(Shape::Nothing);
    samples(&mut out, 2, 100, &[1_000 * MS + 10, 1_000 * MS + 20]);
    explain(folder.path(), &out, &["net/request", "--svg", "f.svg"]);
    let svg = fs::read_to_string(folder.path().join("f.svg")).expect("drawn");
    assert!(svg.contains("2 samples") && !svg.contains("2 ns"), "{svg}");
}

/// Intervals below others, of which the last one takes longer.
#[test]
fn intervals_are_explained_by_those_below_them() {
    let mut trace = Planted::new();
    for (uuid, parent) in [(20, 0), (21, 20), (22, 21), (23, 20)] {
        let (uuid, parent_uuid) = (TrackUuid(uuid), (parent != 0).then_some(TrackUuid(parent)));
        let track = te::CustomTrack { uuid, parent_uuid, name: "lives", ..te::CustomTrack::default() };
        te::custom_descriptor(&mut trace.out, SEQUENCE, &track);
    }
    for number in 0..200 {
        let start = trace.now;
        let slow = if number % 100 == 50 { 50 * MS } else { 0 };
        trace.slice(22, (start + MS, start + 2 * MS + slow), "net", "ask");
        trace.slice(21, (start, start + 3 * MS + slow), "net", "authorise");
        trace.slice(23, (start + 3 * MS, start + 4 * MS), "net", "answer");
        trace.slice(20, (start, start + 5 * MS + slow), "net", "request");
        trace.now = start + 6 * MS + slow;
    }
    let out = trace.finish(Shape::Nothing);
    let text = text(&out, "net/request");
    assert!(text.contains("Cause: intervals inside of them, most of all `ask`."), "{text}");
    assert!(text.contains("Where: 50.0 ms (100 %) inside `ask`."), "{text}");
    let all = &first(&out, "net/request")["all"];
    let own = |name: &str| {
        let all = all["inner"].as_array().expect("a list");
        let of = all.iter().find(|inner| inner["name"] == name).expect("the name");
        (of["count"].as_u64().expect("a count"), of["own"]["unknown_ns"].as_u64().expect("a time"))
    };
    // In the slow ones, `answer` is at the same time as `authorise`, which ends later.
    let slow = 2 * 50 * MS;
    let expected =
        [("request", 202 * MS), ("authorise", 400 * MS), ("ask", 200 * MS + slow), ("answer", 198 * MS)];
    for (name, time) in expected {
        assert_eq!(own(name), (200, time), "{name}");
    }
}

/// Requests of 5 ms on the CPU, two of which take 50 ms longer, `on_cpu` of them on the CPU. They say so by
/// the CPU time of their thread, as FXT does.
fn timed(on_cpu: u64) -> Vec<u8> {
    let (mut trace, mut cpu) = (Planted::new(), 1_000);
    for number in 0..200 {
        let (begin, start) = (cpu, trace.now);
        let (more, on_cpu) = if number % 100 == 50 { (50 * MS, on_cpu) } else { (0, 0) };
        cpu += 5 * MS + on_cpu;
        let arguments: [(&str, Value<'_>); 2] =
            [("cpu_begin_ns", Value::U64(begin)), ("cpu_end_ns", Value::U64(cpu))];
        let [first, last] = [&arguments[..1], &arguments[1..]];
        trace.slice_with(SERVER, (start, start + 5 * MS + more), ("net", "request"), [first, last]);
        trace.now += 6 * MS + more;
    }
    trace.finish(Shape::Nothing)
}

#[test]
fn the_cpu_time_of_threads_is_used_where_there_is_no_scheduling() {
    for text in explain_both(&timed(MS / 10), &["net/request"]) {
        let words = [
            "Cause: off the CPU.",
            "their thread is not on the CPU for 49.9 ms of that",
            "They take 55.0 ms, of which 5.10 ms on the CPU.",
            "off the CPU\n",
        ];
        words.iter().for_each(|word| assert!(text.contains(word), "no {word:?}: {text}"));
        assert!(!text.contains("HAIRLINE_THREAD_TIME"), "it is there: {text}");
    }
    for text in explain_both(&timed(49 * MS), &["net/request"]) {
        assert!(text.contains("Cause: computing.") && text.contains("runs for 49.0 ms of that"), "{text}");
        assert!(!text.contains("waiting for a core"), "that is not known: {text}");
    }
}

#[test]
fn the_cpu_time_of_complete_slices_in_json_is_used() {
    let mut events = Vec::new();
    for number in 0..200_u64 {
        let duration = if number % 100 == 50 { 55_000 } else { 5_000 };
        events.push(format!(
            r#"{{"name":"request","cat":"net","ph":"X","pid":1,"tid":2,
                "ts":{},"dur":{duration},"tts":{},"tdur":5000}}"#,
            number * 100_000,
            number * 5_000,
        ));
    }
    let text = text(format!("[{}]", events.join(",")).as_bytes(), "net/request");
    assert!(text.contains("their thread is not on the CPU for 50.0 ms of that"), "{text}");
}

/// 400 requests with arguments, four of which are slow. `customer` gives that of a slow one, by its number.
fn of_customers(customer: fn(u64) -> u64) -> Vec<u8> {
    let mut trace = Planted::new();
    for number in 0..400 {
        let (start, is_slow) = (trace.now, number % 100 == 50);
        let (time, of) = if is_slow { (55 * MS, customer(number)) } else { (5 * MS, number % 30) };
        let rows = if is_slow { 9_000 + number } else { number };
        let arguments = [
            ("id", Value::U64(number * 7 % 400)),
            ("customer", Value::U64(of)),
            ("rows", Value::U64(rows * customer(1) / 17)),
            ("path", Value::Str("/orders")),
        ];
        trace.slice_with(SERVER, (start, start + time), ("net", "request"), [&arguments, &[]]);
        trace.now += time + MS;
    }
    trace.finish(Shape::Nothing)
}

#[test]
fn the_argument_that_separates_slow_from_typical_is_named() {
    for text in explain_both(&of_customers(|_| 17), &["net/request"]) {
        let line =
            text.lines().find(|line| line.starts_with("Arguments:")).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(line, "Arguments: `rows >= 9050` is in 100 % of the slowest and 0 % of the typical ones.");
    }
    // Of customers alone.
    let text = text(&of_customers(|number| if number == 1 { 0 } else { 17 }), "net/request");
    let line = text.lines().find(|line| line.starts_with("Arguments:")).unwrap_or_else(|| panic!("{text}"));
    let words = "Arguments: `customer = 17` is in 100 % of the slowest and ";
    assert!(line.starts_with(words) && !line.contains("and 0 %"), "{line}");
    let trace = of_customers(|number| if number == 1 { 0 } else { 17 });
    let argument = &first(&trace, "net/request")["argument"];
    assert_eq!(
        (argument["name"].as_str(), argument["slowest"]["with"].as_u64()),
        (Some("customer"), Some(4))
    );
}

#[test]
fn an_argument_that_separates_by_chance_is_not_named() {
    let text = text(&of_customers(|number| if number == 1 { 0 } else { number % 30 }), "net/request");
    assert!(!text.contains("Arguments:"), "{text}");
}

#[test]
fn the_slowest_are_shown_with_the_command_that_opens_them() {
    for text in explain_both(&of_customers(|_| 17), &["net/request"]) {
        let rows: Vec<_> = text.lines().filter(|line| line.contains("hairline view --at")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        // The 51st: 50 have taken 6 ms each.
        assert!(rows[0].starts_with("55.0 ms") && rows[0].contains("300 ms  server (101)"), "{text}");
        assert!(rows[0].contains("id = 350, customer = 17, rows = 9050, path = /orders"), "{text}");
        assert!(rows[0].contains("hairline view --at 1300000000+55000000 t."), "{text}");
    }
}

#[test]
fn losses_are_said() {
    let mut out = requests("request", |_, _| None).finish(Shape::States);
    // A packet that says that those before it on its sequence were dropped.
    put_message(&mut out, trace::PACKET, |packet| {
        put_uint(packet, te::fields::trace_packet::TIMESTAMP, 1_500 * MS);
        put_uint(packet, te::fields::trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_uint(packet, te::fields::trace_packet::PREVIOUS_PACKET_DROPPED, 1);
    });
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.pftrace"), &out).expect("written");
    assert!(command(folder.path(), &["stats", "t.pftrace"]).contains("lost"), "stats says it");
    let text = text(&out, "net/request");
    assert!(text.contains("missing"), "{text}");
}
