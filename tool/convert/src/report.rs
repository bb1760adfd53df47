//! Counts of the data that a conversion changes or omits.

use std::collections::BTreeMap;

use hairline_formats::Zeros;

/// Counted by writers that give each thread its own events from the start.
pub(crate) const LATE_THREADS: &str = "tracks described as threads after their first event";

/// Counted by readers of formats whose texts are UTF-8.
pub(crate) const NOT_UTF8: &str = "texts that are not UTF-8, with U+FFFD in the place of what is wrong";

/// Counted by readers whose input has zeros in the place of records.
pub(crate) const HOLES: &str = "holes of zeros, in which records are lost";
pub(crate) const CUT_BY_HOLE: &str = "records with a hole of zeros left out";
pub(crate) const ZEROS_AT_END: &str = "blocks of zeros at the end, passed over";

/// Counted by readers and writers of nested arguments.
pub(crate) const TOO_DEEP: &str = "arguments nested deeper than 32 levels, cut";

/// Counted by writers whose format has no states.
pub(crate) const STATES: &str = "tracks of states became tracks of slices";
/// Counted by writers whose format has no call stacks of events.
pub(crate) const STACKS: &str = "call stacks of events left out";

/// Counts what a reader did not understand, or what a writer could not express, by a description.
///
/// A description follows a number, for example "log messages became instants" or "user-space objects left
/// out".
///
/// ```
/// use hairline_convert::Report;
///
/// let (mut one, mut other) = (Report::default(), Report::default());
/// one.add("user-space objects left out");
/// other.add_many("user-space objects left out", 2);
/// one.add_all(&other);
/// assert_eq!(one.iter().collect::<Vec<_>>(), [("user-space objects left out", 3)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    counts: BTreeMap<&'static str, Count>,
}

/// The limit for ids that a description names.
const MOST_IDS: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    count: u64,
    /// Whether each one is a defect of the input.
    is_defect: bool,
    /// The first ids that were counted.
    ids: Vec<u64>,
}

impl Report {
    /// Adds one.
    pub fn add(&mut self, what: &'static str) {
        self.add_many(what, 1);
    }

    /// Adds `count`.
    #[inline] // nearly always 0
    pub fn add_many(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            self.add_some(what, count);
        }
    }

    #[cold]
    fn add_some(&mut self, what: &'static str, count: u64) {
        self.counts.entry(what).or_default().count += count;
    }

    /// Adds `count` defects of the input: events that a reader cannot understand, or references to undefined
    /// entries. In contrast, [`add`](Self::add) is for valid data that a reader or writer does not know.
    pub fn add_defects(&mut self, what: &'static str, count: u64) {
        self.add_many(what, count);
        self.counts.entry(what).and_modify(|known| known.is_defect = true);
    }

    /// Adds one reference to an undefined id.
    pub fn add_undefined(&mut self, what: &'static str, id: u64) {
        self.add_defects(what, 1);
        if let Some(known) = self.counts.get_mut(what) {
            known.add_id(id);
        }
    }

    /// Adds the zeros that a reader has passed over since `before`.
    pub(crate) fn add_zeros(&mut self, before: &mut Zeros, now: Zeros) {
        self.add_defects(HOLES, now.holes - before.holes);
        self.add_defects(CUT_BY_HOLE, now.cut - before.cut);
        self.add_many(ZEROS_AT_END, now.at_end - before.at_end);
        *before = now;
    }

    /// Adds all counts of another report.
    pub fn add_all(&mut self, other: &Self) {
        for (what, other) in &other.counts {
            let known = self.counts.entry(what).or_default();
            known.count += other.count;
            known.is_defect |= other.is_defect;
            other.ids.iter().for_each(|id| known.add_id(*id));
        }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Iterates over the descriptions and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(what, known)| (*what, known.count))
    }

    /// Whether what a description counts are defects of the input.
    #[must_use]
    pub fn is_defect(&self, what: &str) -> bool {
        self.counts.get(what).is_some_and(|known| known.is_defect)
    }

    /// The first three different ids that a description counts. Most descriptions count no ids.
    #[must_use]
    pub fn ids(&self, what: &str) -> &[u64] {
        self.counts.get(what).map_or(&[], |known| &known.ids)
    }
}

impl Count {
    fn add_id(&mut self, id: u64) {
        if self.ids.len() < MOST_IDS && !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }
}
