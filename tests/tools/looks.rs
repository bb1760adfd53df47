//! `hairline stats`, `flame` and `validate` of what the SDK records, beside what trace_processor sees in it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hairline::{
    TraceFuture, Track, Unit, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_scope,
};
use hairline_tests::recording::{FORMATS, Trace, record};
use serde_json::Value;

use crate::{hairline, json, run, stderr};

/// Of the slices of threads, and of other tracks: names, how many, their time, that without their children's,
/// and the longest.
const BY_NAME: [&str; 2] = [
    "select s.name, count(*), sum(s.dur), \
    sum(s.dur - ifnull((select sum(c.dur) from slice c where c.parent_id = s.id), 0)), min(s.dur), max(s.dur) \
    from slice s where s.name not like 'instant%' and s.dur >= 0 \
    and s.track_id in (select id from thread_track) group by s.name order by s.name",
    "select s.name, count(*), sum(s.dur), \
    sum(s.dur - ifnull((select sum(c.dur) from slice c where c.parent_id = s.id), 0)), min(s.dur), max(s.dur) \
    from slice s where s.name not like 'instant%' and s.dur >= 0 \
    and s.track_id not in (select id from thread_track) group by s.name order by s.name",
];
const OPEN: &str = "select count(*) from slice where dur < 0";
/// Time of the slices that no other is around.
const BUSY: &str = "select sum(s.dur) from slice s join thread_track t on s.track_id = t.id where s.depth = 0 and s.dur > 0 \
    and s.name not like 'instant%' group by t.utid order by 1";

/// Nested scopes on three threads, slices of all of them on one track, intervals.
pub(crate) fn program() {
    let shared = Track::new("shared");
    std::thread::scope(|threads| {
        for thread in 0..3_u64 {
            let shared = &shared;
            threads.spawn(move || {
                for n in 0..500_u64 {
                    trace_scope!("stats", "outer", n);
                    for _ in 0..n % 4 {
                        trace_scope!("stats", "inner");
                        if n % 3 == thread {
                            trace_scope!("stats.deep", "innermost");
                            trace_instant!("stats", "instant");
                        }
                    }
                    let interval = trace_async!("stats", "interval", id = n);
                    drop(interval);
                }
                trace_begin!("stats", "on a track", track: shared);
            });
        }
    });
    for _ in 0..3 {
        trace_end!(&shared);
    }
    trace_scope!("stats", "last");
}

pub(crate) fn stats(trace: &Path, arguments: &[&str]) -> Value {
    let folder = trace.parent().expect("a folder");
    let output = run(hairline(folder).arg("stats").arg(trace).arg("--json").args(arguments));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    json::parse("stats", &output.stdout)
}

pub(crate) fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_else(|| panic!("no {column}: {row}"))
}

fn require_same(trace: &Trace) {
    let verdict = trace.ask(&[BY_NAME[0], OPEN, BUSY, BY_NAME[1]]);
    verdict.require_clean();
    let stats = stats(trace.path(), &["--sort", "name"]);
    let columns = ["count", "total_ns", "self_ns", "min_ns", "max_ns"];
    let row = |row: &Value| {
        let numbers = columns.map(|column| number(row, column).to_string());
        let name = row.get("name").or_else(|| row.get("interval")).and_then(Value::as_str);
        format!("{}\t{}", name.expect("a name"), numbers.join("\t"))
    };
    for (table, of_judge) in [("names", 0), ("intervals", 3)] {
        let rows: Vec<String> = stats[table].as_array().expect("rows").iter().map(row).collect();
        assert_eq!(rows.join("\n"), verdict.results[of_judge].text(), "{table}, {:?}", trace.format);
    }
    assert_eq!(number(&stats, "slices_without_end"), verdict.results[1].single_i64());
    let threads = stats["by_thread"].as_array().expect("threads").iter();
    let threads = threads.filter(|thread| !thread["thread"].as_str().expect("a name").starts_with("track"));
    let mut busy: Vec<i64> = threads.map(|thread| number(thread, "busy_ns")).collect();
    busy.sort_unstable();
    let expected: Vec<i64> =
        verdict.results[2].rows.iter().map(|row| row[0].as_i64().expect("a number")).collect();
    assert_eq!(busy, expected, "{:?}", trace.format);
}

#[test]
fn the_sums_are_those_of_trace_processor() {
    for format in FORMATS {
        require_same(&record(format, |_| program()));
    }
}

