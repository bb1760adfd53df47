//! Hairline: a session with a sink. The drain thread runs on another core.

use std::path::Path;
use std::time::Duration;

use hairline::recovery::{self, RecoverOptions};
use hairline::{
    Flow, Format, MemoryOutput, Overflow, Session, SessionBuilder, Summary, Track, scope, trace_begin,
    trace_counter, trace_end, trace_instant, trace_scope,
};
use hairline_benches::machine::pin_to_last_core;
use hairline_benches::service::{self, Service};
use tracing_subscriber::layer::SubscriberExt;

use crate::anywhere::callsites;
use crate::bench::{Bench, NAME, Row, TEXT};
use crate::ends;
use crate::peer::{Failure, Flood, Killed, Peer, Trace};
use crate::peers::spans::spans;
use crate::scopes::{Run, scopes_and_die};

const SESSION: &str = "a session with a ring of 64 MiB, drained while it is filled";

const fn peer(name: &'static str, cost: fn(&mut Bench) -> Result<(), Failure>) -> Peer {
    Peer { name, package: "hairline", setup: SESSION, cost, floods: &[], killed: None }
}

/// Waits for the output as long as it takes.
const BLOCK: Overflow = Overflow::Block(Duration::from_secs(60));

pub const FXT: Peer = Peer {
    floods: &[
        Flood { name: "file, Block", record: |path, run| file(path, run, Format::Fxt, BLOCK, false) },
        Flood { name: "file, Drop", record: |path, run| file(path, run, Format::Fxt, Overflow::Drop, false) },
        Flood { name: "memory, Block", record: |_, run| memory(run, Format::Fxt) },
        Flood { name: "io::sink, Block", record: |_, run| sink(run, Format::Fxt) },
    ],
    killed: Some(Killed {
        record: |path| killed(path, Format::Fxt),
        repair: Some(recover),
        ends: ends::in_trace,
    }),
    ..peer("Hairline, FXT", |bench| cost(bench, Format::Fxt))
};
pub const TRACK_EVENT: Peer = Peer {
    floods: &[
        Flood { name: "file, Block", record: |path, run| file(path, run, Format::TrackEvent, BLOCK, false) },
        Flood {
            name: "file, Drop",
            record: |path, run| file(path, run, Format::TrackEvent, Overflow::Drop, false),
        },
        Flood {
            name: "compressed file, Block",
            record: |path, run| file(path, run, Format::TrackEvent, BLOCK, true),
        },
        Flood { name: "memory, Block", record: |_, run| memory(run, Format::TrackEvent) },
        Flood { name: "io::sink, Block", record: |_, run| sink(run, Format::TrackEvent) },
    ],
    killed: Some(Killed {
        record: |path| killed(path, Format::TrackEvent),
        repair: Some(recover),
        ends: ends::in_trace,
    }),
    ..peer("Hairline, TrackEvent", |bench| cost(bench, Format::TrackEvent))
};
pub const TRACED: Peer = Peer {
    setup: "Perfetto's tracing service records it into its own ring of 128 MiB; after each batch it has 2 ms",
    ..peer("Hairline, tracing service", traced)
};
pub const SUBSCRIBER_FXT: Peer = peer("hairline::Subscriber, FXT", |bench| subscriber(bench, Format::Fxt));
pub const SUBSCRIBER_TRACK_EVENT: Peer =
    peer("hairline::Subscriber, TrackEvent", |bench| subscriber(bench, Format::TrackEvent));
pub const LAYER_FXT: Peer = peer("hairline::layer, FXT", |bench| layer(bench, Format::Fxt));
pub const LAYER_TRACK_EVENT: Peer =
    peer("hairline::layer, TrackEvent", |bench| layer(bench, Format::TrackEvent));

fn start(format: Format) -> Result<Session, hairline::Error> {
    let session = Session::builder().output_writer(std::io::sink()).format(format).buffer_size(64 << 20);
    let session = session.categories("*,-off").start()?;
    pin_to_last_core(); // not the drain thread, which is there already
    Ok(session)
}

fn cost(bench: &mut Bench, format: Format) -> Result<(), Failure> {
    let session = start(format)?;
    rows(bench, || {});
    bench.footprint(|walk| {
        trace_scope!("bench", "scope");
        walk.piece();
    });
    bench.two_threads(Row::Scope, || (|| {}, scope));
    end(session)
}

fn traced(bench: &mut Bench) -> Result<(), Failure> {
    let service = Service::start()?;
    let registered = register()?;
    let session = Session::builder().start()?; // a handle of the service's
    pin_to_last_core();
    rows(bench, service::pause);
    end(session)?;
    drop((registered, service));
    Ok(())
}

