//! Parts that become one trace byte by byte: what a reader of the whole sees of each.

use std::sync::Arc;

use hairline_convert::splice::Splice;
use hairline_convert::{Context, Item, TraceFormat};
use hairline_formats::fxt;
use hairline_formats::track_event::{self as te, SequenceId};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, record};

fn source(format: hairline::Format) -> TraceFormat {
    if format == hairline::Format::Fxt { TraceFormat::Fxt } else { TraceFormat::TrackEvent }
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

/// Slices, those that are not whole, flows.
const COUNTS: [&str; 3] = [
    "select count(*) from slice",
    "select count(*) from slice where dur < 0 or name is null",
    "select count(*) from flow",
];

/// Tracks with slices on them that are no thread's.
const TRACKS: [&str; 1] =
    ["select count(distinct track_id) from slice where track_id not in (select id from thread_track)"];

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
        // To the importer a thread of both is one thread, in which the same slices lie in each other: its
        // tracks only are asked for.
        let (one, two) = (judge::load(part.path(), &TRACKS), judge::load_bytes(&whole, &TRACKS));
        let count = |verdict: &judge::Verdict| verdict.results[0].rows[0][0].as_i64();
        assert_eq!(
            count(&two),
            count(&one).map(|n| 2 * n),
            "{format:?}: {} {}",
            one.results[0],
            two.results[0]
        );
    }
}

#[test]
fn parts_may_come_in_any_order() {
    for format in FORMATS {
        let parts = [record(format, |_| program()), record(format, |_| program())];
        let mut splice = Splice::new(source(format), Vec::new()).expect("a format");
        for part in parts.iter().rev() {
            splice.add(&std::fs::read(part.path()).expect("the part")[..]).expect("added");
        }
        let (whole, _) = splice.finish().expect("written");
        let (one, both) = (judge::load(parts[0].path(), &COUNTS), judge::load_bytes(&whole, &COUNTS));
        both.require_clean();
        let count = |verdict: &judge::Verdict, query: usize| verdict.results[query].rows[0][0].as_i64();
        for query in [0, 2] {
            assert_eq!(
                count(&both, query),
                count(&one, query).map(|n| 2 * n),
                "{format:?}: {}",
                COUNTS[query]
            );
        }
        assert_eq!(both.results[1].text(), "0", "{format:?}");
    }
}

#[test]
fn a_part_that_ends_early_is_kept_up_to_there() {
    for format in FORMATS {
        let part = record(format, |_| program());
        let bytes = std::fs::read(part.path()).expect("the part");
        // Of two neighbouring places one at least is within a record.
        let cut_at = |len: usize| {
            let mut splice = Splice::new(source(format), Vec::new()).expect("a format");
            splice.add(&bytes[..len]).err().map(|e| (splice, e))
        };
        let middle = bytes.len() / 2;
        let (splice, e) = cut_at(middle).or_else(|| cut_at(middle + 1)).expect("cut");
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

#[test]
fn hidden_packets_are_renumbered_and_stay_hidden() {
    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
    for (out, name) in [(&mut shown, "shown"), (&mut hidden, "hidden")] {
        let begin = te::Event {
            name: Some(te::Name::Text(name)),
            ..te::Event::new(SequenceId(7), te::EventType::Instant, 5)
        };
        te::event(out, &te::Event { needs_state: false, ..begin });
    }
    te::hidden_packets(&mut shown, &hidden);
    let mut fxt = Vec::new();
    fxt::magic(&mut fxt);
    fxt::provider_info(&mut fxt, 0, "p");
    fxt::provider_section(&mut fxt, 0);
    fxt::initialization(&mut fxt, 1_000_000_000);
    fxt::blob(&mut fxt, fxt::StringRef::Inline("b"), fxt::BLOB_PERFETTO, &shown);
    for (format, bytes) in [(TraceFormat::TrackEvent, &shown), (TraceFormat::Fxt, &fxt)] {
        let mut splice = Splice::new(format, Vec::new()).expect("a format");
        splice.add(&bytes[..]).expect("added");
        splice.add(&bytes[..]).expect("added");
        let (whole, totals) = splice.finish().expect("written");
        assert_eq!((totals.damaged, totals.events), (0, 4), "{format:?}");
        let verdict = judge::load_bytes(&whole, &["select name from slice"]);
        assert_eq!(verdict.results[0].to_string(), "name\nshown\nshown", "{format:?}");
        let (mut reader, mut context) =
            (hairline_convert::open(&whole[..], Some(format)).expect("a trace"), Context::new());
        let mut names = Vec::new();
        while let Some(item) = reader.next(&mut context).expect("an item") {
            if let Item::Event(event) = item {
                names.push(event.name.text.to_owned());
            }
        }
        assert_eq!(names, ["shown", "hidden", "shown", "hidden"], "{format:?}");
    }
}
