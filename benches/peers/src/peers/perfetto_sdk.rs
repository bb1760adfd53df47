//! perfetto-sdk: Perfetto's own Rust bindings, on its C++ library.

use hairline_benches::machine::pin_to_last_core;
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{
    EventContext, TrackEvent, TrackEventCounter, TrackEventDebugArg, TrackEventTrack,
};
use perfetto_sdk::{scoped_track_event, track_event_counter, track_event_instant};

use super::{Failure, Peer};
use crate::bench::{Bench, Row, TEXT};

pub const PEER: Peer = Peer {
    name: "perfetto-sdk",
    package: "perfetto-sdk",
    setup: "in process, a ring of 64 MiB (the feature `intrinsics` needs a nightly compiler)",
    cost,
    killed: None,
};

perfetto_sdk::track_event_categories! {
    pub mod perfetto_te_ns {
        ("bench", "What is measured", []),
    }
}

/// A session of this process that records `category` in a ring.
pub fn session(category: &str) -> Result<TracingSession, Failure> {
    let mut session = TracingSession::in_process()?;
    session.setup(&config(category));
    session.start_blocking();
    Ok(session)
}

/// A TraceConfig: `buffers { size_kb: 65536 } data_sources { config { name: "track_event" track_event_config {
/// disabled_categories: "*" enabled_categories: CATEGORY } } }`.
fn config(category: &str) -> Vec<u8> {
    let field = |number: u32, bytes: &[u8]| {
        let mut all = Vec::new();
        varint(&mut all, number << 3 | 2);
        varint(&mut all, bytes.len() as u32); // a few dozen
        all.extend_from_slice(bytes);
        all
    };
    let mut size = vec![1 << 3];
    varint(&mut size, 64 << 10);
    let categories = [field(1, b"*"), field(2, category.as_bytes())].concat();
    let source = [field(1, b"track_event"), field(113, &categories)].concat();
    [field(1, &size), field(2, &field(1, &source))].concat()
}

fn varint(to: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).build());
    TrackEvent::init();
    perfetto_te_ns::register()?;
    bench.row(Row::Disabled, |_| {
        scoped_track_event!("bench", "scope");
    });
    let mut session = session("bench")?;
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row(Row::Scope, |_| {
        scoped_track_event!("bench", "scope");
    });
    bench.row(Row::Arguments, |i| {
        scoped_track_event!("bench", "arguments", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(i64::from(i)));
            event.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
    });
    bench.row(Row::Instant, |_| track_event_instant!("bench", "instant"));
    let track = TrackEventTrack::register_counter_track("counter", TrackEventTrack::process_track_uuid())?;
    bench.row(Row::Counter, |i| {
        track_event_counter!("bench", |event: &mut EventContext| {
            event.set_track(&track);
            event.set_counter(TrackEventCounter::Int64(i64::from(i)));
        });
    });
    session.stop_blocking();
    Ok(())
}
