//! What the parts hold together.

use std::collections::HashSet;

/// What the parts hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events: two for a slice, one for an instant or a counter's value.
    pub events: u64,
    /// Events that their processes did not record, as they say.
    pub lost: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Records that made no sense, and were left out.
    pub damaged: u64,
    pub(super) pids: HashSet<u64>,
    pub(super) threads: HashSet<(u64, u64)>,
}

impl Totals {
    /// How many processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.pids.len()
    }

    /// How many threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }
}
