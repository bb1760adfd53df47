//! Questions of `tracing` and `log` whether an event would be recorded.
//!
//! The first question in a process starts the session that the environment requests.

use crate::on::base::this_thread;
use crate::on::callsite::registry;
use crate::on::lifecycle::connect;
use crate::on::lifecycle::entry::start_once;
#[cfg(feature = "subscriber")]
use crate::on::lifecycle::{env, inherited};
use crate::vocabulary::Level;

/// Returns whether a callsite of this category and level would be on. Calls [`start_from_environment`] first.
pub(crate) fn would_record(category: &str, level: Level) -> bool {
    if this_thread::is_barred() {
        return false;
    }
    start_from_environment();
    registry::matches(category, level)
}

/// Returns whether a session runs. Calls [`start_from_environment`] first.
#[cfg(feature = "tracing")]
pub(crate) fn is_recording() -> bool {
    if this_thread::is_barred() {
        return false;
    }
    start_from_environment();
    registry::active_epoch().is_some()
}

/// Returns the most verbose level that the running session records. Without one, that of the session that the
/// environment requests and that the first event starts. `None` without either. A thread that may not read
/// the environment now gets the level of all events.
#[cfg(feature = "subscriber")]
pub(crate) fn recorded_level() -> Option<Level> {
    if registry::active_epoch().is_some() {
        let number = registry::active_level();
        let levels = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error];
        return levels.into_iter().find(|level| *level as u8 >= number).or(Some(Level::Fatal));
    }
    if inherited::is_done() {
        return None;
    }
    if this_thread::is_barred() {
        return Some(Level::Trace);
    }
    let _busy = this_thread::busy(); // the allocator may record
    env::requested_level()
}

/// Starts the session that the environment requests, at the first call in a process. Waits while another
/// thread starts the session.
pub(crate) fn start_from_environment() {
    connect::connect();
    let _busy = this_thread::busy();
    start_once();
}
