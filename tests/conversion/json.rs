//! Trace Event JSON in, and out again.

use hairline::{
    Flow, Track, Unit, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_scope,
};
use hairline_convert::TraceFormat;
use hairline_tests::equal::Shown;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, record};

use crate::{convert, corpus, read};

/// What is lost of a trace that goes from JSON to JSON, where trace_processor shows the same of both.
#[track_caller]
fn same_again(name: &str) -> Vec<(&'static str, u64)> {
    let path = corpus(name);
    let (again, report) = convert(&read(&path), TraceFormat::Json);
    serde_json::from_slice::<serde_json::Value>(&again).expect("JSON for strict parsers too");
    Shown::of(&path).require_equal(&Shown::of_clean(&again));
    report.iter().collect()
}

#[test]
fn what_viztracer_wrote_shows_the_same() {
    assert_eq!(same_again("viztracer.json"), [("unknown members", 1)]);
}

/// It has the threads 0 and 1 of process 1, which importers take for one. In what is written anew, the later
/// one has a number of its own.
#[test]
fn what_tracing_chrome_wrote_shows_the_same() {
    for name in ["tracing_chrome.json", "tracing_chrome_async.json"] {
        let trace = read(&corpus(name));
        let (again, report) = convert(&trace, TraceFormat::Json);
        serde_json::from_slice::<serde_json::Value>(&again).expect("JSON for strict parsers too");
        let text = String::from_utf8(trace).expect("text");
        let apart = text
            .replace(r#""tid":1,"#, r#""tid":1879048192,"#)
            .replace(r#""tid":1}"#, r#""tid":1879048192}"#);
        Shown::with_complaints(apart.as_bytes()).0.require_equal(&Shown::of_clean(&again));
        let lost: Vec<_> = report.iter().collect();
        let is_renumbered = |what: &str| what.starts_with("threads renumbered, because importers of JSON");
        assert!(matches!(lost[..], [(what, 1), ("unknown fields", _)] if is_renumbered(what)), "{lost:?}");
    }
}

#[test]
fn what_chrome_writes_shows_the_same() {
    assert_eq!(
        same_again("chrome.json"),
        [
            ("events with unknown phases", 1),
            ("facts of the trace", 1),
            ("names and categories of flows", 5),
            ("names of colours", 1),
            ("samples of a profiler", 1),
            ("stack frames", 2),
            ("stacks of events", 1),
        ]
    );
}

/// Requires that some tables of a converted trace show the same; returns all of the original's and the
/// result's.
#[track_caller]
fn same_as(name: &str, format: TraceFormat, left_out: &[&str]) -> (Shown, Shown) {
    let path = corpus(name);
    let (converted, _) = convert(&read(&path), format);
    let (original, converted) = (Shown::of(&path), Shown::of_clean(&converted));
    original.clone().without(left_out).require_equal(&converted.clone().without(left_out));
    (original, converted)
}

/// Arguments that are empty arrays and objects, or null, are shown by the other importers only; counters have
/// other names there.
const SHOWN_OTHERWISE: [&str; 3] = ["arguments", "counters", "tracks"];

#[test]
fn slices_that_stand_after_their_children_are_around_them_in_other_formats_too() {
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt] {
        let (_, converted) = same_as("viztracer.json", format, &SHOWN_OTHERWISE);
        let depth = |row: &String| row.split('\t').nth(2).map(str::to_owned);
        let deepest = converted.table("slices").iter().filter_map(depth).max();
        assert!(deepest >= Some("4".to_owned()), "{deepest:?}");
    }
}

#[test]
fn what_chrome_writes_is_the_same_in_other_formats() {
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt] {
        // Instants of everything are on a track with their name there, and FXT has no intervals of a process.
        let left_out = ["arguments", "counters", "tracks", "slices"];
        let (original, converted) = same_as("chrome.json", format, &left_out);
        assert_eq!(without_track(&original), without_track(&converted));
        assert_eq!(original.table("flows").len(), 5);
    }
}

