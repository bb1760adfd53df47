//! Programs without Hairline: what is recorded of them is counted, and explained by threads.

use std::path::Path;

use hairline_tests::judge;
use hairline_tests::programs;
use hairline_tests::recording::{FORMATS, extension};
use serde_json::Value;

use crate::{FAMILY, hairline, run, stderr};

/// Computes and sleeps; and a child that sleeps.
const SCRIPT: &str = "sleep 0.05; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sh -c 'sleep 0.05; true'";

/// Records the script. Returns what the command says, or `None`, with the reason on stderr, where the kernel
/// does not permit it.
fn record(folder: &Path, trace: &str) -> Option<String> {
    record_with(folder, trace, &[])
}

fn record_with(folder: &Path, trace: &str, options: &[&str]) -> Option<String> {
    let what = ["record", "--sched", "--sample", "-o", trace];
    let output = run(hairline(folder).args(what).args(options).args(["--", "sh", "-c", SCRIPT]));
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    if ["no samples", "no context switches"].iter().any(|refused| said.contains(refused)) {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(said)
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(hairline(folder).args(arguments).arg("--json"));
    assert!(output.status.success(), "{}", stderr(&output));
    crate::json::parse(arguments[0], &output.stdout)
}

#[test]
fn the_summary_counts_processes_threads_states_and_samples() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        let Some(said) = record(folder.path(), &trace) else { return };
        // Threads of other programs are those that have woken one, and have no states.
        let sql = [
            "select count(*) from process where pid != 0",
            "select count(*) from thread where tid != 0 and utid in (select utid from thread_state)",
        ];
        let verdict = judge::load(folder.path().join(&trace), &sql);
        verdict.require_clean();
        let [processes, threads] = [0, 1].map(|at| verdict.results[at].single_i64());
        assert!(processes >= 3 && threads >= 3, "{processes} {threads}");
        assert!(said.contains(&format!(": {processes} processes, {threads} threads, ")), "{said}");
        assert!(said.contains(" thread states, ") && !said.contains(" 0 "), "{said}");
        assert!(said.contains(" samples"), "{said}");
    }
}

#[test]
fn stats_has_the_states_and_samples_of_threads_without_slices() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        if record(folder.path(), &trace).is_none() {
            return;
        }
        let states = "select t.tid, p.pid, t.name, \
            sum(iif(s.state = 'Running', s.dur, 0)), sum(iif(s.state in ('R', 'R+', 'W'), s.dur, 0)), \
            sum(iif(s.state = 'S', s.dur, 0)) \
            from thread_state s join thread t using (utid) join process p using (upid) \
            where s.dur > 0 group by utid";
        let verdict = judge::load(folder.path().join(&trace), &[states]);
        verdict.require_clean();
        let stats = json(folder.path(), &["stats", &trace]);
        let threads = stats["by_state"].as_array().expect("a table");
        assert_eq!(threads.len(), verdict.results[0].rows.len(), "{threads:?}");
        for row in &verdict.results[0].rows {
            let tid = row[0].as_i64().expect("a number");
            let thread = threads.iter().find(|thread| thread["tid"] == tid).expect("the thread");
            let name = row[2].as_str().expect("a name");
            assert_eq!(thread["thread"], format!("{name} ({tid})"), "{thread}");
            assert_eq!(thread["pid"].as_i64(), row[1].as_i64(), "{thread}");
            assert!(thread["process"].as_str().is_some_and(|of| of.contains(" (process ")), "{thread}");
            for (column, truth) in ["running_ns", "waiting_ns", "asleep_ns"].into_iter().zip(&row[3..]) {
                let (time, truth) = (thread[column].as_i64(), truth.as_i64());
                let difference = time.expect("a time").abs_diff(truth.expect("a time"));
                assert!(difference < 1_000_000, "{column}: {truth:?}, and {thread}");
            }
        }
        let samples: u64 = threads.iter().filter_map(|thread| thread["samples"].as_u64()).sum();
        assert!(samples > 0, "{threads:?}");

        // The two halves of the trace have the states of all of it.
        let middle =
            (stats["first_ns"].as_i64().zip(stats["last_ns"].as_i64())).map(|(a, b)| a + (b - a) / 2);
        let middle = middle.expect("times");
        let half = |range: String| json(folder.path(), &["stats", &trace, "--time-range", &range]);
        let halves = [half(format!("..{middle}")), half(format!("{middle}.."))];
        for column in ["running_ns", "waiting_ns", "asleep_ns", "samples"] {
            for thread in threads {
                let of = |half: &Value| {
                    let mut rows = half["by_state"].as_array().expect("a table").iter();
                    rows.find(|row| row["tid"] == thread["tid"])?[column].as_i64()
                };
                let sum: i64 = halves.iter().filter_map(of).sum();
                assert_eq!(Some(sum), thread[column].as_i64(), "{column} of {thread}: {halves:?}");
            }
        }

        let text = run(hairline(folder.path()).args(["stats", &trace]));
        let text = String::from_utf8(text.stdout).expect("text");
        let titles = text.lines().find(|line| line.starts_with("thread ")).unwrap_or_default();
        assert!(
            ["running", "waiting for a core", "asleep", "samples"].iter().all(|t| titles.contains(t)),
            "{text}"
        );
        let busiest = text.lines().skip_while(|line| *line != titles).nth(1).unwrap_or_default();
        assert!(busiest.starts_with("sh ("), "{text}");
        let only = run(hairline(folder.path()).args(["stats", &trace, "--by", "state", "--csv"]));
        assert!(only.stdout.starts_with(b"thread,process,tid,pid,running_ns,waiting_ns,asleep_ns,samples\n"));
    }
}

