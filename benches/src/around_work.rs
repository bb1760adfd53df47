//! What events add around work that keeps the processor busy. In an empty loop the instructions of an event
//! run while the processor waits for its clock; a program works between the two ends of a scope.

use std::hint::black_box;
use std::io;

use hairline::{Format, Session, trace_scope};

use crate::machine::{clock_read, pin_to_last_core};
use crate::row::{Budget, Row, label};
use crate::timing::{Effort, Samples, batch, started};

/// The lengths of the work, in ns.
const LENGTHS: [f64; 2] = [15.0, 60.0];

/// Independent additions and shifts, which use all of the processor's units for integers.
#[inline(always)]
fn work(turns: u32) {
    let (mut a, mut b, mut c, mut d) = black_box((1_u64, 2_u64, 3_u64, 4_u64));
    for n in 0..u64::from(turns) {
        a = a.wrapping_add(n << 1);
        b = b.wrapping_add(n << 3) ^ n;
        c = c.wrapping_add(n >> 2);
        d = d.wrapping_add(n << 5) ^ n;
        // Each turn is computed, and none at once with the next ones.
        (a, b, c, d) = (black_box(a), black_box(b), black_box(c), black_box(d));
    }
    black_box((a, b, c, d));
}

/// The number of turns that take `ns`.
fn turns_of(ns: f64) -> u32 {
    const MANY: u32 = 200;
    let many = (0..20).map(|_| batch(1000, |_| work(MANY))).fold(f64::INFINITY, f64::min);
    ((ns / many * f64::from(MANY)).round() as u32).max(1)
}

/// The batches of which the fastest counts. A difference of two single batches would be that of two
/// disturbances now and then.
const TRIES: usize = 5;

/// Measures what `event` adds to the work, beside what two reads of the clock add. All three in turn.
fn row(name: &str, effort: Effort, turns: u32, budget: f64, event: impl Fn(u32, u32)) -> Row {
    let (mut floors, mut events) = (Samples::new(), Samples::new());
    let rounds = effort.batches / TRIES;
    for round in 0..rounds + rounds / 10 {
        let mut fastest = [f64::INFINITY; 3];
        for _ in 0..TRIES {
            let alone = batch(effort.operations, |_| work(black_box(turns)));
            let read = batch(effort.operations, |_| {
                clock_read();
                work(black_box(turns));
                clock_read();
            });
            let recorded = batch(effort.operations, |n| event(black_box(turns), n));
            fastest = [alone.min(fastest[0]), read.min(fastest[1]), recorded.min(fastest[2])];
        }
        let [alone, read, recorded] = fastest;
        if round >= rounds / 10 {
            floors.push(read - alone); // the first tenth only warms up
            events.push(recorded - alone);
        }
    }
    Row::sampled(name, "ns", &events, Budget::Ratio, budget).beside(&floors)
}

/// Measures scopes, and scopes with two arguments.
///
/// # Errors
/// If a session cannot be started or stopped.
pub fn rows(effort: Effort, format: Format) -> Result<Vec<Row>, hairline::Error> {
    let (label, [plain, arguments]) = match format {
        Format::Fxt => (label(format), [1.25, 1.4]),
        _ => (label(format), [1.3, 1.5]),
    };
    let session = started(Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20))?;
    pin_to_last_core();
    let text = black_box("sixteen bytes ..");
    let mut rows = Vec::new();
    for ns in LENGTHS {
        let turns = turns_of(ns);
        let name = |what: &str| format!("{label}: {what} around {ns} ns of work");
        rows.push(row(&name("scope"), effort, turns, plain, |turns, _| {
            trace_scope!("bench", "around work");
            work(turns);
        }));
        rows.push(row(&name("scope + i64 + &str of 16"), effort, turns, arguments, |turns, n| {
            trace_scope!("bench", "around work, with arguments", number = i64::from(n), text);
            work(turns);
        }));
    }
    session.stop()?;
    Ok(rows)
}
