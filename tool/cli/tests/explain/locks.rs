//! `hairline explain` uses the facts about waits for locks before it guesses.

use hairline_formats::Value;
use hairline_formats::track_event::{self as te, EventType, ThreadTrack, TrackUuid};

use crate::planted::{
    HOG, LIVES, MS, OTHER, Planted, SEQUENCE, SERVER, Shape, State, explain_both, requests, sleeps,
};

/// The sentences that are guesses, or that advise to record what is known.
const GUESSES: [&str; 6] =
    ["something outside", " ends when ", "end when", "record scheduling", "not known", "they wait for other"];

/// Requires these words in the first five lines, in both formats, with and without scheduling; and no guess.
#[track_caller]
fn require(plant: impl Fn() -> Planted, name: &str, words: &[&str]) {
    for shape in [Shape::States, Shape::Ftrace, Shape::Nothing] {
        for text in explain_both(&plant().finish(shape), &[name]) {
            let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
            for word in words {
                assert!(first.contains(word), "{shape:?}: no {word:?} in the first lines of\n{text}");
            }
            for guess in GUESSES {
                assert!(!first.contains(guess), "{shape:?}: {guess:?} in the first lines of\n{text}");
            }
        }
    }
}

/// A wait of the server for a lock, with these arguments at its begin, and an instant about its end.
fn waits(trace: &mut Planted, (from, to): (u64, u64), lock: &str, first: &[(&str, Value<'_>)], ended: Ended) {
    let name = ("lock", format!("wait: {lock}"));
    let name = (name.0, name.1.as_str());
    trace.event(SERVER, (EventType::SliceBegin, from), name, first);
    if let Some((what, by, at)) = ended {
        let arguments =
            [(format!("{what}_by"), Value::I64(by as i64)), (format!("{what}_at"), Value::Str(at))];
        let arguments = arguments.each_ref().map(|(key, value)| (key.as_str(), *value));
        trace.event(SERVER, (EventType::Instant, to - 1000), ("lock", what), &arguments);
    }
    trace.event(SERVER, (EventType::SliceEnd, to), name, &[]);
}

/// What the instant says: its name, a thread and a place.
type Ended = Option<(&'static str, u64, &'static str)>;

const AT: (&str, Value<'_>) = ("at", Value::Str("src/lookup.rs:10"));

fn held(by: u64, at: &'static str) -> [(&'static str, Value<'static>); 3] {
    [AT, ("held_by", Value::I64(by as i64)), ("held_at", Value::Str(at))]
}

/// Two slow requests that wait 50 ms for a lock inside of `lookup`.
fn contended(first: &[(&str, Value<'_>)], ended: Ended) -> Planted {
    requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        trace.slice(OTHER, (middle - 2 * MS, middle + 60 * MS), "app", "serve");
        waits(trace, (middle, middle + 50 * MS), "cache", first, ended);
        Some(("cache", "lookup"))
    })
}

#[test]
fn the_lock_and_who_held_it_are_named() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            trace.slice(OTHER, (middle - MS, middle + 50 * MS), "journal", "write");
            trace.slice(OTHER, (middle - 2 * MS, middle + 60 * MS), "app", "serve");
            waits(trace, (middle, middle + 50 * MS), "cache", &held(OTHER, "src/journal.rs:40"), None);
            Some(("cache", "lookup"))
        })
    };
    let words = [
        "Cause: waiting for the lock `cache`.",
        "and they wait for it for 50.0 ms of that",
        "Where: 50.0 ms (100 %) inside `lookup`, at src/lookup.rs:10.",
        "Why: held by the thread rebuilder (102), at src/journal.rs:40, inside `write`, as they began to \
         wait.",
    ];
    require(plant, "net/request", &words);
    // The waits themselves may be asked for.
    let own =
        ["Cause: waiting for the lock `cache`.", "held by the thread rebuilder (102), at src/journal.rs:40"];
    require(plant, "lock/wait: cache", &own);
}

#[test]
fn holders_have_shares_by_the_time_of_the_waits() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            let (first, second) = (middle + 40 * MS, middle + 49 * MS);
            waits(trace, (middle, first), "cache", &held(OTHER, "src/journal.rs:40"), None);
            waits(trace, (first, second), "cache", &[AT], Some(("released", OTHER, "src/find.rs:5")));
            waits(trace, (second, middle + 50 * MS), "cache", &[AT], None);
            None
        })
    };
    let words = [
        "held by the thread rebuilder (102), at src/journal.rs:40, as waits that take 80 % of that time began; released by \
         the thread rebuilder (102), at src/find.rs:5, for 18 % of that time; the trace does not have the holder for 2 % of that time.",
        "in itself, not in an inner slice, at src/lookup.rs:10",
    ];
    require(plant, "net/request", &words);
}

#[test]
fn who_notified_a_condition_variable_is_named() {
    let ended = Some(("notified", OTHER, "src/queue.rs:8"));
    let words = [
        "the condition variable `cache`",
        "inside `lookup`", // which has its name after the instant `notified`
        "notified by the thread rebuilder (102), at src/queue.rs:8",
    ];
    require(|| contended(&[AT], ended), "net/request", &words);
}

