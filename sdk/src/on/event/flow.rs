//! Flows: arrows from one slice to the next.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::on::base::platform::process;
use crate::on::base::uuid;

/// A row of arrows between slices, across threads: work that is handed on.
///
/// Events name it with `flow: &flow`; the last one may say `end_flow: &flow`. A flow does not fork: it goes
/// from each event to the next one in time.
///
/// ```
/// use hairline::{Flow, trace_scope};
///
/// let flow = Flow::new();
/// {
///     trace_scope!("queue", "push", flow: &flow);
/// }
/// std::thread::spawn(move || {
///     trace_scope!("queue", "run", end_flow: &flow);
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Flow {
    id: u64,
    /// The epoch in which it began; [`ELSEWHERE`] if that was in another process.
    begun: AtomicU32,
}

/// The serial number of the first flow that this process made, and of the next one.
static FIRST: AtomicU64 = AtomicU64::new(1);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// In a forked child, which has its parent's random number: its flows are others than those that the parent makes from now on.
pub(crate) fn detach_after_fork() {
    let first = u64::from_le_bytes(process::random()) >> 1;
    FIRST.store(first, Ordering::Relaxed);
    NEXT.store(first, Ordering::Relaxed);
}

/// No session's epoch.
const ELSEWHERE: u32 = 1;

impl Flow {
    /// A flow that has not begun, with a random id.
    #[must_use]
    pub fn new() -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id: uuid::mix(process::uuid() ^ serial.rotate_left(24)), begun: AtomicU32::new(0) }
    }

    /// The flow with this id, begun in another process that sent its [`id`](Self::id).
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self { id, begun: AtomicU32::new(ELSEWHERE) }
    }

    /// The number that is the same in all processes.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the flow with this id was made here, and not by another process.
    pub(crate) fn is_of_this_process(id: u64) -> bool {
        let serial = (uuid::unmix(id) ^ process::uuid()).rotate_right(24);
        (FIRST.load(Ordering::Relaxed)..NEXT.load(Ordering::Relaxed)).contains(&serial)
    }

    /// Whether it began in the trace of this epoch, or elsewhere.
    pub(crate) fn has_begun(&self, epoch: u32) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        begun == epoch || begun == ELSEWHERE
    }

    /// The flow with this id, as far as [`begun`](Self::begun) has said: for who keeps these two where
    /// threads share them.
    #[cfg(feature = "subscriber")]
    pub(crate) fn resumed(id: u64, begun: u32) -> Self {
        Self { id, begun: AtomicU32::new(begun) }
    }

    /// The epoch in which it began; 0: none yet.
    #[cfg(feature = "subscriber")]
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// It is in the trace of this epoch.
    pub(crate) fn set_begun(&self, epoch: u32) {
        if self.begun.load(Ordering::Relaxed) != ELSEWHERE {
            self.begun.store(epoch, Ordering::Relaxed);
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<Flow> for Flow {
    fn as_ref(&self) -> &Flow {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_know_their_process_by_their_id() {
        let own = Flow::new();
        assert!(Flow::is_of_this_process(own.id()));
        assert!(!Flow::is_of_this_process(own.id() + 1) && !Flow::is_of_this_process(0));
    }
}
