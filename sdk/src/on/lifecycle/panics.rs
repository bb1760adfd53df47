//! Panics: an instant for each, and a snapshot of a flight recorder.
//!
//! ```text
//! hook of this crate ──> the instant ──> hook that was there before ──> flush or snapshot
//! ```
//!
//! The instant comes before the other hook, because that hook may end the process. The wait for the output
//! comes after it, because a wait must not delay the program's own message, and so that the output also has
//! all that the other hook records.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use hairline_formats::Value;

use crate::builder::Config;
use crate::on::callsite::{Callsite, Key};
use crate::on::event::Event;
use crate::on::event::extras::Extras;
use crate::on::session::{current, trigger};
use crate::on::thread::cold;
use crate::site::{CallsiteKind, Site};

static KEYS: [Key; 2] = [Key::new("message"), Key::new("location")];
static SITE: Site = Site::NOWHERE;
static PANIC: Callsite = Callsite::new(CallsiteKind::Instant, "panic", "panic", &KEYS, &SITE).unfiltered();

/// Installs the hook, once in a process, if the session's settings need it.
pub(crate) fn install(config: &Config) {
    static IS_HOOKED: AtomicBool = AtomicBool::new(false);
    let needs_hook = config.record_panics || config.trigger_on_panic;
    // The first event of a process may come during a panic, in which the hook cannot be changed.
    if needs_hook && !std::thread::panicking() && !IS_HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            record(panic);
            before(panic);
            wait_for_output();
        }));
    }
}

/// Records the instant, if the session records panics.
fn record(panic: &PanicHookInfo<'_>) {
    let Some(session) = current::running().filter(|session| session.settings.record_panics) else { return };
    let epoch = session.epoch();
    drop(session);
    let _ = PANIC.registered_epoch();
    // Unregistered: this thread is inside an event, and the loss is counted. None: the session has stopped.
    if PANIC.epoch() != Some(epoch) {
        return;
    }
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let values = [Value::Str(message(panic)), Value::Str(&location)];
    cold::event(epoch, &Event::new(&PANIC, &values, &Extras::new()));
}

/// Returns the message, as the standard library's hook prints it.
fn message<'p>(panic: &'p PanicHookInfo<'_>) -> &'p str {
    let payload = panic.payload();
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    payload.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("Box<dyn Any>")
}

/// Waits until the output has the instant, or until the snapshot of the panic is written.
fn wait_for_output() {
    let Some(session) = current::running() else { return };
    if trigger::is_for_panics() {
        session.snapshot_for_panic();
    }
    if session.settings.record_panics {
        session.flush_for_panic();
    }
}
