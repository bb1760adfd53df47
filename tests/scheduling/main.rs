//! Context switches in a trace: the states of threads are those that the program measures itself.

mod wakings;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hairline::recovery::RecoverOptions;
use hairline_tests::calm::when_calm;
use hairline_tests::regions::region_of;
use hairline_tests::{judge, programs};

/// User and group of `nobody`.
const NOBODY: u32 = 65534;

const FORMATS: [&str; 2] = ["fxt", "pftrace"];

/// A directory for a trace, of the user that records it: `nobody` where this test runs as root.
struct Stage {
    directory: tempfile::TempDir,
    is_root: bool,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let is_root = std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).is_ok();
        Self { directory, is_root }
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.path().join(format!("trace.{extension}"))
    }

    fn command(&self, way: &str, file: &Path) -> Command {
        // A copy that `nobody` can execute, wherever the build is.
        let program = self.directory.path().join("switching");
        programs::copy(env!("CARGO_BIN_EXE_switching"), &program);
        let mut command = Command::new(program);
        command.arg(way).arg(file).env_remove("HAIRLINE");
        // Regions of another user are not recovered.
        if self.is_root && way != "killed" {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, way: &str, file: &Path, more: &[&str]) -> String {
        let output = self.command(way, file).args(more).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// Whether this process may record its own switches, by what a session says.
fn may_record_switches() -> bool {
    let session = hairline::Session::builder().output_memory(&hairline::MemoryOutput::new()).scheduling(true);
    let summary = session.start().expect("a session").stop().expect("stopped");
    !summary.notes.iter().any(|note| note.starts_with("context switches"))
}

/// Whether this user may record switches here.
fn is_permitted(printed: &str) -> bool {
    if let Some(note) = printed.lines().find(|line| line.starts_with("note: context switches")) {
        eprintln!("{note}: not tested");
        return false;
    }
    true
}

/// What a thread has measured.
#[derive(Debug)]
struct Measured<'a> {
    name: &'a str,
    tid: &'a str,
    begin: u64,
    end: u64,
    /// In waiting calls, if its work is made of these.
    waited: Option<u64>,
    used: u64,
    /// Runnable without a processor, if the kernel tells.
    delayed: Option<u64>,
    waits: u64,
    preemptions: u64,
    /// When the switches were counted.
    counted: u64,
}

fn measured(line: &str) -> Option<Measured<'_>> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, tid, begin, end, waited, used, delayed, waits, preemptions, counted] = words[..] else {
        return None;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    Some(Measured {
        name,
        tid,
        begin: number(begin)?,
        end: number(end)?,
        waited: number(waited),
        used: number(used)?,
        delayed: number(delayed),
        waits: number(waits)?,
        preemptions: number(preemptions)?,
        counted: number(counted)?,
    })
}

/// Nanoseconds running, runnable (W: since a wake-up, in FXT) and asleep between two times, and the thread's
/// switches out before the end.
fn sql(of: &Measured<'_>) -> String {
    let Measured { tid, begin, end, counted, .. } = of;
    let within = |states: &str| {
        format!(
            "(select ifnull(sum(min(s.ts + iif(s.dur < 0, 1 << 60, s.dur), {end}) - max(s.ts, {begin})), 0) \
             from thread_state s join thread t using (utid) where t.tid = {tid} and s.state in ({states}) \
             and s.ts < {end} and s.ts + iif(s.dur < 0, 1 << 60, s.dur) > {begin})"
        )
    };
    let out = |state: &str| {
        format!(
            "(select count(*) from sched s join thread t using (utid) where t.tid = {tid} \
             and s.end_state = '{state}' and s.dur >= 0 and s.ts + s.dur <= {counted})"
        )
    };
    let threads = format!("(select count(*) || '/' || max(name) from thread where tid = {tid})");
    format!(
        "select {}, {}, {}, {}, {}, {threads}",
        within("'Running'"),
        within("'R', 'W'"),
        within("'S'"),
        out("S"),
        out("R")
    )
}

/// Nanoseconds by which accounts of a thread's states may differ: the kernel's begin and end some
/// instructions before and after the trace's at each switch.
fn disturbed(of: &Measured<'_>) -> u64 {
    (of.preemptions + of.waits) * 20_000
}

fn near(what: &str, of: &Measured<'_>, traced: u64, truth: u64) {
    let off = traced.abs_diff(truth);
    assert!(
        off <= truth / 20 + disturbed(of),
        "{what}: {traced} ns in the trace, {truth} ns measured: {of:?}"
    );
}

