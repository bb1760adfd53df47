//! Slices at the limit of depth, and traces that are cut.

use hairline_convert::TraceFormat::{self, Fxt, Json, TrackEvent};
use hairline_convert::{Context, create, open};
use hairline_formats::fxt;
use hairline_formats::track_event as te;
use hairline_tests::equal::Shown;

use super::cases::{CASES, Case, Record, Twist, What, case};
use super::encode::encode;
use super::judged;
use crate::convert;
use crate::differences::TABLES;
use crate::matrix::same;

/// Slices around slices: `depth` begins and ends, or complete slices in order of their begins or their ends.
fn nested(depth: u64, way: usize, number: u64) -> (u64, Case) {
    let at = |time, what| Record { time, what, of: 0 };
    let unit = if depth.is_multiple_of(2) { 1_000 } else { 1_001 }; // whole microseconds have a form of their own
    let (begin, end) = (|n: u64| unit * n, |n: u64| unit * (2 * depth - n));
    let complete = |n: u64| at(begin(n), What::Complete(end(n) - begin(n)));
    let records = match way {
        0 => {
            let begins = (0..depth).map(|n| at(begin(n), What::Begin));
            begins.chain((0..depth).rev().map(|n| at(end(n), What::End))).collect()
        }
        1 => (0..depth).map(complete).collect(),
        _ => (0..depth).rev().map(complete).collect(),
    };
    let name = format!("{number}: {depth} deep, way {way}");
    (number, Case { name, records, place: 0, twist: Twist::None })
}

/// Importers drop the begins of slices that are nested deeper than 512. The time of a complete slice is right
/// at any depth.
#[test]
fn slices_at_the_limit_of_depth_and_beyond_it_in_all_formats() {
    for from in [Json, Fxt, TrackEvent] {
        for depth in [300, 511, 512, 513, 600, 1501] {
            for way in 0..3 {
                let case = [nested(depth, way, 0)];
                let trace = encode(&case, from);
                let (before, _) = judged(&trace);
                for to in [TrackEvent, Fxt, Json] {
                    let (converted, report) = convert(&trace, to);
                    let (after, _) = judged(&converted);
                    let of = |shown| TABLES.iter().map(move |table| same(shown, table)).collect::<Vec<_>>();
                    let is_same = of(&before) == of(&after);
                    let name = format!("{} to {}, {}", from.name(), to.name(), case[0].1.name);
                    let rows = |shown: &Shown| shown.table("slices").len();
                    let counts = (rows(&before), rows(&after));
                    assert!(is_same || !report.is_empty(), "{name}: {counts:?} slices");
                    let times = |shown: &Shown| {
                        let rows = shown.table("slices").iter();
                        let mut times: Vec<_> =
                            rows.map(|row| row.split('\t').take(2).collect::<Vec<_>>().join(" ")).collect();
                        times.sort();
                        times
                    };
                    if way != 0 && from != TrackEvent {
                        assert_eq!(times(&before), times(&after), "{name}");
                    }
                }
            }
        }
    }
}

/// The valid part of a conversion, and whether the reader says that the trace is cut.
fn converted_part(trace: &[u8], from: TraceFormat, to: TraceFormat) -> (Vec<u8>, bool) {
    let (mut out, mut context) = (Vec::new(), Context::new());
    let mut writer = create(to, &mut out);
    let mut reader = open(trace, Some(from)).expect("a trace");
    let is_cut = loop {
        match reader.next(&mut context) {
            Ok(Some(item)) => writer.write(&item).expect("memory"),
            Ok(None) => break false,
            Err(e) => {
                assert!(e.is_truncated(), "{e}");
                break true;
            }
        }
    };
    writer.finish().expect("memory");
    drop(writer);
    (out, is_cut)
}

/// The end of the last whole record before a place.
fn whole(trace: &[u8], format: TraceFormat, cut: usize) -> usize {
    let mut ends = vec![0];
    match format {
        Json => ends.extend(trace.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1)),
        Fxt => {
            let mut records = fxt::RecordReader::new(trace);
            while let Some((offset, _)) = records.next().expect("a record") {
                ends.push(usize::try_from(offset).expect("small"));
            }
        }
        TrackEvent => {
            let mut packets = te::PacketReader::new(trace);
            while let Some((offset, _)) = packets.next().expect("a packet") {
                ends.push(usize::try_from(offset).expect("small"));
            }
        }
    }
    ends.into_iter().filter(|end| *end <= cut).max().unwrap_or(0)
}

/// A part of a trace in all formats is what the records before the cut are in them.
#[test]
fn cut_traces_in_all_formats() {
    let cuts = std::env::var("HAIRLINE_GENERATED").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(100);
    for from in [Json, Fxt, TrackEvent] {
        for cut in 0..cuts / 50 {
            let numbers = (0..20).map(|n| (cut * 7_919 + n * 1_237) % CASES);
            let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(number))).collect();
            let trace = encode(&cases, from);
            let at = 1_000 + cut.wrapping_mul(0x9e37_79b9) % (trace.len() - 1_000);
            let (to, end) = ([TrackEvent, Fxt, Json][cut % 3], whole(&trace, from, at));
            let mut part = trace[..end].to_vec();
            if from == Json {
                part.truncate(part.len() - 2);
                part.push(b']');
            }
            let (expected, _) = converted_part(&part, from, to);
            let (found, is_cut) = converted_part(&trace[..at], from, to);
            assert!(found == expected, "{} to {}, cut at {at}", from.name(), to.name());
            assert!(is_cut || at == end || from == Json, "{} cut at {at} of {end}", from.name());
        }
    }
}
