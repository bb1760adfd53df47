//! Counts of the data that a conversion changes or omits.

use std::collections::BTreeMap;

/// Counted by writers that give each thread its own events from the start.
pub(crate) const LATE_THREADS: &str = "tracks described as threads after their first event";

/// Counted by readers and writers of nested arguments.
pub(crate) const TOO_DEEP: &str = "arguments nested deeper than 32 levels, cut";

/// Counts what a reader did not understand, or what a writer could not express, by a description.
///
/// A description follows a number, for example "log messages became instants" or "user-space objects left
/// out".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    counts: BTreeMap<&'static str, u64>,
}

impl Report {
    /// Adds one.
    pub fn add(&mut self, what: &'static str) {
        self.add_many(what, 1);
    }

    /// Adds `count`.
    pub fn add_many(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// Adds all counts of another report.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(what, count)| self.add_many(what, count));
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Iterates over the descriptions and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(what, count)| (*what, *count))
    }
}
