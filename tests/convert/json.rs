//! Trace Event JSON in, and out again.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use hairline_convert::{Context, Report, Source, create, open};
use hairline_tests::equal::Shown;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("convert/corpus").join(name)
}

/// A trace in another format, and what was lost on the way.
#[track_caller]
fn convert(trace: &[u8], format: Source) -> (Vec<u8>, Report) {
    let mut output = Vec::new();
    let mut reader = open(Cursor::new(trace), None).unwrap();
    let mut writer = create(format, &mut output).unwrap();
    let mut context = Context::new();
    while let Some(item) = reader.next(&mut context).unwrap() {
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    let mut report = reader.report().clone();
    report.add_all(writer.report());
    drop(writer);
    (output, report)
}

/// What is lost of a trace that goes from JSON to JSON, where trace_processor shows the same of both.
#[track_caller]
fn same_again(name: &str) -> Vec<(&'static str, u64)> {
    let path = corpus(name);
    let (again, report) = convert(&std::fs::read(&path).unwrap(), Source::Json);
    serde_json::from_slice::<serde_json::Value>(&again).expect("JSON for strict parsers too");
    Shown::of(&path).require_equal(&Shown::of_clean(&again));
    report.iter().collect()
}

#[test]
fn what_viztracer_wrote_shows_the_same() {
    assert_eq!(same_again("viztracer.json"), [("members that nobody knows", 1)]);
}

#[test]
fn what_tracing_chrome_wrote_shows_the_same() {
    for name in ["tracing_chrome.json", "tracing_chrome_async.json"] {
        let lost = same_again(name);
        assert!(matches!(lost[..], [("fields that nobody knows", _)]), "{lost:?}");
    }
}

#[test]
fn what_chrome_writes_shows_the_same() {
    assert_eq!(
        same_again("chrome.json"),
        [
            ("events of phases that nobody knows", 1),
            ("facts of the trace", 1),
            ("names of colours", 1),
            ("samples of a profiler", 1),
            ("stack frames", 2),
            ("stacks of events", 1),
        ]
    );
}
