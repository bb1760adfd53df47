//! `stats`, `flame`, `convert` and `export` of a part of a trace: a range of time, or some threads.

use std::fs;
use std::path::Path;
use std::thread;

use hairline::{Format, trace_counter, trace_scope};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, Trace, extension, record};
use serde_json::Value;

use crate::export::ask;
use crate::looks::{number, program, stats};
use crate::{hairline, run, stderr};

/// Slices of two threads. `outer` has `inner` in it, `last` follows at once, and `open` has no end.
const TRACE: &str = r#"[
    {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
    {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}},
    {"ph":"B","name":"outer","cat":"a","ts":100,"pid":1,"tid":1},
    {"ph":"B","name":"open","cat":"a","ts":105,"pid":1,"tid":2},
    {"ph":"C","name":"depth","ts":105,"pid":1,"args":{"value":5}},
    {"ph":"B","name":"inner","cat":"b","ts":110,"pid":1,"tid":1},
    {"ph":"i","name":"moment","ts":110,"pid":1,"tid":1,"s":"t"},
    {"ph":"C","name":"depth","ts":115,"pid":1,"args":{"value":7}},
    {"ph":"E","ts":120,"pid":1,"tid":1},
    {"ph":"E","ts":130,"pid":1,"tid":1},
    {"ph":"X","name":"last","ts":130,"dur":10,"pid":1,"tid":1}
]"#;

/// The slices on threads: names, how many, and their time in microseconds; then the busy time of the threads.
fn by_name(trace: &Path, arguments: &[&str]) -> (Vec<(String, i64, i64)>, Vec<i64>) {
    let stats = stats(trace, &[arguments, &["--sort", "name"]].concat());
    let row = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, number(row, "count"), number(row, "total_ns") / 1000)
    };
    let rows = stats["names"].as_array().expect("rows").iter().map(row).collect();
    let busy = |row: &Value| number(row, "busy_ns") / 1000;
    (rows, stats["by_thread"].as_array().expect("rows").iter().map(busy).collect())
}

fn flame(trace: &Path, arguments: &[&str]) -> Vec<String> {
    let folder = trace.parent().expect("a folder");
    let output = run(hairline(folder).arg("flame").arg(trace).args(["--by", "all"]).args(arguments));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn slices_are_cut_at_the_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.json");
    fs::write(&trace, TRACE).expect("written");
    let of = |range: &str| by_name(&trace, &["--time-range", range]);
    let rows = |rows: &[(&str, i64, i64)]| -> Vec<_> {
        rows.iter().map(|(name, count, time)| ((*name).to_owned(), *count, *time)).collect()
    };
    // `open` lasts longer than any range, so its part in the range is known.
    let (found, mut busy) = of("10us..20us");
    busy.sort_unstable();
    assert_eq!(found, rows(&[("inner", 1, 10), ("open", 1, 10), ("outer", 1, 10)]));
    assert_eq!(busy, [10, 10]);
    // A slice that ends at FROM or begins at TO is not in the range.
    assert_eq!(of("20us..30us").0, rows(&[("open", 1, 10), ("outer", 1, 10)]));
    assert_eq!(of("..10us").0, rows(&[("open", 1, 5), ("outer", 1, 10)]));
    assert_eq!(
        of("15us..35us").0,
        rows(&[("inner", 1, 5), ("last", 1, 5), ("open", 1, 20), ("outer", 1, 15)])
    );
    // On the trace's clock.
    assert_eq!(of("110000..120us").0, of("10us..").0);
    assert_eq!(of("110000..120000"), of("10us..20us"));
    // Without an end, the range ends with the trace, and `open` has no end in it.
    assert_eq!(of("25us..").0, rows(&[("last", 1, 10), ("outer", 1, 5)]));
    let all = stats(&trace, &["--time-range", "25us.."]);
    assert_eq!((number(&all, "slices_without_end"), number(&all, "span_ns")), (1, 15_000));
    assert_eq!(of("25us..").1.iter().sum::<i64>(), 30);
    // Instants and counters: those from FROM on, before TO.
    let counted = |range: &str| {
        let all = stats(&trace, &["--time-range", range]);
        (number(&all, "instants"), number(&all, "counter_values"))
    };
    assert_eq!((counted("5us..10us"), counted("10us..15us"), counted("10us..")), ((0, 1), (1, 0), (1, 1)));

    let flame = |range: &str| flame(&trace, &["--time-range", range]);
    assert_eq!(flame("15us..25us"), ["open 10000", "outer 5000", "outer;inner 5000"]);
    assert_eq!(flame("25us..35us"), ["last 5000", "open 10000", "outer 5000"]);
    assert_eq!(flame("25us.."), ["last 10000", "open 15000", "outer 5000"]);
}