#[test]
fn flame_has_the_names_of_threads_and_processes() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        if record(folder.path(), &trace).is_none() {
            return;
        }
        let output = run(hairline(folder.path()).args(["flame", &trace, "--samples"]));
        let folded = String::from_utf8_lossy(&output.stdout);
        assert!(!folded.is_empty(), "{}", stderr(&output));
        for line in folded.lines() {
            let mut steps = line.split(';');
            let [process, thread] = [steps.next(), steps.next()].map(Option::unwrap_or_default);
            assert!(process.contains(" (process "), "{line}");
            assert!(thread.ends_with(')') && !thread.starts_with("thread "), "{line}");
        }
    }
}

#[test]
fn explain_without_slices_says_what_threads_did() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        let Some(said) = record(folder.path(), &trace) else { return };
        let explained = json(folder.path(), &["explain", &trace]);
        let stats = json(folder.path(), &["stats", &trace]);
        let [threads, states] =
            [&explained["threads"], &stats["by_state"]].map(|rows| rows.as_array().expect("rows"));
        assert_eq!(threads.len(), states.len());
        for state in states {
            let thread = threads.iter().find(|thread| thread["tid"] == state["tid"]).expect("the thread");
            assert_eq!(thread["did"]["split"]["running_ns"], state["running_ns"], "{thread}");
            let functions = thread["did"]["functions_on_cpu"].as_array().expect("functions");
            let samples: u64 = functions.iter().filter_map(|function| function["samples"].as_u64()).sum();
            let all = state["samples"].as_u64().expect("a number");
            // A list has 100 rows at most: those of a shell with more functions are not all there.
            assert!(samples == all || functions.len() == 100 && samples < all, "{all}: {thread}");
        }
        assert!(threads[0]["thread"].as_str().is_some_and(|name| name.starts_with("sh (")), "{threads:?}");
        assert_eq!(explained["processes"].as_array().map(Vec::len), Some(threads.len()), "{explained}");

        let text = run(hairline(folder.path()).args(["explain", &trace]));
        let text = String::from_utf8(text.stdout).expect("text");
        assert!(text.starts_with("process ") && text.contains("functions on the CPU in it"), "{text}");
        let sleepers = run(hairline(folder.path()).args(["explain", &trace, "--thread", "sl*p"]));
        let sleepers = String::from_utf8(sleepers.stdout).expect("text");
        let lines = sleepers.lines().filter(|line| line.starts_with("sleep ("));
        // On a busy machine a program sleeps for longer than it has asked for.
        let asleep_ms = |line: &str| line.split_once("asleep ")?.1.split_once(" ms")?.0.parse::<f64>().ok();
        let sleeps = |line: &str| line.contains("running ") && asleep_ms(line).is_some_and(|ms| ms >= 50.0);
        let all = lines.inspect(|line| assert!(sleeps(line), "{line}"));
        assert_eq!(all.count(), 2, "{sleepers}");
        assert!(
            !sleepers.lines().any(|line| line.starts_with("sh (") && line.contains(" in all")),
            "{sleepers}"
        );
        let knows_sleeps = said.contains(" began to wait");
        assert_eq!(sleepers.contains("Where threads slept is not known"), !knows_sleeps, "{sleepers}");
        assert_eq!(sleepers.contains("stacks in which it slept"), knows_sleeps, "{sleepers}");
        let output = run(hairline(folder.path()).args(["explain", &trace, "--thread", "no such"]));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("no samples of a thread no such"), "{}", stderr(&output));
    }
}

/// Gives itself the empty name, and computes.
const WITHOUT_A_NAME: &str = r"printf '\0' > /proc/$$/comm; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