/// Compares the states of a thread with its own measurement. Without wake-ups, only a thread that has lost
/// its processor waits for one.
///
/// A hypervisor takes time from a thread that runs. The thread's processor time leaves it out and the trace
/// does not, so that this time is only a lower bound of what the trace says.
fn check_states(of: &Measured<'_>, [running, runnable, asleep]: [u64; 3], has_wakers: bool, is_fxt: bool) {
    let whole = of.end - of.begin;
    // So each error of one state is one of the others too, and one comparison is enough. In FXT a wake-up has
    // a row of its own kind.
    if !(is_fxt && has_wakers) {
        assert_eq!(running + runnable + asleep, whole, "no time is without a state: {of:?}");
    }
    assert!(running + whole / 100 + disturbed(of) >= of.used, "it ran for {running} ns in the trace: {of:?}");
    match of.waited {
        // A wait is as long as the call takes: until the thread runs again.
        Some(waited) if of.preemptions == 0 => near("waiting", of, runnable + asleep, waited),
        // It also waits for a processor between the calls, which it does not measure.
        Some(waited) => near("waiting", of, (runnable + asleep).min(waited), waited),
        None => {}
    }
    if of.preemptions == 0 && !has_wakers {
        assert_eq!(runnable, 0, "{of:?}");
    }
    match of.name {
        "spins" if of.waits + of.preemptions == 0 => assert_eq!(running, whole, "{of:?}"),
        "spins" | "preempted" => {
            near("runnable", of, runnable, of.delayed.unwrap_or(runnable));
            assert!(of.name == "spins" || of.preemptions > 0 && runnable > 20_000_000, "{of:?} {runnable}");
        }
        "sleeps" | "mutex" | "channel" => assert!(asleep > 15_000_000, "{of:?} {asleep}"),
        "disk" => assert!(asleep > 0 && of.waits > 0, "{of:?} {asleep}"),
        _ => assert!(of.waits >= 190, "{of:?}"),
    }
}

/// Checks the threads of `switching known`.
fn check(file: &Path, printed: &str) {
    let threads: Vec<Measured<'_>> = printed.lines().filter_map(measured).collect();
    assert_eq!(threads.len(), 7, "{printed}");
    assert!(printed.contains("lost 0"), "{printed}");
    let has_wakers =
        "select count(waker_utid) + ifnull(sum(state = 'W'), 0) > 0 from thread_state".to_owned();
    let queries: Vec<String> = threads.iter().map(sql).chain([has_wakers]).collect();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let verdict = judge::load(file, &queries);
    verdict.require_clean();
    let has_wakers = verdict.results[threads.len()].text() == "1";
    let is_fxt = file.extension().is_some_and(|extension| extension == "fxt");
    for (of, rows) in threads.iter().zip(&verdict.results) {
        let row = rows.text();
        let columns: Vec<&str> = row.split('\t').collect();
        let number = |index: usize| columns[index].parse::<u64>().expect("a number");
        check_states(of, [number(0), number(1), number(2)], has_wakers, is_fxt);
        assert_eq!((number(3), number(4)), (of.waits, of.preemptions), "{of:?} {row}");
        assert_eq!(columns[5], format!("1/{}", of.name), "one thread, with its name");
    }
}

#[test]
fn the_states_of_threads_are_those_that_the_program_measures() {
    when_calm(|| {
        for extension in FORMATS {
            let stage = Stage::new();
            let file = stage.path(extension);
            let printed = stage.run("known", &file, &[]);
            if is_permitted(&printed) {
                check(&file, &printed);
            }
        }
    });
}

#[test]
fn a_flight_recorder_has_the_last_states() {
    when_calm(|| {
        for extension in FORMATS {
            let stage = Stage::new();
            let file = stage.path(extension);
            let printed = stage.run("known", &file, &["ring"]);
            if is_permitted(&printed) {
                check(&file, &printed);
            }
        }
    });
}

#[test]
fn all_threads_of_the_process_have_states_and_its_name() {
    let stage = Stage::new();
    for extension in FORMATS {
        let file = stage.path(extension);
        let printed = stage.run("known", &file, &[]);
        if !is_permitted(&printed) {
            return;
        }
        // The session's own thread and the rival record no events.
        let verdict = judge::load(
            &file,
            &[
                "select count(distinct p.pid), count(distinct t.tid) >= 10 from thread_state s \
                 join thread t using (utid) left join process p using (upid)",
                "select count(*) from thread_state s join thread t using (utid) where t.upid is null or s.state is null",
                "select count(*) > 0 from thread_state s join thread t using (utid) where t.name = 'main'",
            ],
        );
        verdict.require_clean();
        let texts: Vec<String> = verdict.results.iter().map(judge::Rows::text).collect();
        assert_eq!(texts, ["1\t1", "0", "1"], "{extension}");
    }
}

