//! Parts that become one trace byte by byte: what a reader of the whole sees of each.

use std::sync::Arc;

use hairline_convert::Source;
use hairline_convert::splice::Splice;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, record};

fn source(format: hairline::Format) -> Source {
    if format == hairline::Format::Fxt { Source::Fxt } else { Source::TrackEvent }
}

/// One of everything that has a number: threads, tracks, counters, async intervals, flows.
fn program() {
    use hairline::{
        Flow, Track, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_scope,
    };
    let flow = Arc::new(Flow::new());
    let track = Track::new("tree").child("leaf");
    for n in 0..20 {
        trace_scope!("t", "outer", n, flow: &flow);
        trace_begin!("t", "on a track", track: &track);
        trace_counter!("t", "count", n);
        let interval = trace_async!("t", "interval");
        trace_instant!("t", "moment", text = "some");
        drop(interval);
        trace_end!(&track);
    }
    std::thread::spawn(move || {
        trace_scope!("t", "last", end_flow: &flow);
    })
    .join()
    .expect("joined");
}

/// What is counted of each: it adds up.
const COUNTS: [&str; 5] = [
    "select count(*), sum(dur < 0), sum(depth) from slice",
    "select count(*) from slice where dur < 0 or name is null",
    "select count(*) from flow",
    "select count(*), sum(value) from counter",
    "select count(distinct track_id) from slice",
];

#[test]
fn the_same_numbers_in_two_parts_are_two_things() {
    for format in FORMATS {
        let part = record(format, |_| program());
        let bytes = std::fs::read(part.path()).expect("the part");
        // The same part twice is the worst case, but for flows: those go from part to part by their numbers.
        let mut splice = Splice::new(source(format), Vec::new()).expect("a format");
        splice.add(&bytes[..]).expect("added");
        splice.add(&[][..]).expect("an empty one adds nothing");
        splice.add(&bytes[..]).expect("added");
        let (whole, totals) = splice.finish().expect("written");
        assert_eq!((totals.bytes, totals.damaged, totals.lost), (whole.len() as u64, 0, 0));
        assert_eq!(totals.events, 2 * part.summary.records, "{format:?}");
        let (one, two) = (judge::load(part.path(), &COUNTS), judge::load_bytes(&whole, &COUNTS));
        one.require_clean();
        // A thread of two traces is one thread to the importer, so that its slices would lie in each other; only tracks are asked here.
        let tracks = |verdict: &judge::Verdict| verdict.results[3].text();
        assert_ne!(tracks(&one), tracks(&two), "{format:?}");
    }
}

#[test]
fn a_part_that_ends_early_is_kept_up_to_there() {
    for format in FORMATS {
        let part = record(format, |_| program());
        let bytes = std::fs::read(part.path()).expect("the part");
        let mut splice = Splice::new(source(format), Vec::new()).expect("a format");
        let e = splice.add(&bytes[..bytes.len() / 2 + 3]).expect_err("cut");
        assert!(e.is_truncated(), "{e}");
        let (whole, totals) = splice.finish().expect("written");
        assert!(totals.events > 10 && whole.len() < bytes.len());
        judge::load_bytes(&whole, &[]);
    }
}

#[test]
fn what_is_no_trace_is_refused_and_the_others_are_kept() {
    for format in FORMATS {
        let part = record(format, |_| program());
        let bytes = std::fs::read(part.path()).expect("the part");
        let mut splice = Splice::new(source(format), Vec::new()).expect("a format");
        for garbage in [
            &[0xff_u8; 1000][..],
            &[0; 64],
            b"not a trace at all, but text of some length",
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            splice.add(garbage).expect_err("no trace");
        }
        splice.add(&bytes[..]).expect("added");
        let (_, totals) = splice.finish().expect("written");
        assert_eq!(totals.events, part.summary.records, "{format:?}");
    }
}
