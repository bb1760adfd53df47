//! One program, built with the feature `enable` and without: it must compile and run the same.

use std::cell::Cell;

use hairline::{Format, MemoryOutput, Session, scope, trace_counter, trace_instant, trace_scope};

const CATEGORY: &str = "app";

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

#[test]
fn a_filter_that_makes_no_sense_is_an_error_either_way() {
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