#[test]
fn a_killed_process_leaves_the_states_that_were_drained() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        let mut child = stage.command("killed", &file).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        std::thread::sleep(Duration::from_millis(600));
        child.kill().expect("killed");
        child.wait().expect("its end");
        hairline::recovery::recover(&region_of(&file), &RecoverOptions::new()).expect("recovered");
        let verdict = judge::load(
            &file,
            &["select count(*) from sched s join thread t using (utid) where t.name = 'endless'"],
        );
        verdict.require_clean();
        let switches: u64 = verdict.results[0].text().parse().expect("a number");
        if switches == 0 {
            eprintln!("no switches here: not tested");
            continue;
        }
        assert!(switches > 200, "{switches} of some 450");
    }
}

#[test]
fn a_snapshot_from_outside_and_a_recovery_have_the_states_of_a_flight_recorder() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        let mut child =
            stage.command("killed", &file).arg("ring").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        std::thread::sleep(Duration::from_millis(600));
        let region = region_of(&file);
        let copy = stage.path("copy");
        let copied_at = hairline_tests::clock::boottime();
        let copied = hairline::recovery::snapshot(&region, &copy).expect("a snapshot");
        std::thread::sleep(Duration::from_millis(300));
        let killed_at = hairline_tests::clock::boottime();
        child.kill().expect("killed");
        child.wait().expect("its end");
        let recovered = hairline::recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
        if !may_record_switches() {
            eprintln!("no switches here: not tested");
            return;
        }
        assert_eq!((copied.notes, recovered.notes), (Vec::new(), Vec::new()));
        let sql = [
            "select count(*), max(ts) from sched join thread t using (utid) where t.name = 'endless'",
            // A thread is in one state at each time, from its first one on.
            "select count(*) from (select ts, lag(ts + dur) over (partition by utid order by ts) as before, dur \
                from thread_state where utid in (select utid from thread where is_main_thread or name = 'endless')) \
                where before is not null and before != ts",
            "select count(distinct utid) from thread_state join thread using (utid) where is_main_thread or name = 'endless'",
        ];
        let mut before = 0;
        for (path, until) in [(copy, copied_at), (file, killed_at)] {
            let verdict = judge::load(&path, &sql);
            verdict.require_clean();
            let row: Vec<i64> = verdict.results[0].rows[0].iter().filter_map(|cell| cell.as_i64()).collect();
            let [switches, last] = row[..] else { panic!("{row:?}") };
            assert!(switches > before + 50, "{path:?}: {switches}, and {before} before");
            // The rings are read every 50 ms, and what is read settles with the next reading.
            assert!(until - last < 500_000_000, "{path:?}: the last switch is {} ns before", until - last);
            assert_eq!(verdict.results[1].single_i64(), 0, "{path:?}: gaps between states");
            assert_eq!(verdict.results[2].single_i64(), 2, "{path:?}");
            before = switches;
        }
    }
}

#[test]
fn a_forked_child_has_none_of_the_events_and_no_states() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        let printed = stage.run("fork", &file, &[]);
        if !is_permitted(&printed) {
            return;
        }
        assert!(printed.contains("0 events in the child"), "{printed}");
        let child = printed.lines().find_map(|line| line.strip_prefix("child ")).expect("its id");
        let sql = format!("select count(*) from thread where tid = {child}");
        let verdict = judge::load(&file, &[&sql]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "0", "{extension}");
    }
}

#[test]
fn without_descriptors_the_session_goes_on_and_says_what_helps() {
    let stage = Stage::new();
    let printed = stage.run("files", &stage.path("pftrace"), &[]);
    assert!(
        printed.contains("context switches are not recorded") && printed.contains("ulimit -n"),
        "{printed}"
    );
}

#[test]
fn half_of_the_files_are_left_to_the_program_also_with_samples() {
    let stage = Stage::new();
    let printed = stage.run("half", &stage.path("pftrace"), &[]);
    let (left, limit) = (number_after("left", &printed), number_after(" of", &printed));
    assert!(limit > 0 && (left + 4) * 2 >= limit, "{printed}");
}