#[test]
fn an_interval_has_the_time_in_which_it_was_polled() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..3 {
                let mut future = pin!(async { std::hint::black_box(7) }.traced("web", "request"));
                let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            drop(trace_async!("web", "never polled"));
        });
        let polls = "select sum(s.dur) from slice s join thread_track t on s.track_id = t.id where s.name = 'request'";
        let stats = stats(trace.path(), &["--by", "interval", "--sort", "name"]);
        let rows = stats["intervals"].as_array().expect("rows");
        let polled: Vec<_> = rows.iter().map(|row| row["polled_ns"].to_string()).collect();
        assert_eq!(polled, ["null", &*trace.rows(polls)], "{format:?}");
    }
}

/// Is ready at the second poll. Each takes 2 ms.
pub(crate) async fn twice() {
    let mut is_second = false;
    std::future::poll_fn(|_| {
        std::thread::sleep(Duration::from_millis(2));
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// A request with one life inside, with one inside of that, and then two at the same time.
pub(crate) async fn request() {
    async {
        twice().await;
        twice().traced("web", "verify").await;
    }
    .traced("web", "authorise")
    .await;
    twice().await;
    let (mut read, mut write) = (pin!(twice().traced("db", "read")), pin!(twice().traced("db", "write")));
    let (mut is_read, mut is_written) = (false, false);
    std::future::poll_fn(|context| {
        is_read = is_read || read.as_mut().poll(context).is_ready();
        is_written = is_written || write.as_mut().poll(context).is_ready();
        if is_read && is_written { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The time that some of these intervals cover: names, begins and durations.
pub(crate) fn covered(rows: &[(String, i64, i64)], names: &[&str]) -> i64 {
    let mut parts: Vec<_> = rows.iter().filter(|row| names.contains(&&*row.0)).collect();
    parts.sort_by_key(|row| row.1);
    let (mut sum, mut until) = (0, i64::MIN);
    for (_, start, duration) in parts {
        sum += (start + duration - until.max(*start)).max(0);
        until = until.max(start + duration);
    }
    sum
}

/// The intervals that trace_processor sees: names, begins and durations.
pub(crate) fn intervals(trace: &Trace) -> Vec<(String, i64, i64)> {
    let of_others = "select name, ts, dur from slice where track_id not in (select id from thread_track)";
    let verdict = trace.ask(&[of_others]);
    let rows = verdict.results[0].iter();
    rows.map(|row| (row.str("name").to_owned(), row.i64("ts"), row.i64("dur"))).collect()
}

#[test]
fn an_interval_has_its_time_without_the_lives_inside_of_it() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..3 {
                let mut request = pin!(request().traced("web", "request"));
                while request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
            }
        });
        let rows = intervals(&trace);
        assert_eq!(rows.len(), 15, "{rows:?}");
        let inside: [(&str, &[&str]); 5] = [
            ("authorise", &["verify"]),
            ("read", &[]),
            ("request", &["authorise", "read", "write"]),
            ("verify", &[]),
            ("write", &[]),
        ];
        // A filter decides what is counted, not what is inside of what.
        let web = [inside[0], inside[2], inside[3]];
        for (arguments, counted) in [(&[][..], &inside[..]), (&["--category", "web"], &web)] {
            let stats = stats(trace.path(), &[&["--by", "interval", "--sort", "name"], arguments].concat());
            let own: Vec<_> = stats["intervals"]
                .as_array()
                .expect("rows")
                .iter()
                .map(|row| (row["interval"].as_str().expect("a name"), number(row, "self_ns")))
                .collect();
            let expected: Vec<_> = counted
                .iter()
                .map(|(name, inside)| (*name, covered(&rows, &[name]) - covered(&rows, inside)))
                .collect();
            assert_eq!(own, expected, "{format:?}");
        }
    }
}

#[test]
fn percentiles_are_near_those_of_the_sorted_durations() {
    for format in FORMATS {
        let trace = record(format, |_| program());
        let verdict =
            trace.ask(&["select name, dur from slice where name in ('outer', 'inner') order by name, dur"]);
        let mut sorted: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for row in verdict.results[0].iter() {
            sorted.entry(row.str("name")).or_default().push(row.i64("dur"));
        }
        let stats = stats(trace.path(), &["--by", "name"]);
        for (name, durations) in sorted {
            let rows = stats["names"].as_array().expect("names");
            let row = rows.iter().find(|row| row["name"] == name).expect("a row");
            for (column, hundredths) in [("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99)] {
                let exact = durations[(durations.len() * hundredths).div_ceil(100) - 1];
                let found = number(row, column);
                assert!((found - exact).abs() * 100 <= exact, "{name} {column}: {found} is not {exact}");
            }
        }
    }
}

/// The weights add up to the busy time of the threads and the own time of the intervals. Intervals at the
/// same time have their time each. An interval without an end would have a weight, but no row in `stats`.
#[test]
fn folded_stacks_have_the_whole_time_once() {
    for format in FORMATS {
        let trace = record(format, |_| program());
        let folder = trace.path().parent().expect("a folder");
        let folded = run(hairline(folder).arg("flame").arg(trace.path()));
        let folded = String::from_utf8(folded.stdout).expect("text");
        let weight =
            |line: &str| line.rsplit_once(' ').and_then(|(_, n)| n.parse::<i64>().ok()).expect("a weight");
        let stats = stats(trace.path(), &[]);
        let tracks = [("by_thread", "busy_ns"), ("by_track", "self_ns")];
        let sum = |(table, column)| {
            let rows = stats[table].as_array().expect("tracks").iter();
            rows.map(|track| number(track, column)).sum::<i64>()
        };
        let busy: i64 = tracks.into_iter().map(sum).sum();
        assert_eq!(folded.lines().map(weight).sum::<i64>(), busy, "{format:?}");
        assert!(folded.lines().any(|line| line.contains(";outer;inner;innermost ")), "{folded}");
    }
}

#[test]
fn nothing_is_wrong_with_what_the_sdk_records() {
    for format in FORMATS {
        let trace = record(format, |_| program());
        let folder = trace.path().parent().expect("a folder");
        let output = run(hairline(folder).arg("validate").arg(trace.path()));
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{format:?}: {report}{}", stderr(&output));
    }
}

/// Of each counter: its name and unit, the number of its values, the least and the largest, and the last one.
const COUNTERS: &str = "select t.name, ifnull(t.unit, '') as unit, count(*) as n, min(c.value) as low, max(c.value) as high, \
    (select l.value from counter l where l.track_id = c.track_id order by l.ts desc, l.id desc limit 1) as last \
    from counter c join counter_track t on c.track_id = t.id group by c.track_id order by 1, 3, 4, 5";

#[test]
fn counters_have_the_values_that_trace_processor_has() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (disk, own) = (Track::new("disk"), Track::thread());
            for n in 0..700_i64 {
                trace_counter!("stats", "depth", n % 30 - 7);
                trace_counter!("stats", "memory", n, unit: Unit::Bytes, multiplier: 1024);
                trace_counter!("stats", "speed", n as f64 / 4.0 + 0.125, unit: "frames/s", track: &disk);
                trace_counter!("stats", "steps", 3, incremental: true, unit: Unit::Count);
                trace_counter!("stats", "steps", 3 * n, unit: Unit::Count, track: &own);
            }
        });
        let verdict = trace.ask(&[COUNTERS]);
        verdict.require_clean();
        let key = |name: &str, unit: &str, numbers: [f64; 4]| format!("{name} {unit:?} {numbers:?}");
        let row = |row: hairline_tests::Row<'_>| {
            let count = row.i64("n") as f64;
            let numbers = [count, row.f64("low"), row.f64("high"), row.f64("last")];
            // In FXT, a counter without a unit has its series and its number in its name there.
            key(row.str("name").trim_end_matches(":value:0"), row.str("unit"), numbers)
        };
        let mut expected: Vec<String> = verdict.results[0].iter().map(row).collect();
        let stats = stats(trace.path(), &["--by", "counter"]);
        let rows = stats["counters"].as_array().expect("rows");
        let row = |row: &Value| {
            let text = |column: &str| row[column].as_str().expect("a text");
            let numbers =
                ["values", "min", "max", "last"].map(|column| row[column].as_f64().expect("a number"));
            key(text("counter"), text("unit"), numbers)
        };
        let mut found: Vec<String> = rows.iter().map(row).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{format:?}");
        assert_eq!(found.len(), 5, "{format:?}");
        let memory = rows.iter().find(|row| row["counter"] == "memory").expect("a row");
        assert_eq!(memory["mean"].as_f64(), Some(1024.0 * 349.5), "{format:?}");
        let folder = trace.path().parent().expect("a folder");
        let shown = run(hairline(folder).args(["stats", "--by", "counter"]).arg(trace.path()));
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let line = shown.lines().find(|line| line.starts_with("memory")).unwrap_or_else(|| panic!("{shown}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.ends_with(&["bytes", "700", "0", "357,888", "715,776", "715,776"]), "{shown}");
        assert!(shown.contains("mean of values"), "{shown}");
    }
}
