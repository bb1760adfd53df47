//! What `tracing` and `log` ask: whether their events would be recorded. The first question in a process starts the
//! session that the environment asks for.

use crate::on::base::this_thread;
use crate::on::callsite::registry;
use crate::on::lifecycle::connect;
use crate::on::lifecycle::entry::start_once;

/// Whether a callsite of this category would be on. The first call in a process starts the session that the environment asks
/// for; one that comes meanwhile waits for it.
pub(crate) fn would_record(category: &str) -> bool {
    if this_thread::is_barred() {
        return false;
    }
    start_asked();
    registry::matches_category(category)
}

/// Whether a session runs. The first call as for [`would_record`].
#[cfg(feature = "tracing")]
pub(crate) fn is_recording() -> bool {
    if this_thread::is_barred() {
        return false;
    }
    start_asked();
    registry::active_epoch() != 0
}

/// Starts the session that the environment asks for, if nothing did yet.
pub(crate) fn start_asked() {
    connect::connect();
    let _busy = this_thread::busy();
    start_once();
}
