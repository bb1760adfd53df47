//! `hairline record -p`, `hairline filter`: processes that listen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hairline_convert::{Context, EventKind, Item, TrackId};
use hairline_formats::Value as ArgumentValue;
use hairline_tests::children::signal;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::{FAMILY, files, first_line, hairline, hairline_that_heeds_signals, run, stderr, without_tracing};

pub(crate) const LISTENS: &str = env!("CARGO_BIN_EXE_listens");

/// Each thread: whether no step is missing between its first and its last, and its slices without an end.
const WHOLE: &str = "select t.name, count(*) > 1, count(*) = max(a.int_value) - min(a.int_value) + 1, sum(s.dur < 0) \
    from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
    join args a on s.arg_set_id = a.arg_set_id and a.key in ('n', 'debug.n') where s.name = 'step' group by 1 order by 1";

pub(crate) const FOUR: &str = "worker-0\t1\t1\t0\nworker-1\t1\t1\t0\nworker-2\t1\t1\t0\nworker-3\t1\t1\t0";

/// A program that listens, until this value is dropped.
pub(crate) struct Listening {
    pub(crate) child: Child,
    /// What it said.
    pub(crate) line: String,
}

impl Listening {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut program = Command::new(LISTENS);
        without_tracing(&mut program);
        Self::of(program.args(arguments))
    }

    pub(crate) fn of(program: &mut Command) -> Self {
        let child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let line = first_line(&mut child);
        assert!(line.starts_with("ready"), "{line}");
        Self { child, line }
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// A number of the line.
    fn number(&self, n: usize) -> u64 {
        self.line.split(' ').nth(n).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Lets it return from `main`.
    pub(crate) fn ends(&mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().expect("its end").success()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Records the processes for a while.
pub(crate) fn record(folder: &Path, processes: &str, trace: &str, more: &[&str]) -> Output {
    let block = ["record", "--overflow", "block", "-p", processes, "-o", trace];
    run(hairline(folder).args(block).args(more))
}

pub(crate) fn whole(trace: &Path) -> String {
    by_thread(trace, WHOLE)
}

/// The same of a trace that may lack the end of the last slice of a thread.
pub(crate) fn whole_but_ends(trace: &Path) -> String {
    by_thread(trace, &WHOLE.replace("sum(s.dur < 0)", "sum(s.dur < 0) > 1"))
}

fn by_thread(trace: &Path, query: &str) -> String {
    let verdict = judge::load(trace, &[query]);
    verdict.require_clean();
    verdict.results[0].text()
}

/// The slices `step` of each thread in a trace that is too large for trace_processor. Asserts that no number
/// is missing between the first and the last, and that each slice has its end, but for the last of a thread.
fn steps_without_a_gap(trace: &Path) -> Vec<u64> {
    #[derive(Default)]
    struct Steps {
        count: u64,
        next: Option<i64>,
        is_open: bool,
    }
    let file = std::fs::File::open(trace).expect("a trace");
    let (mut reader, mut context) = (hairline_convert::open(file, None).expect("a trace"), Context::new());
    let mut threads: BTreeMap<TrackId, Steps> = BTreeMap::new();
    while let Some(item) = reader.next(&mut context).expect("readable") {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Begin if event.name.text == "step" => {
                let steps = threads.entry(event.track).or_default();
                event.args.each(&mut |name, value| {
                    let number = match value {
                        ArgumentValue::I64(n) => n,
                        ArgumentValue::U64(n) => n.cast_signed(),
                        _ => return,
                    };
                    if name.text == "n" {
                        assert_eq!(steps.next.unwrap_or(number), number, "{trace:?}");
                        steps.next = Some(number + 1);
                    }
                });
                assert!(!steps.is_open, "{trace:?}: a slice without an end");
                (steps.count, steps.is_open) = (steps.count + 1, true);
            }
            EventKind::End => {
                if let Some(steps) = threads.get_mut(&event.track) {
                    assert!(std::mem::take(&mut steps.is_open), "{trace:?}: an end without a begin");
                }
            }
            _ => {}
        }
    }
    threads.into_values().map(|steps| steps.count).collect()
}

#[test]
fn a_setting_without_an_option_is_that_of_the_commands_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let listening = Listening::start(&["1"]);
    let record = |trace: &str, more: &[&str], variables: &[(&str, &str)]| {
        let block = ["record", "--for", "200ms", "-p", &listening.pid(), "-o", trace];
        run(hairline(folder.path()).args(block).args(more).envs(variables.iter().copied()))
    };
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let settings = [("HAIRLINE_SOURCE_LOCATIONS", "on"), ("HAIRLINE_CATEGORIES", "nothing")];
        let output = record(&trace, &["--categories", "*"], &settings);
        assert!(output.status.success(), "{}", stderr(&output));
        let located = "select count(*) > 0, count(*) = sum(a.display_value glob '*listens.rs*') from slice s \
            left join args a on s.arg_set_id = a.arg_set_id and a.key in ('source', 'source.file_name') \
            where s.name = 'step'";
        assert_eq!(by_thread(&folder.path().join(&trace), located), "1\t1", "{format:?}");
    }
    let output = record("u.fxt", &[], &[("HAIRLINE_SOURCE_LOCATIONS", "perhaps")]);
    assert!(stderr(&output).contains("HAIRLINE_SOURCE_LOCATIONS"), "{}", stderr(&output));
    assert!(!output.status.success());
}

