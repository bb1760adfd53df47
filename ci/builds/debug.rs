//! What events cost in a program that is not optimised, beside two clock reads in the same run. Prints a line
//! for each event: its name, the minimum and the median in ns, and the median of the clock reads.

use std::hint::black_box;
use std::time::Instant;

use hairline::{Format, Session, trace_counter, trace_scope};

const BATCHES: usize = 200;
const EVENTS: usize = 500;

/// Times `event` and two clock reads in turn, batch by batch.
fn row(name: &str, event: fn(i64)) {
    let (mut events, mut floors) = (Vec::new(), Vec::new());
    let batch = |event: fn(i64)| {
        let start = Instant::now();
        for n in 0..EVENTS {
            event(black_box(n as i64));
        }
        start.elapsed().as_secs_f64() * 1e9 / EVENTS as f64
    };
    for _ in 0..BATCHES {
        floors.push(batch(two_reads));
        events.push(batch(event));
    }
    events.sort_by(f64::total_cmp);
    floors.sort_by(f64::total_cmp);
    println!("{name};{:.1};{:.1};{:.1}", events[0], events[BATCHES / 2], floors[BATCHES / 2]);
}

fn two_reads(_: i64) {
    black_box(Instant::now());
    black_box(Instant::now());
}

fn scope(_: i64) {
    trace_scope!("debug", "scope");
}

fn scope_with_two(n: i64) {
    trace_scope!("debug", "two", number = n, text = "sixteen bytes...");
}

fn counter(n: i64) {
    trace_counter!("debug", "counter", n);
}

fn disabled(n: i64) {
    trace_scope!("off", "disabled", number = n, text = "sixteen bytes...");
}

fn main() {
    for (format, formatted) in [("FXT", Format::Fxt), ("TrackEvent", Format::TrackEvent)] {
        let session = Session::builder().output_writer(std::io::sink()).format(formatted).categories("debug");
        let session = session.start().expect("the session starts");
        row(&format!("{format}: scope"), scope);
        row(&format!("{format}: scope with two arguments"), scope_with_two);
        row(&format!("{format}: counter"), counter);
        row(&format!("{format}: scope whose category is off"), disabled);
        let summary = session.stop().expect("the session stops");
        assert_eq!(summary.lost.total(), 0, "lost events cost something else");
    }
}
