//! perfetto-recorder: 16-byte events in a `Vec` of each thread, which the program takes when it likes.

use hairline_benches::machine::pin_to_last_core;
use perfetto_recorder::{
    CounterTrack, CounterUnit, EVENTS_PER_SPAN, ThreadTraceData, TraceBuilder, current_thread_reserve, scope,
    start, time,
};

use super::Peer;
use crate::bench::{Bench, Row, TEXT};

pub const TAKEN: Peer = Peer {
    name: "perfetto-recorder",
    package: "perfetto-recorder",
    setup: "feature fastant; the thread's buffer is taken every 10,000 operations",
    cost: taken,
    killed: None,
};

pub const RESERVED: Peer = Peer {
    name: "perfetto-recorder, no hand-over",
    package: "perfetto-recorder",
    setup: "feature fastant; the buffer is taken and its room reserved where that is not timed",
    cost: reserved,
    killed: None,
};

/// The thread's events so far, for whoever makes a trace of them: nobody, here.
fn take(operation: u32) {
    if operation == 0 {
        drop(ThreadTraceData::take_current_thread());
    }
}

fn taken(bench: &mut Bench) -> Result<(), super::Failure> {
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row_of_ten_thousand(Row::Disabled, |_| {
        scope!("scope");
    });
    start().map_err(|_| "not enabled")?;
    bench.row_of_ten_thousand(Row::Scope, |i| {
        take(i);
        scope!("scope");
    });
    bench.row_of_ten_thousand(Row::Arguments, |i| {
        take(i);
        scope!("arguments", number = i64::from(i), text);
    });
    let mut counter = counter()?;
    bench.row_of_ten_thousand(Row::Counter, |i| {
        take(i);
        counter.record_i64(time(), i64::from(i));
    });
    Ok(())
}

fn counter() -> Result<CounterTrack, super::Failure> {
    let mut trace = TraceBuilder::new().map_err(|_| "not enabled")?;
    Ok(trace.create_counter_track("counter", CounterUnit::Count, 1, false))
}

/// Empties the thread's buffer, with room for the next batch.
fn reserve() {
    take(0);
    current_thread_reserve(2100 * (EVENTS_PER_SPAN + 4));
}

fn reserved(bench: &mut Bench) -> Result<(), super::Failure> {
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row_between(Row::Disabled, reserve, |_| {
        scope!("scope");
    });
    start().map_err(|_| "not enabled")?;
    bench.row_between(Row::Scope, reserve, |_| {
        scope!("scope");
    });
    bench.row_between(Row::Arguments, reserve, |i| {
        scope!("arguments", number = i64::from(i), text);
    });
    let mut counter = counter()?;
    bench.row_between(Row::Counter, reserve, |i| counter.record_i64(time(), i64::from(i)));
    Ok(())
}