/// The thread that executes a program gets another number, and its own ends without a record.
#[test]
fn a_thread_that_executes_a_program_is_dead_then() {
    let script = format!("exec {} exec -", env!("CARGO_BIN_EXE_switching"));
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        if recorded_by_command(&file, &script).is_none() {
            return;
        }
        let names = "select group_concat(distinct t.name) from thread_state s join thread t using (utid) \
             where t.name in ('executes', 'rival')";
        let endless = "select count(*) from thread_state s join thread t using (utid) \
             where t.name in ('executes', 'rival') and s.dur < 0 and ifnull(s.state, '') != 'X'";
        let verdict = judge::load(&file, &[names, endless]);
        verdict.require_clean();
        let texts: Vec<String> = verdict.results.iter().map(judge::Rows::text).collect();
        assert_eq!(texts[1], "0", "{extension}: {texts:?}");
        assert!(texts[0].contains("executes") && texts[0].contains("rival"), "{extension}: {texts:?}");
    }
}

#[test]
fn the_environment_asks_for_states_and_is_told_why_there_are_none() {
    let stage = Stage::new();
    let file = stage.path("pftrace");
    let run = |way: &str, value: &str| {
        let mut command = stage.command(way, &file);
        let output = command.env("HAIRLINE", &file).env("HAIRLINE_SCHED", value).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let told = run("environment", "on");
    assert_eq!(told.matches("context switches are not recorded").count(), 1, "{told}");
    assert_eq!(run("environment", "off"), "");
    assert!(run("environment", "perhaps").contains("use on or off"));
    if !run("environment-files", "on").is_empty() {
        return; // not permitted here
    }
    let verdict = judge::load(&file, &["select count(*) > 0 from sched s join thread t using (utid)"]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "1");
}

/// Runs the script under `hairline record --sched`, and returns what the command says. `None`, with the
/// reason on stderr: this user may not record switches here.
fn recorded_by_command(file: &Path, script: &str) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    command.args(["record", "--sched", "--wait", "0", "-o"]).arg(file).args(["--", "sh", "-c", script]);
    let output = command.env_remove("HAIRLINE").output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    if told.contains("no context switches") {
        eprintln!("{told}: not tested");
        return None;
    }
    Some(told)
}

#[test]
fn record_has_the_states_of_all_processes_of_a_command() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        let script = "sleep 0.05; sh -c 'sleep 0.05; true'; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        if recorded_by_command(&file, script).is_none() {
            return;
        }
        let asleep = "select count(*) from thread_state s join thread t using (utid) \
             join process p using (upid) where t.name = 'sleep' and s.state = 'S' and s.dur > 40e6";
        let shells =
            "select count(distinct t.tid) from sched s join thread t using (utid) where t.name = 'sh'";
        let unnamed = "select count(*) from thread_state s join thread t using (utid) \
             where t.upid is null or s.state is null or t.name is null";
        let verdict = judge::load(&file, &[asleep, shells, unnamed]);
        verdict.require_clean();
        let texts: Vec<String> = verdict.results.iter().map(judge::Rows::text).collect();
        assert_eq!(texts, ["2", "2", "0"], "{extension}");
    }
}

/// The number after this word.
fn number_after(word: &str, text: &str) -> u64 {
    let after = text.split_once(word).map_or("", |(_, after)| after.trim_start());
    after
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .next()
        .unwrap_or("")
        .replace(',', "")
        .parse()
        .unwrap_or(0)
}

const LOST: &str = "select max(a.int_value) from slice s join args a using (arg_set_id) \
    where s.name = 'lost in all' and a.key in ('kernel ring full', 'debug.kernel ring full')";

#[test]
fn switches_that_the_kernels_ring_has_no_room_for_are_counted() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        let printed = stage.run("overflow", &file, &[]);
        if !is_permitted(&printed) {
            return;
        }
        let lost = number_after("lost", &printed);
        assert!(lost > 10_000, "{printed}");
        let verdict = judge::load(&file, &["select count(*) > 1000 from sched", LOST]);
        assert_eq!(verdict.results[0].text(), "1", "{extension}: what came before");
        assert_eq!(verdict.results[1].text(), lost.to_string(), "{extension}");
    }
}

#[test]
fn record_says_how_many_switches_the_kernels_ring_has_lost() {
    for extension in FORMATS {
        let stage = Stage::new();
        let file = stage.path(extension);
        // Nobody reads the rings while the command runs.
        let script =
            format!("kill -STOP $PPID; {} often -; kill -CONT $PPID", env!("CARGO_BIN_EXE_switching"));
        let Some(told) = recorded_by_command(&file, &script) else { return };
        let line = told.lines().find(|line| line.contains("context switches lost")).unwrap_or_default();
        let lost = number_after("hairline:", line);
        assert!(lost > 10_000 && !told.contains("buffer was full"), "{told}");
        let verdict = judge::load(&file, &[LOST]);
        assert_eq!(verdict.results[0].text(), lost.to_string(), "{extension}: the trace tells it too");
    }
}
