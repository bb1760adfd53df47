//! perfetto-sdk: Perfetto's own Rust bindings, on its C++ library.

use std::path::Path;

use hairline_benches::machine::pin_to_last_core;
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{
    EventContext, TrackEvent, TrackEventCounter, TrackEventDebugArg, TrackEventTrack,
};
use perfetto_sdk::{
    scoped_track_event, track_event_begin, track_event_counter, track_event_end, track_event_instant,
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
    let producer = ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS);
    Producer::init(producer.shmem_size_hint_kb(32 << 10).build());
}

fn init() -> Result<(), Failure> {
    start_producer();
    TrackEvent::init();
    Ok(perfetto_te_ns::register()?)
}

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    init()?;
    bench.row(Row::Disabled, |_| {
        scoped_track_event!("bench", "scope");
    });
    let mut session = session("bench", RING)?;
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    let scope = |_| {
        scoped_track_event!("bench", "scope");
    };
    bench.row(Row::Scope, scope);
    bench.two_threads(Row::Scope, || (|| {}, scope));
    bench.row(Row::Arguments, |i| {
        scoped_track_event!("bench", "arguments", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(i64::from(i)));
            event.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
    });
    bench.anywhere(
        || {},
        callsites!({
            scoped_track_event!("bench", "scope");
        }),
    );
    bench.row(Row::Late, |i| {
        track_event_begin!("bench", "late");
        track_event_end!("bench", |event: &mut EventContext| {
            event.add_debug_arg("number", TrackEventDebugArg::Int64(i64::from(i)));
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
