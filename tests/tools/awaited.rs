//! `hairline explain` finds what the requests of an async server waited for.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use hairline::{TraceFuture, trace_scope};
use hairline_tests::calm::when_calm;
use hairline_tests::recording::{FORMATS, Trace, extension, record};
use hairline_tokio::{TraceRuntime, sync};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::explain::explain;
use super::json::parse;
use super::{hairline, run};

pub(super) const REQUESTS: u64 = 60;
pub(super) const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(40);

/// What the work of a request takes: one in twenty is slow.
pub(super) fn work(number: u64) -> Duration {
    if number % 20 == 7 { LONG } else { SHORT }
}

/// Records requests that are handled on two workers, some at once, beside `background`, at each call. Returns
/// the first lines of what `explain` says of them.
pub(super) fn first_lines<R>(background: impl Fn(), request: impl Fn(u64) -> R) -> impl Fn() -> [String; 2]
where
    R: Future<Output = ()> + Send + 'static,
{
    move || traces(&background, &request).each_ref().map(first_lines_of)
}

fn traces<R>(background: impl Fn(), request: impl Fn(u64) -> R) -> [Trace; 2]
where
    R: Future<Output = ()> + Send + 'static,
{
    FORMATS.map(|format| {
        record(format, |_| {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_time().traced().build().expect("a runtime");
            runtime.block_on(async {
                background();
                let mut requests = Vec::new();
                for number in 0..REQUESTS {
                    requests.push(tokio::spawn(request(number).traced_task("web", "request")));
                    sleep(5 * SHORT).await;
                }
                for request in requests {
                    request.await.expect("no panic");
                }
            });
        })
    })
}

pub(super) fn first_lines_of(trace: &Trace) -> String {
    let file = trace.path().file_name().and_then(OsStr::to_str).expect("a name");
    let text = explain(trace.path().parent().expect("a folder"), file, "web/request");
    let first = text.lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(first.starts_with("web/request: 60 intervals"), "{}: {text}", extension(trace.format));
    first
}

/// Requires words in the first lines, and that others are not there. Where the program's threads have no
/// processor, a request waits for something else.
#[track_caller]
pub(super) fn require(first: impl Fn() -> [String; 2], words: &[&str], others: &[&str]) {
    when_calm(|| first().iter().for_each(|first| check(first, words, others)));
}

#[track_caller]
fn check(first: &str, words: &[&str], others: &[&str]) {
    for word in words {
        assert!(first.contains(word), "no {word:?} in\n{first}");
    }
    for other in others {
        assert!(!first.contains(other), "{other:?} in\n{first}");
    }
}

#[test]
fn the_branch_of_a_select_that_loses_is_not_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let handle = async {
                sleep(SHORT).traced("app", "parse").await;
                sleep(work(number)).traced("db", "query").await;
                sleep(SHORT).traced("app", "render").await;
            };
            tokio::select! {
                () = std::future::pending().traced("app", "shutdown") => {}
                () = handle => {}
            }
        },
    );
    require(
        &first,
        &["Cause: intervals inside of them, most of all `query`.", "inside `query`."],
        &["shutdown"],
    );
}

/// A task that answers after a time, inside of the slice `answer`.
pub(super) fn ask(number: u64) -> oneshot::Receiver<()> {
    let (send, receive) = oneshot::channel();
    let answer = async move {
        sleep(work(number)).await;
        trace_scope!("db", "answer");
        let _ = send.send(());
    };
    tokio::spawn(answer.traced_task("db", "query"));
    receive
}

