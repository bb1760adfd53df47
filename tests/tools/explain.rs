//! `hairline explain` finds the cause that was planted in a program, in what the program recorded itself.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hairline::{TraceFuture, sync, trace_scope};
use hairline_tests::calm::when_calm;
use hairline_tests::recording::{FORMATS, Trace, record};

use super::json::parse;
use super::{hairline, run, stderr, without_tracing};

/// How often a program is recorded if others have its core.
const RECORDINGS: u32 = 5;

/// Records the program `slow` with scheduling, and requires the words in the first five lines. Without
/// permission for the kernel's events, there is nothing to explain.
/// The programs run one after the other: they would take each other's core. If yet other programs do, that is
/// the true cause of the slowest slices, and the program is recorded again.
#[track_caller]
fn require(cause: &str, name: &str, words: &[&str]) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["t.pftrace", "t.fxt"] {
        let mut recordings = 0;
        loop {
            let mut program = Command::new(env!("CARGO_BIN_EXE_slow"));
            without_tracing(&mut program);
            program.current_dir(folder.path()).args([cause, file]);
            let recorded = run(&mut program);
            assert!(recorded.status.success(), "{}", stderr(&recorded));
            let text = explain(folder.path(), file, name);
            if text.contains("no scheduling") {
                eprintln!("skipped: {}", stderr(&recorded));
                return;
            }
            recordings += 1;
            let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
            let Some(missing) = words.iter().find(|word| !first.contains(**word)) else { break };
            let is_disturbed = first.contains(NO_CORE) && !words.contains(&NO_CORE);
            assert!(
                is_disturbed && recordings < RECORDINGS,
                "{file}: no {missing:?} in the first lines of\n{text}"
            );
        }
    }
}

const NO_CORE: &str = "Cause: no free core.";

pub(super) fn explain(folder: &Path, file: &str, name: &str) -> String {
    let output = run(hairline(folder).args(["explain", file, name]));
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn lock_contention() {
    let words = ["Cause: sleep.", "inside `lookup`", "end when `rebuild` ends on the thread rebuilder"];
    require("lock", "net/request", &words);
}

#[test]
fn the_end_of_a_thread() {
    let words = ["Cause: sleep.", "sleeps end as the thread renderer (", ") ends"];
    // On a busy machine the thread that waits runs much later.
    when_calm(|| require("join", "net/request", &words));
}

#[test]
fn cpu_starvation() {
    require("starvation", "net/request", &[NO_CORE, "`hog ("]);
}

#[test]
fn a_slow_disk() {
    require("disk", "net/request", &["Cause: sleep.", "inside `sync`", "a disk"]);
}

#[test]
fn a_blocking_call_in_a_poll() {
    require("blocking", "net/handler", &["Cause: sleep.", "a poll of an async task", "a blocking call"]);
}

#[test]
fn a_slow_dependency() {
    require("dependency", "net/request", &["Cause: sleep.", "inside `inventory`", "the network"]);
}

/// The first lines of what `explain` says of the requests of a program, in both formats.
fn of_requests(cause: &str) -> [String; 2] {
    ["t.pftrace", "t.fxt"].map(|file| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Command::new(env!("CARGO_BIN_EXE_slow"));
        without_tracing(&mut program);
        let recorded = run(program.current_dir(folder.path()).args([cause, file]));
        assert!(recorded.status.success(), "{}", stderr(&recorded));
        let text = explain(folder.path(), file, "web/request");
        let first = text.lines().take(5).collect::<Vec<_>>().join("\n");
        assert!(first.starts_with("web/request: 100 intervals"), "{file}: {text}");
        first
    })
}

#[test]
fn an_interval_inside_of_a_request() {
    for first in of_requests("nested") {
        assert!(first.contains("Cause: intervals inside of them, most of all `ask`."), "{first}");
        // A busy machine takes the processor away between the two.
        let share = first.split(" %) inside `ask`.").next().and_then(|before| before.rsplit('(').next());
        let share: u32 = share.and_then(|share| share.parse().ok()).unwrap_or_default();
        assert!(share >= 95, "{first}");
    }
}

