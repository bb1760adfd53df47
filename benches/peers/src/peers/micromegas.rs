//! micromegas-tracing: blocks of events of a thread, handed to a sink when they are full.

use std::collections::HashMap;
use std::sync::Arc;

use hairline_benches::machine::pin_to_last_core;
use micromegas_tracing::event::NullEventSink;
use micromegas_tracing::guards::{TracingSystemGuard, TracingThreadGuard};
use micromegas_tracing::{imetric, span_scope};

use crate::anywhere::callsites;
use crate::bench::{Bench, Row};
use crate::peer::{Failure, Peer};

pub const PEER: Peer = Peer {
    name: "micromegas",
    package: "micromegas-tracing",
    setup: "as its own benchmark: blocks of 10 MiB to a sink that drops them",
    cost: |bench| cost(bench, 10 << 20),
    floods: &[],
    killed: None,
};

pub const SMALL: Peer = Peer {
    name: "micromegas, small blocks",
    setup: "blocks of 64 KiB, whose memory stays in the cache, to a sink that drops them; it says nothing of \
            such, and a sink that sent them would be called 160 times as often",
    cost: |bench| cost(bench, 64 << 10),
    ..PEER
};

fn cost(bench: &mut Bench, block: usize) -> Result<(), Failure> {
    pin_to_last_core();
    bench.row(Row::Disabled, |_| {
        span_scope!("disabled");
    });
    let sink = Arc::new(NullEventSink {});
    let _system = TracingSystemGuard::new(10 << 20, 1 << 20, block, sink, HashMap::new(), true)?;
    let thread = TracingThreadGuard::new();
    bench.row(Row::Scope, |_| {
        span_scope!("scope");
    });
    bench.anywhere(
        || {},
        callsites!({
            span_scope!("scope");
        }),
    );
    bench.footprint(|walk| {
        span_scope!("scope");
        walk.piece();
    });
    bench.row(Row::Counter, |i| imetric!("counter", "things", u64::from(i)));
    drop(thread);
    bench.two_threads(Row::Scope, || {
        let thread = TracingThreadGuard::new();
        let scope = move |_| {
            let _thread = &thread; // as long as the operation
            span_scope!("scope");
        };
        (|| {}, scope)
    });
    Ok(())
}
