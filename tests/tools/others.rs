//! Traces of other people's tools: what `stats` says of them is what trace_processor says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hairline_tests::judge;
use hairline_tests::thread_0::without_thread_0;
use serde_json::Value;

use crate::{hairline, json, run, stderr};

/// Those of the corpus; and those in the folder that a variable names: `ci/others.sh` records them.
fn traces() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("conversion/corpus");
    let folders = [Some(corpus), std::env::var_os("OTHER_TRACES").map(PathBuf::from)];
    let of = |folder: PathBuf| {
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path())
    };
    let is_trace = |path: &PathBuf| {
        path.extension().is_some_and(|extension| ["json", "pftrace", "fxt"].iter().any(|e| extension == *e))
    };
    // trace_processor does not know the deprecated phases of this one.
    let is_known = |path: &PathBuf| !path.ends_with("old_async.json");
    let mut traces: Vec<_> =
        folders.into_iter().flatten().flat_map(of).filter(is_trace).filter(is_known).collect();
    traces.sort();
    assert!(traces.len() >= 4, "{traces:?}");
    traces
}

/// The number of slices and instants, and the time of the slices that have an end.
const TOTALS: &str = "select count(*), count(*) filter (where dur < 0) from slice";
/// Of slices on threads, and of those on other tracks.
const BY_NAME: &str = "select ifnull(s.name, ''), t.id is not null, sum(s.dur) from slice s \
     left join thread_track t on s.track_id = t.id where s.dur > 0 group by 1, 2";

/// What trace_processor says when it left out slices.
const LEFT_OUT: [&str; 2] =
    ["slice_drop_overlapping_complete_event", "trace_sorter_negative_timestamp_dropped"];

/// The total time by name, and whether it is of slices on threads.
fn by_name(stats: &Value) -> BTreeMap<(String, bool), i64> {
    let table = |table: &str, title: &str, of_threads: bool| {
        let rows = stats[table].as_array().cloned().unwrap_or_default();
        let title = title.to_owned();
        rows.into_iter().map(move |row| {
            let name = row[&title].as_str().expect("a name").to_owned();
            ((name, of_threads), row["total_ns"].as_i64().expect("a time"))
        })
    };
    let mut all = BTreeMap::new();
    for (key, total) in table("names", "name", true).chain(table("intervals", "interval", false)) {
        *all.entry(key).or_default() += total;
    }
    all.retain(|_, total| *total != 0);
    all
}

/// What `stats` says of a trace.
fn stats(folder: &Path, trace: &Path) -> Value {
    let output = run(hairline(folder).args(["stats", "--json"]).arg(trace));
    assert_eq!(output.status.code(), Some(0), "{}: {}", trace.display(), stderr(&output));
    json::parse("stats", &output.stdout)
}

/// Each total that is not that of trace_processor.
fn differences(trace: &Path, stats: &Value) -> Vec<String> {
    let count = |what: &str| stats[what].as_i64().expect("a number");
    let bytes = std::fs::read(trace).expect("a trace");
    let verdict = judge::load_bytes(&without_thread_0(&bytes).unwrap_or(bytes), &[TOTALS, BY_NAME]);
    // trace_processor leaves out what overlaps another slice of its thread, or begins before the time 0.
    let left_out = |name: &str| LEFT_OUT.contains(&name);
    if verdict.complaints.iter().any(|stat| left_out(&stat.name)) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    let totals = format!(
        "{}\t{}",
        count("slices") + count("slices_without_end") + count("instants"),
        count("slices_without_end")
    );
    if verdict.results[0].text() != totals {
        wrong.push(format!("{}: {totals}, not {}", trace.display(), verdict.results[0].text()));
    }
    let mut judged: BTreeMap<_, i64> = BTreeMap::new();
    for row in verdict.results[1].text().lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        let key = (fields[0].to_owned(), fields[1] == "1");
        *judged.entry(key).or_default() += fields[2].parse::<i64>().expect("a time");
    }
    let own = by_name(stats);
    let all: BTreeSet<_> = judged.keys().chain(own.keys()).collect();
    for key in all {
        let (judged, own) = (judged.get(key), own.get(key));
        if judged != own {
            wrong.push(format!("{}: {key:?}: {own:?}, not {judged:?}", trace.display()));
        }
    }
    wrong
}

#[test]
fn stats_of_traces_of_other_tracers_are_those_of_trace_processor() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong: Vec<_> =
        traces().iter().flat_map(|trace| differences(trace, &stats(folder.path(), trace))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// tracing-chrome numbers threads from 0, and its process has the number 1. Whether the slices of its threads
/// 0 and 1 overlap is a matter of chance.
#[test]
fn thread_0_and_the_thread_with_the_number_of_its_process_are_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, written) = (folder.path().join("in.json"), folder.path().join("out.json"));
    let event =
        |name, ph, tid, ts| format!(r#"{{"name":"{name}","ph":"{ph}","pid":1,"tid":{tid},"ts":{ts}}}"#);
    let events =
        [event("a", "B", 0, 10), event("b", "B", 1, 11), event("a", "E", 0, 20), event("b", "E", 1, 30)];
    std::fs::write(&trace, format!("[{}]", events.join(","))).expect("written");
    let stats = stats(folder.path(), &trace);
    assert_eq!(differences(&trace, &stats), [""; 0]);
    let durations =
        |trace: &[u8]| judge::load_bytes(trace, &["select name, dur from slice"]).results[0].text();
    let (right, bytes) = ("a\t10000\nb\t19000", std::fs::read(&trace).expect("a trace"));
    assert_eq!(durations(&without_thread_0(&bytes).expect("both threads")), right);
    assert_eq!(durations(&bytes), "a\t10000\nb\t9000", "the importer takes the threads for one");
    // What is written anew has two numbers for them.
    let output = run(hairline(folder.path()).args(["convert", "in.json", "out.json"]));
    assert!(
        stderr(&output).contains("1 thread renumbered, because importers of JSON"),
        "{}",
        stderr(&output)
    );
    assert_eq!(durations(&std::fs::read(written).expect("a trace")), right);
}