#[test]
fn the_memory_of_slices_and_who_allocated_what_is_live() {
    for file in ["t.pftrace", "t.fxt"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Command::new(env!("CARGO_BIN_EXE_hoarder"));
        without_tracing(&mut program);
        program.env("HAIRLINE", file).env("HAIRLINE_HEAP", "256K,peak:2M");
        let recorded = run(program.current_dir(folder.path()).arg("serve"));
        assert!(recorded.status.success(), "{}", stderr(&recorded));
        let text = explain(folder.path(), file, "hoarder/request");
        let memory = "Memory: one of the slowest makes 2.0 large allocations of 6.0 MiB together on average, typical \
                      ones make none.\n";
        assert!(text.contains(memory) && !text.contains("Heap profile"), "{file}: {text}");
        let output = run(hairline(folder.path()).args(["explain", file]));
        let text = String::from_utf8(output.stdout).expect("text");
        let heap =
            text.split("\nHeap profile, an estimate: ").nth(1).unwrap_or_else(|| panic!("{file}: {text}"));
        assert!(heap.starts_with("12.") && heap.contains(" since its first dump, "), "{file}: {heap}");
        let store = heap.lines().find(|line| line.starts_with("hoarder::store ")).expect("the function");
        let cells: Vec<&str> = store.split_whitespace().collect();
        assert_eq!(cells[1..3], ["12.0", "MiB"], "{file}: {store}");
        assert_eq!(cells[5..], ["+6.0", "MiB", "12.0", "MiB"], "{file}: {store}");
        let output = run(hairline(folder.path()).args(["explain", "--json", file]));
        let json = parse("explain", &output.stdout);
        let first = &json["heap"]["functions"][0];
        let mebibytes = |key: &str| first[key].as_u64().expect("a number") >> 20; // an estimate: some bytes more
        assert_eq!(first["name"], "hoarder::store", "{file}");
        assert_eq!(["live_bytes", "allocated_bytes", "grown_bytes"].map(mebibytes), [12, 12, 6]);
        let requests = json["names"].as_array().expect("names").iter().find(|of| of["name"] == "request");
        let slowest = &requests.expect("the requests")["slowest"];
        assert_eq!(
            (&slowest["large_allocations"], &slowest["large_allocated_bytes"]),
            (&2.into(), &6_291_456.into())
        );
    }
}

#[test]
fn a_request_that_waits_between_its_polls() {
    for first in of_requests("between") {
        assert!(first.contains("Cause: not known"), "{first}");
        assert!(first.contains("Between them they wait for something that is no interval"), "{first}");
    }
}

/// The first lines of what `explain` says of the waits `lock/wait: NAME` that `program` records.
#[track_caller]
fn require_waits(name: &str, words: &[&str], program: impl Fn()) {
    // On a busy machine the threads of the program wait for processors too.
    when_calm(|| {
        for format in FORMATS {
            require_first_lines(&record(format, |_| program()), name, words);
        }
    });
}

/// Requires the words in this order in the first lines of what `explain` says of the waits `lock/wait: NAME`.
#[track_caller]
fn require_first_lines(trace: &Trace, name: &str, words: &[&str]) {
    let (folder, file) = (trace.path().parent().expect("a folder"), trace.path().file_name());
    let file = file.and_then(std::ffi::OsStr::to_str).expect("a name");
    let text = explain(folder, file, &format!("lock/wait: {name}"));
    let first = text.lines().take(5).collect::<Vec<_>>().join("\n");
    let mut rest = first.as_str();
    for word in words {
        let found = rest.split_once(word);
        (_, rest) = found.unwrap_or_else(|| panic!("{file}: no {word:?} in the first lines of\n{text}"));
    }
}

/// Runs a thread of this name.
fn named<'s>(scope: &'s thread::Scope<'s, '_>, name: &str, work: impl FnOnce() + Send + 's) {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread");
}

const MOMENT: Duration = Duration::from_millis(10);

#[test]
fn who_notifies_is_named() {
    let words =
        ["Cause: waiting for the condition variable `jobs`.", "Why: notified by the thread producer ("];
    let inside = [&words[..], &["inside `produce`"]].concat();
    require_waits("jobs", &inside, || {
        let (jobs, added) = (sync::Mutex::named("queue", 0), sync::Condvar::named("jobs"));
        let is_waiting = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            named(scope, "producer", || {
                trace_scope!("app", "produce");
                is_waiting.wait();
                thread::sleep(MOMENT);
                *jobs.lock().expect("no panic") += 1;
                added.notify_one();
                thread::sleep(MOMENT); // the wait ends in the slice, also on a busy machine
            });
            let guard = jobs.lock().expect("no panic");
            is_waiting.wait();
            drop(added.wait_while(guard, |jobs| *jobs == 0).expect("no panic"));
        });
    });
}

