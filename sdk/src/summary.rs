//! What a session has recorded, and what it has lost.

use std::path::PathBuf;
use std::time::Duration;

/// What a session recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Event records in the trace: two for a scope, one for an instant or a counter value.
    pub records: u64,
    /// Bytes written to the output.
    pub bytes: u64,
    /// Events that were not recorded.
    pub lost: Lost,
    /// Every thread that recorded something, in the order of their first events. The 4,097th and all after it share the
    /// last entry.
    pub threads: Vec<ThreadSummary>,
    /// From start to stop.
    pub duration: Duration,
    /// The output's path, if it has one.
    pub path: Option<PathBuf>,
    /// What is worth knowing: for instance that the ring would not survive a kill.
    pub notes: Vec<String>,
}

/// Events that were not recorded, by reason. A scope counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The ring was full.
    pub buffer_full: u64,
    /// The event came while its own thread was writing one: from a signal handler, or an allocator that traces.
    pub reentrant: u64,
    /// The record is larger than a chunk.
    pub too_large: u64,
    /// The event came from a destructor that ran after the thread's own writer was torn down.
    pub thread_exit: u64,
    /// Records that were committed and that the output then refused.
    pub output: u64,
    /// Arguments, not events: those beyond the 15 for which an FXT record has room. Their events were recorded.
    pub arguments: u64,
    /// Chunks, not events: those whose header contradicted itself, since another process has written into the ring. Their records are not
    /// in the trace, and how many there were is not known.
    pub damaged: u64,
}

impl Lost {
    /// All events that were not recorded; a damaged chunk counts as one.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { buffer_full, reentrant, too_large, thread_exit, output, arguments: _, damaged } = *self;
        // Saturating: after a crash the numbers are what the region says.
        [buffer_full, reentrant, too_large, thread_exit, output, damaged]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// One thread of a [`Summary`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// The kernel's id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Event records of this thread in the trace.
    pub records: u64,
}
