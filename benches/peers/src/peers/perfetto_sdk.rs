//! perfetto-sdk: Perfetto's own Rust bindings, on its C++ library.

use std::path::Path;

use hairline_benches::machine::pin_to_last_core;
use hairline_benches::service::{self, Service};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{
    EventContext, TrackEvent, TrackEventCounter, TrackEventDebugArg, TrackEventFlow, TrackEventTrack,
};
use perfetto_sdk::{
    scoped_track_event, track_event_begin, track_event_category_enabled, track_event_counter,
    track_event_end, track_event_instant,
};

use crate::anywhere::callsites;
use crate::bench::{Bench, Row, TEXT};
use crate::ends;
use crate::peer::{Failure, Flood, Peer, Trace};

pub const PEER: Peer = Peer {
    name: "perfetto-sdk",
    package: "perfetto-sdk",
    setup: "in process, 32 MiB of shared memory, a ring of 64 MiB (the feature `intrinsics` needs a nightly \
            compiler)",
    cost,
    floods: &[Flood {
        name: "file",
        record: |path, run| {
            init()?;
            let mut session = session("bench", &to_file(path)?)?;
            run.scopes(|| {
                scoped_track_event!("bench", "scope");
            });
            session.stop_blocking();
            Ok(Trace::InTheFile(ends::in_trace))
        },
    }],
    killed: None,
};

pub const TRACED: Peer = Peer {
    name: "perfetto-sdk, tracing service",
    setup: "Perfetto's tracing service records it into its own ring of 128 MiB, by 32 MiB of shared memory; after \
            each batch it has 2 ms",
    cost: traced,
    floods: &[],
    ..PEER
};

perfetto_sdk::track_event_categories! {
    pub mod perfetto_te_ns {
        ("bench", "What is measured", []),
    }
}

/// Starts a session of this process that records `category`. `output` is [`RING`], or from [`to_file`].
pub fn session(category: &str, output: &[u8]) -> Result<TracingSession, Failure> {
    let mut session = TracingSession::in_process()?;
    session.setup(&[config(category).as_slice(), output].concat());
    session.start_blocking();
    Ok(session)
}

/// A TraceConfig: `buffers { size_kb: 65536 } data_sources { config { name: "track_event" track_event_config
/// { disabled_categories: "*" enabled_categories: CATEGORY } } }`.
fn config(category: &str) -> Vec<u8> {
    let mut size = Vec::new();
    number(&mut size, 1, 64 << 10);
    let categories = [field(1, b"*"), field(2, category.as_bytes())].concat();
    let source = [field(1, b"track_event"), field(113, &categories)].concat();
    [field(1, &size), field(2, &field(1, &source))].concat()
}

/// No more fields of a TraceConfig: the records stay in the ring.
pub const RING: &[u8] = &[];

/// More fields of a TraceConfig: `write_into_file: true file_write_period_ms: 100 output_path: PATH`.
/// Perfetto allows no shorter period.
pub fn to_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut output = field(29, path.to_str().ok_or("a path that is not UTF-8")?.as_bytes());
    number(&mut output, 8, 1);
    number(&mut output, 9, 100);
    Ok(output)
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    varint(&mut all, number << 3 | 2);
    varint(&mut all, bytes.len() as u32); // a few dozen
    all.extend_from_slice(bytes);
    all
}

fn number(to: &mut Vec<u8>, number: u32, value: u32) {
    varint(to, number << 3);
    varint(to, value);
}

fn varint(to: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Starts the producer in this process, with the most shared memory that it allows. With the usual 256 KiB
/// most events of a flood are dropped, because the thread of the service does not keep up.
pub fn start_producer() {
    start_producer_of(Backends::IN_PROCESS);
}

fn start_producer_of(backends: Backends) {
    let producer = ProducerInitArgsBuilder::new().backends(backends);
    Producer::init(producer.shmem_size_hint_kb(32 << 10).build());
}

fn init() -> Result<(), Failure> {
    start_producer();
    TrackEvent::init();
    Ok(perfetto_te_ns::register()?)
}

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    init()?;
    bench.row(Row::Disabled, scope);
    let mut session = session("bench", RING)?;
    pin_to_last_core();
    rows(bench, || {})?;
    bench.two_threads(Row::Scope, || (|| {}, scope));
    session.stop_blocking();
    Ok(())
}

fn traced(bench: &mut Bench) -> Result<(), Failure> {
    let service = Service::start()?;
    register()?;
    pin_to_last_core();
    rows(bench, service::pause)?;
    drop(service);
    Ok(())
}

/// Registers with the tracing service, and waits until it records.
fn register() -> Result<(), Failure> {
    start_producer_of(Backends::SYSTEM);
    TrackEvent::init();
    perfetto_te_ns::register()?;
    Ok(service::wait_until(|| track_event_category_enabled!("bench"))?)
}

/// The events of [`both`](crate::both).
pub fn events() -> Result<(), Failure> {
    register()?;
    let flow = TrackEventFlow::process_scoped_flow(7);
    let process = TrackEventTrack::process_track_uuid();
    {
        scoped_track_event!("bench", "request", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(-3));
            event.add_debug_arg("large", TrackEventDebugArg::Uint64(u64::MAX));
            event.add_debug_arg("ratio", TrackEventDebugArg::Double(0.5));
            event.add_debug_arg("text", TrackEventDebugArg::String(TEXT));
            event.add_debug_arg("yes", TrackEventDebugArg::Bool(true));
            event.set_flow(&flow);
        });
        scoped_track_event!("bench", "query");
        track_event_instant!("bench", "retry", |event: &mut EventContext| {
            event.add_debug_arg("attempt", TrackEventDebugArg::Uint64(2));
        });
    }
    {
        scoped_track_event!("bench", "answer", |event: &mut EventContext| {
            event.set_flow(&flow);
        });
    }
    let depth = TrackEventTrack::register_counter_track("depth", process)?;
    for value in [3, -4, 5] {
        track_event_counter!("bench", |event: &mut EventContext| {
            event.set_track(&depth);
            event.set_counter(TrackEventCounter::Int64(value));
        });
    }
    let on_disk = |event: &mut EventContext| {
        event.set_named_track("disk", 1, process);
    };
    track_event_begin!("bench", "write", on_disk);
    track_event_instant!("bench", "sync", on_disk);
    track_event_end!("bench", |event: &mut EventContext| {
        event.set_named_track("disk", 1, process).set_flush();
    });
    Ok(())
}

fn scope(_: u32) {
    scoped_track_event!("bench", "scope");
}

fn rows(bench: &mut Bench, between: fn()) -> Result<(), Failure> {
    let text = std::hint::black_box(TEXT);
    bench.row_between(Row::Scope, between, scope);
    bench.row_between(Row::Arguments, between, |i| {
        scoped_track_event!("bench", "arguments", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(i64::from(i)));
            event.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
    });
    bench.anywhere(
        between,
        callsites!({
            scoped_track_event!("bench", "scope");
        }),
    );
    bench.row_between(Row::Late, between, |i| {
        track_event_begin!("bench", "late");
        track_event_end!("bench", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(i64::from(i)));
        });
    });
    bench.row_between(Row::Instant, between, |_| track_event_instant!("bench", "instant"));
    let track = TrackEventTrack::register_counter_track("counter", TrackEventTrack::process_track_uuid())?;
    bench.row_between(Row::Counter, between, |i| {
        track_event_counter!("bench", |event: &mut EventContext| {
            event.set_track(&track);
            event.set_counter(TrackEventCounter::Int64(i64::from(i)));
        });
    });
    Ok(())
}
