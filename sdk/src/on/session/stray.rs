//! Losses that threads count while they have no session's region to count them in.

use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{LOSS_REASONS, LossReason};

type Counts = [u64; LOSS_REASONS.len()];

/// Stray losses of this process, by [`LossReason`]. They belong to the running session.
static STRAY: [AtomicU64; LOSS_REASONS.len()] = [const { AtomicU64::new(0) }; LOSS_REASONS.len()];

/// Counts one lost event.
pub(crate) fn count(reason: LossReason) {
    STRAY[reason as usize].fetch_add(1, Ordering::Relaxed);
}

fn total(reason: LossReason) -> u64 {
    STRAY[reason as usize].load(Ordering::Relaxed)
}

/// The stray losses of earlier sessions, for the difference.
#[derive(Debug)]
pub(crate) struct StrayBefore(Counts);

impl StrayBefore {
    /// Reads the counters at the start of a session.
    pub(crate) fn now() -> Self {
        Self(LOSS_REASONS.map(total))
    }

    /// Returns the losses since [`now`](Self::now) was called.
    pub(crate) fn since(&self, reason: LossReason) -> u64 {
        total(reason) - self.0[reason as usize]
    }
}