#[test]
fn what_is_dropped_as_the_answer_comes_is_not_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let (send, answer) = oneshot::channel();
            std::thread::spawn(move || {
                std::thread::sleep(work(number));
                trace_scope!("db", "answer");
                let _ = send.send(());
            });
            tokio::select! {
                () = std::future::pending().traced("app", "shutdown") => {}
                _ = answer => {}
            }
        },
    );
    let words =
        ["Cause: what woke them inside `answer`, before `shutdown` was ready.", "`shutdown` was open for "];
    require(&first, &words, &["inside `shutdown`"]);
    let answered = [
        "Cause: the task `query`, which waits for a timer or a socket.",
        "The end of the task `query` wakes them, inside `answer` (",
        "` was open for ",
        " was not ready as they went on: another branch of a `select!` or a timeout came first.",
    ];
    let reload = Arc::new(sync::Notify::named("reload"));
    let cache = Arc::new(sync::Mutex::named("cache", ()));
    let _held = cache.try_lock().expect("free");
    let first = first_lines(
        || {},
        |number| {
            let reload = Arc::clone(&reload);
            async move {
                let answer = ask(number);
                tokio::select! {
                    () = reload.notified() => {}
                    _ = answer => {}
                }
            }
        },
    );
    require(&first, &answered, &["waiting for the notification"]);
    let first = first_lines(
        || {},
        |number| {
            let cache = Arc::clone(&cache);
            async move {
                let answer = ask(number);
                tokio::select! {
                    _ = cache.lock() => {}
                    _ = answer => {}
                }
            }
        },
    );
    require(&first, &answered, &["waiting for the lock"]);
}

#[test]
fn a_lock_that_is_not_had_in_time_is_the_cause() {
    let cache = Arc::new(sync::Mutex::named("cache", ()));
    let _held = cache.try_lock().expect("free");
    let first = first_lines(
        || {},
        |number| {
            let cache = Arc::clone(&cache);
            async move {
                let _ = timeout(work(number), cache.lock()).await;
            }
        },
    );
    let words = [
        "Cause: waiting for the lock `cache`, or for what was ready before it.",
        "the waits were dropped, as after a timeout, or as something else was ready.",
    ];
    require(&first, &words, &[]);
}

/// The time of intervals of a name in a trace, and that without what is inside of them.
fn total_and_own(trace: &Trace, name: &str) -> (Duration, Duration) {
    let folder = trace.path().parent().expect("a folder");
    let output = run(hairline(folder).args(["stats", "--by", "interval", "--json"]).arg(trace.path()));
    let json = parse("stats", &output.stdout);
    let mut rows = json["intervals"].as_array().expect("intervals").iter();
    let row = rows.find(|row| row["interval"] == name).expect("the row");
    let [total, own] = ["total_ns", "self_ns"].map(|key| row[key].as_u64().expect("a number"));
    (Duration::from_nanos(total), Duration::from_nanos(own))
}

#[test]
fn a_future_that_another_task_polls_on_is_inside_up_to_the_end() {
    let traces = traces(
        || {},
        |number| async move {
            let mut fetch = Box::pin(sleep(2 * work(number)).traced("net", "fetch"));
            if timeout(LONG, &mut fetch).await.is_err() {
                tokio::spawn(fetch);
            }
        },
    );
    let words = ["Cause: a timer or a socket, which was ready before `fetch`.", "`fetch` was open for "];
    for trace in &traces {
        check(&first_lines_of(trace), &words, &[]);
        let (total, own) = total_and_own(trace, "request");
        assert!(total > 3 * LONG && own < total / 4, "{:?}: {own:?} of {total:?}", trace.format);
    }
}

#[test]
fn a_future_of_another_task_is_not_what_a_request_waits_for() {
    let first = first_lines(
        || {},
        |number| async move {
            tokio::spawn(sleep(2 * LONG).traced("app", "audit"));
            sleep(work(number)).await;
        },
    );
    let partial = "Tasks that are not spawned through hairline, as those of libraries, are not in the trace: with \
                   `--cfg tokio_unstable` they are.";
    let words = ["Cause: not known", "a timer has run out", partial];
    require(&first, if cfg!(tokio_unstable) { &words[..2] } else { &words }, &["audit"]);
}

