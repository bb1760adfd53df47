//! `hairline explain` of async requests: what they waited for, who had it, and what the workers did
//! meanwhile.

use hairline_formats::Value;
use hairline_formats::track_event::{self as te, CustomTrack, EventType, ProcessTrack, TrackUuid};

use crate::planted::{MS, OTHER, Planted, SEQUENCE, SERVER, Shape, explain_both};

/// The tracks of requests, which have the time in the queue too, of waits below them, of a nested life and of
/// waits below that; the same of the task that has the lock.
pub(crate) const REQUEST: u64 = 20;
const WAITS: u64 = 22;
const NESTED: u64 = 23;
const NESTED_WAITS: u64 = 24;
pub(crate) const HOLDER: u64 = 30;
const HOLDER_NESTED: u64 = 32;
/// The tracks of another process have numbers that are larger by this.
const ELSEWHERE: u64 = 100;

fn track(trace: &mut Planted, uuid: u64, parent: u64) {
    let (uuid, parent_uuid) = (TrackUuid(uuid), Some(TrackUuid(parent)));
    let track = CustomTrack { uuid, parent_uuid, name: "life", ..CustomTrack::default() };
    te::custom_descriptor(&mut trace.out, SEQUENCE, &track);
}

/// The tracks of a process.
fn tracks(trace: &mut Planted, process: u64, add: u64) {
    let name = if add == 0 { "server" } else { "other" };
    let of = ProcessTrack { uuid: TrackUuid(process), pid: process as i32, name, cmdline: &[] };
    te::process_descriptor(&mut trace.out, SEQUENCE, &of);
    for (uuid, parent) in [(REQUEST, process), (HOLDER, process)] {
        track(trace, uuid + add, parent);
    }
    for (uuid, parent) in
        [(WAITS, REQUEST), (NESTED, REQUEST), (NESTED_WAITS, NESTED), (HOLDER_NESTED, HOLDER)]
    {
        track(trace, uuid + add, parent + add);
    }
}