#[test]
fn what_is_not_in_the_trace_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.json"), TRACE).expect("written");
    let fails = |arguments: &[&str]| {
        let output = run(hairline(folder.path()).args(arguments));
        (output.status.code(), stderr(&output))
    };
    for command in [&["stats", "t.json"][..], &["flame", "t.json"], &["convert", "t.json", "part.fxt"]] {
        let said = |arguments: &[&str]| fails(&[command, arguments].concat());
        let (code, text) = said(&["--thread", "nobody"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(
            text.contains("nobody") && text.contains("main (1)") && text.contains("worker (2)"),
            "{text}"
        );
        let (code, text) = said(&["--time-range", "1s..2s"]);
        assert!(code == Some(1) && text.contains("it lasts 40.0 us"), "{text}");
        for wrong in ["1s", "..", "2s..1s", "a..b", "5..5"] {
            assert_eq!(said(&["--time-range", wrong]).0, Some(2), "{wrong}");
        }
    }
    for command in [&["stats", "-"][..], &["convert", "-", "part.fxt"]] {
        let (code, text) = fails(&[command, &["--thread", "main"]].concat());
        assert!(code == Some(1) && text.contains("need a file"), "{text}");
    }
    assert!(!folder.path().join("part.fxt").exists());
}

/// The sums of the slices that are partly in a range, by name: of threads, and of other tracks.
fn sums(from: i64, to: i64, tracks: &str) -> String {
    let time = format!("sum(min(ts + dur, {to}) - max(ts, {from}))");
    format!(
        "select name, count(*), {time} from slice where name not like 'instant%' and dur >= 0 and ts < {to} \
         and (ts + dur > {from} or dur = 0 and ts >= {from}) and track_id {tracks} (select id from thread_track) \
         group by name order by name"
    )
}

#[test]
fn a_range_has_the_times_that_trace_processor_has_in_it() {
    for format in FORMATS {
        let trace = record(format, |_| program());
        // From the middle of the longest slice of a thread to that of another track, or the other way round.
        let middle = |tracks| {
            format!(
                "select ts + dur / 2 from slice where track_id {tracks} (select id from thread_track) \
                 order by dur desc limit 1"
            )
        };
        let times = trace.ask(&["select min(ts) from slice", &middle("in"), &middle("not in")]);
        let [first, a, b] = [0, 1, 2].map(|n: usize| times.results[n].single_i64());
        let (from, to) = (a.min(b), a.max(b) + 1);
        let verdict = trace.ask(&[&sums(from, to, "in"), &sums(from, to, "not in")]);
        let relative = format!("{}ns..{}ns", from - first, to - first);
        let stats_of = |range: &str| stats(trace.path(), &["--sort", "name", "--time-range", range]);
        let stats = stats_of(&relative);
        for (table, column, expected) in
            [("names", "name", &verdict.results[0]), ("intervals", "interval", &verdict.results[1])]
        {
            let row = |row: &Value| {
                let name = row[column].as_str().expect("a name");
                format!("{name}\t{}\t{}", number(row, "count"), number(row, "total_ns"))
            };
            let rows: Vec<String> = stats[table].as_array().expect("rows").iter().map(row).collect();
            assert!(!rows.is_empty());
            assert_eq!(rows.join("\n"), expected.text(), "{table}, {format:?}");
        }
        assert_eq!(number(&stats, "span_ns"), to - from);
        let begin = number(&stats, "first_ns");
        let absolute = stats_of(&format!("{begin}..{}", begin + (to - from)));
        assert_eq!(absolute, stats, "{format:?}");
    }
}

#[test]
fn a_part_that_is_converted_has_whole_slices_of_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = record(format, |_| program());
        let middle = "select ts + dur / 2 from slice where track_id in (select id from thread_track) \
            order by dur desc limit 1";
        let from = trace.ask(&[middle]).results[0].single_i64();
        let to = from + 50_000;
        let select = "select s.name, s.ts, s.dur, thread.name from slice s \
            join thread_track t on s.track_id = t.id join thread using (utid) where";
        let order = "order by s.ts, s.dur desc, s.name, thread.name";
        // In the tables, instants are rows of their own.
        let in_range =
            format!("s.name != 'instant' and s.ts < {to} and (s.ts >= {from} or s.ts + s.dur > {from})");
        let expected = trace.ask(&[&format!("{select} {in_range} {order}")]).results[0].text();
        let part = ["--time-range", &format!("{from}..{to}")];
        for to_format in FORMATS {
            let path = folder.path().join(format!("{format:?}.{}", extension(to_format)));
            let output = run(hairline(folder.path()).arg("convert").arg(trace.path()).arg(&path).args(part));
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let verdict = judge::load(&path, &[&format!("{select} s.name != 'instant' {order}")]);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), expected, "{format:?} to {to_format:?}");
        }
        let mut export = hairline(folder.path());
        let output =
            run(export.args(["export", "-o", "out", "--table", "slice"]).arg(trace.path()).args(part));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rows = "select name, start, duration, thread_name from slice where tid is not null \
            order by start, duration desc, name, thread_name";
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let row = |row: &Vec<Value>| row.iter().map(text).collect::<Vec<_>>().join("\t");
        let rows: Vec<String> = ask(&folder.path().join("out"), &[rows])[0].iter().map(row).collect();
        assert_eq!(rows.join("\n"), expected, "{format:?}: tables");
        assert!(!rows.is_empty());
        std::fs::remove_dir_all(folder.path().join("out")).expect("removed");
    }
}

