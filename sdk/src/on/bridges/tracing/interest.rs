//! Which callsites are on, and up to which level: the answers to `tracing`.
//!
//! `tracing` keeps each answer until it is told to ask again. So the bridge tells it so whenever a session
//! starts, changes its filter or ends, and the callsites of a program that is not recorded cost as much as
//! without the bridge.

use std::cell::Cell;

use tracing_core::subscriber::NoSubscriber;
use tracing_core::{Dispatch, Interest, LevelFilter, Metadata, callsite, dispatcher};

use crate::on::base::this_thread;
use crate::on::bridges::tracing::{log_level, sites};
use crate::on::callsite::registry::{self, Bridge};
use crate::on::lifecycle::enabled;
use crate::spans::Category;
use crate::vocabulary::Level;

thread_local! {
    /// Whether `tracing` is asking this thread. It may hold a lock of its own meanwhile.
    static IS_ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Answers a question of `tracing`. A session that starts meanwhile does not make `tracing` ask again, which
/// could wait for its lock for ever: the answer takes the session into account.
fn answer<T>(f: impl FnOnce() -> T) -> T {
    struct Answered(bool);
    impl Drop for Answered {
        fn drop(&mut self) {
            let _ = IS_ASKED.try_with(|is_asked| is_asked.set(self.0));
        }
    }
    let _answered = Answered(IS_ASKED.try_with(|is_asked| is_asked.replace(true)).unwrap_or(true));
    f()
}

/// Returns whether the callsite is on. The first question starts the session that the environment requests.
pub(crate) fn of(metadata: &'static Metadata<'static>, category: Category) -> Interest {
    answer(|| {
        let Some(site) = sites::site(metadata, category) else {
            // Inside of an event the callsite cannot be found: tracing asks again later.
            let may_be_on = enabled::recorded_level().is_some();
            return if may_be_on { Interest::sometimes() } else { Interest::never() };
        };
        // The very first hit starts the session.
        let _ = site.registered_epoch();
        registry::on_change(Bridge::Tracing, ask_again);
        match site.epoch() {
            None => Interest::never(),
            Some(_) => Interest::always(),
        }
    })
}

/// Returns the most verbose level that is recorded, by the session that runs or by the one that the
/// environment requests and that the first event starts.
pub(crate) fn level() -> LevelFilter {
    answer(|| {
        if !this_thread::is_barred() {
            // First: a session that starts after the answer makes tracing ask again.
            registry::on_change(Bridge::Tracing, ask_again);
        }
        match enabled::recorded_level() {
            None => LevelFilter::OFF,
            Some(Level::Trace) => LevelFilter::TRACE,
            Some(Level::Debug) => LevelFilter::DEBUG,
            Some(Level::Info) => LevelFilter::INFO,
            Some(Level::Warn) => LevelFilter::WARN,
            Some(Level::Error | Level::Fatal) => LevelFilter::ERROR,
        }
    })
}

/// Makes `tracing` ask for all its callsites and levels again. Runs code of the program: all subscribers are
/// asked.
fn ask_again() {
    if IS_ASKED.try_with(Cell::get).unwrap_or(true) {
        return;
    }
    // Another thread may change the session while this one is asked, and finish before it. What this thread
    // answered is then out of date.
    loop {
        let changes = registry::changes();
        // A process with one subscriber asks that of this thread. This thread may have none, or none while
        // its subscriber is called. The start of a second one makes `tracing` ask all.
        if dispatcher::get_default(|dispatch| dispatch.is::<NoSubscriber>()) {
            drop(Dispatch::new(NoSubscriber::new()));
        }
        callsite::rebuild_interest_cache();
        if changes == registry::changes() {
            break;
        }
    }
    log_level::follow(level());
}
