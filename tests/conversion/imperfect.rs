//! Generated traces of JSON with faults: cut anywhere, with a fault in one event, nested deeper than
//! importers count. What is right in them is read, whatever is wrong.

use std::io::Read;

use crate::convert;
use hairline_convert::TraceFormat::{self, Fxt, Json};
use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Context, Event, EventKind, Item, JsonReader, TraceReader, TrackId};

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A slice in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
}

/// Slices that nest, in the order of their ends. Many end with the slice around them.
fn tree(random: &mut Random, depth: u64, (from, to): (u64, u64), all: &mut Vec<Span>) {
    let mut at = from;
    while depth > 0 && at + 10_000 < to && random.below(4) > 0 {
        let begin = at + random.below((to - at) / 4);
        let end = if random.below(3) == 0 { to } else { begin + 1 + random.below(to - begin) };
        tree(random, depth - 1, (begin, end), all);
        at = end;
    }
    all.push(Span { from, to });
}

/// An event whose begin and duration are rounded to nanoseconds, each on its own.
fn rounded(span: &Span) -> (u64, u64) {
    let ns = |ps: u64| (ps + 500) / 1000;
    (ns(span.from), ns(span.to - span.from))
}

fn event(span: &Span, name: &str) -> String {
    let (begin, duration) = rounded(span);
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    format!(
        r#"{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":{},"dur":{},"args":{{"n":1}}}}"#,
        us(begin),
        us(duration)
    )
}

fn trees(seed: u64, count: u64) -> Vec<Span> {
    let (mut random, mut all) = (Random(seed), Vec::new());
    for n in 0..count {
        let from = n * 3_000_000_000 + random.below(1000);
        let to = from + 2_000_000_000 + random.below(1000);
        tree(&mut random, 6, (from, to), &mut all);
    }
    all
}

/// The times of the slices, and whether the reader ended without an error.
fn times(trace: impl Read) -> (Vec<(i64, i64)>, bool) {
    let (mut reader, mut context, mut times) = (JsonReader::new(trace), Context::new(), Vec::new());
    let is_whole = loop {
        match reader.next(&mut context) {
            Ok(Some(Item::Event(Event { time, kind: EventKind::Complete { duration }, .. }))) => {
                times.push((time, duration));
            }
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(e) => {
                assert!(e.is_truncated(), "{e}");
                break false;
            }
        }
    };
    times.sort_unstable();
    (times, is_whole)
}

#[test]
fn a_cut_trace_has_all_slices_before_the_cut() {
    let (spans, mut random) = (trees(5, 200), Random(6));
    let lines: Vec<_> = spans.iter().map(|span| event(span, "a")).collect();
    let whole = format!("[\n{}\n]", lines.join(",\n"));
    for _ in 0..200 {
        let cut = 2 + random.below(whole.len() as u64 - 2) as usize;
        let complete = whole[..cut].matches("}}").count();
        let (before, _) = times(format!("[\n{}\n]", lines[..complete].join(",\n")).as_bytes());
        let (found, is_whole) = times(&whole.as_bytes()[..cut]);
        let rest = &whole[whole[..cut].rfind("}}").map_or(1, |end| end + 2)..cut];
        let is_inside = rest.contains('{');
        assert_eq!((found, is_whole), (before, !is_inside), "cut at {cut}");
    }
}

/// What may be wrong with an event, and whether its slice is lost.
const FAULTS: [(&str, &str, bool); 14] = [
    (r#""n":1"#, r#""n":NaN"#, false),
    (r#""n":1"#, r#""n":-inf,"#, false),
    (r#""n":1"#, r#""n":undefined"#, false),
    (r#""n":1"#, r#""n":"C:\Users\x""#, false),
    (r#""n":1"#, "\"n\":\"a\u{1}\nb\"", false),
    (r#""n":1"#, r#""n":"say "hi", you""#, false),
    (r#""n":1"#, r#""n":[1,2,"#, false),
    (r#""name":"a""#, r#""name":"a "b" c""#, false),
    (r#""name":"a""#, r#""name":"a " b""#, false),
    (r#""name":"a""#, r#""name":"{"x": 1}(2)""#, false),
    (r#""name":"a","#, r#""name":"a,"#, false),
    (r#","pid":1"#, r#",pid":1"#, false),
    (r#","args":{"n":1}}"#, "", false),
    (r#","ts":"#, r#","ts":"#, false),
];

#[test]
fn a_fault_in_one_event_costs_no_other() {
    let spans = trees(7, 40);
    let (expected, _) = times(format!("[{}]", lines_of(&spans).join(",\n")).as_bytes());
    let mut random = Random(8);
    for (right, wrong, is_lost) in FAULTS {
        for _ in 0..20 {
            let mut lines = lines_of(&spans);
            let at = random.below(lines.len() as u64 - 1) as usize;
            lines[at] = lines[at].replacen(right, wrong, 1);
            let (found, is_whole) = times(format!("[{}]", lines.join(",\n")).as_bytes());
            let missing = usize::from(is_lost);
            assert_eq!((found.len() + missing, is_whole), (expected.len(), true), "{}", lines[at]);
        }
    }
}

fn lines_of(spans: &[Span]) -> Vec<String> {
    spans.iter().map(|span| event(span, "a")).collect()
}

/// The sum of all self times, and the number of slices.
#[derive(Default)]
struct Sum(i64, usize);

impl SliceSink for Sum {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.0 += slice.self_time;
        self.1 += 1;
    }

    fn defect(&mut self, what: Defect, _: TrackId, time: i64, _: Key) {
        panic!("{what:?} at {time}");
    }
}

#[test]
fn slices_nested_deeper_than_importers_count_have_their_times() {
    let mut random = Random(9);
    for depth in [511, 513, 600, 2_000] {
        let mut lines: Vec<_> = (0..depth)
            .map(|n| event(&Span { from: 1_000_000 * n, to: 1_000_000 * (2 * depth - n) }, "a"))
            .collect();
        for order in 0..3 {
            match order {
                0 => {}
                1 => lines.reverse(),
                _ => lines.sort_by_cached_key(|_| random.below(1 << 30)),
            }
            let trace = format!("[{}]", lines.join(",\n"));
            // Far out of order, FXT has them on tracks beside the thread, as the report says.
            let formats = [None, Some(Json), Some(Fxt)];
            for format in formats.into_iter().take(if order < 2 { 3 } else { 2 }) {
                let trace = format.map_or(trace.clone().into_bytes(), |to| convert(trace.as_bytes(), to).0);
                let sum = self_times(&trace, format);
                assert_eq!(sum, (2_000 * depth as i64, depth as usize), "{format:?}, order {order}");
            }
        }
    }
}

fn self_times(trace: &[u8], format: Option<TraceFormat>) -> (i64, usize) {
    let (mut slices, mut sum, mut context) = (Slices::new(), Sum::default(), Context::new());
    let mut reader = hairline_convert::open(trace, format).expect("a trace");
    while let Some(item) = reader.next(&mut context).expect("a whole trace") {
        slices.item(&item, &mut sum);
    }
    slices.finish(&mut sum).expect("no file");
    (sum.0, sum.1)
}
