//! Snapshots of panics.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::on::session::{current, trigger};

/// Makes each panic request a snapshot of the running flight recorder, and wait for it. The program's own
/// panic hooks run first.
pub(crate) fn trigger_on_panic() {
    static IS_HOOKED: AtomicBool = AtomicBool::new(false);
    trigger::set_for_panics();
    // The first event of a process may come during a panic, in which the hook cannot be changed.
    if !std::thread::panicking() && !IS_HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if trigger::is_for_panics()
                && let Some(shared) = current::running()
            {
                shared.snapshot_for_panic();
            }
        }));
    }
}
