//! Forks at random moments, of every kind: no child hangs or crashes, and every trace is whole.
//!
//! `TORTURE_CHILDREN=10000` (`ci/torture.sh forks`) is the long form. `TORTURE_KINDS=fork,clone` makes these
//! kinds alone: `bin/forker/main.rs` lists them. With `TORTURE_NEWEST=1` only the newest thread of the first
//! process forks: where another one does, qemu-user ends a child that starts a thread.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverOptions};
use hairline_tests::forked::{Content, read};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::torture::Random;

use crate::program::Run;

/// All of them.
const LONG: &str = "fork,_fork,clone,spawn,exec,handler,returned,_handler";
/// Those of every test run.
const SHORT: &str = "fork,spawn,exec,handler";
const MODES: [&str; 4] = ["environment", "steady", "coming", "recorder"];
/// Children of one process in the long form, and in the short one.
const CHILDREN: [u64; 2] = [100, 25];
/// The longest that a process and its children may take: some of them are waited for before they are given
/// up.
const PATIENCE: Duration = Duration::from_secs(180);
/// The importer's count of what `TraceStats` says was lost.
const LOSS: &str = "traced_buf_trace_writer_packet_loss";

/// What came of it.
#[derive(Debug, Default)]
struct Tally {
    processes: u64,
    children: u64,
    /// Children that recorded steps of their own.
    recording: u64,
    traces: u64,
    recovered: u64,
    steps: u64,
    judged: u64,
}

/// A line of the file `told`.
struct Told {
    pid: u32,
    kind: String,
    end: String,
    /// By thread.
    steps: HashMap<u64, u64>,
}

impl Told {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let pid = words.next()?.parse().ok()?;
        let _parent = words.next()?;
        let (kind, end) = (words.next()?.to_owned(), words.next()?.to_owned());
        let steps = words.map(|word| {
            let (thread, steps) = word.split_once(':')?;
            Some((thread.parse().ok()?, steps.parse().ok()?))
        });
        Some(Self { pid, kind, end, steps: steps.collect::<Option<_>>()? })
    }

    fn is_parent(&self) -> bool {
        self.kind == "parent"
    }
}

/// A process and its children. All follows from the number.
fn one(number: u64, kinds: &str, children: u64, judge_every: u64, tally: &mut Tally) -> Result<(), String> {
    let random = Random::new(number);
    let format = FORMATS[(number % 2) as usize];
    let has_pid = !random.one_in(4);
    let newest = std::env::var_os("TORTURE_NEWEST").is_some();
    // Of the others, a session may start its thread after the one that forks.
    let modes = if newest { ["steady", "recorder"].repeat(2) } else { MODES.to_vec() };
    let mode = modes[random.below(4) as usize];
    let template =
        if has_pid { format!("t-%p.{}", extension(format)) } else { format!("t.{}", extension(format)) };
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let arguments = [
        format!("seed={}", random.next()),
        format!("children={children}"),
        format!("threads={}", 1 + random.below(3)),
        format!("kinds={kinds}"),
        format!("forkers={}", if newest { 1 } else { 3 }),
        format!("depth={}", if newest { 1 } else { 3 }),
        format!("mode={mode}"),
        format!("template={template}"),
        format!("subscriber={}", if random.one_in(2) { "own" } else { "layer" }),
    ];
    let variables = [("HAIRLINE_BUFFER", "1M"), ("HAIRLINE", &*template)];
    let variables = if mode == "environment" { &variables[..] } else { &variables[..1] };
    let mut run = Run::start(
        env!("CARGO_BIN_EXE_forker"),
        directory,
        &arguments.each_ref().map(String::as_str),
        variables,
    );
    let ended = run.end(PATIENCE).map_err(|what| format!("the parent {what}"));
    tally.processes += u64::from(ended.is_ok());
    let checked = ended.and_then(|()| {
        if !run.output.status.success() {
            return Err(format!("the parent ended with {}", run.output.status));
        }
        check(run.directory(), run.pid, mode, has_pid, judge_every, tally)
    });
    let said = || [&run.output.stdout, &run.output.stderr].map(|said| String::from_utf8_lossy(said));
    checked.map_err(|what| format!("{mode}, {template}: {what}\n{}", said().concat()))
}

/// What processes of this directory left in the machine's memory.
fn left(directory: &Path) -> Vec<recovery::FoundRegion> {
    let mut left = recovery::find().unwrap_or_default();
    left.retain(|region| {
        region.is_dead() && region.output.as_ref().is_some_and(|o| o.starts_with(directory))
    });
    left
}

