//! `hairline convert` to OTLP, decoded by OpenTelemetry's own package.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use hairline::{Format, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, record};
use serde_json::Value;

use crate::{hairline, run, stderr, without_tracing};

/// The spans of a file.
fn decoded(path: &Path) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/otlp.py");
    let output =
        Command::new("python3").arg(script).arg(path).stdin(Stdio::null()).output().expect("python3");
    assert!(output.status.success(), "run tests/oracle/setup.sh first: {}", stderr(&output));
    let spans: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    spans.as_array().expect("spans").clone()
}

/// The merged trace of the example `requests`.
fn requests(folder: &Path, extension: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_requests"));
    without_tracing(&mut program);
    let done = run(program.current_dir(folder).args(["traces", "--requests", "4", "--format", extension]));
    assert!(done.status.success(), "{}", stderr(&done));
    let names = ["client", "front", "back"].map(|name| format!("traces/{name}.{extension}"));
    let merged = format!("merged.{extension}");
    let done = run(hairline(folder).arg("merge").args(names).args(["-o", &merged]));
    assert!(done.status.success(), "{}", stderr(&done));
    merged
}

fn convert(folder: &Path, input: &str, output: &str, options: &[&str]) -> String {
    let done = run(hairline(folder).args(["convert", input, output]).args(options));
    assert!(done.status.success(), "{}", stderr(&done));
    stderr(&done)
}

/// Slices: number, parent, name, begin, duration. An instant with a flow is a slice without length in FXT,
/// and so it becomes a span there.
const SLICES: [&str; 2] = [
    "select id, ifnull(parent_id, -1), name, ts, dur from slice order by ts, depth",
    "select id, ifnull(parent_id, -1), name, ts, dur from slice where dur > 0 order by ts, depth",
];
/// Instants in slices.
const INSTANTS: &str =
    "select p.id, s.name, s.ts from slice s join slice p on s.parent_id = p.id where s.dur = 0";
/// Which slice a slice of another process follows.
const ARROWS: &str =
    "select slice_in, slice_out from flow join slice a on slice_in = a.id where a.name = 'serve'";

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split('\t').collect()).collect()
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

fn text<'v>(span: &'v Value, key: &str) -> &'v str {
    span[key].as_str().expect("text")
}

#[test]
fn spans_are_the_slices_with_their_parents_and_times() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let merged = requests(folder, extension(format));
        let said = convert(folder, &merged, "all.otlp", &[]);
        let is_fxt = format == Format::Fxt;
        assert_eq!(said.contains("4 instants outside of spans left out"), !is_fxt, "{said}");
        let spans = decoded(&folder.join("all.otlp"));
        convert(folder, &merged, "all.otlp.json", &[]);
        assert_eq!(decoded(&folder.join("all.otlp.json")), spans, "{format:?}");

        let verdict = judge::load(folder.join(&merged), &[SLICES[usize::from(!is_fxt)], INSTANTS, ARROWS]);
        let [slices, instants, arrows] = [0, 1, 2].map(|n| verdict.results[n].text());
        let mut by_start: Vec<&Value> = spans.iter().collect();
        by_start.sort_by_key(|span| number(&span["start"]));
        let slices = rows(&slices);
        assert_eq!(slices.len(), by_start.len(), "{format:?}");
        let parse = |text: &str| text.parse::<i64>().expect("a number");
        let offset = number(&by_start[0]["start"]) - parse(slices[0][3]);
        assert!(offset > 1_600_000_000_000_000_000, "{format:?}: times since 1970");
        let mut span_of = BTreeMap::new();
        for (slice, span) in slices.iter().zip(&by_start) {
            let times = (number(&span["start"]) - offset, number(&span["end"]) - number(&span["start"]));
            assert_eq!(
                (slice[2], parse(slice[3]), parse(slice[4])),
                (text(span, "name"), times.0, times.1),
                "{format:?}"
            );
            span_of.insert(slice[0], *span);
        }
        let arrows: BTreeMap<_, _> = rows(&arrows).into_iter().map(|row| (row[0], row[1])).collect();
        for slice in &slices {
            let parent = span_of.get(slice[1]).or_else(|| span_of.get(arrows.get(slice[0])?));
            let expected = parent.map_or("", |parent| text(parent, "span"));
            assert_eq!(text(span_of[slice[0]], "parent"), expected, "{format:?}: {slice:?}");
            if let Some(parent) = parent {
                assert_eq!(text(span_of[slice[0]], "trace"), text(parent, "trace"), "{format:?}: {slice:?}");
            }
        }
        for instant in rows(&instants).into_iter().filter(|_| !is_fxt) {
            let events = span_of[instant[0]]["events"].as_array().expect("events").clone();
            let is_it =
                |event: &Value| event[1] == instant[1] && number(&event[0]) - offset == parse(instant[2]);
            assert!(events.iter().any(is_it), "{format:?}: {instant:?} {events:?}");
        }
        let header = |span: &Value| Some(span["attributes"]["traceparent"].as_str()?[3..35].to_owned());
        let headers = spans.iter().filter_map(header);
        let traces: BTreeSet<String> = spans.iter().map(|span| text(span, "trace").to_owned()).collect();
        assert_eq!(traces, headers.collect(), "{format:?}: the trace ids of the headers");
        assert_eq!(traces.len(), 4, "{format:?}");
    }
}

