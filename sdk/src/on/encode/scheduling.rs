//! The states of threads, as the kernel reports them.

use hairline_formats::{SideState, SwitchSide};
use hairline_perf::{Change, Named, State, Waker};

/// Names and states of this process's threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduling<'a> {
    /// Names of threads, before their changes.
    pub(crate) names: &'a [Named],
    pub(crate) changes: &'a [Change],
    /// The time of the names, in ns: not after the death of their threads.
    pub(crate) time: u64,
}

impl Scheduling<'_> {
    /// Returns the changes as both formats write them.
    pub(crate) fn sides(&self) -> impl Iterator<Item = SwitchSide> {
        self.changes.iter().map(|change| {
            let state = match (change.state, change.waker) {
                (_, Some(Waker { tid, is_interrupt })) => SideState::Woken { waker: tid, is_interrupt },
                (State::Running, None) => SideState::Running,
                (State::Runnable, None) => SideState::Runnable,
                (State::Asleep, None) => SideState::Asleep,
                (State::Dead, None) => SideState::Dead,
            };
            SwitchSide { time: change.time, tid: change.task.tid, cpu: change.cpu, state }
        })
    }
}

/// Returns the name that a trace shows: the main thread's is the process's name for the kernel.
pub(crate) fn shown(named: &Named) -> &str {
    if named.task.pid == named.task.tid { "main" } else { &named.name }
}
