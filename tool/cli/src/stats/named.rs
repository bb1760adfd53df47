//! Slices on threads, by name and by category.
//!
//! Nearly all slices of a name have one category. They are counted once, by name, and their sums are added to
//! the category at the end.

use hairline_convert::slices::Slice;
use hairline_convert::timeline::Split;

use crate::stats::rows::Rows;

#[derive(Debug, Default)]
pub(super) struct Named {
    /// The slices of each name that have the category of its first slice, and those of names beyond the
    /// limit.
    first: Rows,
    /// The other slices of these names.
    others: Rows,
    /// The slices whose category `first` does not have.
    categories: Rows,
}

impl Named {
    /// Counts a slice.
    #[inline]
    pub(super) fn add(&mut self, slice: &Slice) {
        match self.first.get_mut(slice.name.0) {
            Some(row) if row.category == Some(slice.category) => row.add(std::slice::from_ref(slice)),
            _ => self.add_other(slice),
        }
    }

    #[inline(never)]
    fn add_other(&mut self, slice: &Slice) {
        let one = std::slice::from_ref(slice);
        match self.first.get_mut(slice.name.0) {
            Some(_) => self.others.add(slice.name.0, one),
            None => {
                self.first.add(slice.name.0, one);
                if self.first.get_mut(slice.name.0).is_some() {
                    return; // it is the first of its name
                }
            }
        }
        self.categories.add(slice.category.0, one);
    }

    /// Adds the time in which a counted slice's thread ran and waited.
    pub(super) fn add_split(&mut self, slice: &Slice, split: &Split) {
        let (name, category) = (slice.name.0, slice.category.0);
        match self.first.get_mut(name).map(|row| row.category == Some(slice.category)) {
            Some(true) => return self.first.add_split(name, split),
            Some(false) => self.others.add_split(name, split),
            None => self.first.add_split(name, split),
        }
        self.categories.add_split(category, split);
    }

    /// Returns the rows by name, and those by category.
    pub(super) fn into_rows(self) -> (Rows, Rows) {
        let Self { first: mut names, others, mut categories } = self;
        for row in names.of_numbers() {
            if let Some(category) = row.category {
                categories.merge(category.0, row);
            }
        }
        for (name, row) in others.of_numbers().filter_map(|row| Some((row.what?, row))) {
            names.merge(name, row);
        }
        (names, categories)
    }
}

#[cfg(test)]
mod tests {
    use hairline_convert::TrackId;
    use hairline_convert::slices::Key;

    use super::*;
    use crate::stats::rows::Row;

    fn lines(rows: &Rows) -> Vec<String> {
        let line = |row: &Row| {
            let quantiles = row.quantiles([0.1, 0.5, 0.9, 0.99]);
            let about = (row.what, row.count, row.total, row.own, row.busy, row.min, row.max);
            format!("{about:?} {:?} {:?} {quantiles:?}", row.category, (row.running, row.waiting))
        };
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.sort();
        lines
    }

    /// Names with one category and with several, few slices of a name and many, and more names than rows.
    #[test]
    fn the_rows_are_those_of_counting_each_slice_twice() {
        let (mut named, mut names, mut categories) = (Named::default(), Rows::default(), Rows::default());
        let mut random = 1_u64;
        for n in 0..200_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (name, other) = ((random >> 33) as u32, (random >> 40) as u32);
            let name = if n % 4 == 0 { 50 + name % 30_000 } else { name % 50 };
            let category = if name % 5 == 0 { other % 7 } else { name % 3 };
            let duration = (random >> 20) as i64 % 100_000;
            let slice = Slice {
                track: TrackId(1),
                name: Key(name),
                category: Key(category),
                start: 0,
                duration,
                self_time: duration / 2,
                busy: duration * i64::from(n % 2),
                tag: 0,
            };
            let split = Split { running: duration / 3, waiting: duration / 5, ..Split::default() };
            named.add(&slice);
            named.add_split(&slice, &split);
            names.add(name, &[slice]);
            names.add_split(name, &split);
            categories.add(category, &[slice]);
            categories.add_split(category, &split);
        }
        let (names_of_once, categories_of_once) = named.into_rows();
        assert_eq!(lines(&names_of_once), lines(&names));
        assert_eq!(lines(&categories_of_once), lines(&categories));
    }
}
