//! Snapshots that panics ask for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::on::session::current::running_until;
use crate::on::session::requests::PATIENCE;
use crate::on::session::trigger::PANICS;

/// From now on a panic asks the running flight recorder for a snapshot, after the hooks that are there have run.
pub(crate) fn trigger_on_panic() {
    static IS_HOOKED: AtomicBool = AtomicBool::new(false);
    PANICS.store(true, Ordering::Release);
    // The first event of a process may come while it panics, when the hook cannot be changed.
    if !std::thread::panicking() && !IS_HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if PANICS.load(Ordering::Acquire) {
                snapshot_for_panic();
            }
        }));
    }
}

/// What a panic hook waits for, where it is asked to: a snapshot of the running flight recorder.
fn snapshot_for_panic() {
    if let Some(shared) = running_until(Instant::now() + PATIENCE) {
        shared.snapshot_for_panic();
    }
}
