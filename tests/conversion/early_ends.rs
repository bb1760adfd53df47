//! Slices of tracks that end on another thread, whose chunk precedes that of the begin in the file.

use std::sync::mpsc::channel;
use std::thread;

use hairline::{Flow, Format, Track, trace_async, trace_begin, trace_end, trace_instant};
use hairline_convert::TraceFormat;
use hairline_tests::judge::rows;
use hairline_tests::recording::{FORMATS, record};

use crate::{convert, read};

const ALL: [TraceFormat; 3] = [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json];

/// Category and name of each slice with a duration, and whether it has an end.
const SLICES: &str = "select category, name, dur > 0 from slice where name != 'first' order by ts";

/// Runs `begin` here, after another thread has written an event, and `end` on that thread.
fn end_elsewhere<T: Send + 'static>(begin: impl FnOnce() -> T, end: impl FnOnce(T) + Send + 'static) {
    let ((sender, receiver), (ready, is_ready)) = (channel(), channel());
    let other = thread::spawn(move || {
        trace_instant!("app", "first"); // takes the first chunk
        ready.send(()).unwrap();
        end(receiver.recv().unwrap());
    });
    is_ready.recv().unwrap();
    sender.send(begin()).unwrap();
    other.join().unwrap();
}

/// The slices of a recording, in each format, and of its conversions to JSON and from there to each format.
#[track_caller]
fn require_everywhere(run: impl Fn(), expected: &str) {
    for format in FORMATS {
        let trace = read(record(format, |_| run()).path());
        assert_eq!(rows(&trace, [SLICES])[0].trim(), expected, "{format:?}");
        let (json, _) = convert(&trace, TraceFormat::Json);
        assert_eq!(rows(&json, [SLICES])[0].trim(), expected, "{format:?} to JSON");
        for to in ALL {
            let (again, _) = convert(&json, to);
            assert_eq!(rows(&again, [SLICES])[0].trim(), expected, "{format:?} to JSON to {to:?}");
        }
    }
}

#[test]
fn an_interval_that_ends_on_another_thread_has_its_duration() {
    let run = || end_elsewhere(|| trace_async!("app", "job", number = 7), drop);
    require_everywhere(run, "app\tjob\t1");
}

#[test]
fn a_slice_of_a_track_that_ends_on_another_thread_has_its_duration() {
    let run = || {
        end_elsewhere(
            || {
                let disk = Track::process().child("disk");
                trace_begin!("app", "write", track: &disk);
                disk
            },
            |disk| trace_end!(&disk),
        );
    };
    require_everywhere(run, "app\twrite\t1");
}

/// By the order of the file alone, the first end would close nothing, and the second the slice inside.
#[test]
fn ends_find_the_begins_of_their_time_among_several_categories() {
    let run = || {
        end_elsewhere(
            || {
                let disk = Track::process().child("disk");
                trace_begin!("db", "write", track: &disk);
                disk
            },
            |disk| {
                trace_end!(&disk);
                trace_begin!("net", "read", track: &disk);
                trace_end!(&disk);
            },
        );
    };
    require_everywhere(run, "db\twrite\t1\nnet\tread\t1");
}

/// The end of the flow precedes its begin in the file. (FXT has the flows of intervals on threads.)
#[test]
fn a_flow_between_intervals_of_two_threads_is_whole() {
    let run = || {
        let begin = || {
            let flow = Flow::new();
            drop(trace_async!("app", "sent", flow: &flow));
            flow
        };
        end_elsewhere(begin, |flow| drop(trace_async!("app", "received", end_flow: &flow)));
    };
    let trace = read(record(Format::TrackEvent, |_| run()).path());
    let (json, report) = convert(&trace, TraceFormat::Json);
    let of_flows: Vec<_> = report.iter().filter(|(what, _)| what.contains("flow")).collect();
    assert_eq!(of_flows, []);
    assert_eq!(rows(&json, ["select count() from flow"])[0].trim(), "1");
}

/// The flow has a begin, though JSON cannot connect the two.
#[test]
fn a_flow_from_a_thread_to_an_interval_is_said_to_be_cut() {
    let run = || {
        let begin = || {
            let flow = Flow::new();
            trace_instant!("app", "sent", flow: &flow);
            flow
        };
        end_elsewhere(begin, |flow| drop(trace_async!("app", "received", end_flow: &flow)));
    };
    let trace = read(record(Format::TrackEvent, |_| run()).path());
    let (_, report) = convert(&trace, TraceFormat::Json);
    let of_flows: Vec<_> = report.iter().filter(|(what, _)| what.contains("flow")).collect();
    assert_eq!(of_flows, [("flows between threads and intervals, cut in two", 1)]);
}

/// FXT finds the begin of an interval by its name, which ends in JSON need not have.
#[test]
fn an_end_without_a_name_before_its_begin_ends_the_slice_in_each_format() {
    let event = |rest: &str| format!(r#"{{"cat":"app","id":1,"pid":1,{rest}}}"#);
    let [first, second] = [r#""ph":"e","ts":20"#, r#""ph":"b","ts":10,"name":"job""#].map(event);
    let next = [r#""ph":"b","ts":30,"name":"next""#, r#""ph":"e","ts":40"#].map(event).join(",");
    let json = format!("[{first},{second},{next}]").into_bytes();
    for to in ALL {
        let (converted, _) = convert(&json, to);
        let sql = "select name, dur from slice order by ts";
        assert_eq!(rows(&converted, [sql])[0].trim(), "job\t10000\nnext\t10000", "{to:?}");
    }
}