#[test]
fn the_notification_after_which_the_condition_holds_is_named() {
    let words = ["condition variable `jobs`.", "Why: notified by the thread producer (", "inside `produce`"];
    require_waits("jobs", &words, || {
        let (jobs, added) = (sync::Mutex::named("queue", 0), sync::Condvar::named("jobs"));
        let is_waiting = std::sync::Barrier::new(3);
        thread::scope(|scope| {
            named(scope, "noise", || {
                trace_scope!("app", "noise");
                is_waiting.wait();
                for _ in 0..3 {
                    thread::sleep(MOMENT);
                    added.notify_all();
                }
            });
            named(scope, "producer", || {
                trace_scope!("app", "produce");
                is_waiting.wait();
                thread::sleep(4 * MOMENT);
                *jobs.lock().expect("no panic") += 1;
                added.notify_all();
                thread::sleep(MOMENT);
            });
            let guard = jobs.lock().expect("no panic");
            is_waiting.wait();
            drop(added.wait_while(guard, |jobs| *jobs == 0).expect("no panic"));
        });
    });
}

#[test]
fn the_time_to_the_lock_after_a_notification_is_not_that_of_the_notification() {
    let words = [
        "Cause: waiting for the condition variable `jobs`.",
        "Why: notified, but they did not have its lock again yet, for ",
        "; notified by the thread producer (",
    ];
    require_waits("jobs", &words, || {
        let (jobs, added) = (sync::Mutex::named("queue", 0), sync::Condvar::named("jobs"));
        let is_waiting = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            named(scope, "producer", || {
                is_waiting.wait();
                thread::sleep(MOMENT);
                let mut number = jobs.lock().expect("no panic");
                *number += 1;
                added.notify_one();
                thread::sleep(4 * MOMENT);
            });
            let guard = jobs.lock().expect("no panic");
            is_waiting.wait();
            drop(added.wait_while(guard, |jobs| *jobs == 0).expect("no panic"));
        });
    });
}

#[test]
fn a_wait_whose_time_runs_out_is_for_no_lock_and_has_no_holder() {
    let words = [
        "Cause: waiting for the condition variable `late`.",
        "Why: the trace has no notification that ended the waits.",
    ];
    require_waits("late", &words, || {
        let (jobs, added) = (sync::Mutex::named("queue", 0), sync::Condvar::named("late"));
        let guard = jobs.lock().expect("no panic");
        drop(added.wait_timeout(guard, 2 * MOMENT).expect("no panic"));
    });
}

#[test]
fn a_barrier_and_an_initialization_are_no_locks() {
    let words = ["Cause: waiting for the barrier `phase`.", "Why: released by the thread slow ("];
    require_waits("phase", &words, || {
        let phase = sync::Barrier::named("phase", 2);
        thread::scope(|scope| {
            named(scope, "slow", || {
                thread::sleep(2 * MOMENT);
                phase.wait();
            });
            phase.wait();
        });
    });
    let words = ["Cause: waiting for the initialization `table`.", "Why: held by the thread first ("];
    require_waits("table", &words, || {
        let (table, is_begun) = (sync::Once::named("table"), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            named(scope, "first", || {
                table.call_once(|| {
                    is_begun.wait();
                    thread::sleep(2 * MOMENT);
                });
            });
            is_begun.wait();
            table.call_once(|| unreachable!("it is initialized"));
        });
    });
}

/// As [`require_waits`], for a program that returns whether it took the locks in the order that is meant.
#[track_caller]
fn require_waits_in_order(name: &str, words: &[&str], program: impl Fn() -> bool) {
    when_calm(|| {
        for format in FORMATS {
            for attempt in 1.. {
                let mut is_in_order = false;
                let trace = record(format, |_| is_in_order = program());
                if is_in_order {
                    require_first_lines(&trace, name, words);
                    break;
                }
                assert!(attempt < 50, "the threads never took the locks in this order");
            }
        }
    });
}

/// Takes a mutex that another thread is about to release, and does not wait.
fn snatch<T>(mutex: &sync::Mutex<T>) -> sync::MutexGuard<'_, T> {
    loop {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        std::hint::spin_loop();
    }
}