/// The number of recordings in short, which a variable raises: 2 s each at full load then.
const SHORT: u32 = 4;

fn recordings() -> u32 {
    std::env::var("HAIRLINE_RECORDINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(SHORT)
}

#[test]
fn a_process_that_runs_is_recorded_again_and_again_and_each_trace_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_full = recordings() > SHORT;
    let mut program = Listening::start(if is_full { &["full"] } else { &[] });
    for n in 0..recordings() {
        let format = FORMATS[n as usize % 2];
        let trace = format!("{n}.{}", extension(format));
        let time = if is_full { "2s" } else { "200ms" };
        let output = record(folder.path(), &program.pid(), &trace, &["--for", time]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // At full load each thread may wait for room when the recording ends: that event is lost, and counted.
        let said = stderr(&output);
        let lost = said.lines().find(|line| line.contains(" lost "));
        let are_few =
            (1..=4).any(|n| lost.is_some_and(|line| line.starts_with(&format!("hairline: {n} event"))));
        assert!(lost.is_none() || is_full && are_few && !said.contains("--overflow block"), "{said}");
        let path = folder.path().join(&trace);
        if is_full {
            // Its four threads, which go on without a recording, would take the processors from the check.
            signal(program.child.id(), libc::SIGSTOP);
            let steps = steps_without_a_gap(&path);
            signal(program.child.id(), libc::SIGCONT);
            println!("{trace}: {steps:?} slices, {}", lost.unwrap_or("none lost"));
            assert!(steps.len() == 4 && steps.iter().all(|count| *count > 10_000), "{steps:?}");
            std::fs::remove_file(path).expect("removed"); // a gigabyte
        } else {
            assert_eq!(whole(&path), FOUR, "{trace}");
        }
    }
    let left = if is_full { 0 } else { recordings() as usize };
    assert_eq!(files(folder.path()).len(), left, "nothing else is left");
    assert!(program.ends());
    let listed = run(hairline(folder.path()).arg("ls"));
    assert!(!String::from_utf8_lossy(&listed.stdout).contains(&format!("{} ", program.pid())));
}

#[test]
fn listening_takes_little_memory_and_ends_with_its_guard() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Listening::start(&["quiet"]);
    assert!(program.number(1) < 200 << 10, "{} bytes", program.number(1));
    let listed = run(hairline(folder.path()).arg("ls"));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let own = |line: &&str| line.trim_start().starts_with(&format!("{} listening", program.pid()));
    assert_eq!(listed.lines().filter(own).count(), 1, "{listed}");
    let name = format!("hairline-{}-", program.pid());
    assert!(program.ends());
    let left = std::fs::read_dir("/dev/shm").expect("a folder").flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name)).count(), 0);
}

