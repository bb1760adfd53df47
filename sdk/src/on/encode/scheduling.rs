//! The states of threads, as the kernel reports them.

use hairline_formats::SwitchSide;
use hairline_perf::{Change, Named};

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
        self.changes.iter().map(SwitchSide::from)
    }
}

/// Returns the name that a trace shows: the main thread's is the process's name for the kernel.
pub(crate) fn shown(named: &Named) -> &str {
    if named.task.pid == named.task.tid { "main" } else { &named.name }
}
