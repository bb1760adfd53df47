//! Flows: arrows from one slice to the next.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::base::platform::process;
use crate::on::base::uuid;
use crate::on::event::begun::Begun;

/// A sequence of arrows between slices, across threads: follows work from one thread to the next.
///
/// Events refer to a flow with `flow: &flow`; the last event may use `end_flow: &flow`. A flow does not fork:
/// it goes from each event to the next one in time.
///
/// A clone is the same flow, for another thread. The first clone of a flow allocates; later clones do not.
///
/// ```
/// use hairline::{Flow, trace_scope};
///
/// let flow = Flow::new();
/// let parts = [1, 2].map(|part| {
///     let flow = flow.clone();
///     std::thread::spawn(move || {
///         trace_scope!("queue", "run", part, flow: &flow);
///     })
/// });
/// parts.map(|part| part.join().unwrap());
/// trace_scope!("queue", "collect", end_flow: &flow);
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    id: u64,
    begun: Begun,
}

/// The serial number of the first flow of this process.
static FIRST: AtomicU64 = AtomicU64::new(1);
/// The serial number of the next flow.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Starts new serial numbers in a forked child. The child has its parent's random number, so its flows would
/// otherwise get the ids of flows that the parent creates from now on.
pub(crate) fn detach_after_fork() {
    let first = u64::from_le_bytes(process::random()) >> 1;
    FIRST.store(first, Ordering::Relaxed);
    NEXT.store(first, Ordering::Relaxed);
}

impl Flow {
    /// Creates a flow that has not begun, with a random id.
    #[must_use]
    pub fn new() -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id: uuid::mix(process::random_id() ^ serial.rotate_left(24)), begun: Begun::new(0) }
    }

    /// Creates a flow that began in another process, from the [`id`](Self::id) that the other process sent.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// let sent = Flow::new().id(); // goes to the other process with the request
    /// let flow = Flow::from_id(sent);
    /// trace_scope!("rpc", "serve", end_flow: &flow);
    /// ```
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self { id, begun: Begun::elsewhere() }
    }

    /// Returns the id of the flow, which is the same in all processes.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether this process created the flow with this id.
    pub(crate) fn is_of_this_process(id: u64) -> bool {
        let serial = (uuid::unmix(id) ^ process::random_id()).rotate_right(24);
        (FIRST.load(Ordering::Relaxed)..NEXT.load(Ordering::Relaxed)).contains(&serial)
    }

    /// In which session the flow began.
    #[inline(always)]
    pub(crate) fn state(&self) -> &Begun {
        &self.begun
    }

    /// Recreates a flow from its id and its [`begun`](Self::begun), for code that stores these two where
    /// threads share them.
    #[cfg(feature = "subscriber")]
    pub(crate) fn resumed(id: u64, begun: u32) -> Self {
        Self { id, begun: Begun::new(begun) }
    }

    /// Returns the epoch in which the flow began; 0 if it has not begun.
    #[cfg(feature = "subscriber")]
    pub(crate) fn begun(&self) -> u32 {
        self.begun.last()
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
    fn the_id_of_a_flow_shows_whether_this_process_created_it() {
        let own = Flow::new();
        assert!(Flow::is_of_this_process(own.id()));
        assert!(!Flow::is_of_this_process(own.id() + 1) && !Flow::is_of_this_process(0));
    }
}
