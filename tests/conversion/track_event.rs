//! A Perfetto trace that is written again says what it said.

use std::thread;
use std::time::Duration;

use hairline::{Flow, Format, Level, Ordering, Session, SessionBuilder, Track, Unit};
use hairline::{
    scope, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_log, trace_scope,
};
use hairline_convert::{Report, TraceFormat};
use hairline_tests::equal::Shown;
use hairline_tests::judge::encode;
use hairline_tests::recording::record_with;

use crate::{convert, read};

/// Requires that the judge sees the same in a trace and in what it becomes, and that nothing had to be said
/// about it.
#[track_caller]
fn stays_the_same(trace: &[u8]) -> Vec<u8> {
    let (converted, report) = convert(trace, TraceFormat::TrackEvent);
    assert_eq!(report, Report::default());
    Shown::of_clean(trace).require_equal(&Shown::of_clean(&converted));
    converted
}

fn record(
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Vec<u8> {
    read(record_with(Format::TrackEvent, configure, program).path())
}

/// Something of everything.
pub(crate) fn everything() {
    let flow = Flow::new();
    let lane = Track::process().child("lanes").ordering(Ordering::Explicit).description("two of them");
    let (first, second) = (lane.child("first").rank(2), lane.child("second").rank(1));
    thread::scope(|threads| {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let worker = named("worker").spawn_scoped(threads, || {
            trace_scope!("net,db", "work", flow: &flow, list = [1_u8, 2, 3], share = 0.25, text = "é\"\n");
            trace_begin!("disk", "write", track: &first, bytes = 10);
            trace_instant!("disk", "sync", track: &second);
            trace_counter!("disk", "written", 4096, unit: Unit::Bytes);
            trace_end!(&first);
            trace_log!(Level::Warn, "net", "only {} left", 3);
        });
        worker.expect("a thread").join().expect("no panic");
    });
    let mut outer = scope!("net", "outer", name: format!("outer {}", 1), end_flow: &flow);
    let interval = trace_async!("jobs", "job");
    for n in 0..3_i64 {
        trace_scope!("net", "inner", n = -n, is_last = n == 2);
        trace_counter!("net", "queue", n);
        trace_counter!("net", "level", 0.5, track: &Track::thread());
        thread::sleep(Duration::from_millis(3)); // longer than a timestamp of 3 bytes
    }
    drop(interval);
    outer.arg("result", "late");
}

#[test]
fn a_recording_of_everything() {
    stays_the_same(&record(|builder| builder, |_| everything()));
}

#[test]
fn a_recording_with_places_and_cpu_time() {
    stays_the_same(&record(|builder| builder.source_locations(true).thread_time(true), |_| everything()));
}

#[test]
fn a_compressed_recording() {
    stays_the_same(&record(|builder| builder.compress(true), |_| everything()));
}

/// The examples of Perfetto's document on TrackEvents that are written by hand.
#[test]
fn the_examples_of_the_document() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabulary/examples");
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let text = std::fs::read_to_string(entry.expect("an example").path()).expect("text");
        let trace = encode(&text);
        let (converted, report) = convert(&trace, TraceFormat::TrackEvent);
        let (before, after) = (Shown::of_clean(&trace), Shown::of_clean(&converted));
        if report.is_empty() {
            before.require_equal(&after);
        } else {
            // Some give a name to a process's own track, beside the process's. The model has no place for it.
            let named = "track names that differ from the name of their process or thread";
            assert!(report.iter().all(|(what, _)| what == named), "{report:?}");
            before.without(&["slices", "tracks"]).require_equal(&after.without(&["slices", "tracks"]));
        }
    }
}