/// An interval with arguments.
pub(crate) fn interval(
    trace: &mut Planted,
    track: u64,
    times: (u64, u64),
    name: (&str, &str),
    first: &[(&str, Value<'_>)],
) {
    trace.slice_with(track, times, name, [first, &[]]);
}

fn wait(trace: &mut Planted, track: u64, times: (u64, u64), name: &str, more: &[(&str, Value<'_>)]) {
    let at = ("at", Value::Str("src/lookup.rs:10"));
    interval(trace, track, times, ("lock", name), &[&[at], more].concat());
}

fn held_by(task: i64) -> [(&'static str, Value<'static>); 3] {
    let kind = ("kind", Value::Str("lock"));
    [("held_by_task", Value::I64(task)), ("held_at", Value::Str("src/journal.rs:40")), kind]
}

/// The life of a task that has a lock meanwhile.
fn holder(trace: &mut Planted, add: u64, (from, to): (u64, u64), (name, task): (&str, i64)) {
    interval(trace, HOLDER + add, (from + 1, from + 1000), ("task", "queued"), &[]);
    interval(trace, HOLDER_NESTED + add, (from + 2000, to - 1000), ("db", "load"), &[]);
    interval(trace, HOLDER + add, (from, to), ("cache", name), &[("task", Value::I64(task))]);
}

/// 200 requests of 1 ms, each a task, of which two take 50 ms longer. `plant` gets the time in the middle.
pub(crate) fn requests(mut plant: impl FnMut(&mut Planted, u64)) -> Planted {
    let mut trace = Planted::new();
    tracks(&mut trace, 100, 0);
    for number in 0..200_u32 {
        let start = trace.now;
        let middle = start + MS / 2;
        let slow = if number % 100 == 50 { 50 * MS } else { 0 };
        let end = middle + slow + MS / 2;
        interval(&mut trace, REQUEST, (start + 1, start + 10_000), ("task", "queued"), &[]);
        trace.slice(SERVER, (start + 10_000, middle), "web", "request");
        if slow > 0 {
            plant(&mut trace, middle);
        }
        trace.slice(SERVER, (end - 10_000, end), "web", "request");
        let task = Value::I64(i64::from(number) + 1000);
        interval(&mut trace, REQUEST, (start, end), ("web", "request"), &[("task", task)]);
        trace.now = end + MS;
    }
    trace
}

/// The first five lines of each output, and the whole ones.
pub(crate) fn explained(trace: Planted, name: &str) -> [(String, String); 2] {
    explain_both(&trace.finish(Shape::Nothing), &[name])
        .map(|text| (text.lines().take(5).collect::<Vec<_>>().join("\n"), text))
}

/// Requires these words in the first five lines, and none of those.
#[track_caller]
fn require(plant: impl Fn() -> Planted, words: &[&str], others: &[&str]) {
    for (first, text) in explained(plant(), "web/request") {
        for word in words {
            assert!(first.contains(word), "no {word:?} in the first lines of\n{text}");
        }
        for word in others.iter().chain(&["not known", "Meanwhile", "Polls:"]) {
            assert!(!first.contains(word), "{word:?} in the first lines of\n{text}");
        }
        assert_eq!(first.matches("Cause:").count(), 1, "{text}");
    }
}

fn contended(holders: impl Fn(&mut Planted, u64)) -> Planted {
    requests(|trace, middle| {
        holders(trace, middle);
        wait(trace, WAITS, (middle, middle + 50 * MS), "wait: cache", &held_by(7));
    })
}

#[test]
fn the_lock_and_the_task_that_has_it_are_named() {
    let plant =
        || contended(|trace, middle| holder(trace, 0, (middle - MS, middle + 51 * MS), ("rebuild", 7)));
    let words = [
        "Cause: waiting for the lock `cache`. The slowest 1 % take 50.0 ms longer than a typical one, and they wait \
         for it for 50.0 ms of that.",
        "Where: 50.0 ms (100 %) in itself, not in an inner interval, at src/lookup.rs:10.",
        "Why: held by the task rebuild (7), at src/journal.rs:40, inside `load`, as they began to wait.",
    ];
    require(plant, &words, &[]);
}

#[test]
fn a_wait_below_a_nested_life_is_one_of_the_request() {
    let plant = || {
        requests(|trace, middle| {
            holder(trace, 0, (middle + MS, middle + 51 * MS), ("rebuild", 7));
            wait(trace, NESTED_WAITS, (middle + 2 * MS, middle + 48 * MS), "wait: cache", &held_by(7));
            interval(trace, NESTED, (middle, middle + 50 * MS), ("app", "look up"), &[]);
        })
    };
    let words =
        ["Cause: waiting for the lock `cache`", "46.0 ms of that", "46.0 ms (100 %) inside `look up`"];
    require(plant, &words, &[]);
}

#[test]
fn a_task_that_the_trace_does_not_have_has_its_number() {
    let words = ["held by the task 7, at src/journal.rs:40, as they began to wait."];
    require(|| contended(|_, _| {}), &words, &["inside `"]);
}

#[test]
fn an_interval_of_the_program_with_the_same_argument_is_no_task() {
    let plant = || {
        contended(|trace, middle| {
            holder(trace, 0, (middle - MS, middle + 51 * MS), ("rebuild", 7));
            let parse = (middle + 5000, middle + 6000);
            interval(trace, NESTED, parse, ("app", "parse"), &[("task", Value::I64(7))]);
        })
    };
    require(plant, &["held by the task rebuild (7)"], &["parse"]);
}

#[test]
fn the_task_is_one_of_the_process_of_the_wait() {
    let plant = || {
        let mut trace = contended(|trace, middle| {
            holder(trace, 0, (middle - MS, middle + 51 * MS), ("rebuild", 7));
        });
        tracks(&mut trace, 200, ELSEWHERE);
        let now = trace.now;
        holder(&mut trace, ELSEWHERE, (now, now + MS), ("stranger", 7));
        trace
    };
    require(plant, &["held by the task rebuild (7)"], &["stranger"]);
    let plant = || {
        let mut trace = contended(|_, _| {});
        tracks(&mut trace, 200, ELSEWHERE);
        holder(&mut trace, ELSEWHERE, (1_000 * MS, 2_000 * MS), ("stranger", 7));
        trace
    };
    require(plant, &["held by the task 7, at"], &["stranger", "load"]);
}

#[test]
fn several_holders_have_their_shares() {
    let plant = || {
        requests(|trace, middle| {
            let [first, second, third] = [20, 30, 49].map(|n| middle + n * MS);
            holder(trace, 0, (middle - MS, first), ("rebuild", 7));
            holder(trace, 0, (first + MS, middle + 51 * MS), ("refresh", 8));
            wait(trace, WAITS, (middle, first), "wait: cache", &held_by(7));
            let thread = [("held_by", Value::I64(OTHER as i64)), ("held_at", Value::Str("src/main.rs:3"))];
            wait(trace, WAITS, (first, second), "wait: cache", &thread);
            wait(trace, WAITS, (second, third), "wait: cache", &held_by(8));
            wait(trace, WAITS, (third, middle + 50 * MS), "wait: cache", &[]);
        })
    };
    let words = [
        "held by the task rebuild (7), at src/journal.rs:40, inside `load`, as waits that take 40 % of that time \
         began; held by the task refresh (8), at src/journal.rs:40, inside `load`, as waits that take 38 % of that \
         time began; held by the thread rebuilder (102), at src/main.rs:3, as waits that take 20 % of that time \
         began.",
    ];
    require(plant, &words, &[]);
}

#[test]
fn permits_room_and_notifications_have_their_words() {
    let of = |kind: &'static str, name: &'static str| {
        requests(move |trace, middle| {
            let kind = [("kind", Value::Str(kind)), ("wanted", Value::I64(2))];
            wait(trace, WAITS, (middle, middle + 50 * MS), name, &kind);
        })
    };
    let semaphore = || of("semaphore", "wait: connections");
    require(semaphore, &["Cause: waiting for a permit of the semaphore `connections`."], &["lock"]);
    let channel = || of("channel", "wait: jobs");
    require(channel, &["Cause: waiting for room in the channel `jobs`."], &["lock"]);
    let notification = || of("notification", "wait: stop");
    require(notification, &["Cause: waiting for the notification `stop`."], &["lock"]);
    let both = || {
        requests(|trace, middle| {
            let between = middle + 30 * MS;
            wait(trace, WAITS, (middle, between), "wait: jobs", &[("kind", Value::Str("channel"))]);
            wait(trace, WAITS, (between, middle + 50 * MS), "wait: jobs", &[("kind", Value::Str("lock"))]);
        })
    };
    let words =
        ["waiting for locks and the like, most of all room in the channel `jobs`.", "30.0 ms of that"];
    require(both, &words, &[]);
}

/// Requests that are queued for 50 ms, beside these polls of the worker: name, begin and end after that of
/// the queue.
fn queued(polls: &[(&str, u64, u64)]) -> Planted {
    let mut trace = requests(|trace, middle| {
        interval(trace, REQUEST, (middle, middle + 50 * MS), ("task", "queued"), &[]);
        for (name, from, to) in polls {
            trace.slice(SERVER, (middle + from, middle + to), "app", name);
        }
        trace.slice(SERVER, (middle + 50 * MS, middle + 50 * MS + 10_000), "web", "request");
    });
    let now = trace.now;
    for name in ["blocks", "job"] {
        interval(&mut trace, HOLDER, (now, now + MS), ("app", name), &[]);
    }
    trace
}

#[test]
fn the_poll_that_blocks_the_worker_is_named() {
    let words = [
        "Cause: waiting for a worker. The slowest 1 % take 50.0 ms longer than a typical one, and they could run, \
         but no worker polled them, for 50.0 ms of that.",
        "Why: meanwhile the workers polled `blocks` for 98 % of that time (2 polls, the longest of 49.0 ms).",
    ];
    // A scope inside of the poll is not named.
    require(
        || queued(&[("read", MS, 48 * MS), ("blocks", MS / 2, 49 * MS + MS / 2)]),
        &words,
        &["read", "job"],
    );
}

#[test]
fn many_short_polls_are_counted() {
    let polls: Vec<_> = (0..48).map(|n| ("job", n * MS, n * MS + MS - 1000)).collect();
    require(
        || queued(&polls),
        &["polled `job` for 96 % of that time (96 polls, the longest of 999 us)."],
        &[],
    );
}

#[test]
fn what_is_no_poll_of_that_worker_is_not_named() {
    let others = ["polled `", "blocks", "read"];
    // A slice without a life, another worker, and a poll that was over before.
    require(|| queued(&[("read", 0, 50 * MS)]), &["Cause: waiting for a worker."], &others);
    let elsewhere = || {
        let mut trace = queued(&[]);
        trace.slice(OTHER, (1_000 * MS, 2_000 * MS), "app", "blocks");
        trace
    };
    require(elsewhere, &["Cause: waiting for a worker."], &others);
    require(|| queued(&[("blocks", 0, 10 * MS)]), &["Cause: waiting for a worker."], &others);
}

#[test]
fn a_worker_that_was_parked_was_free() {
    let plant = || {
        let mut trace = queued(&[]);
        let starts = [1_000 * MS + 50 * 2 * MS, 1_000 * MS + 150 * 2 * MS + 50 * MS];
        for start in starts {
            trace.slice(SERVER, (start + MS / 2, start + 50 * MS), "tokio", "parked");
        }
        trace
    };
    for (first, text) in explained(plant(), "web/request") {
        assert!(first.contains("had nothing else to do (`parked`) for 99 % of that time"), "{text}");
    }
}

#[test]
fn the_time_in_the_queue_after_the_wake_is_no_wait_for_the_lock() {
    // The lock is free after 10 ms, and a worker after 50.
    let plant = || {
        let mut trace = requests(|trace, middle| {
            holder(trace, 0, (middle - MS, middle + 10 * MS), ("rebuild", 7));
            let queue = (middle + 10 * MS, middle + 50 * MS);
            interval(trace, REQUEST, queue, ("task", "queued"), &[]);
            trace.slice(SERVER, (middle + 10 * MS, middle + 50 * MS - 1000), "app", "blocks");
            trace.slice(SERVER, (middle + 50 * MS, middle + 50 * MS + 10_000), "web", "request");
            wait(trace, WAITS, (middle, middle + 50 * MS + 1000), "wait: cache", &held_by(7));
        });
        let now = trace.now;
        interval(&mut trace, HOLDER, (now, now + MS), ("app", "blocks"), &[]);
        trace
    };
    let words = [
        "Cause: waiting for a worker.",
        "for 40.0 ms of that",
        "They also wait 10.0 ms longer for the lock `cache`: held by the task rebuild (7)",
        "polled `blocks` for 100 % of that time (2 polls, the longest of 40.0 ms)",
    ];
    require(plant, &words, &[]);
}

#[test]
fn waits_at_the_same_time_count_once() {
    // Ten futures wait for 10 ms at once, and 40 ms are for something else.
    let plant = || {
        let mut trace = requests(|trace, middle| {
            for n in 0..10 {
                wait(trace, WAITS + 200 + n, (middle, middle + 10 * MS), "wait: cache", &[]);
            }
        });
        let mut before = Planted::new();
        tracks(&mut before, 100, 0);
        (0..10).for_each(|n| track(&mut before, WAITS + 200 + n, REQUEST));
        trace.out = [before.out, trace.out].concat();
        trace
    };
    for (first, text) in explained(plant(), "web/request") {
        assert!(!first.contains("Cause: waiting"), "{text}");
    }
}

#[test]
fn waits_without_an_end_and_lives_without_any_of_it_say_nothing_of_it() {
    let plant = || {
        let mut trace = requests(|_, _| {});
        let now = trace.now;
        trace.event(REQUEST, (EventType::SliceBegin, now), ("web", "request"), &[("task", Value::I64(5))]);
        trace.event(WAITS, (EventType::SliceBegin, now + MS), ("lock", "wait: cache"), &held_by(7));
        trace.event(REQUEST, (EventType::SliceBegin, now + MS), ("task", "queued"), &[]);
        trace.slice(OTHER, (now, now + 100 * MS), "app", "late");
        trace
    };
    for (first, text) in explained(plant(), "web/request") {
        assert!(first.contains("web/request: 200 intervals"), "{text}");
        assert!(first.contains("in itself, not in an inner interval"), "{text}");
        assert!(!text.contains("cache") && !first.contains("waiting for"), "{text}");
        assert!(text.contains("3 slices without an end left out"), "{text}");
    }
}

#[test]
fn json_has_the_tasks_and_the_polls() {
    let plant = contended(|trace, middle| holder(trace, 0, (middle - MS, middle + 51 * MS), ("rebuild", 7)));
    for text in explain_both(&plant.finish(Shape::Nothing), &["web/request", "--json"]) {
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let cause = &all["names"][0]["cause"];
        assert_eq!(cause["state"], "waiting for a lock", "{text}");
        let lock = &cause["locks"][0];
        assert_eq!((lock["name"].as_str(), lock["kind"].as_str()), (Some("cache"), Some("lock")));
        assert_eq!(lock["waiters"][0]["at"], "src/lookup.rs:10");
        let holder = &lock["holders"][0];
        assert_eq!((holder["task"].as_u64(), holder["task_name"].as_str()), (Some(7), Some("rebuild")));
        assert_eq!(
            (holder["at"].as_str(), holder["inside"].as_str()),
            (Some("src/journal.rs:40"), Some("load"))
        );
        assert_eq!((holder["how"].as_str(), holder["ns"].as_u64()), (Some("held"), Some(100 * MS)));
    }
    let plant = queued(&[("blocks", MS / 2, 49 * MS + MS / 2)]);
    for text in explain_both(&plant.finish(Shape::Nothing), &["web/request", "--json"]) {
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let cause = &all["names"][0]["cause"];
        assert_eq!(cause["state"], "waiting for a worker", "{text}");
        let polls = &cause["queue"]["polls"][0];
        assert_eq!((polls["name"].as_str(), polls["count"].as_u64()), (Some("blocks"), Some(2)), "{text}");
        assert_eq!((polls["ns"].as_u64(), polls["longest_ns"].as_u64()), (Some(98 * MS), Some(49 * MS)));
    }
}

#[test]
fn a_lock_that_holds_up_few_polls_is_named_for_the_slowest() {
    let plant = || {
        let mut trace = Planted::new();
        tracks(&mut trace, 100, 0);
        for number in 0..200_u64 {
            let start = trace.now;
            let poll = start + 2 * MS;
            let end = poll + MS / 10 + if number % 100 == 50 { 50 * MS } else { number * 100 };
            let name = ("web", "request");
            trace.flow = Some(number + 1);
            trace.slice(SERVER, (start, start + MS / 10), name.0, name.1);
            trace.event(SERVER, (EventType::SliceBegin, poll), name, &[]);
            trace.flow = None;
            if number % 100 == 50 {
                let held = [("held_by", Value::I64(OTHER as i64)), ("held_at", Value::Str("src/main.rs:3"))];
                wait(&mut trace, SERVER, (poll + 1000, poll + 50 * MS), "wait: cache", &held);
            }
            trace.event(SERVER, (EventType::SliceEnd, end), name, &[]);
            interval(&mut trace, REQUEST, (start, end), name, &[("task", Value::I64(number as i64))]);
            trace.now = end + MS;
        }
        trace
    };
    let words = [
        "In their polls, which take 96 % of the time of the slowest (2 polls in each):",
        "Cause: waiting for the lock `cache`.",
        "held by the thread rebuilder (102), at src/main.rs:3, as they began to wait.",
    ];
    require(plant, &words, &[]);
}

#[test]
fn the_number_of_a_task_separates_nothing() {
    let plant = || {
        let mut trace = Planted::new();
        tracks(&mut trace, 100, 0);
        for number in 0..400_u64 {
            let start = trace.now;
            let end = start + if number < 396 { MS } else { 50 * MS };
            interval(&mut trace, REQUEST, (start + 1, start + 1000), ("task", "queued"), &[]);
            let arguments = [("task", Value::I64(number as i64)), ("rows", Value::I64(number as i64 / 10))];
            interval(&mut trace, REQUEST, (start, end), ("web", "request"), &arguments);
            trace.now = end + MS;
        }
        trace
    };
    for (_, text) in explained(plant(), "web/request") {
        assert!(text.contains("Arguments: `rows = 39` is in"), "{text}");
        assert!(!text.contains("`task"), "{text}");
    }
}

#[test]
fn without_a_name_an_interval_is_taken_for_its_polls_and_idleness_for_nothing() {
    // The request waits for a lock; a worker and the tasks are idle for longer than that.
    let plant = || {
        let mut trace =
            contended(|trace, middle| holder(trace, 0, (middle - MS, middle + 51 * MS), ("rebuild", 7)));
        let (from, to) = (trace.now, trace.now + 3_000 * MS);
        trace.slice(OTHER, (from, to), "tokio", "parked");
        interval(&mut trace, HOLDER, (from, to), ("task", "queued"), &[]);
        wait(&mut trace, WAITS, (from, to), "wait: stop", &[("kind", Value::Str("notification"))]);
        trace
    };
    let of_one = explained(plant(), "web/request");
    for ((first, one), text) in of_one.iter().zip(explain_both(&plant().finish(Shape::Nothing), &[])) {
        let names: Vec<_> = text.lines().filter(|line| line.contains(" in total; ")).collect();
        let names: Vec<_> = names.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(names, ["web/request", "cache/rebuild", "db/load"], "{text}");
        assert!(text.starts_with(first), "the same as with the name: {text}\n{one}");
    }
}

#[test]
fn requests_without_an_interval_are_said_to_be_there() {
    let quick = |count: u64| {
        let mut trace = requests(|_, _| {});
        for _ in 0..count {
            let now = trace.now;
            trace.slice(SERVER, (now, now + MS / 2), "web", "request");
            trace.now += MS;
        }
        trace.finish(Shape::Nothing)
    };
    let said = "Without an interval: at least 3 slices of the name.";
    for text in explain_both(&quick(3), &["web/request"]) {
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with(said)), "{text}");
        assert_eq!(text.matches("Without an interval").count(), 1, "{text}");
    }
    for text in explain_both(&quick(0), &["web/request"]) {
        assert!(!text.contains("Without an interval"), "{text}");
    }
}

#[test]
fn an_interval_without_an_end_has_its_polls() {
    let mut trace = requests(|_, _| {});
    let now = trace.now;
    trace.event(REQUEST, (EventType::SliceBegin, now), ("web", "request"), &[]);
    trace.slice(SERVER, (now + MS, now + 2 * MS), "web", "request");
    for text in explain_both(&trace.finish(Shape::Nothing), &["web/request"]) {
        assert!(!text.contains("Without an interval"), "{text}");
    }
}

/// Requests that wait for 50 ms and are woken then on the worker's thread, which has these slices: category,
/// name, begin and end after that of the wait. `waits`: whether the wait is one that was recorded, of this
/// kind and held by this task.
fn woken(slices: &[(&str, &str, u64, u64)], waits: Option<(&'static str, Option<i64>)>) -> Planted {
    let mut trace = requests(|trace, middle| {
        let end = middle + 50 * MS;
        let wake = (("task", "wake"), (EventType::Instant, end));
        let mut is_awake = false;
        for (category, name, from, to) in slices {
            trace.event(SERVER, (EventType::SliceBegin, middle + from), (category, name), &[]);
            if (middle + from..=middle + to).contains(&end) {
                trace.event(SERVER, wake.1, wake.0, &[]);
                is_awake = true;
            }
            trace.event(SERVER, (EventType::SliceEnd, middle + to), (category, name), &[]);
        }
        if !is_awake {
            trace.event(SERVER, wake.1, wake.0, &[]);
        }
        interval(trace, REQUEST, (end, end + 10_000), ("task", "queued"), &[]);
        if let Some((kind, task)) = waits {
            let kind = [("kind", Value::Str(kind))];
            let held = task.map(|task| ("held_by_task", Value::I64(task)));
            let arguments: Vec<_> = kind.into_iter().chain(held).collect();
            wait(trace, WAITS, (middle, end + 12_000), "wait: jobs", &arguments);
        }
    });
    let now = trace.now;
    interval(&mut trace, HOLDER, (now, now + MS), ("app", "work"), &[("task", Value::I64(8))]);
    interval(&mut trace, HOLDER, (now + MS, now + 2 * MS), ("app", "append"), &[("task", Value::I64(7))]);
    trace
}

/// A poll that ends the wait.
const WORK: &[(&str, &str, u64, u64)] = &[("app", "work", 49 * MS, 51 * MS)];

#[test]
fn the_poll_that_ended_a_wait_is_named_if_nothing_else_tells_of_the_holder() {
    let cases = [
        ("channel", "Why: the channel was full; woken inside `work`."),
        ("notification", "Why: woken inside `work`."),
        (
            "semaphore",
            "Why: too few permits were free, and the trace does not have who had the others; woken inside `work`.",
        ),
        ("lock", "Why: the trace does not have the holder; woken inside `work` for 100 % of that time."),
    ];
    for (kind, words) in cases {
        require(|| woken(WORK, Some((kind, None))), &[words], &["released"]);
    }
}

#[test]
fn who_got_the_lock_after_the_holder_and_released_it_is_named() {
    let words = ["Why: held by the task append (7) as they began to wait, and woken inside `work`."];
    let words = words.map(|words| words.replace(" as they", ", as they"));
    require(|| woken(WORK, Some(("lock", Some(7)))), &words.each_ref().map(|words| &**words), &[]);
    let own: &[_] = &[("app", "append", 49 * MS, 51 * MS)];
    require(|| woken(own, Some(("lock", Some(7)))), &["held by the task append (7)"], &["woken"]);
}

#[test]
fn a_worker_that_polls_others_while_something_is_ready_is_named() {
    let polls: &[_] =
        &[("app", "work", 10 * MS, 50 * MS - 20_000), ("tokio", "parked", 50 * MS - 10_000, 60 * MS)];
    let words = [
        "Cause: perhaps workers that are busy with other polls, most of all of `work`. The slowest 1 % take 50.0 ms longer",
        "No worker looked for what is ready, a timer or a socket: the one that woke them had just polled `work`, \
         for 79 % of that time (2 polls, the longest of 40.0 ms).",
    ];
    for (first, text) in explained(woken(polls, None), "web/request") {
        words.iter().for_each(|words| assert!(first.contains(words), "no {words:?} in\n{text}"));
        assert!(!first.contains("not known") && !first.contains("Where:"), "{text}");
    }
    // A poll that was over before the worker parked, and a short one, held nothing up.
    let before: &[_] = &[("app", "work", 0, 40 * MS), ("tokio", "parked", 40 * MS, 60 * MS)];
    let short: &[_] =
        &[("app", "work", 40 * MS, 50 * MS - 20_000), ("tokio", "parked", 50 * MS - 10_000, 60 * MS)];
    for polls in [before, short] {
        for (first, text) in explained(woken(polls, None), "web/request") {
            assert!(
                first.contains("Cause: not known") && first.contains("(`parked`): a timer has run"),
                "{text}"
            );
        }
    }
}

#[test]
fn the_task_whose_end_wakes_others_is_named() {
    for (first, text) in explained(woken(&[("app", "work", 48 * MS, 50 * MS - 5_000)], None), "web/request") {
        let words = "The thread server (101) wakes them then, right after a poll of `work`.";
        assert!(first.contains(words), "{text}");
    }
}