/// Three threads with 3, 4 and 5 slices and values of a counter.
fn three_threads(format: Format) -> Trace {
    record(format, |_| {
        for (name, slices) in [("worker-1", 3), ("worker-2", 4), ("other", 5)] {
            let work = move || {
                let own = hairline::Track::thread();
                for n in 0..slices {
                    trace_scope!("t", "work");
                    trace_counter!("t", "of a thread", n, track: &own);
                }
            };
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread");
            thread.join().expect("done");
        }
    })
}

#[test]
fn a_part_that_is_converted_has_only_the_chosen_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = three_threads(format);
        let part = folder.path().join(format!("part.{}", extension(format)));
        let convert = ["--thread", "worker-*"];
        let output = run(hairline(folder.path()).arg("convert").arg(trace.path()).arg(&part).args(convert));
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let slices = "select thread.name, count(*) from slice s join thread_track t on s.track_id = t.id \
            join thread using (utid) group by 1 order by 1";
        let verdict = judge::load(&part, &[slices, "select count(*) from counter"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "worker-1\t3\nworker-2\t4", "{format:?}");
        assert_eq!(verdict.results[1].single_i64(), 7, "{format:?}");
        let mut export = hairline(folder.path());
        let output = run(export.args(["export", "-o", "out"]).arg(trace.path()).args(convert));
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let sql =
            ["select thread_name, count(*) from slice group by 1 order by 1", "select count(*) from counter"];
        let answers = serde_json::to_value(ask(&folder.path().join("out"), &sql)).expect("JSON");
        assert_eq!(answers, serde_json::json!([[["worker-1", 3], ["worker-2", 4]], [[7]]]), "{format:?}");
        std::fs::remove_dir_all(folder.path().join("out")).expect("removed");
    }
}

#[test]
fn threads_are_chosen_by_name_and_by_id() {
    for format in FORMATS {
        let trace = three_threads(format);
        let of = |pattern: &str| stats(trace.path(), &["--thread", pattern]);
        let slices = |stats: &Value| {
            let rows = stats["by_thread"].as_array().expect("rows").iter();
            rows.map(|row| (row["thread"].as_str().expect("a name").to_owned(), number(row, "count")))
                .collect::<Vec<_>>()
        };
        let other = slices(&of("other"));
        assert!(other.len() == 1 && other[0].0.starts_with("other (") && other[0].1 == 5, "{other:?}");
        let id = other[0].0.trim_start_matches("other (").trim_end_matches(')');
        assert_eq!(of(id), of("other"), "{format:?}");
        let workers = of("worker-*");
        let mut counts: Vec<i64> = slices(&workers).iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        assert_eq!((counts, number(&workers, "threads"), number(&workers, "processes")), (vec![3, 4], 2, 1));
        let counters = workers["counters"].as_array().expect("rows").iter();
        let values: i64 = counters.map(|row| number(row, "values")).sum();
        assert_eq!(values, 7, "{format:?}: {}", workers["counters"]);
        // The whole trace's time, of which the threads are a part.
        assert_eq!(number(&workers, "span_ns"), number(&stats(trace.path(), &[]), "span_ns"));
        let own: i64 = flame(trace.path(), &["--thread", "worker-*"]).iter().map(|line| weight(line)).sum();
        assert_eq!(own, number(&workers["names"][0], "total_ns"), "{format:?}");
    }
}

fn weight(line: &str) -> i64 {
    line.rsplit_once(' ').and_then(|(_, weight)| weight.parse().ok()).expect("a weight")
}