#[test]
fn parent_and_forked_child_make_one_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Listening::start(&["forks"]);
    let processes = format!("{},{}", program.pid(), program.number(2));
    wait_for_listener(folder.path(), &program.number(2).to_string());
    for format in FORMATS {
        let trace = format!("both.{}", extension(format));
        let output = record(folder.path(), &processes, &trace, &["--for", "200ms"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let by_process = "select count(distinct p.pid), count(distinct t.tid), count(*) > 100 from slice s \
            join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid)";
        let verdict = judge::load(folder.path().join(&trace), &[by_process]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "2\t8\t1", "{format:?}");
    }
    assert!(program.ends());
}

/// A forked child listens from its first event on.
fn wait_for_listener(folder: &Path, pid: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let listed = run(hairline(folder).arg("ls"));
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        if listed.lines().any(|line| line.trim_start().starts_with(&format!("{pid} listening"))) {
            return;
        }
        assert!(Instant::now() < until, "{pid}: {listed}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_environment_makes_a_process_listen_and_a_name_finds_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // A name of its own, among the programs of other tests.
    let own = folder.path().join("runs-alone");
    hairline_tests::programs::copy(FAMILY, &own);
    let mut program = Command::new(&own);
    without_tracing(&mut program);
    let _program = Listening::of(program.args(["busy", "2", "1"]).env("HAIRLINE", "listen"));
    let output = record(folder.path(), "runs-alone", "t.pftrace", &["--for", "200ms", "--sched"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    // Two threads have events. The others have states: the main one, and those that listen and write.
    assert!(said.contains("(runs-alone)\n") && said.contains("1 process, 5 threads"), "{said}");
    // `outer` began before the recording.
    let verdict = judge::load(folder.path().join("t.pftrace"), &["select distinct name from slice"]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "step");
}

#[test]
fn the_filter_changes_while_it_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let pid = program.pid();
    let refused = run(hairline(folder.path()).args(["filter", &pid, "-listens"]));
    assert_eq!((refused.status.code(), stderr(&refused).lines().count()), (Some(1), 1));
    assert!(stderr(&refused).contains("no session runs"), "{}", stderr(&refused));
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let mut recording = hairline_that_heeds_signals(folder.path());
        recording.args([
            "record",
            "-p",
            &pid,
            "--overflow",
            "block",
            "--categories",
            "nothing",
            "-o",
            &trace,
        ]);
        let recording = recording.spawn().expect("it starts");
        wait_until_recorded(folder.path(), &pid);
        std::thread::sleep(Duration::from_millis(100));
        let changed = run(hairline(folder.path()).args(["filter", &pid, "listens"]));
        assert_eq!(changed.status.code(), Some(0), "{}", stderr(&changed));
        std::thread::sleep(Duration::from_millis(100));
        let changed = run(hairline(folder.path()).args(["filter", &pid, "-listens"]));
        assert_eq!(changed.status.code(), Some(0), "{}", stderr(&changed));
        std::thread::sleep(Duration::from_millis(200));
        interrupt(&recording);
        let output = recording.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let steps = judge::load(
            folder.path().join(&trace),
            &[
                WHOLE,
                "select (max(ts + dur) - min(ts)) / 1000000 between 20 and 5000, count(*) > 100 from slice",
            ],
        );
        steps.require_clean();
        assert_eq!(steps.results[0].text(), FOUR, "{format:?}");
        assert_eq!(steps.results[1].text(), "1\t1", "{format:?}");
    }
}

pub(crate) fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

pub(crate) fn wait_until_recorded(folder: &Path, pid: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let listed = run(hairline(folder).arg("ls"));
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        if listed.lines().any(|line| line.trim_start().starts_with(&format!("{pid} alive"))) {
            return;
        }
        assert!(Instant::now() < until, "{pid}: {listed}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn of_twenty_commands_one_records_and_the_others_are_told_by_whom() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let commands: Vec<Child> = (0..20)
        .map(|n| {
            let trace = format!("{n}.fxt");
            let mut command = hairline(folder.path());
            command
                .args(["record", "-p", &program.pid(), "--for", "3s", "-o", &trace])
                .spawn()
                .expect("started")
        })
        .collect();
    let ids: Vec<u32> = commands.iter().map(Child::id).collect();
    let ended: Vec<Output> =
        commands.into_iter().map(|command| command.wait_with_output().expect("its end")).collect();
    let winners: Vec<u32> =
        ids.iter().zip(&ended).filter(|(_, output)| output.status.success()).map(|(id, _)| *id).collect();
    // A command that starts after the end of another one records too.
    assert!(!winners.is_empty(), "{:?}", ended.iter().map(stderr).collect::<Vec<_>>());
    for output in ended.iter().filter(|output| !output.status.success()) {
        let said = stderr(output);
        let by =
            winners.iter().any(|by| said.contains(&format!("recorded already for the process {by}, to ")));
        assert!(output.status.code() == Some(125) && by && said.lines().count() == 1, "{said}");
    }
    assert_eq!(files(folder.path()).len(), winners.len(), "nothing else is left");
}

#[test]
fn a_process_that_is_killed_or_ends_while_it_is_recorded_leaves_its_trace() {
    for format in FORMATS {
        for kill in [true, false] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut program = Listening::start(&[]);
            let trace = format!("t.{}", extension(format));
            let recording = hairline(folder.path())
                .args(["record", "--overflow", "block", "-p", &program.pid(), "-o", &trace])
                .spawn()
                .expect("started");
            wait_until_recorded(folder.path(), &program.pid());
            std::thread::sleep(Duration::from_millis(200));
            if kill {
                program.child.kill().expect("killed");
            } else {
                assert!(program.ends());
            }
            let output = recording.wait_with_output().expect("its end");
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert_eq!(
                stderr(&output).contains("1 process ended without completing its trace"),
                kill,
                "{}",
                stderr(&output)
            );
            assert_eq!(whole_but_ends(&folder.path().join(&trace)), FOUR, "{format:?}");
        }
    }
}

#[test]
fn a_command_that_is_killed_leaves_nothing_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let mut recording = hairline(folder.path());
    let mut recording =
        recording.args(["record", "-p", &program.pid(), "-o", "t.fxt"]).spawn().expect("started");
    wait_until_recorded(folder.path(), &program.pid());
    recording.kill().and_then(|()| recording.wait()).expect("killed");
    wait_for_listener(folder.path(), &program.pid());
    let output = record(folder.path(), &program.pid(), "again.fxt", &["--for", "100ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(whole(&folder.path().join("again.fxt")), FOUR);
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&["quiet"]);
    let pid = program.pid();
    let own = std::process::id().to_string();
    for (arguments, expected) in [
        (vec!["-p", &*own], "does not listen: start it with HAIRLINE=listen"),
        (vec!["-p", "4194305"], "there is no process 4194305"),
        (vec!["-p", "no-such-name"], "there is no process of this user with the name no-such-name"),
        (vec!["-p", &*pid, "--overflow", "overwrite"], "HAIRLINE_OVERFLOW"),
    ] {
        let output = run(hairline(folder.path()).arg("record").args(arguments));
        let said = stderr(&output);
        assert!(output.status.code() == Some(125) && said.contains(expected), "{said}");
        assert_eq!((said.lines().count(), files(folder.path()).len()), (1, 0), "{said}");
    }
}

/// A child that starts only to listen does not take the environment for its own.
#[test]
fn a_forked_child_of_a_program_that_listens_leaves_the_parents_trace_alone() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join(format!("t.{}", extension(format)));
        let mut program = Command::new(LISTENS);
        without_tracing(&mut program);
        program.arg("ended").current_dir(folder.path()).env("HAIRLINE", &trace);
        assert!(Listening::of(&mut program).ends());
        let verdict = judge::load(&trace, &["select name from slice"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "before", "{format:?}");
        assert_eq!(files(folder.path()).len(), 1);
    }
}

/// The program's own session and that of a command do not disturb each other.
#[test]
fn a_program_that_starts_a_session_of_its_own_gets_the_commands_one() {
    use std::io::{BufRead, BufReader, Write};
    let folder = tempfile::tempdir().expect("a folder");
    let own: PathBuf = folder.path().join("own.fxt");
    let mut program = Listening::start(&["own", own.to_str().expect("UTF-8")]);
    let (mut input, output) =
        (program.child.stdin.take().expect("piped"), program.child.stdout.take().expect("piped"));
    let mut lines = BufReader::new(output).lines();
    let recording = hairline(folder.path())
        .args(["record", "-p", &program.pid(), "-o", "t.fxt"])
        .spawn()
        .expect("started");
    wait_until_recorded(folder.path(), &program.pid());
    input.write_all(b"\n").expect("written");
    assert_eq!(lines.next().expect("a line").expect("read"), "started");
    assert_eq!(lines.next().expect("a line").expect("read"), "Ok(true)");
    let recorded = recording.wait_with_output().expect("its end");
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    assert!(!own.exists());
    judge::load(folder.path().join("t.fxt"), &["select 1"]).require_clean();
    // And without a command it has its own.
    input.write_all(b"\n").expect("written");
    assert_eq!(lines.next().expect("a line").expect("read"), "started");
    assert_eq!(lines.next().expect("a line").expect("read"), "Ok(true)");
    assert!(own.exists());
}
