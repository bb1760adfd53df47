//! `hairline record --sched --sample`: slices, thread states and samples are those of the same threads.

use std::path::Path;
use std::process::{Command, Output};

use hairline_tests::calm::when_calm;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::programs::burn;
use crate::record::{hairline, is_permitted, numbers};

/// Ids that two rows have.
const TWICE: &str = "select (select count(*) - count(distinct tid) from thread where tid != 0), \
    (select count(*) - count(distinct pid) from process where pid != 0)";

/// Threads with states or samples that lack a name or a process with a name.
const NAMELESS: &str = "select count(*) from thread t left join process p using (upid) \
    where (t.name is null or t.name = '' or p.name is null or p.name = '') and t.tid != 0 \
    and t.utid in (select utid from thread_state union select utid from perf_sample)";

/// Samples, those with a stack, and those of a thread that ran at that moment by its states.
const RAN: &str = "select count(*), count(callsite_id), sum(exists (select 1 from thread_state s \
    where s.utid = p.utid and s.state = 'Running' and p.ts between s.ts - 20000 \
    and s.ts + iif(s.dur < 0, 1 << 60, s.dur) + 20000)) from perf_sample p";

/// Threads by name and by the name of their process, with their slices `turn`, and how many of those have a
/// running and a sleeping stretch.
const TURNS: &str = "select p.name, t.name, count(*), \
    sum(exists (select 1 from thread_state x where x.utid = t.utid and x.state = 'Running' \
        and x.ts < s.ts + s.dur and x.ts + x.dur > s.ts)), \
    sum(exists (select 1 from thread_state x where x.utid = t.utid and x.state = 'S' and x.dur > 1900000 \
        and x.ts >= s.ts and x.ts + x.dur <= s.ts + s.dur)), \
    sum(exists (select 1 from perf_sample x where x.utid = t.utid and x.ts between s.ts and s.ts + s.dur)) > 18 \
    from slice s join thread_track k on k.id = s.track_id join thread t using (utid) join process p using (upid) \
    where s.name = 'turn' group by 1, 2 order by 1, 2";

/// The names of the programs' processes, and how many of each.
const PROCESSES: &str = "select p.name, count(*) from process p where p.pid != 0 \
    and p.upid in (select upid from thread join thread_state using (utid)) group by 1 order by 1";

/// Records the command in both formats, and returns the answers for each. Threads, names and moments are
/// right.
fn recorded(folder: &Path, command: &[&str], sql: &[&str]) -> Vec<Vec<String>> {
    let _one = crate::ONE.lock();
    let mut all = Vec::new();
    for format in FORMATS {
        let trace = format!("out.{}", extension(format));
        let options = ["record", "--sched", "--sample", "1997", "-o", &trace, "--"];
        let output = hairline(folder, &[&options[..], command].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        if !is_permitted(&output) {
            return Vec::new();
        }
        assert!(!said.contains("no context switches"), "{said}");
        let strict = hairline(folder, &["validate", "--strict", &trace]);
        assert!(strict.status.success(), "{}", String::from_utf8_lossy(&strict.stdout));
        let verdict = judge::load(folder.join(&trace), &[&[TWICE, NAMELESS, RAN], sql].concat());
        verdict.require_clean();
        assert_eq!(numbers(&verdict, 0), [0, 0], "{format:?}: threads and processes that are there twice");
        assert_eq!(verdict.results[1].single_i64(), 0, "{format:?}: threads without a name");
        let [samples, with_stack, ran] = numbers(&verdict, 2)[..] else { panic!() };
        assert!(samples > 300 && with_stack == samples, "{format:?}: {samples} {with_stack}");
        assert!(ran * 100 >= samples * 98, "{format:?}: {ran} of {samples} samples of running threads");
        all.push(verdict.results[3..].iter().map(judge::Rows::text).collect());
    }
    all
}

#[test]
fn slices_states_and_samples_join_the_same_threads_of_a_program_with_macros() {
    when_calm(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let command = [env!("CARGO_BIN_EXE_together"), "child"];
        for answers in recorded(folder.path(), &command, &[TURNS, PROCESSES]) {
            // The program and its child.
            let turns = "together\talpha\t40\t40\t40\t1\ntogether\tbeta\t40\t40\t40\t1";
            assert_eq!(answers, [turns, "together\t2"]);
        }
    });
}

