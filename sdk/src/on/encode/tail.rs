//! The facts at the end of a stream. The session writes them, or the recovery of a process that was killed.

use crate::on::base::platform::process::Thread;
use crate::summary::Lost;

/// The name of the event that shows all losses of the session, by reason.
pub(crate) const LOST: &str = "lost in all";

/// The facts at the end of a stream.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The traced process, and its track.
    pub(crate) pid: u32,
    pub(crate) process_track: u64,
    /// The thread on whose track FXT shows the losses.
    pub(crate) thread: Thread,
    /// The time of the trace, in ns.
    pub(crate) now: u64,
    pub(crate) lost: Lost,
    /// Bytes of the ring.
    pub(crate) ring: u64,
    /// Bytes of the trace before its tail.
    pub(crate) written: u64,
    /// Chunks that were read to their end.
    pub(crate) chunks: u64,
    /// Flushes that were requested and done.
    pub(crate) flushes: u64,
}

impl Tail {
    pub(crate) fn has_losses(&self) -> bool {
        self.lost != Lost::default()
    }

    /// Returns all reasons, with their losses.
    pub(crate) fn losses(&self) -> [(&'static str, u64); 7] {
        let Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged } = self.lost;
        [
            ("buffer full", buffer_full),
            ("re-entrant", reentrant),
            ("too large", too_large),
            ("thread exit", thread_exit),
            ("output", output),
            ("arguments", arguments),
            ("damaged chunks", damaged),
        ]
    }
}
