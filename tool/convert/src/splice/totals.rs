//! Totals of all parts.

use std::collections::HashSet;

/// Totals of all parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of events: two for a slice, one for an instant or a counter value.
    pub events: u64,
    /// The number of events that the processes lost, as they report it.
    pub lost: u64,
    /// The number of bytes written.
    pub bytes: u64,
    /// The number of malformed records, which are omitted.
    pub damaged: u64,
    pub(super) pids: HashSet<u64>,
    pub(super) threads: HashSet<(u64, u64)>,
}

impl Totals {
    /// The number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.pids.len()
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }
}
