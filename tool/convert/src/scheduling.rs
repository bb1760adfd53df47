//! What the scheduler did: which thread ran on which processor, and which waited or slept.

use std::sync::Arc;

use crate::TraceFormat;

// What reports say.
pub(crate) const BEFORE_0: &str = "thread states before 0, left out";
pub(crate) const OTHERS: &str = "ftrace events that are not about scheduling left out";
pub(crate) const WAKERS: &str = "wakers of threads left out";

/// Changes of thread states, from one record or packet.
#[derive(Clone, Copy, Debug)]
pub struct Scheduling<'a> {
    /// The changes. Those of one processor are in order of time, those of different ones need not be.
    pub changes: &'a [StateChange],
    /// The record or packet in its own format.
    pub copy: Option<Copied<'a>>,
    /// The number of events in `copy` that are no changes of thread states.
    pub others: u64,
}

impl Scheduling<'_> {
    /// What a [`Report`](crate::Report) says of [`others`](Self::others), where they are left out.
    pub const OTHERS: &'static str = OTHERS;
}

/// Data in the format of the input. A writer of this format copies it instead of writing the item anew.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// The format of the bytes.
    pub format: TraceFormat,
    /// As in [`Item::Foreign`](crate::Item::Foreign).
    pub bytes: &'a [u8],
}

/// A thread's state from a moment on, until its next change.
///
/// ```
/// use hairline_convert::{RunState, StateChange};
///
/// let runs = StateChange { cpu: Some(1), ..StateChange::new(1_000, 8, RunState::Running) };
/// let sleeps = StateChange::new(3_000, 8, RunState::Sleeping); // it ran for 2 us
/// assert!(runs.state.is_running() && !sleeps.state.is_running() && !runs.is_wakeup);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The time in nanoseconds, on the trace's clock.
    pub time: i64,
    /// The thread id. Never 0, which is that of the idle task.
    pub tid: u64,
    /// The new state.
    pub state: RunState,
    /// The processor on which the thread runs, or ran until now.
    pub cpu: Option<u32>,
    /// Whether the thread was woken. Without effect if it was not asleep.
    pub is_wakeup: bool,
    /// The thread that woke it, if the trace tells; 0: an interrupt.
    pub waker: Option<u64>,
    /// The scheduler's priority.
    pub priority: Option<i32>,
    /// The thread's name, if it is new or has changed.
    pub name: Option<Arc<str>>,
    /// The process of the thread, if the trace says it with the name.
    pub pid: Option<u64>,
}

impl StateChange {
    /// A change without further properties.
    #[must_use]
    pub fn new(time: i64, tid: u64, state: RunState) -> Self {
        let (cpu, waker, priority, name, pid) = (None, None, None, None, None);
        Self { time, tid, state, cpu, is_wakeup: false, waker, priority, name, pid }
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RunState {
    /// It runs on a processor.
    Running,
    /// It could run, but no processor is free for it.
    Runnable,
    /// It waits for an event: a lock, a timer, data.
    Sleeping,
    /// It waits in the kernel and cannot be interrupted, as a rule for a disk.
    Uninterruptible,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It has ended.
    Dead,
}

impl RunState {
    /// Whether the thread is on a processor.
    #[must_use]
    pub fn is_running(self) -> bool {
        self == Self::Running
    }

    /// Whether the thread waits for something else than a processor.
    #[must_use]
    pub fn is_asleep(self) -> bool {
        matches!(self, Self::Sleeping | Self::Uninterruptible | Self::Stopped)
    }
}