#[test]
fn states_and_samples_join_the_same_threads_of_a_foreign_program() {
    when_calm(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let program = burn(folder.path(), &[]);
        let slices = "select count(*) from slice where category is not 'hairline'";
        for answers in recorded(folder.path(), &[program.to_str().expect("UTF-8")], &[slices, PROCESSES]) {
            assert_eq!(answers, ["0", "burn\t1"]);
        }
    });
}

#[test]
fn programs_with_macros_and_without_are_in_one_trace() {
    when_calm(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let both =
            format!("{}; {}; true", env!("CARGO_BIN_EXE_together"), burn(folder.path(), &[]).display());
        for answers in recorded(folder.path(), &["sh", "-c", &both], &[TURNS, PROCESSES]) {
            let turns = "together\talpha\t20\t20\t20\t1\ntogether\tbeta\t20\t20\t20\t1";
            assert_eq!(answers, [turns, "burn\t1\nsh\t1\ntogether\t1"]);
        }
    });
}

/// As this user, who may be root.
fn hairline_as_this_user(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hairline_command"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("it runs")
}

#[test]
fn whoever_may_gets_the_stacks_in_which_threads_began_to_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let trace = format!("out.{}", extension(format));
        let program = env!("CARGO_BIN_EXE_together");
        let options = ["record", "--sched", "--sample", "-o", &trace, "--", program];
        let output = hairline_as_this_user(folder.path(), &options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        if !said.contains("threads that began to wait") {
            eprintln!("skipped: {said}");
            return;
        }
        // The command reads them, Perfetto does not: its flame graph would add them to those of running threads.
        // So it is after a conversion.
        let shown = counted(&said, " samples");
        let copies: Vec<String> =
            FORMATS.iter().map(|to| format!("{}.{}", extension(format), extension(*to))).collect();
        for copy in &copies {
            let output = hairline_as_this_user(folder.path(), &["convert", &trace, copy]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for file in copies.iter().chain([&trace]) {
            let verdict = judge::load(folder.path().join(file), &[TWICE, SHOWN]);
            verdict.require_clean();
            assert_eq!(numbers(&verdict, 0), [0, 0], "{file}");
            assert_eq!(numbers(&verdict, 1), [shown, shown, 0], "{file}: each has a stack");
            // The time slept is the weight: some 2 ms of each of the 40 turns, in the sleep of `turns`.
            let output = hairline_as_this_user(folder.path(), &["explain", file, "together/turn", "--json"]);
            let explained: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let asleep = asleep(&explained, "turns");
            assert!(asleep > 20_000_000, "{file}: {asleep} ns in {explained:#}");
        }
    }
}

/// The samples, those with a stack, and the counters of other samples than those of CPU time.
const SHOWN: &str = "select count(*), count(callsite_id), (select count(*) from perf_counter_track \
    where name not in ('cpu-clock', 'task-clock')) from perf_sample";

/// The number before these words.
fn counted(said: &str, what: &str) -> i64 {
    let before = said.split(what).next().and_then(|before| before.rsplit(' ').next());
    before.map(|number| number.replace(',', "")).and_then(|number| number.parse().ok()).expect("a number")
}

/// The greatest time slept in a stack with this function, in ns.
fn asleep(explained: &serde_json::Value, function: &str) -> u64 {
    match explained {
        serde_json::Value::Object(fields) => {
            let own = fields.get("stacks_asleep").and_then(serde_json::Value::as_array).into_iter().flatten();
            let own = own
                .filter(|stack| stack.to_string().contains(function))
                .filter_map(|stack| stack["ns"].as_u64());
            own.chain(fields.values().map(|value| asleep(value, function))).max().unwrap_or(0)
        }
        serde_json::Value::Array(values) => {
            values.iter().map(|value| asleep(value, function)).max().unwrap_or(0)
        }
        _ => 0,
    }
}
