//! One program, built with the feature `enable` and without: it must compile and run the same.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(feature = "recovery")]
use hairline::recovery::{
    self, FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered, recover, snapshot,
};
use hairline::{
    Argument, AsyncScope, Bytes, ClockSource, Error, Filter, Flow, Format, Interned, Koid, Level, Lost,
    MapKey, MemoryOutput, OnTrack, Ordering, Overflow, Scope, Session, SessionBuilder, Summary,
    ThreadSummary, TraceFuture, Traced, Track, TrackScope, Unit, bytes, interned, koid, parse_size, scope,
    trace, trace_async, trace_begin, trace_counter, trace_end, trace_instant, trace_log, trace_scope,
    trigger,
};

const CATEGORY: &str = "app";

/// A process has one session at a time, and the tests are threads of one process.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Peer;

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("peer")
    }
}

/// Uses every form of every macro. `evaluated` counts how often an argument's expression ran.
fn program(evaluated: &Cell<u32>) {
    let count = |n: u32| {
        evaluated.set(evaluated.get() + 1);
        n
    };
    let (attempt, owned, boxed, headers) = (3_u8, String::from("owned"), Box::new(4_i64), [1, 2]);
    let missing: Option<u32> = None;
    trace_scope!(CATEGORY, "outer");
    trace_scope!("app", "arguments", n = count(1), attempt, owned, boxed, missing, peer = %Peer, headers = ?headers,);
    trace_instant!("app", "instant");
    trace_instant!(
        "app",
        "instant with arguments",
        n = count(2),
        text = "text",
        pointer = &raw const attempt
    );
    trace_counter!("app", "counter", count(5));
    trace_counter!("app", "share", 0.5);
    let guard = scope!("app", "guard");
    let with_arguments = scope!("app", "guard with arguments", yes = true, wide = u128::MAX);
    assert_eq!(guard.is_recorded(), with_arguments.is_recorded());
    drop(with_arguments);
    drop(guard);
}

#[test]
fn the_same_code_runs_with_the_feature_on_and_off() {
    let _turn = turn();
    let evaluated = Cell::new(0);
    program(&evaluated);
    assert_eq!(evaluated.get(), 0, "no session: no argument is evaluated");

    let memory = MemoryOutput::new();
    let session = Session::builder()
        .output_memory(&memory)
        .format(Format::Fxt)
        .categories("app")
        .start()
        .expect("a session");
    program(&evaluated);
    session.flush().expect("flushed");
    session.set_categories("other").expect("a filter");
    program(&evaluated);
    let summary = session.stop().expect("stopped");

    // Four scopes, two instants, two counters.
    let (records, arguments) = if cfg!(feature = "enable") { (4 * 2 + 2 + 2, 3) } else { (0, 0) };
    assert_eq!((summary.records, summary.lost.total()), (records, 0));
    assert_eq!(evaluated.get(), arguments);
    assert_eq!(summary.bytes, memory.len() as u64);
}

/// Calls every method of every guard, track and flow.
fn every_event() {
    let track: Track = Track::new("gpu").child("engine").ordering(Ordering::Explicit).rank(3);
    let track = track.description("as the driver reports it");
    let _: (u64, &Track) = (track.uuid(), track.as_ref());
    let flow: Flow = Flow::new();
    let _: (Flow, Flow, &Flow) = (Flow::default(), Flow::from_id(flow.id()).clone(), flow.as_ref());
    fn takes_track(_: &impl OnTrack) {}
    takes_track(&track);
    takes_track(&&Track::thread());

    let mut scope: Scope =
        scope!("app", "scope", name: "other", flow: &flow, correlation: 7, slow: Duration::from_secs(9));
    let _: bool = scope.arg("key", 1).arg("text", "value").is_recorded();
    drop(scope);
    let mut on_track: TrackScope = scope!("app", "on a track", track: &track, end_flow: &flow);
    let _: bool = on_track.arg("key", 1).is_recorded();
    drop(on_track);
    let mut interval: AsyncScope = trace_async!("app", "interval", id = 7, track: &Track::process());
    takes_track(&interval);
    trace_instant!("app", "inside", track: &interval);
    let _: bool = interval.arg("key", 1).is_recorded();
    drop(interval);
    trace_begin!("app", "slice", number = 7, track: &track);
    trace_end!(&track, result = "done");
    trace_counter!("app", "rate", 59.9, unit: "frames/s", multiplier: 2, track: &Track::thread());
    trace_counter!("app", "sent", 1, unit: Unit::Bytes, incremental: true, name: "received");
    trace_log!(Level::Warn, "app", "attempt {}", 3);
    trigger!();
    trigger!("app");
}

