//! What was lost on the way from one format to another.

use std::collections::BTreeMap;

/// Said by writers whose threads have events of their own from the first on.
pub(crate) const LATE_THREADS: &str = "tracks that are said to be threads after their first event";

/// Counts what a reader did not understand, or a writer could not say, by what it is.
///
/// Texts are of the kind "log messages became instants" or "user-space objects left out": they follow a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    counts: BTreeMap<&'static str, u64>,
}

impl Report {
    /// One more of these.
    pub fn add(&mut self, what: &'static str) {
        self.add_many(what, 1);
    }

    /// So many more of these.
    pub fn add_many(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// All that another one has.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(what, count)| self.add_many(what, count));
    }

    /// Whether all was said as it was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What, and how many of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(what, count)| (*what, *count))
    }
}