#[test]
fn a_thread_without_a_name_has_its_process() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        let what = ["record", "--sched", "-o", &trace, "--", "sh", "-c", WITHOUT_A_NAME];
        let said = stderr(&run(hairline(folder.path()).args(what)));
        if said.contains("no context switches") {
            eprintln!("skipped: {said}");
            return;
        }
        let sql = "select p.pid, t.tid, ifnull(t.name, '') from thread t join process p using (upid) where t.tid != 0";
        let verdict = judge::load(folder.path().join(&trace), &[sql]);
        verdict.require_clean();
        let threads = &verdict.results[0].rows;
        let stats = json(folder.path(), &["stats", &trace]);
        let states = stats["by_state"].as_array().expect("a table");
        let busiest = &states[0];
        let is_it = |row: &&Vec<Value>| row[1].as_i64() == busiest["tid"].as_i64();
        let truth = threads.iter().find(is_it).expect("the thread");
        assert_eq!(truth[2].as_str(), Some(""), "{busiest}");
        assert_eq!(busiest["pid"].as_i64(), truth[0].as_i64(), "{busiest}");
        let process = format!("process {}", busiest["tid"]);
        assert_eq!(busiest["process"], process, "{stats:#}");
        let explained = json(folder.path(), &["explain", &trace]);
        let processes = explained["processes"].as_array().expect("rows");
        assert!(processes.iter().any(|row| row["process"] == process), "{explained:#}");
        assert!(processes.iter().all(|row| row["process"] != "(no process)"), "{explained:#}");
    }
}

#[test]
fn explain_takes_threads_of_a_trace_with_slices_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let what = ["record", "--sched", "-o", "t.pftrace", "--", FAMILY, "parent", "2", "0"];
    let said = stderr(&run(hairline(folder.path()).args(what)));
    if said.contains("no context switches") {
        eprintln!("skipped: {said}");
        return;
    }
    let explained = json(folder.path(), &["explain", "t.pftrace", "--thread", "main"]);
    let threads = explained["threads"].as_array().expect("rows");
    assert!(!threads.is_empty() && explained["names"].as_array().is_some_and(Vec::is_empty), "{explained}");
    let tid = threads[0]["tid"].to_string();
    let one = json(folder.path(), &["explain", "t.pftrace", "--thread", &tid]);
    assert_eq!(one["threads"].as_array().map(Vec::len), Some(1), "{one}");
    let names = json(folder.path(), &["explain", "t.pftrace"]);
    assert!(names["threads"].as_array().is_some_and(Vec::is_empty), "{names}");
}

#[test]
fn stacks_of_waits_are_left_out_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(said) = record_with(folder.path(), "t.pftrace", &["--no-wait-stacks"]) else { return };
    assert!(said.contains(" samples") && !said.contains("began to wait"), "{said}");
    let sql = ["select count(*) from perf_counter_track where name = 'context-switches'"];
    let verdict = judge::load(folder.path().join("t.pftrace"), &sql);
    verdict.require_clean();
    assert_eq!(verdict.results[0].single_i64(), 0);
}

/// User and group of `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn a_program_whose_events_the_kernel_ends_is_not_said_to_have_run_for_microseconds() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    let folder = tempfile::tempdir().expect("a folder");
    let is_root = chown(folder.path(), Some(NOBODY), Some(NOBODY)).is_ok();
    let (unreadable, tool) = (folder.path().join("unreadable"), folder.path().join("tool"));
    programs::copy("/bin/sh", &unreadable);
    programs::copy(env!("CARGO_BIN_EXE_hairline_command"), &tool);
    std::fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o111)).expect("its mode");
    let compute = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let record = |program: &str| {
            let mut command = crate::prepared(Command::new(&tool), folder.path());
            command.args(["record", "--sched", "-o", &trace, "--", program, "-c", compute]);
            if is_root {
                command.uid(NOBODY).gid(NOBODY);
            }
            stderr(&run(&mut command))
        };
        let said = record("./unreadable");
        if said.contains("no context switches") {
            eprintln!("skipped: {said}");
            return;
        }
        let why = "the kernel ends the events of a program that its user may not read";
        assert!(
            said.contains(" of CPU time, and the states of its threads have ") && said.contains(why),
            "{said}"
        );
        for command in ["explain", "validate"] {
            let text = run(hairline(folder.path()).args([command, &trace]));
            let text = String::from_utf8_lossy(&text.stdout);
            assert!(text.contains(why), "{text}");
        }
        let said = record("sh");
        assert!(!said.contains("the kernel ends"), "{said}");
    }
}