#[test]
fn the_last_wake_of_many_is_named() {
    let (ask, asked) = std::sync::mpsc::channel::<(u64, oneshot::Sender<()>)>();
    let compile = move || {
        for (number, answer) in asked {
            trace_scope!("app", "compile");
            std::thread::sleep(work(number));
            let _ = answer.send(());
        }
    };
    let compiler = std::thread::Builder::new().name("compiler".to_owned()).spawn(compile).expect("a thread");
    let first = first_lines(
        || {},
        |number| {
            let ask = ask.clone();
            async move {
                let (send, mut answer) = oneshot::channel();
                ask.send((number, send)).expect("it receives");
                let mut beats = tokio::time::interval(4 * SHORT);
                loop {
                    tokio::select! {
                        _ = &mut answer => break,
                        _ = beats.tick() => {}
                    }
                }
            }
        },
    );
    let last = ["The last wake, after which they end, is by the thread compiler (", "), inside `compile`."];
    require(first, &last, &[]);
    drop(ask);
    compiler.join().expect("no panic");
    let first = first_lines(
        || {},
        |number| async move {
            for _ in 0..work(number).as_millis() {
                sleep(SHORT).await;
            }
        },
    );
    require(&first, &["a timer has run out"], &["The last wake"]);
}

/// Another runtime, with one worker and one thread for calls that block.
fn of_one_thread() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime
        .worker_threads(1)
        .max_blocking_threads(1)
        .thread_name("other")
        .traced()
        .build()
        .expect("a runtime")
}

#[test]
fn a_task_that_is_awaited_and_waits_for_a_worker() {
    let other = of_one_thread();
    let first = first_lines(
        || {},
        |number| {
            let block = async move { std::thread::sleep(work(number)) };
            other.spawn(block.traced_task("db", "vacuum"));
            let query = other.spawn(tokio::task::yield_now().traced_task("db", "query"));
            async move { query.await.expect("no panic") }
        },
    );
    let words = [
        "Cause: perhaps the task `query`, which waits for a worker.",
        "The end of the task `query`, or what its thread did right after it, wakes them (",
        "It could run, but no worker was free, for ",
        "Meanwhile its thread polled `vacuum`, for ",
    ];
    require(&first, &words, &["waiting for a worker"]);
}

#[test]
fn a_call_that_waits_for_the_threads_of_calls_that_block() {
    let other = of_one_thread();
    let first = first_lines(
        || {},
        |number| {
            let _inside = other.enter();
            hairline_tokio::spawn_blocking(move || std::thread::sleep(work(number)));
            let hash = hairline_tokio::spawn_blocking(|| {});
            async move { hash.await.expect("no panic") }
        },
    );
    let words = [
        "Cause: the call `tests/tools/awaited.rs:",
        "`, which waits for a thread of the blocking pool.",
        "Meanwhile its thread polled `tests/tools/awaited.rs:",
    ];
    require(&first, &words, &[]);
}

#[test]
fn a_task_that_is_awaited_and_waits_for_a_lock() {
    let first = first_lines(
        || {},
        |number| async move {
            let cache = Arc::new(sync::Mutex::named("cache", ()));
            let held = Arc::clone(&cache).lock_owned().await;
            let query = async move { drop(cache.lock().await) };
            let query = tokio::spawn(query.traced_task("db", "query"));
            let refresh = async move {
                sleep(work(number)).await;
                drop(held);
            };
            tokio::spawn(refresh.traced_task("db", "refresh"));
            query.await.expect("no panic");
        },
    );
    let words =
        ["Cause: perhaps the task `query`, which waits for `cache`.", "It was inside `wait: cache` for "];
    require(&first, &words, &["Cause: waiting for the lock"]);
}

#[test]
fn a_task_or_call_that_computes_is_named_by_those_that_await_it() {
    let first = first_lines(
        || {},
        |number| async move {
            let ranked = async move {
                sleep(SHORT).await;
                std::thread::sleep(work(number));
            };
            tokio::spawn(ranked.traced_task("app", "ranker")).await.expect("no panic");
        },
    );
    let words =
        ["Cause: perhaps the task `ranker`, most of all its last poll.", "The end of the task `ranker`, or "];
    require(&first, &words, &["not spawned through"]);
    let first = first_lines(
        || {},
        |number| async move {
            hairline_tokio::spawn_blocking(move || std::thread::sleep(work(number))).await.expect("no panic");
        },
    );
    require(&first, &["Cause: the call `", "which ran so long.", "It ran for "], &["not spawned through"]);
}
