//! Events lost where no session's region is at hand.

use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{LOSS_REASONS, LossReason};

/// By [`LossReason`]; they belong to the running session.
static STRAY: [AtomicU64; LOSS_REASONS.len()] = [const { AtomicU64::new(0) }; LOSS_REASONS.len()];

/// How many so far.
pub(crate) fn losses(reason: LossReason) -> u64 {
    STRAY[reason as usize].load(Ordering::Relaxed)
}

/// Counts one.
pub(crate) fn count(reason: LossReason) {
    STRAY[reason as usize].fetch_add(1, Ordering::Relaxed);
}