/// trace_processor v52 knows nothing of these phases.
#[test]
fn deprecated_intervals_are_shown_when_converted() {
    let trace = read(&corpus("old_async.json"));
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json] {
        let shown = Shown::of_clean(&convert(&trace, format).0);
        let slices = shown.table("slices").join("\n");
        let begins: Vec<_> = slices.lines().map(|row| row.split('\t').take(2).collect::<Vec<_>>()).collect();
        assert_eq!(
            begins,
            [["10000", "10000"], ["15000", "0"], ["16000", "14000"], ["18000", "0"]],
            "{slices}"
        );
    }
}

#[test]
fn processes_and_threads_known_by_name_keep_it_and_an_end_may_be_missing() {
    let trace = read(&corpus("no_end.json"));
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json] {
        let shown = Shown::of_clean(&convert(&trace, format).0);
        let slices = shown.table("slices").join("\n");
        assert_eq!(slices.matches("io thread\t1073741824\tserver").count(), 2, "{slices}");
        assert_eq!(slices.matches("\t5\t").count(), 1, "{slices}");
    }
}

/// Records a bit of everything in both formats of the SDK.
fn recorded(format: hairline::Format) -> Vec<u8> {
    let trace = record(format, |_| {
        let flow = Flow::new();
        trace_scope!("net", "send", bytes = 512, to = "é\"x", flow: &flow);
        trace_instant!("net", "sent", ratio = 0.5);
        std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || {
                trace_scope!("net", "receive", end_flow: &flow);
                trace_counter!("mem", "in use", 42, unit: Unit::Bytes);
            })
            .unwrap()
            .join()
            .unwrap();
    });
    read(trace.path())
}

#[test]
fn recorded_traces_show_the_same_in_json() {
    for format in FORMATS {
        let trace = recorded(format);
        let (converted, report) = convert(&trace, TraceFormat::Json);
        // The name of a counter in JSON ends with its series, and trace_processor takes no command line from
        // there.
        let left_out = ["counters", "tracks", "processes"];
        let (original, converted) = (Shown::of_clean(&trace), Shown::of_clean(&converted));
        for table in ["slices", "flows", "counters"] {
            assert_eq!(original.table(table).len(), converted.table(table).len(), "{table}, {report:?}");
        }
        original.without(&left_out).require_equal(&converted.without(&left_out));
    }
}

/// The columns of slices that a track has no part in.
fn without_track(shown: &Shown) -> Vec<String> {
    let row = |row: &String| row.split('\t').take(5).collect::<Vec<_>>().join(" ");
    let mut rows: Vec<_> = shown.table("slices").iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn slices_on_tracks_become_intervals() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let gpu = Track::new("gpu");
            let engine = gpu.child("engine 0");
            let queue = Track::process().child("queue");
            trace_begin!("gpu", "a", track: &engine);
            trace_begin!("gpu", "b", number = 17, track: &engine);
            trace_instant!("gpu", "tick", track: &engine);
            trace_end!(&engine, result = "done");
            trace_end!(&engine);
            trace_begin!("q", "outer", track: &queue);
            trace_end!(&queue);
            trace_instant!("q", "of the process", track: &Track::process());
            drop(trace_async!("net", "request", id = 7));
            trace_counter!("mem", "of the queue", 1.5, track: &queue);
        });
        let trace = read(trace.path());
        let (converted, report) = convert(&trace, TraceFormat::Json);
        let (original, converted) = (Shown::of_clean(&trace), Shown::of_clean(&converted));
        assert_eq!(without_track(&original), without_track(&converted), "{format:?} {report:?}");
        assert_eq!(original.table("arguments"), converted.table("arguments"), "{format:?} {report:?}");
        assert_eq!(original.table("counters").len(), converted.table("counters").len());
    }
}

/// A complete slice ends by itself, and closes what began inside it. The end that comes later, by its name,
/// closes nothing; an end of FXT would close the slice around both.
#[test]
fn the_end_of_a_slice_that_a_complete_one_closed_closes_no_other() {
    let original = br#"[
{"name":"request","cat":"c","ts":20,"pid":1,"tid":2,"ph":"B"},
{"name":"lock","cat":"c","ts":25,"pid":1,"tid":2,"ph":"X","dur":1},
{"name":"work","cat":"c","ts":25,"pid":1,"tid":2,"ph":"B"},
{"name":"work","cat":"c","ts":35,"pid":1,"tid":2,"ph":"E"},
{"name":"request","cat":"c","ts":40,"pid":1,"tid":2,"ph":"E"}]"#;
    let shown = |trace: &[u8]| Shown::with_complaints(trace).0.table("slices").to_vec();
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json] {
        let (converted, report) = convert(original, format);
        assert!(report.is_empty(), "{report:?}");
        assert_eq!(shown(&converted), shown(original), "{format:?}");
    }
}