const RULES: &str = r#"[
{"name":"fast","cat":"app","ph":"X","ts":0,"dur":5,"pid":1,"tid":1,"args":{"n":1,"list":[1,"a",null]}},
{"name":"slow","cat":"app","ph":"X","ts":10,"dur":2000,"pid":1,"tid":1},
{"name":"inner","cat":"db","ph":"X","ts":20,"dur":100,"pid":1,"tid":1},
{"name":"failed","cat":"app","ph":"X","ts":3000,"dur":5,"pid":1,"tid":1,"args":{"error":"no route"}},
{"name":"queue","ph":"C","ts":3001,"pid":1,"args":{"n":1}}
]"#;

#[test]
fn rules_keep_whole_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("in.json"), RULES).expect("a trace");
    let names = |options: &[&str]| {
        let said = convert(folder, "in.json", "out.otlp", options);
        assert!(said.contains("1 counter value left out"), "{said}");
        let spans = decoded(&folder.join("out.otlp"));
        spans.iter().map(|span| text(span, "name").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[]), "fast slow inner failed");
    assert_eq!(names(&["--slower-than", "1ms"]), "slow inner");
    assert_eq!(names(&["--errors"]), "failed");
    assert_eq!(names(&["--errors", "--slower-than", "2ms"]), "slow inner failed");
    assert_eq!(names(&["--category", "db"]), "inner");
    assert_eq!(names(&["--one-in", "1"]), "fast slow inner failed");

    convert(folder, "in.json", "out.otlp.json", &[]);
    let spans = decoded(&folder.join("out.otlp.json"));
    assert_eq!(spans[0]["attributes"]["list"], serde_json::json!([1, "a", null]));
    assert_eq!((&spans[0]["status"], &spans[3]["status"]), (&Value::from(0), &Value::from(2)));
    assert_eq!(
        (number(&spans[1]["end"]) - number(&spans[1]["start"]), text(&spans[1], "parent")),
        (2_000_000, "")
    );
    assert_eq!(text(&spans[2], "parent"), text(&spans[1], "span"));

    let strict = run(hairline(folder).args(["convert", "in.json", "strict.otlp", "--strict"]));
    assert_eq!((strict.status.code(), folder.join("strict.otlp").exists()), (Some(5), false));
    let usage = run(hairline(folder).args(["convert", "in.json", "out.fxt", "--errors"]));
    assert_eq!(usage.status.code(), Some(2));
    let itself = run(hairline(folder).args(["convert", "in.json", "missing/out.otlp"]));
    assert_eq!(itself.status.code(), Some(1));
}

/// Names of any text, numbers that JSON has not, and headers that are none.
#[test]
fn what_json_has_no_word_for_is_text() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = record(format, |_: &Session| {
            let name = "a\u{1b}[31m\"\n\u{1}";
            trace_scope!("t", "any", name, nan = f64::NAN, low = f64::NEG_INFINITY, big = u64::MAX);
            trace_scope!("t", "zero", traceparent = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)));
        });
        let input = format!("in.{}", extension(format));
        std::fs::copy(trace.path(), folder.path().join(&input)).expect("a trace");
        convert(folder.path(), &input, "out.otlp.json", &[]);
        let bytes = std::fs::read(folder.path().join("out.otlp.json")).expect("the spans");
        let all: Value = serde_json::from_slice(&bytes).expect("JSON");
        let spans = all["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
        let value = |name: &str| {
            let is_it = |attribute: &&Value| attribute["key"] == name;
            spans[0]["attributes"].as_array().expect("attributes").iter().find(is_it).expect(name)["value"]
                .clone()
        };
        assert_eq!(value("name"), serde_json::json!({"stringValue": "a\u{1b}[31m\"\n\u{1}"}));
        assert_eq!(value("nan"), serde_json::json!({"doubleValue": "NaN"}));
        assert_eq!(value("low"), serde_json::json!({"doubleValue": "-Infinity"}));
        assert_eq!(value("big"), serde_json::json!({"stringValue": u64::MAX.to_string()}));
        assert_eq!(spans[1]["traceId"], spans[0]["traceId"], "{format:?}: the header names no trace");
        convert(folder.path(), &input, "out.otlp", &[]);
        assert_eq!(decoded(&folder.path().join("out.otlp")).len(), 2);
    }
}