/// Registers with the tracing service, and waits until it records.
pub fn register() -> Result<hairline::Registered, Failure> {
    let registered = Session::builder().buffer_size(64 << 20).output_traced()?;
    service::wait_until(|| {
        let mut is_recorded = false;
        trace_instant!("bench", "ready", recorded = std::mem::replace(&mut is_recorded, true));
        is_recorded
    })?;
    Ok(registered)
}

fn scope(_: u32) {
    trace_scope!("bench", "scope");
}

fn rows(bench: &mut Bench, between: fn()) {
    let text = std::hint::black_box(TEXT);
    bench.row_between(Row::Disabled, between, |_| {
        trace_scope!("off", "scope");
    });
    bench.row_between(Row::Scope, between, scope);
    bench.row_between(Row::Arguments, between, |i| {
        trace_scope!("bench", "arguments", number = i64::from(i), text);
    });
    bench.anywhere(
        between,
        callsites!({
            trace_scope!("bench", "scope");
        }),
    );
    let name = std::hint::black_box(NAME);
    bench.row_between(Row::Named, between, |_| {
        trace_scope!("bench", "named", name: name);
    });
    bench.row_between(Row::Late, between, |i| {
        scope!("bench", "late").arg("number", i64::from(i));
    });
    bench.row_between(Row::Nested, between, |i| {
        trace_scope!("bench", "nested", list = [i.cast_signed(), 2]);
    });
    bench.row_between(Row::Instant, between, |_| trace_instant!("bench", "instant"));
    bench.row_between(Row::Counter, between, |i| trace_counter!("bench", "counter", i64::from(i)));
}

/// The events of [`both`](crate::both).
pub fn events() -> Result<(), Failure> {
    let _registered = register()?;
    let (flow, disk) = (Flow::new(), Track::process().child("disk"));
    {
        trace_scope!("bench", "request", number = -3_i64, large = u64::MAX, ratio = 0.5, text = TEXT, yes = true, flow: &flow);
        trace_scope!("bench", "query");
        trace_instant!("bench", "retry", attempt = 2_u64);
    }
    {
        trace_scope!("bench", "answer", flow: &flow);
    }
    for value in [3_i64, -4, 5] {
        trace_counter!("bench", "depth", value);
    }
    trace_begin!("bench", "write", track: &disk);
    trace_instant!("bench", "sync", track: &disk);
    trace_end!(&disk);
    Ok(())
}

/// Floods a session until it is stopped.
fn flooded(session: SessionBuilder, run: &mut Run) -> Result<Summary, Failure> {
    let session = session.start()?;
    run.scopes(|| {
        trace_scope!("bench", "scope");
    });
    Ok(session.stop()?)
}

fn file(
    path: &Path,
    run: &mut Run,
    format: Format,
    overflow: Overflow,
    compress: bool,
) -> Result<Trace, Failure> {
    flooded(Session::builder().output(path).format(format).overflow(overflow).compress(compress), run)?;
    Ok(Trace::InTheFile(ends::in_trace))
}

fn memory(run: &mut Run, format: Format) -> Result<Trace, Failure> {
    nowhere(Session::builder().output_memory(&MemoryOutput::new()).format(format), run)
}

fn sink(run: &mut Run, format: Format) -> Result<Trace, Failure> {
    nowhere(Session::builder().output_writer(std::io::sink()).format(format), run)
}

fn nowhere(session: SessionBuilder, run: &mut Run) -> Result<Trace, Failure> {
    let summary = flooded(session.overflow(BLOCK), run)?;
    Ok(Trace::Told { lost: summary.lost.total(), bytes: summary.bytes })
}

fn killed(path: &Path, format: Format) -> Result<(), Failure> {
    let _session = Session::builder().output(path).format(format).buffer_size(64 << 20).start()?;
    scopes_and_die(|| {
        trace_scope!("bench", "scope");
    });
    Ok(())
}

/// Writes the rest of the ring to the file.
fn recover(pid: u32) -> Result<(), Failure> {
    for region in recovery::find()?.iter().filter(|region| region.pid == pid) {
        recovery::recover(&region.path, &RecoverOptions::new())?;
    }
    Ok(())
}

fn subscriber(bench: &mut Bench, format: Format) -> Result<(), Failure> {
    let session = start(format)?;
    tracing::subscriber::set_global_default(hairline::Subscriber::new())?;
    spans(bench, || {});
    end(session)
}

fn layer(bench: &mut Bench, format: Format) -> Result<(), Failure> {
    let session = start(format)?;
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(hairline::layer()))?;
    spans(bench, || {});
    end(session)
}

fn end(session: Session) -> Result<(), Failure> {
    let lost = session.stop()?.lost.total();
    if lost > 0 {
        eprintln!("Hairline: {lost} events lost while measuring");
    }
    Ok(())
}