#[test]
fn of_those_that_held_a_lock_in_turn_the_one_that_held_it_longest_is_named() {
    let words = [
        "Cause: waiting for the lock `journal`.",
        "Why: held by the thread compact (",
        ", inside `squeeze`, for ", // before the thread that had it first and last
    ];
    require_waits_in_order("journal", &words, || {
        let (journal, turn) = (sync::Mutex::named("journal", Vec::new()), AtomicU32::new(0));
        let await_turn = |number| {
            while turn.load(Ordering::Acquire) < number {
                std::hint::spin_loop();
            }
        };
        thread::scope(|scope| {
            named(scope, "append", || {
                let mut first = journal.lock().expect("no panic");
                first.push("append");
                turn.store(1, Ordering::Release);
                thread::sleep(MOMENT);
                turn.store(2, Ordering::Release);
                drop(first);
                await_turn(3);
                snatch(&journal).push("append");
            });
            named(scope, "compact", || {
                trace_scope!("app", "squeeze");
                await_turn(2);
                let mut second = snatch(&journal);
                second.push("compact");
                thread::sleep(4 * MOMENT);
                turn.store(3, Ordering::Release);
                drop(second);
            });
            await_turn(1);
            let order = journal.lock().expect("no panic").join(" ");
            order == "append compact append"
        })
    });
}

#[test]
fn of_readers_and_a_writer_that_waits_the_reader_is_named() {
    let words = [
        "Cause: waiting for the lock `table`.",
        "Why: held by the thread reporter (",
        ", inside `scan`, for ", // before the writer, which released it last
    ];
    require_waits_in_order("table", &words, || {
        let (table, is_read) = (sync::RwLock::named("table", 0), std::sync::Barrier::new(3));
        thread::scope(|scope| {
            named(scope, "reporter", || {
                trace_scope!("db", "scan");
                let _guard = table.read().expect("no panic");
                is_read.wait();
                thread::sleep(4 * MOMENT);
            });
            named(scope, "writer", || {
                is_read.wait();
                *table.write().expect("no panic") += 1;
            });
            is_read.wait();
            thread::sleep(MOMENT);
            *table.read().expect("no panic") == 1
        })
    });
}

#[test]
fn a_lock_whose_guard_goes_to_another_task_is_released_by_that_one() {
    let words = [
        "Cause: waiting for the lock `cache`.",
        "Why: taken by the task acceptor (",
        " and released by the task streamer (",
    ];
    require_waits("cache", &words, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let cache = Arc::new(hairline_tokio::sync::Mutex::named("cache", 0));
            let taken = Arc::clone(&cache);
            let acceptor = async move {
                let guard = taken.lock_owned().await;
                let stream = async move {
                    let _guard = guard;
                    tokio::time::sleep(4 * MOMENT).await;
                };
                tokio::spawn(stream.traced_task("app", "streamer")).await.expect("no panic");
            };
            let acceptor = tokio::spawn(acceptor.traced_task("app", "acceptor"));
            tokio::time::sleep(MOMENT).await;
            let waiter = async move { drop(cache.lock().await) };
            tokio::spawn(waiter.traced_task("app", "waiter")).await.expect("no panic");
            acceptor.await.expect("no panic");
        });
    });
}

#[test]
fn of_tasks_that_held_a_lock_in_turn_the_one_that_held_it_longest_is_named() {
    let words = [
        "Cause: waiting for the lock `cache`.",
        "Why: held by the task long (",
        ", inside `rebuild`, for ", // before the task that had it first
    ];
    require_waits("cache", &words, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let cache = Arc::new(hairline_tokio::sync::Mutex::named("cache", 0));
            let holds = |time, name: &'static str| {
                let cache = Arc::clone(&cache);
                async move {
                    let _guard = cache.lock().await;
                    tokio::time::sleep(time).traced("app", name).await;
                }
            };
            let all = [
                tokio::spawn(holds(MOMENT, "begin").traced_task("app", "first")),
                tokio::spawn(holds(8 * MOMENT, "rebuild").traced_task("app", "long")),
                tokio::spawn(holds(MOMENT, "end").traced_task("app", "last")),
            ];
            for task in all {
                task.await.expect("no panic");
            }
        });
    });
}