/// Makes an argument of every kind of value.
fn every_argument() {
    fn takes(_: &(impl Argument + ?Sized)) {}
    let (blob, object, text): (Bytes<'_>, Koid, Interned) = (bytes(&[1, 2]), koid(7), interned("text"));
    takes(&blob);
    takes(&object);
    takes(&text);
    takes("text");
    takes(&Some(1.5));
    takes(&BTreeMap::from([("key", vec![1, 2])]));
    macro_rules! take_all {
        ($($value:expr),* $(,)?) => {$( takes(&$value); )*};
    }
    take_all!(1_i8, 1_i16, 1_i32, 1_i64, 1_isize, 1_u8, 1_u16, 1_u32, 1_u64, 1_usize, 1_i128, 1_u128);
    take_all!(1_f32, 1_f64, true, 'c', String::new(), std::borrow::Cow::Borrowed("text"));
    take_all!(&raw const text, std::ptr::null_mut::<u8>(), &&1, &mut 1, Box::new(1), std::rc::Rc::new(1));
    take_all!(
        std::sync::Arc::<str>::from("text"),
        [1; 2],
        *[1].as_slice(),
        std::collections::VecDeque::from([1])
    );
    take_all!(std::collections::BTreeSet::from([1]), std::collections::HashSet::from([1]));
    take_all!(std::collections::HashMap::from([("key", 1)]));
    trace_counter!("app", "number", &1_u8);
    trace_counter!("app", "bool", true);
    trace_scope!("app", "arguments", blob, object, text, map = BTreeMap::from([(1, true)]));
    fn key_text(key: &(impl MapKey + ?Sized)) -> String {
        let mut text = String::new();
        key.with_key(|key| text.push_str(key));
        text
    }
    struct UserId(u64);
    impl Argument for UserId {
        type Held<'a> = u64;
        fn hold(&self) -> u64 {
            self.0
        }
    }
    struct Wrapped<T>(T);
    impl<T: Argument> Argument for Wrapped<T> {
        type Held<'a>
            = T::Held<'a>
        where
            T: 'a;
        fn hold(&self) -> Self::Held<'_> {
            self.0.hold()
        }
    }
    struct Label(Option<String>);
    impl Argument for Label {
        type Held<'a> = Option<&'a str>;
        fn hold(&self) -> Option<&str> {
            self.0.as_deref()
        }
    }
    struct Users(Vec<UserId>);
    impl Argument for Users {
        type Held<'a> = <Vec<UserId> as Argument>::Held<'a>;
        fn hold(&self) -> Self::Held<'_> {
            self.0.hold()
        }
    }
    struct Name(&'static str);
    impl MapKey for Name {
        fn with_key(&self, f: impl FnOnce(&str)) {
            f(self.0);
        }
    }
    take_all!(UserId(7), Wrapped(UserId(7)), Wrapped("text"), Label(None), Users(vec![UserId(7)]));
    take_all!(std::collections::HashMap::<Name, UserId, std::hash::RandomState>::default());
    assert_eq!(key_text(&Name("key")), "key");
    assert_eq!((key_text("key"), key_text(&7), key_text(&&true)), ("key".into(), "7".into(), "true".into()));
    #[cfg(feature = "serde")]
    {
        let value: hairline::Serialized<'_, str> = hairline::serialize("text");
        takes(&value);
        trace_instant!("app", "serialized", value = hairline::serialize(&[1, 2]));
    }
}

#[trace("app", args)]
fn traced(number: u32) -> u32 {
    number
}

#[trace]
async fn traced_async(number: u32) -> u32 {
    number
}

/// Wraps futures and streams.
fn every_future() {
    fn poll<F: Future>(future: F) -> F::Output {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => unreachable!("the future is ready"),
        }
    }
    let future: Traced<std::future::Ready<u32>> = std::future::ready(7).traced("app", "future");
    assert_eq!((poll(future), traced(7), poll(traced_async(7))), (7, 7, 7));
    let track = Track::new("track");
    let future = hairline::trace_future!("app", "future", async { hairline::future_arg("end", 1) }, n = 1, track: &track);
    poll(future);
    #[cfg(feature = "futures")]
    {
        struct Empty;
        impl futures_core::Stream for Empty {
            type Item = ();
            fn poll_next(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<()>> {
                std::task::Poll::Ready(None)
            }
        }
        let stream: Traced<Empty> = hairline::TraceStream::traced(Empty, "app", "stream");
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let stream = std::pin::pin!(stream);
        assert!(futures_core::Stream::poll_next(stream, &mut context).is_ready());
    }
}

