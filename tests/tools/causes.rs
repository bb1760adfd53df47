//! `hairline explain` finds the cause that was planted in the requests of an async server, and no other one.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

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

/// Records the program `causes`, and requires the words in the first five lines, and no other cause.
#[track_caller]
fn require(cause: &str, words: &[&str]) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for file in ["t.pftrace", "t.fxt"] {
        let folder = tempfile::tempdir().expect("a folder");
        for recording in 1.. {
            let mut program = Command::new(env!("CARGO_BIN_EXE_causes"));
            without_tracing(&mut program);
            let recorded = run(program.current_dir(folder.path()).arg(cause).env("HAIRLINE", file));
            assert!(recorded.status.success(), "{}", stderr(&recorded));
            if recorded.stdout.is_empty() || recording == RECORDINGS {
                break;
            }
        }
        let output = run(hairline(folder.path()).args(["explain", file, "web/request"]));
        assert!(output.status.success(), "{}", stderr(&output));
        crate::json::parse("explain", &run(hairline(folder.path()).args(["explain", "--json", file])).stdout);
        let text = String::from_utf8(output.stdout).expect("text");
        let first = text.lines().take(5).collect::<Vec<_>>().join("\n");
        for word in words {
            assert!(first.contains(word), "{cause}, {file}: no {word:?} in the first lines of\n{text}");
        }
        let is_planted = |cause: &str| words.iter().any(|word| word.contains(cause));
        for other in CAUSES.iter().filter(|other| !is_planted(other)) {
            assert!(!first.contains(other), "{cause}, {file}: {other:?} in the first lines of\n{text}");
        }
        assert_eq!(first.matches("Cause:").count(), 1, "{cause}, {file}: {text}");
    }
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
        ", inside `load`, as they began to wait.",
    ];
    require("mutex", &words);
}

#[test]
fn an_exhausted_semaphore() {
    require("semaphore", &["Cause: waiting for a permit of the semaphore `connections`."]);
}

#[test]
fn a_full_channel() {
    require("channel", &["Cause: waiting for room in the channel `jobs`.", "the channel was full"]);
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
