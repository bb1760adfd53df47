//! tracy-client: events in lock-free queues, kept until a profiler connects.

use hairline_benches::machine::pin_to_last_core;
use tracy_client::{Client, plot, span};

use crate::anywhere::callsites;
use crate::bench::{Bench, NAME, Row, TEXT};
use crate::peer::{Failure, Peer};

pub const PEER: Peer = Peer {
    name: "tracy-client",
    package: "tracy-client",
    setup: "no feature but `enable`, no call stacks; no profiler connected, so all is kept in memory",
    cost,
    floods: &[],
    killed: None,
};

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    let client = Client::start();
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    let scope = |_| {
        let _span = span!("scope");
    };
    bench.row(Row::Scope, scope);
    bench.row(Row::Arguments, |i| {
        let span = span!("arguments");
        span.emit_value(u64::from(i));
        span.emit_text(text);
    });
    bench.anywhere(
        || {},
        callsites!({
            let _span = span!("scope");
        }),
    );
    let name = std::hint::black_box(NAME);
    bench.row(Row::Named, |_| {
        drop(client.clone().span_alloc(Some(name), "cost", file!(), line!(), 0));
    });
    bench.row(Row::Late, |i| {
        let span = span!("late");
        span.emit_value(u64::from(i));
    });
    bench.row(Row::Instant, |_| client.message("instant", 0));
    bench.row(Row::Counter, |i| plot!("counter", f64::from(i)));
    bench.two_threads(Row::Scope, || (|| {}, scope));
    Ok(())
}
