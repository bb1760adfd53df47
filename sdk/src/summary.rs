//! What a session has recorded and lost.

use std::path::PathBuf;
use std::time::Duration;

/// What a session has recorded and lost.
///
/// ```
/// # use hairline::{MemoryOutput, Session, trace_instant};
/// # let memory = MemoryOutput::new();
/// let session = Session::builder().output_memory(&memory).start()?;
/// let worker = std::thread::Builder::new().name("worker".to_owned());
/// worker.spawn(|| trace_instant!("net", "retry")).unwrap().join().unwrap();
/// let summary = session.stop()?;
/// # if cfg!(feature = "enable") {
/// assert_eq!((summary.records, summary.bytes), (1, memory.len() as u64));
/// assert_eq!((&*summary.threads[0].name, summary.threads[0].records), ("worker", 1));
/// # }
/// # Ok::<(), hairline::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Event records in the trace: two for a scope, one for an instant or a counter value.
    pub records: u64,
    /// Bytes written to the output.
    pub bytes: u64,
    /// Events that were not recorded.
    pub lost: Lost,
    /// Scopes and spans that ended while a later one of their thread was open. All of them were recorded, but
    /// an end closes the slice that began last, so that the durations of both are wrong in the trace. Where a
    /// span of `tracing` ends below at most four later ones, its duration is right, and each later one is in
    /// two parts. The usual cause is a [`Scope`](crate::Scope) that is held across an `.await`.
    pub out_of_order: u64,
    /// The threads that recorded events, in the order of their first events. The 4,097th thread and all later
    /// ones share the last entry.
    pub threads: Vec<ThreadSummary>,
    /// The time from start to stop.
    pub duration: Duration,
    /// The path of the output, if it is a file.
    pub path: Option<PathBuf>,
    /// Facts that the user should know: for instance that the ring would not survive a kill.
    pub notes: Vec<String>,
}

/// Events that were not recorded, by reason. A scope counts once.
///
/// ```
/// let lost = hairline::Lost::default();
/// assert_eq!(lost.total(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The ring was full.
    pub buffer_full: u64,
    /// The event came while its own thread wrote another event: from a signal handler, or an allocator that
    /// traces.
    pub reentrant: u64,
    /// The record is larger than a chunk.
    pub too_large: u64,
    /// The event came at the end of its thread, from a destructor that ran after the thread's chunk writer
    /// was dropped.
    pub thread_exit: u64,
    /// The output refused the record after it was committed.
    pub output: u64,
    /// Arguments, not events: those above the 15 arguments of an FXT record. Their events were recorded.
    pub arguments: u64,
    /// Chunks, not events: chunks with a header that contradicts itself, since another process has written
    /// into the ring. Their records are not in the trace, and the number of these records is unknown.
    pub damaged: u64,
    /// Context switches, samples of call stacks and stacks of events, not events, that found no room in their
    /// ring, for which the trace has the reason "kernel ring full". See
    /// [`SessionBuilder::scheduling`](crate::SessionBuilder::scheduling) and
    /// [`SessionBuilder::sampling`](crate::SessionBuilder::sampling).
    pub kernel_ring: u64,
}

impl Lost {
    /// Returns the number of all events that were not recorded. A damaged chunk, a context switch and a
    /// sample count as one event each.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self {
            buffer_full,
            reentrant,
            too_large,
            thread_exit,
            output,
            arguments: _,
            damaged,
            kernel_ring,
        } = *self;
        // Saturating: after a crash the numbers come from the region, where another process can write.
        [buffer_full, reentrant, too_large, thread_exit, output, damaged, kernel_ring]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// One thread of a [`Summary`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// The kernel's id of the thread.
    pub tid: u32,
    /// The name of the thread.
    pub name: String,
    /// Event records of this thread in the trace.
    pub records: u64,
}