fn check(
    directory: &Path,
    parent: u32,
    mode: &str,
    has_pid: bool,
    judge_every: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut problems = Vec::new();
    let mut incomplete = Vec::new();
    for region in left(directory) {
        incomplete.push(region.pid);
        match recovery::recover(&region.path, &RecoverOptions::new()) {
            Ok(recovered) if recovered.notes.is_empty() => {
                tally.recovered += u64::from(recovered.path.is_some());
            }
            Ok(recovered) => {
                problems.push(format!("recovery of {}: {:?}", region.path.display(), recovered.notes));
            }
            Err(e) => problems.push(format!("recovery of {}: {e}", region.path.display())),
        }
    }
    let entries =
        std::fs::read_dir(directory).map_err(|e| e.to_string())?.flatten().map(|entry| entry.path());
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|e| e == "fxt" || e == "pftrace");
    let mut traces: HashMap<PathBuf, Content> = HashMap::new();
    for path in entries.filter(is_trace) {
        match read(&path) {
            Ok(content) => drop(traces.insert(path.clone(), content)),
            Err(e) => problems.push(format!("{}: {e}", path.display())),
        }
        tally.traces += 1;
        if tally.traces.is_multiple_of(judge_every) {
            let verdict = judge::load(&path, &[]);
            tally.judged += 1;
            if !verdict.complaints.iter().all(|stat| stat.name == LOSS) {
                problems.push(format!("{}: {:?}", path.display(), verdict.complaints));
            }
        }
    }
    tally.steps +=
        traces.values().flat_map(|trace| trace.steps.values()).map(|steps| steps.begun).sum::<u64>();
    let told = std::fs::read_to_string(directory.join("told")).map_err(|e| e.to_string())?;
    // A process's number may have come again meanwhile, and with it the name of a file.
    let pid = |line: &str| line.split(' ').next().map(str::to_owned);
    let is_one = |line: &str| told.lines().filter(|other| pid(other) == pid(line)).count() == 1;
    for line in told.lines().filter(|line| is_one(line)) {
        let told = Told::parse(line).ok_or_else(|| format!("told: {line}"))?;
        if told.end == "exit" && incomplete.contains(&told.pid) {
            problems
                .push(format!("told: {line}: it left its region, so its exit did not complete its trace"));
        }
        if told.end == "panicked" {
            problems.push(format!("told: {line}"));
        }
        tally.children += u64::from(!told.is_parent());
        tally.recording += u64::from(!told.is_parent() && told.steps.values().any(|steps| *steps > 0));
        if let Err(e) = check_told(&told, &traces, parent, mode, has_pid) {
            problems.push(format!("told: {line}: {e}"));
        }
    }
    let all = problems.len();
    problems.truncate(20);
    if all == 0 { Ok(()) } else { Err(format!("{all} problems\n{}", problems.join("\n"))) }
}

/// The trace of a process has the steps that the process told of.
fn check_told(
    told: &Told,
    traces: &HashMap<PathBuf, Content>,
    parent: u32,
    mode: &str,
    has_pid: bool,
) -> Result<(), String> {
    let total: u64 = told.steps.values().sum();
    if told.is_parent() && (mode == "coming" || mode == "recorder") {
        return Ok(()); // more than one trace, or the end of one: each is in order
    }
    let suffix = format!("-{}", told.pid);
    let is_own = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if told.is_parent() && !has_pid { stem == "t" } else { stem.ends_with(&suffix) }
    };
    let own: Vec<_> = traces.iter().filter(|(path, _)| is_own(path)).collect();
    let [(path, content)] = own[..] else {
        let names: Vec<_> = own.iter().map(|(path, _)| path.display()).collect();
        return match own.len() {
            0 if total == 0 => Ok(()),
            _ => Err(format!("the traces of {} (parent {parent}) are {names:?}", told.pid)),
        };
    };
    // Without the number in the path a child is silent, unless the parent had no session: then it has its
    // own.
    if !has_pid
        && !told.is_parent()
        && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("own-"))
    {
        return Err("a child that should be silent has a trace".to_owned());
    }
    for (thread, recorded) in &told.steps {
        let found = content.steps.get(thread).map_or(0, |steps| steps.begun);
        // A thread that a handler interrupted may have begun a step here that it did not count.
        let uncounted = u64::from(told.kind == "returned");
        let is_right =
            (*recorded..=recorded + uncounted).contains(&found) || mode == "recorder" && found <= *recorded;
        if !is_right {
            return Err(format!("thread {thread} told of {recorded} steps, {} has {found}", path.display()));
        }
    }
    Ok(())
}

#[test]
fn forks_of_every_kind_at_any_moment_leave_whole_traces_and_no_child_hangs() {
    let variable = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let children = variable("TORTURE_CHILDREN");
    let is_long = children.is_some();
    let each = CHILDREN[usize::from(!is_long)];
    let from = variable("TORTURE_FROM").unwrap_or(0);
    let rounds = children.unwrap_or(8 * each).div_ceil(each);
    let kinds = std::env::var("TORTURE_KINDS");
    let kinds = kinds.as_deref().unwrap_or(if is_long { LONG } else { SHORT });
    let judge_every = if is_long { 50 } else { 20 };
    let (mut tally, mut failures, began) = (Tally::default(), Vec::new(), Instant::now());
    for number in from..from + rounds {
        if let Err(what) = one(number, kinds, each, judge_every, &mut tally) {
            let again = format!(
                "TORTURE_FROM={number} TORTURE_CHILDREN={each} TORTURE_KINDS={kinds} ci/torture.sh forks"
            );
            println!("round {number}: {what}\nagain: {again}");
            failures.push(again);
        }
        if is_long && (number + 1).is_multiple_of(10) {
            println!("{} children, {:.0?}: {tally:?}", (number + 1 - from) * each, began.elapsed());
        }
    }
    println!("{tally:?}, {:.1?}", began.elapsed());
    assert!(failures.is_empty(), "{} of {rounds} processes failed:\n{}", failures.len(), failures.join("\n"));
    // Programs that were started tell nothing; their traces do.
    let tells = kinds.split(',').any(|kind| !matches!(kind, "spawn" | "exec"));
    let records = kinds.split(',').any(|kind| kind == "fork");
    assert!((!tells || tally.children > 0) && (!records || tally.recording > 0), "{tally:?}");
}