#[test]
fn a_slice_that_the_holder_began_during_the_wait_is_not_where_it_held_the_lock() {
    let plant = || {
        let mut trace = contended(&held(OTHER, "src/journal.rs:40"), None);
        let now = trace.now;
        trace.slice(LIVES, (1_000 * MS, now), "app", "life");
        trace
    };
    let words = ["held by the thread rebuilder (102), at src/journal.rs:40, inside `serve`, as they began"];
    require(plant, "net/request", &words);
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            trace.slice(OTHER, (middle + MS, middle + 50 * MS), "app", "late");
            waits(trace, (middle, middle + 50 * MS), "cache", &held(OTHER, "src/journal.rs:40"), None);
            None
        })
    };
    require(
        plant,
        "net/request",
        &["held by the thread rebuilder (102), at src/journal.rs:40, as they began"],
    );
}

#[test]
fn of_several_locks_the_longest_waits_are_named_first() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            let between = middle + 35 * MS;
            waits(trace, (middle, between), "cache", &held(OTHER, "src/journal.rs:40"), None);
            waits(trace, (between, middle + 50 * MS), "pool", &[AT], None);
            None
        })
    };
    let words = [
        "Cause: waiting for locks, most of all `cache`.",
        "and they wait for them for 50.0 ms of that",
        "Why: `cache` takes 35.0 ms of that: held by the thread rebuilder (102)",
    ];
    require(plant, "net/request", &words);
}

#[test]
fn a_wait_that_is_the_smaller_part_is_named_beside_the_cause() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            waits(trace, (middle, middle + 10 * MS), "cache", &held(OTHER, "src/journal.rs:40"), None);
            None
        })
    };
    for text in explain_both(&plant().finish(Shape::States), &["net/request"]) {
        let first: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
        let words = [
            "Cause: sleep.",
            "asleep for 40.0 ms of that",
            "They also wait 10.0 ms longer for the lock `cache`: held by the thread rebuilder (102)",
        ];
        words.iter().for_each(|word| assert!(first.contains(word), "no {word:?}: {text}"));
    }
}

#[test]
fn json_has_the_locks_with_their_holders() {
    let trace = contended(&held(OTHER, "src/journal.rs:40"), None).finish(Shape::Nothing);
    for text in explain_both(&trace, &["net/request", "--json"]) {
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let cause = &all["names"][0]["cause"];
        assert_eq!(cause["state"], "waiting for a lock", "{text}");
        let lock = &cause["locks"][0];
        assert_eq!(
            (lock["name"].as_str(), lock["extra_ns"].as_u64()),
            (Some("cache"), Some(50 * MS)),
            "{text}"
        );
        assert_eq!(lock["waiters"][0]["at"], "src/lookup.rs:10");
        let holder = &lock["holders"][0];
        assert_eq!((holder["tid"].as_u64(), holder["ns"].as_u64()), (Some(OTHER), Some(100 * MS)));
        assert_eq!(
            (holder["at"].as_str(), holder["inside"].as_str()),
            (Some("src/journal.rs:40"), Some("serve"))
        );
    }
}

#[test]
fn a_hold_is_explained_only_if_somebody_asks_for_it() {
    let plant = || {
        let mut trace = Planted::new();
        for _ in 0..20 {
            let now = trace.now;
            trace.slice(LIVES, (now, now + MS), "app", "life");
            trace.slice(LIVES + 1, (now, now + 2 * MS), "lock", "hold: cache");
            trace.now += 3 * MS;
        }
        trace.finish(Shape::Nothing)
    };
    for text in explain_both(&plant(), &[]) {
        assert!(text.contains("app/life") && !text.contains("hold: cache"), "{text}");
    }
    for text in explain_both(&plant(), &["lock/hold: cache"]) {
        assert!(text.contains("hold: cache"), "{text}");
    }
}

#[test]
fn who_had_the_lock_first_and_who_released_it_are_named() {
    let words = [
        "Why: held by the thread rebuilder (102) as they began to wait, and released by the thread hog (900), at \
         src/compact.rs:7, for 100 % of that time.",
    ];
    let plant = || {
        let mut trace =
            contended(&held(OTHER, "src/journal.rs:40"), Some(("released", HOG, "src/compact.rs:7")));
        let (uuid, parent_uuid) = (TrackUuid(HOG), TrackUuid(0));
        let thread = ThreadTrack { uuid, parent_uuid, pid: 100, tid: HOG as i64, name: "hog" };
        te::thread_descriptor(&mut trace.out, SEQUENCE, &thread);
        trace
    };
    require(plant, "net/request", &words);
    let own = || contended(&held(OTHER, "src/journal.rs:40"), Some(("released", OTHER, "src/journal.rs:40")));
    require(own, "net/request", &["Why: held by the thread rebuilder (102), at src/journal.rs:40, inside"]);
}

#[test]
fn a_holder_that_waits_for_the_lock_itself_has_it_in_no_wait() {
    let plant = || {
        requests("request", |trace, middle| {
            sleeps(trace, middle, State::Asleep, 0);
            trace.slice(OTHER, (middle - MS, middle + 50 * MS), "lock", "wait: cache");
            trace.slice(OTHER, (middle - 2 * MS, middle + 60 * MS), "app", "serve");
            let ended = Some(("released", OTHER, "src/journal.rs:40"));
            waits(trace, (middle, middle + 50 * MS), "cache", &[AT], ended);
            None
        })
    };
    require(
        plant,
        "net/request",
        &["released by the thread rebuilder (102), at src/journal.rs:40, inside `serve`"],
    );
}