/// Calls every setting of a session.
fn every_setting(builder: SessionBuilder) -> SessionBuilder {
    let builder = builder
        .output("trace.pftrace")
        .output_writer(std::io::sink())
        .format(Format::TrackEvent)
        .categories("app")
        .level(Level::Trace)
        .buffer_size(1 << 20)
        .chunk_size(4096)
        .overflow(Overflow::Block(Duration::from_millis(1)))
        .clock(ClockSource::System)
        .thread_time(true)
        .source_locations(true)
        .hold_limit(Duration::from_millis(1))
        .heartbeat(Duration::from_secs(1))
        .trigger_interval(Duration::from_secs(1))
        .record_panics(false)
        .trigger_on_panic(false)
        .finish_on_signals(false)
        .max_file_size(1 << 20)
        .rotate(1 << 20, 2);
    #[cfg(feature = "compress")]
    let builder = builder.compress(false);
    builder
}

#[test]
fn every_public_item_has_the_same_signature_with_the_feature_on_and_off() -> Result<(), Error> {
    let _turn = turn();
    let _: fn(SessionBuilder, i32) -> SessionBuilder = SessionBuilder::trigger_on_signal;
    let memory: MemoryOutput = MemoryOutput::with_capacity(1 << 16);
    let session: Session = every_setting(Session::builder()).output_memory(&memory).start()?;
    every_event();
    every_argument();
    every_future();
    session.flush()?;
    session.set_categories("app")?;
    let taken: Result<Summary, Error> = session.snapshot("unused.pftrace");
    assert_eq!(taken.is_err(), cfg!(feature = "enable"), "this session is no flight recorder");
    let summary: Summary = session.stop()?;
    let (lost, threads): (Lost, &[ThreadSummary]) = (summary.lost, &summary.threads);
    assert_eq!((lost.total(), threads.len()), (0, usize::from(cfg!(feature = "enable"))));
    assert_eq!((memory.is_empty(), memory.to_vec().len()), (!cfg!(feature = "enable"), memory.len()));

    assert!(Filter::parse("app")?.matches("app") && "a,,b".parse::<Filter>().is_err());
    assert_eq!((parse_size("4K")?, Format::from_path(Path::new("a.fxt"))), (4096, Some(Format::Fxt)));
    assert_eq!("block:1ms".parse::<Overflow>()?, Overflow::Block(Duration::from_millis(1)));

    #[cfg(feature = "recovery")]
    recovery_is_the_same();
    Ok(())
}

#[cfg(feature = "recovery")]
fn recovery_is_the_same() {
    let options: RecoverOptions = RecoverOptions::new().to("a.fxt").keep_region(true).assume_dead(false);
    let nowhere = Path::new("/nowhere/at/all");
    let recovered: Result<Recovered, RecoverError> = recover(nowhere, &options);
    assert!(recovered.is_err() && snapshot(nowhere, "a.fxt").is_err());
    let found: Vec<FoundRegion> = recovery::find().unwrap_or_default();
    assert!(found.iter().all(|region| !region.is_dead() || region.process == ProcessState::Dead));
}

#[test]
fn the_public_types_can_go_to_other_threads() {
    fn is_send_and_sync<T: Send + Sync + 'static>() {}
    fn is_send<T: Send + 'static>() {}
    is_send::<SessionBuilder>(); // not Sync: a program's `Write` need not be
    is_send_and_sync::<Session>();
    is_send_and_sync::<(Track, Flow, TrackScope, AsyncScope)>();
    is_send_and_sync::<(MemoryOutput, Filter, Summary, Error)>();
    #[cfg(feature = "recovery")]
    is_send_and_sync::<(RecoverOptions, Recovered, FoundRegion, RecoverError)>();
}

/// The constructors that the macros call.
#[test]
fn the_hidden_constructors_have_the_same_signatures_with_the_feature_on_and_off() {
    use hairline::__private::{Callsite, CallsiteKind, CounterOptions, Extras, Key, Life, Site};

    static SITE: Site =
        Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE, slow_after: 0, stack: false };
    static KEYS: [Key; 1] = [Key::new("key")];
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "app", "name", &KEYS, &SITE);

    let _turn = turn();
    let (track, flow) = (Track::new("track"), Flow::new());
    let extras = || Extras::new().name("other").flow(&flow).end_flow(&flow).correlation(7);
    let _: (Extras<'_>, Extras<'_>) = (extras().track(&track), extras().own_track(&track));
    let guards = (Scope::none(&CALLSITE), TrackScope::none(&CALLSITE), AsyncScope::none(&CALLSITE));
    assert!(!guards.0.is_recorded() && !guards.1.is_recorded() && !guards.2.is_recorded());
    let _: Traced<u32> = Life::none(&CALLSITE).wrap(7);
    if let (Some(epoch), Some(_)) = (CALLSITE.registered_epoch(), CALLSITE.epoch()) {
        drop(Scope::begin(&CALLSITE, epoch));
        drop(Scope::begin_with(&CALLSITE, epoch, &()));
        drop(Scope::begin_rich(&CALLSITE, epoch, &(), &extras()));
        drop(Scope::begin_flow(&CALLSITE, epoch, &flow));
        drop(TrackScope::begin(&CALLSITE, epoch, &(), &extras().own_track(&track)));
        drop(AsyncScope::begin(&CALLSITE, epoch, &(), &extras().track(&track)));
        let _: Life = Life::begin(&CALLSITE, epoch, &(), &extras().track(&track));
    }
}

