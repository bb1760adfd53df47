//! `hairline explain` finds the cause that was planted in the requests of an async server, and no other one.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use hairline_tests::programs;

use super::{hairline, run, stderr, without_tracing};

/// How often a program is recorded if others have its processors.
const RECORDINGS: u32 = 5;

/// What only one of the causes is.
const CAUSES: [&str; 10] = [
    "lock `cache`",
    "semaphore",
    "channel",
    "notification",
    "waiting for a worker",
    "inside of them",
    "sleep",
    "computing",
    "no free core",
    "not known",
];

/// User and group of `nobody`.
const NOBODY: u32 = 65534;

/// Records the program `causes` as `nobody` where this test runs as root, with and without the states of
/// threads. Requires the words in the first five lines, and no other cause.
#[track_caller]
fn require(cause: &str, words: &[&str]) {
    require_each(cause, [words, words]);
}

/// The same, with the words for a trace without the states of threads, and for one with them.
#[track_caller]
fn require_each(cause: &str, words: [&[&str]; 2]) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let is_root = std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).is_ok();
    let copy = folder.path().join("causes"); // that `nobody` can execute
    programs::copy(env!("CARGO_BIN_EXE_causes"), &copy);
    for (file, has_states) in [("t.pftrace", false), ("t.fxt", true), ("t.fxt", false), ("t.pftrace", true)] {
        let Some(refused) = record(&copy, cause, file, has_states, is_root) else { return };
        let has_states = has_states && !refused;
        let output = run(hairline(folder.path()).args(["explain", file, "web/request"]));
        assert!(output.status.success(), "{}", stderr(&output));
        crate::json::parse("explain", &run(hairline(folder.path()).args(["explain", "--json", file])).stdout);
        let text = String::from_utf8(output.stdout).expect("text");
        let first = text.lines().take(5).collect::<Vec<_>>().join("\n");
        let (words, of) = (words[usize::from(has_states)], format!("{cause}, {file}, states: {has_states}"));
        for word in words {
            assert!(first.contains(word), "{of}: no {word:?} in the first lines of\n{text}");
        }
        let is_planted = |cause: &str| words.iter().any(|word| word.contains(cause));
        for other in CAUSES.iter().filter(|other| !is_planted(other)) {
            assert!(!first.contains(other), "{of}: {other:?} in the first lines of\n{text}");
        }
        assert_eq!(first.matches("Cause:").count(), 1, "{of}: {text}");
    }
}

/// Records it. Returns whether the states of threads were refused; `None` if the cause is not to be had here.
#[track_caller]
fn record(copy: &Path, cause: &str, file: &str, has_states: bool, is_root: bool) -> Option<bool> {
    for recording in 1.. {
        let mut program = Command::new(copy);
        without_tracing(&mut program);
        program.current_dir(copy.parent().expect("its folder")).arg(cause).env("HAIRLINE", file);
        if is_root {
            program.uid(NOBODY).gid(NOBODY);
        }
        if has_states {
            program.env("HAIRLINE_SCHED", "on");
        }
        let recorded = run(&mut program);
        assert!(recorded.status.success(), "{}", stderr(&recorded));
        if recorded.stdout.starts_with(b"no disk") {
            eprintln!("{cause}: not tested, the folder of temporary files is on no disk");
            return None;
        }
        if recorded.stdout.is_empty() || recording == RECORDINGS {
            return Some(stderr(&recorded).contains("are not recorded"));
        }
    }
    None
}

#[test]
fn a_lock_of_a_thread() {
    for cause in ["std", "parking_lot"] {
        let words = [
            "In their polls,",
            "Cause: waiting for the lock `cache`.",
            ", at tests/src/bin/causes.rs:",
            "Why: held by the thread rebuilder (",
        ];
        require(cause, &words);
    }
}

#[test]
fn an_async_lock() {
    let words = [
        "Cause: waiting for the lock `cache`.",
        "in itself, not in an inner interval, at tests/src/bin/causes.rs:",
        "Why: held by 2 tasks rebuild, at tests/src/bin/causes.rs:",
        ", inside `load`, for ",
    ];
    require("mutex", &words);
}

#[test]
fn an_exhausted_semaphore() {
    require("semaphore", &["Cause: waiting for a permit of the semaphore `connections`."]);
}

#[test]
fn a_full_channel() {
    let words = [
        "Cause: waiting for room in the channel `jobs`.",
        "Why: the channel was full; woken on the thread causes (",
    ];
    require("channel", &words);
}

#[test]
fn a_poll_of_another_task_that_blocks_the_worker() {
    let words = [
        "Cause: waiting for a worker.",
        "Why: meanwhile the workers polled `tests/src/bin/causes.rs:",
        " (2 polls, ",
    ];
    require("blocking", &words);
}

#[test]
fn a_slow_nested_future() {
    require("nested", &["Cause: intervals inside of them, most of all `ask`.", "inside `ask`."]);
}

#[test]
fn a_long_queue_of_one_worker() {
    let words = [
        "Cause: waiting for a worker.",
        "Why: meanwhile the workers polled `job` for ",
        " polls, the longest of ",
    ];
    require("queue", &words);
}

#[test]
fn a_timer_without_an_interval_of_its_own() {
    let words = [
        "Cause: not known",
        "Between them they wait for something that is no interval inside of them. The runtime wakes them then \
         (`parked`): a timer has run out, or a socket is ready.",
    ];
    require("timer", &words);
}

#[test]
fn an_answer_of_another_process() {
    let words = [
        "Cause: not known",
        "Between them they wait for something that is no interval inside of them. The thread reader (",
    ];
    require("downstream", &words);
}

/// Without the states of threads, nothing is known of a slice on a thread.
const NOT_KNOWN: &[&str] = &["In their polls,", "Cause: not known, because the trace has no scheduling"];

#[test]
fn other_programs_that_have_the_processors() {
    let with =
        ["In their polls,", "Cause: no free core.", "Why: not known, because the trace has no thread on"];
    require_each("neighbour", [NOT_KNOWN, &with]);
}

#[test]
fn a_disk() {
    require_each("fsync", [NOT_KNOWN, &["In their polls,", "Cause: sleep.", "a blocking call in it"]]);
}

#[test]
fn many_allocations() {
    require_each("allocations", [NOT_KNOWN, &["In their polls,", "Cause: computing."]]);
}
