//! Records the messages of the `log` crate.
//!
//! A [`Record`] lives as long as its message is logged. Its static parts become a callsite, which later
//! messages find by target and place in the source.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use log::{LevelFilter, Metadata, Record};

use crate::on::base::lock::Mutex;
use crate::on::base::{stderr, this_thread};
use crate::on::bridges::messages::{self, Place};
#[cfg(feature = "subscriber")]
use crate::on::bridges::tracing::log_level;
use crate::on::callsite::registry;
use crate::on::callsite::registry::Bridge;
use crate::on::event::Event;
use crate::on::event::extras::Extras;
use crate::on::event::text::Text;
use crate::on::lifecycle::{enabled, inherited};
use crate::on::thread::events;
use crate::vocabulary::Level;

/// Returns whether a message with this target would be recorded.
pub(crate) fn would_record(metadata: &Metadata<'_>) -> bool {
    enabled::would_record(metadata.target(), level_of(metadata.level()))
}

/// Records the message, if the session's filter includes its target.
pub(crate) fn record(record: &Record<'_>) {
    if !HAS_ASKED.load(Ordering::Acquire) {
        start_at_first_message();
    }
    if registry::active_epoch().is_none() && !inherited::is_pending() {
        return;
    }
    let level = level_of(record.level());
    if (level as u8) < registry::active_level() {
        return;
    }
    let literal = record.args().as_str().filter(|text| !text.is_empty());
    let Some(site) = messages::site(&place_of(record), literal) else { return };
    let Some(epoch) = site.registered_epoch() else { return };
    let text = Text::display(record.args());
    // A macro of the program may have several messages in one place: the callsite has the first one's name.
    let name = literal.filter(|name| *name != site.name());
    let extras = Extras { name, ..Extras::new() };
    let event = Event::new(site, &[], &extras);
    events::log_message(&event, epoch, level, text.as_str(), level != Level::Info);
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Trace => Level::Trace,
        log::Level::Debug => Level::Debug,
        log::Level::Info => Level::Info,
        log::Level::Warn => Level::Warn,
        log::Level::Error => Level::Error,
    }
}

fn place_of<'r>(record: &Record<'r>) -> Place<'r> {
    let file = record.file().unwrap_or("");
    let line = record.line().filter(|_| !file.is_empty()).unwrap_or(0);
    Place { category: record.target(), file, line, module: record.module_path().unwrap_or("") }
}

/// Whether the first message was logged. It starts the session that the environment asks for.
static HAS_ASKED: AtomicBool = AtomicBool::new(false);

/// The level up to which the program's own logger wants messages, if `log::max_level` is managed here.
static OTHER_LEVEL: AtomicUsize = AtomicUsize::new(NOT_KEPT);
const NOT_KEPT: usize = usize::MAX;

/// From now on sets `log::max_level`: to the session's level while a session runs, and never below `other`.
pub(crate) fn keep_max_level(other: LevelFilter) {
    OTHER_LEVEL.store(other as usize, Ordering::Release);
    // Everything at first: the first message starts the session.
    log::set_max_level(LevelFilter::Trace);
    HAS_ASKED.store(false, Ordering::Release);
}

/// Reports that the process has another logger, and what follows for its messages.
pub(crate) fn report_other_logger() {
    #[cfg(feature = "subscriber")]
    if log_level::is_passed_on() {
        let message = "the logger is tracing-log's `LogTracer` already, and its messages are recorded as events \
                       of `tracing`: `hairline::Logger` is not installed";
        return stderr::write(stderr::Level::Error, format_args!("{message}"));
    }
    let message = "the process has a logger already, and `hairline::Logger` is not installed: with \
                   tracing-log's `LogTracer` none is needed, another one belongs into `Logger::beside`";
    stderr::write(stderr::Level::Error, format_args!("{message}"));
}

#[cold]
fn start_at_first_message() {
    if this_thread::is_barred() {
        return;
    }
    let keeps_level = OTHER_LEVEL.load(Ordering::Acquire) != NOT_KEPT;
    if keeps_level {
        registry::on_change(Bridge::Log, set_max_level);
    }
    enabled::start_from_environment();
    if keeps_level {
        set_max_level();
    }
    HAS_ASKED.store(true, Ordering::Release);
}

fn set_max_level() {
    // Under a lock, so that the last call sets the level that is true then.
    static UPDATE: Mutex<()> = Mutex::new(());
    let _busy = this_thread::busy();
    let _update = UPDATE.lock_unless_lost();
    let other = LevelFilter::iter().nth(OTHER_LEVEL.load(Ordering::Relaxed)).unwrap_or(LevelFilter::Off);
    // `log` numbers its levels from `Off` to `Trace`, this crate from `Trace` to `Fatal`.
    let recorded = (Level::Fatal as u8).saturating_sub(registry::active_level()).into();
    let recorded = if registry::active_epoch().is_none() { 0 } else { recorded };
    let recorded = LevelFilter::iter().nth(recorded).unwrap_or(LevelFilter::Off);
    log::set_max_level(recorded.max(other));
}
