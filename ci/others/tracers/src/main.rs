//! Records the same program with each tracer: FOLDER/NAME.json or FOLDER/NAME.pftrace.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;

use perfetto_recorder::{CounterUnit, ThreadTraceData, TraceBuilder, scope};
use tracing_chrome::{ChromeLayerBuilder, TraceStyle};
use tracing_perfetto::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("the argument is a folder")?;
    let folder = Path::new(&folder);
    for (style, name) in
        [(TraceStyle::Threaded, "tracing_chrome.json"), (TraceStyle::Async, "tracing_chrome_by_span.json")]
    {
        let chrome = ChromeLayerBuilder::new().file(folder.join(name)).trace_style(style).include_args(true);
        let (layer, guard) = chrome.build();
        spans(tracing_subscriber::registry().with(layer));
        drop(guard);
    }
    let file = Mutex::new(File::create(folder.join("tracing_perfetto.pftrace"))?);
    spans(tracing_subscriber::registry().with(PerfettoLayer::new(file).with_debug_annotations(true)));
    recorder(&folder.join("perfetto_recorder.pftrace"))
}

/// Spans of two threads, with fields, events, and one that is entered twice.
fn spans(subscriber: impl tracing::Subscriber + Send + Sync + 'static) {
    tracing::dispatcher::with_default(&tracing::Dispatch::new(subscriber), || {
        let worker = spawn("worker", || work(20));
        work(30);
        worker.join().expect("its end");
        let twice = tracing::info_span!("twice", n = 2);
        twice.in_scope(|| tracing::info!("first"));
        twice.in_scope(|| tracing::warn!(n = 2, "second"));
    });
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || tracing::dispatcher::with_default(&dispatch, work)).expect("a thread")
}

fn work(rounds: u32) {
    for n in 0..rounds {
        let _outer = tracing::info_span!("outer", n, text = "some").entered();
        for depth in 0..3 {
            let _inner = tracing::debug_span!("inner", depth).entered();
            tracing::trace!(depth, "inside");
        }
    }
}

fn recorder(path: &Path) -> Result<(), Box<dyn Error>> {
    perfetto_recorder::start().map_err(|_| "the feature `enable` is missing")?;
    let worker = std::thread::Builder::new().name("worker".to_owned()).spawn(|| {
        scopes(20);
        ThreadTraceData::take_current_thread()
    })?;
    scopes(30);
    let worker = worker.join().map_err(|_| "the worker panicked")?;
    let mut trace = TraceBuilder::new().map_err(|_| "the feature `enable` is missing")?;
    let mut counter = trace.create_counter_track("rounds", CounterUnit::Count, 1, false);
    (0..20).for_each(|n| counter.record_i64(perfetto_recorder::time(), n));
    trace.process_thread_data(&ThreadTraceData::take_current_thread());
    trace.process_thread_data(&worker);
    trace.write_to_file(path)?;
    Ok(())
}

fn scopes(rounds: i64) {
    for n in 0..rounds {
        scope!("outer", n, text = "some");
        for depth in 0..3_i64 {
            scope!("inner", depth);
        }
    }
}
