//! Questions of `tracing` and `log` whether an event would be recorded.
//!
//! The first question in a process starts the session that the environment requests.

use crate::on::base::this_thread;
use crate::on::callsite::registry;
use crate::on::lifecycle::connect;
use crate::on::lifecycle::entry::start_once;
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

/// Starts the session that the environment requests, at the first call in a process. Waits while another
/// thread starts the session.
pub(crate) fn start_from_environment() {
    connect::connect();
    let _busy = this_thread::busy();
    start_once();
}
