//! perfetto-recorder: 16-byte events in a `Vec` of each thread. The program takes them when it wants.

use std::path::Path;

use hairline_benches::machine::pin_to_last_core;
use perfetto_recorder::{
    CounterTrack, CounterUnit, EVENTS_PER_SPAN, ThreadTraceData, TraceBuilder, current_thread_reserve, scope,
    start, time,
};

use crate::anywhere::callsites;
use crate::bench::{Bench, Row, TEXT};
use crate::ends;
use crate::peer::{Failure, Flood, Peer, Trace};
use crate::scopes::Run;

pub const TAKEN: Peer = Peer {
    name: "perfetto-recorder",
    package: "perfetto-recorder",
    setup: "feature fastant; the thread's buffer is taken every 10,000 operations, and room for the next \
            reserved",
    cost: taken,
    floods: &[Flood { name: "file", record: file }],
    killed: None,
};

pub const RESERVED: Peer = Peer {
    name: "perfetto-recorder, no hand-over",
    package: "perfetto-recorder",
    setup: "feature fastant; the buffer is taken and its room reserved where that is not timed",
    cost: reserved,
    floods: &[],
    killed: None,
};

/// Takes the thread's events, which a program would make a trace of, and drops them. Then reserves room for
/// `operations` operations.
fn take(operations: usize) {
    drop(ThreadTraceData::take_current_thread());
    current_thread_reserve(operations * (EVENTS_PER_SPAN + 4));
}

/// Takes the events as a program does: once in 10,000 operations.
fn take_at_first(operation: u32) {
    if operation == 0 {
        take(10_000);
    }
}

fn taken(bench: &mut Bench) -> Result<(), Failure> {
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row_of_ten_thousand(Row::Disabled, |_| {
        scope!("scope");
    });
    start().map_err(|_| "not enabled")?;
    let scope = |i| {
        take_at_first(i);
        scope!("scope");
    };
    bench.row_of_ten_thousand(Row::Scope, scope);
    bench.two_threads(Row::Scope, || (|| {}, scope));
    let mut scopes = 0;
    bench.footprint(|walk| {
        take_at_first(scopes % 10_000);
        scopes += 1;
        scope!("scope");
        walk.piece();
    });
    bench.row_of_ten_thousand(Row::Arguments, |i| {
        take_at_first(i);
        scope!("arguments", number = i64::from(i), text);
    });
    bench.anywhere_of_ten_thousand(
        take_at_first,
        callsites!({
            scope!("scope");
        }),
    );
    let mut counter = counter()?;
    bench.row_of_ten_thousand(Row::Counter, |i| {
        take_at_first(i);
        counter.record_i64(time(), i64::from(i));
    });
    Ok(())
}

fn counter() -> Result<CounterTrack, Failure> {
    let mut trace = TraceBuilder::new().map_err(|_| "not enabled")?;
    Ok(trace.create_counter_track("counter", CounterUnit::Count, 1, false))
}

fn reserved(bench: &mut Bench) -> Result<(), Failure> {
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row_between(
        Row::Disabled,
        || take(2_100),
        |_| {
            scope!("scope");
        },
    );
    start().map_err(|_| "not enabled")?;
    let scope = |_| {
        scope!("scope");
    };
    bench.row_between(Row::Scope, || take(2_100), scope);
    bench.two_threads(Row::Scope, || (|| take(10_100), scope));
    bench.row_between(
        Row::Arguments,
        || take(2_100),
        |i| {
            scope!("arguments", number = i64::from(i), text);
        },
    );
    bench.anywhere(
        || take(2_100),
        callsites!({
            scope!("scope");
        }),
    );
    let mut counter = counter()?;
    bench.row_between(Row::Counter, || take(2_100), |i| counter.record_i64(time(), i64::from(i)));
    Ok(())
}

/// Floods as in its documentation: all events stay in memory until the program writes a file.
fn file(path: &Path, run: &mut Run) -> Result<Trace, Failure> {
    start().map_err(|_| "not enabled")?;
    current_thread_reserve(run.count() as usize * EVENTS_PER_SPAN);
    run.scopes(|| {
        scope!("scope");
    });
    let mut trace = TraceBuilder::new().map_err(|_| "not enabled")?;
    trace.process_thread_data(&ThreadTraceData::take_current_thread()).write_to_file(path)?;
    Ok(Trace::InTheFile(ends::in_trace))
}
