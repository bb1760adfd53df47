//! The level of the `log` crate, where its messages become events of `tracing`.
//!
//! `init()` of tracing-subscriber makes tracing-log's `LogTracer` the logger of the process, and sets
//! `log::max_level` once, to the level that is wanted then. A session that starts later may want more.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use log::LevelFilter as LogLevel;
use tracing_core::LevelFilter;

thread_local! {
    /// Whether this thread asks its logger the question below, and whether a subscriber of ours got it.
    static QUESTION: Cell<Question> = const { Cell::new(Question::None) };
}

#[derive(Clone, Copy, PartialEq)]
enum Question {
    None,
    Asked,
    Received,
}

/// Marks the question as received. Call it for each question of `tracing` whether something is enabled.
pub(crate) fn receive_question() {
    let _ = QUESTION.try_with(|question| {
        if question.get() == Question::Asked {
            question.set(Question::Received);
        }
    });
}

/// Whether the logger of the process passes messages on to our subscriber.
pub(crate) fn is_passed_on() -> bool {
    if QUESTION.try_with(|question| question.set(Question::Asked)).is_err() {
        return false;
    }
    let question = log::Metadata::builder().level(log::Level::Error).target("hairline").build();
    let _ = log::logger().enabled(&question);
    QUESTION.try_with(|question| question.replace(Question::None)) == Ok(Question::Received)
}

/// The level of `log` before this module raised it; `NOT_RAISED` if it did not.
static BEFORE: AtomicUsize = AtomicUsize::new(NOT_RAISED);
/// The level that this module set.
static RAISED: AtomicUsize = AtomicUsize::new(0);
const NOT_RAISED: usize = usize::MAX;

/// Raises the level of `log` to what the session records, and lowers it again at the end of the session. It
/// stays as it is if the logger is another one, or if the program has set it meanwhile.
pub(crate) fn follow(level: LevelFilter) {
    let wanted = match level {
        LevelFilter::OFF => LogLevel::Off,
        LevelFilter::ERROR => LogLevel::Error,
        LevelFilter::WARN => LogLevel::Warn,
        LevelFilter::INFO => LogLevel::Info,
        LevelFilter::DEBUG => LogLevel::Debug,
        LevelFilter::TRACE => LogLevel::Trace,
    };
    let before = BEFORE.swap(NOT_RAISED, Ordering::Relaxed);
    if before != NOT_RAISED && log::max_level() as usize == RAISED.load(Ordering::Relaxed) {
        log::set_max_level(LogLevel::iter().nth(before).unwrap_or(LogLevel::Off));
    }
    let own = log::max_level();
    if own < wanted && is_passed_on() {
        RAISED.store(wanted as usize, Ordering::Relaxed);
        BEFORE.store(own as usize, Ordering::Relaxed);
        log::set_max_level(wanted);
    }
}