/// A complete slice ends at the time of an end that closes nothing. A begin inside it has no end: importers
/// leave it open.
#[test]
fn an_end_at_the_end_of_a_complete_slice_closes_nothing_of_another_name() {
    let original = br#"[
{"name":"request","cat":"c","ts":10,"pid":1,"tid":2,"ph":"X","dur":50},
{"name":"lock","cat":"c","ts":20,"pid":1,"tid":2,"ph":"B"},
{"name":"work","cat":"c","ts":20,"pid":1,"tid":2,"ph":"B"},
{"cat":"c","ts":40,"pid":1,"tid":2,"ph":"E"},
{"name":"work","cat":"c","ts":60,"pid":1,"tid":2,"ph":"E"}]"#;
    let shown = |trace: &[u8]| Shown::with_complaints(trace).0.table("slices").to_vec();
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json] {
        let (converted, report) = convert(original, format);
        assert!(report.is_empty(), "{report:?}");
        assert_eq!(shown(&converted), shown(original), "{format:?}");
    }
}

/// In microseconds, `tts` and `tdur` are a thread's CPU time at the begin of a slice, and what passes in it.
#[test]
fn the_cpu_time_of_complete_slices_is_at_their_begin_and_at_their_end() {
    let trace = br#"[
        {"ph":"X","name":"a","pid":1,"tid":2,"ts":10,"dur":20,"tts":100,"tdur":7},
        {"ph":"X","name":"inner","pid":1,"tid":2,"ts":12,"dur":5.25,"tts":101.5,"tdur":3},
        {"ph":"X","name":"at once","pid":1,"tid":2,"ts":14,"dur":0,"tts":102,"tdur":0},
        {"ph":"X","name":"c","pid":1,"tid":3,"ts":50,"dur":10,"tts":1,"tdur":2},
        {"ph":"X","name":"beside","pid":1,"tid":3,"ts":55,"dur":10,"tts":2,"tdur":3}]"#;
    let values = "select c.ts, cast(c.value as int) from counter c join counter_track t on t.id = c.track_id \
                  where t.name = 'thread_time' order by 1";
    let slices = "select name, thread_ts, thread_dur from slice order by ts";
    for format in [TraceFormat::TrackEvent, TraceFormat::Fxt] {
        let verdict = judge::load_bytes(&convert(trace, format).0, &[values, slices]);
        let points = "10000\t100000\n12000\t101500\n14000\t102000\n14000\t102000\n17250\t104500\n\
                      30000\t107000\n50000\t1000\n55000\t2000\n60000\t3000\n65000\t5000";
        assert_eq!(verdict.results[0].text().trim_end(), points, "{format:?}");
        if format == TraceFormat::TrackEvent {
            let slices = "a\t100000\t7000\ninner\t101500\t3000\nat once\t102000\t0\nc\t1000\t2000\n\
                          beside\t2000\t3000";
            assert_eq!(verdict.results[1].text().trim_end(), slices);
        }
    }
}

#[test]
fn counters_of_one_name_with_other_ids_stay_apart() {
    let trace = br#"[
        {"ph":"C","name":"queue","pid":1,"ts":1,"id":1,"args":{"value":1}},
        {"ph":"C","name":"queue","pid":1,"ts":2,"id":2,"args":{"value":5}},
        {"ph":"C","name":"queue","pid":1,"ts":3,"id":1,"args":{"value":7},"cat":"a,b"},
        {"ph":"C","name":"queue","pid":1,"ts":4,"args":{"value":9}}]"#;
    let rows = "select group_concat(value, ' ') from (select c.* from counter c order by ts) group by track_id \
                order by min(ts)";
    for between in [TraceFormat::Fxt, TraceFormat::TrackEvent, TraceFormat::Json] {
        let json = convert(&convert(trace, between).0, TraceFormat::Json).0;
        assert_eq!(
            judge::load_bytes(&json, &[rows]).results[0].text().trim_end(),
            "1.0 7.0\n5.0\n9.0",
            "{between:?}"
        );
    }
}
