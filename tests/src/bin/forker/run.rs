//! What all threads of the first process share.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Bytes of a ring. Small, since what killed children leave stays until the end.
pub(crate) const BUFFER: u64 = 1 << 20;

/// No thread begins another step.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);
/// Whether the threads are to end.
pub(crate) fn is_stopped() -> bool {
    STOP.load(SeqCst)
}
