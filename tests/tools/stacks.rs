//! The stacks of `hairline flame` with lives inside of others, beside the intervals that trace_processor
//! sees.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use hairline::{TraceFuture, trace_scope};
use hairline_tests::recording::{FORMATS, Trace, record};
use hairline_tokio::sync::Mutex;

use crate::looks::{covered, intervals, number, request, stats, twice};
use crate::{hairline, run, stderr};

/// The stacks of tracks that are no threads, without the process and the track.
fn stacks(trace: &Trace, arguments: &[&str]) -> BTreeMap<String, i64> {
    let folder = trace.path().parent().expect("a folder");
    let output = run(hairline(folder).arg("flame").arg(trace.path()).args(arguments));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let mut stacks = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        let [_, track, names] = stack.splitn(3, ';').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if track.starts_with("track") {
            *stacks.entry(names.to_owned()).or_default() += weight.parse::<i64>().expect("a number");
        }
    }
    stacks
}

/// Each stack, with the time of its intervals without those inside.
fn expected(rows: &[(String, i64, i64)], stacks: &[(&str, &[&str])]) -> BTreeMap<String, i64> {
    let own = |stack: &str, inside: &[&str]| {
        let name = stack.rsplit(';').next().expect("a name");
        covered(rows, &[name]) - covered(rows, inside)
    };
    stacks.iter().map(|(stack, inside)| ((*stack).to_owned(), own(stack, inside))).collect()
}

/// The stacks of `request`, and what is inside of each.
const REQUEST: [(&str, &[&str]); 5] = [
    ("request", &["authorise", "read", "write"]),
    ("request;authorise", &["verify"]),
    ("request;authorise;verify", &[]),
    ("request;read", &[]),
    ("request;write", &[]),
];

fn poll(future: std::pin::Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_life_is_inside_the_one_around_it() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..3 {
                let mut request = pin!(request().traced("web", "request"));
                while !poll(request.as_mut()) {}
            }
        });
        let rows = intervals(&trace);
        assert_eq!(rows.len(), 15, "{rows:?}");
        let found = stacks(&trace, &[]);
        assert_eq!(found, expected(&rows, &REQUEST), "{format:?}");
        // `read` and `write` last at the same time: the sum is more than the time of the requests.
        let rows_of_stats = stats(trace.path(), &["--by", "interval"]);
        let own = rows_of_stats["intervals"].as_array().expect("rows").iter();
        assert_eq!(found.values().sum::<i64>(), own.map(|row| number(row, "self_ns")).sum::<i64>());
        assert!(found.values().sum::<i64>() > covered(&rows, &["request"]), "{found:?}");
        let total = stacks(&trace, &["--total"]);
        let all: Vec<_> = REQUEST.iter().map(|(stack, _)| (*stack, &[][..])).collect();
        assert_eq!(total, expected(&rows, &all), "{format:?}");
    }
}

#[test]
fn a_life_without_an_end_is_around_those_inside_of_it() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mut request = Box::pin(request().traced("web", "request"));
            for _ in 0..4 {
                assert!(!poll(request.as_mut()));
            }
            std::mem::forget(request);
            trace_scope!("web", "last");
        });
        let mut rows = intervals(&trace);
        let end = trace.rows("select max(ts + max(dur, 0)) from slice").parse::<i64>().expect("a time");
        let open = rows.iter_mut().filter(|row| row.2 < 0);
        assert_eq!(open.map(|row| row.2 = end - row.1).count(), 3, "request, read, write; {format:?}");
        assert_eq!(stacks(&trace, &[]), expected(&rows, &REQUEST), "{format:?}");
    }
}

#[test]
fn a_wait_is_inside_the_life_that_waits() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Arc::new(Mutex::named("cache", ()));
            let held = mutex.try_lock().expect("free");
            let task = async {
                twice().await;
                drop(mutex.lock().await);
                twice().await;
            };
            let mut task = pin!(task.traced("web", "outer"));
            assert!(!poll(task.as_mut()) && !poll(task.as_mut()));
            std::thread::sleep(Duration::from_millis(1));
            drop(held);
            while !poll(task.as_mut()) {}
        });
        let expected =
            expected(&intervals(&trace), &[("outer", &["wait: cache"]), ("outer;wait: cache", &[])]);
        assert_eq!(stacks(&trace, &[]), expected, "{format:?}");
        assert!(expected["outer;wait: cache"] >= 1_000_000, "{expected:?}");
    }
}