/// What a program that imports the prelude alone can name.
mod with_the_prelude {
    use hairline::prelude::*;

    #[trace("app")]
    async fn answer() -> u32 {
        42
    }

    #[test]
    fn the_prelude_has_what_a_program_needs_with_the_feature_on_and_off() {
        let _turn = super::turn();
        let (track, flow) = (Track::new("track"), Flow::new());
        trace_scope!("app", "scope", flow: &flow);
        trace_instant!("app", "instant");
        trace_counter!("app", "counter", 7, unit: Unit::Count);
        trace_log!(Level::Info, "app", "message");
        trace_begin!("app", "slice", track: &track);
        trace_end!(&track);
        let guards: (Scope, TrackScope, AsyncScope) =
            (scope!("app", "guard"), scope!("app", "slice", track: &track), trace_async!("app", "interval"));
        drop((guards, answer().traced("app", "future")));
        let _: fn() -> hairline::SessionBuilder = Session::builder;
        trigger!();
    }
}

#[test]
fn a_malformed_filter_is_an_error_with_the_feature_on_and_off() {
    assert!(Session::builder().output_memory(&MemoryOutput::new()).categories("a,,b").start().is_err());
}

#[cfg(feature = "log")]
#[test]
fn the_logger_beside_has_its_messages() {
    use std::sync::atomic::{AtomicU32, Ordering};

    use log::{LevelFilter, Log, Metadata, Record};

    static COUNT: AtomicU32 = AtomicU32::new(0);
    struct Counts;
    impl Log for Counts {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn log(&self, _: &Record<'_>) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        fn flush(&self) {}
    }

    hairline::Logger::new().beside(Counts, LevelFilter::Info).install().expect("the first one");
    log::info!("one");
    log::debug!("too fine");
    log::warn!("two");
    assert_eq!(COUNT.load(Ordering::Relaxed), 2);
    assert!(log::log_enabled!(log::Level::Info));
    assert!(hairline::Logger::new().install().is_err());
}

#[cfg(feature = "metrics")]
#[test]
fn the_metrics_recorder_beside_has_all_values() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    static SUM: AtomicU64 = AtomicU64::new(0);
    struct Sums;
    impl CounterFn for Sums {
        fn increment(&self, value: u64) {
            SUM.fetch_add(value, Ordering::Relaxed);
        }
        fn absolute(&self, _: u64) {}
    }
    impl Recorder for Sums {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Arc::new(Sums))
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }
        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    hairline::MetricsRecorder::new().beside(Sums).install().expect("the first one");
    metrics::describe_gauge!("depth", Unit::Count, "of the queue");
    metrics::counter!("received", "from" => "peer").increment(5);
    metrics::counter!("received").increment(2);
    metrics::gauge!("depth").set(1.0);
    metrics::histogram!("latency").record_many(0.5, 2);
    assert_eq!(SUM.load(Ordering::Relaxed), 7);
    assert!(hairline::MetricsRecorder::new().install().is_err());
}

#[cfg(feature = "tracing")]
#[test]
fn the_layer_and_the_subscriber_limit_nobody_while_nothing_is_recorded() {
    use hairline::{Category, Mode, Subscriber};
    use tracing_subscriber::prelude::*;

    let _turn = turn();
    let others = tracing_subscriber::registry().with(tracing_subscriber::filter::LevelFilter::WARN);
    let all = others.with(hairline::layer().mode(Mode::Auto).category(Category::Target));
    assert_eq!(tracing::Subscriber::max_level_hint(&all), Some(tracing::Level::WARN.into()));
    tracing::subscriber::with_default(all, || {
        assert!(tracing::enabled!(tracing::Level::WARN) && !tracing::enabled!(tracing::Level::INFO));
        tracing::warn_span!("span").in_scope(|| tracing::warn!("event"));
    });
    tracing::subscriber::with_default(Subscriber::new().mode(Mode::Threads), || {
        assert!(!tracing::enabled!(tracing::Level::ERROR));
    });
}
