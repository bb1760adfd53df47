//! Counts by name, by category and by track.

use hairline_convert::slices::{Key, Slice};
use hairline_convert::timeline::Split;

use crate::stats::histogram::Histogram;

/// The limit for rows. All further names share one row.
const MOST_ROWS: usize = 1 << 14;
const NONE: u32 = u32::MAX;

/// The slices of one row. What each slice changes is in one line of the processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Row {
    pub(crate) count: u64,
    pub(crate) total: i64,
    pub(crate) own: i64,
    pub(crate) busy: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// The category of all slices, if they have the same.
    pub(crate) category: Option<Key>,
    histogram: Histogram,
    /// The number of the [`Key`] or of the track. `None` for the row that all others share.
    pub(crate) what: Option<u32>,
    /// The time in which the threads ran, and in which they waited for a core, if that is known.
    pub(crate) running: i64,
    pub(crate) waiting: i64,
    /// Whether the trace has the state of a thread for any of the time.
    has_states: bool,
}

impl Row {
    fn new(what: Option<u32>, category: Key) -> Self {
        Self {
            what,
            count: 0,
            total: 0,
            own: 0,
            busy: 0,
            running: 0,
            waiting: 0,
            has_states: false,
            min: i64::MAX,
            max: 0,
            category: Some(category),
            histogram: Histogram::default(),
        }
    }

    /// Adds slices, of which there is at least one.
    #[inline]
    pub(super) fn add(&mut self, slices: &[Slice]) {
        // In registers: a sum in memory waits for its last store.
        let Self { mut total, mut own, mut busy, mut min, mut max, mut category, .. } = *self;
        for slice in slices {
            total = plus(total, slice.duration);
            own = plus(own, slice.self_time);
            busy = plus(busy, slice.busy);
            (min, max) = (min.min(slice.duration), max.max(slice.duration));
            if category != Some(slice.category) {
                category = None;
            }
            self.histogram.add(slice.duration.unsigned_abs());
        }
        self.count += slices.len() as u64;
        (self.total, self.own, self.busy) = (total, own, busy);
        (self.min, self.max, self.category) = (min, max, category);
    }

    /// Adds all slices of another row.
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
        self.busy = self.busy.saturating_add(other.busy);
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.running = self.running.saturating_add(other.running);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.has_states |= other.has_states;
        if self.category != other.category {
            self.category = None;
        }
        self.histogram.merge(&other.histogram);
    }

    /// The time in which the threads ran, and in which they waited. `None` if the trace does not have their
    /// states.
    pub(crate) fn states(&self) -> [Option<i64>; 2] {
        [self.running, self.waiting].map(|time| self.has_states.then_some(time))
    }

    /// The 50th, 90th and 99th percentile.
    pub(crate) fn percentiles(&self) -> [i64; 3] {
        self.quantiles([0.5, 0.9, 0.99])
    }

    /// The durations that these fractions of the slices do not exceed.
    pub(crate) fn quantiles<const N: usize>(&self, parts: [f64; N]) -> [i64; N] {
        let near = self.histogram.percentiles(parts, self.count);
        near.map(|value| i64::try_from(value).unwrap_or(i64::MAX).clamp(self.min.min(self.max), self.max))
    }
}

/// The sum of two times that are not negative. As `saturating_add`, which takes three instructions more.
#[inline(always)] // for every slice
fn plus(one: i64, other: i64) -> i64 {
    match one.checked_add(other) {
        Some(sum) => sum,
        None => too_long(),
    }
}

#[cold]
fn too_long() -> i64 {
    i64::MAX
}

/// Rows by number.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    indices: Vec<u32>,
    rows: Vec<Row>,
    others: Option<Box<Row>>,
}

impl Rows {
    /// Adds slices to the row of a number.
    #[inline]
    pub(crate) fn add(&mut self, what: u32, slices: &[Slice]) {
        match self.get_mut(what) {
            Some(row) => row.add(slices),
            None => self.first(what, slices),
        }
    }

    #[cold]
    fn first(&mut self, what: u32, slices: &[Slice]) {
        let Some(Slice { category, .. }) = slices.first().copied() else { return };
        if self.rows.len() >= MOST_ROWS {
            let others = self.others.get_or_insert_with(|| Box::new(Row::new(None, category)));
            return others.add(slices);
        }
        let mut row = Row::new(Some(what), category);
        row.add(slices);
        self.insert(what, row);
    }

    /// The row of a number, if it has one of its own.
    pub(super) fn get(&self, what: u32) -> Option<&Row> {
        let place = self.indices.get(what as usize).copied().unwrap_or(NONE);
        self.rows.get(place as usize)
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, what: u32) -> Option<&mut Row> {
        let place = self.indices.get(what as usize).copied().unwrap_or(NONE);
        self.rows.get_mut(place as usize)
    }

    /// The rows that have a number.
    pub(super) fn of_numbers(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Adds all slices of a row to that of a number.
    pub(super) fn merge(&mut self, what: u32, row: &Row) {
        if self.get_mut(what).is_none() {
            let category = row.category.unwrap_or_default();
            if self.rows.len() >= MOST_ROWS {
                let others = self.others.get_or_insert_with(|| Box::new(Row::new(None, category)));
                return others.merge(row);
            }
            self.insert(what, Row::new(Some(what), category));
        }
        if let Some(own) = self.get_mut(what) {
            own.merge(row);
        }
    }

    fn insert(&mut self, what: u32, row: Row) {
        if self.indices.len() <= what as usize {
            self.indices.resize(what as usize + 1, NONE);
        }
        self.indices[what as usize] = self.rows.len() as u32; // at most MOST_ROWS
        self.rows.push(row);
    }

    /// Adds time to the row of a number, without a slice.
    pub(super) fn add_busy(&mut self, what: u32, time: i64) {
        if self.get_mut(what).is_none() && self.rows.len() < MOST_ROWS {
            self.insert(what, Row { min: 0, ..Row::new(Some(what), Key::NONE) });
        }
        let place = self.indices.get(what as usize).copied().unwrap_or(NONE);
        let row = match self.rows.get_mut(place as usize) {
            Some(row) => row,
            None => self.others.get_or_insert_with(|| Box::new(Row { min: 0, ..Row::new(None, Key::NONE) })),
        };
        row.busy = row.busy.saturating_add(time);
    }

    /// Adds the time in which a slice's thread ran and waited.
    pub(super) fn add_split(&mut self, what: u32, split: &Split) {
        let place = self.indices.get(what as usize).copied().unwrap_or(NONE);
        let row = match self.rows.get_mut(place as usize) {
            Some(row) => row,
            None => match self.others.as_deref_mut() {
                Some(others) => others,
                None => return,
            },
        };
        row.running = row.running.saturating_add(split.running);
        row.waiting = row.waiting.saturating_add(split.waiting);
        row.has_states |= split.running > 0 || split.waiting > 0 || split.asleep > 0;
    }

    /// The rows, in order of their first slice.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(self.others.as_deref())
    }
}
