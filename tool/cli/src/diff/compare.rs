//! Two sides, and the figures that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::diff::chance::{Change, Test, changes};
use crate::diff::reading::{FIGURES, Name, Part, Trace};
use crate::stats::SEVERAL;
use crate::table::plain;

/// The limit for names. Further ones, those with the least time, are not compared.
const MOST_NAMES: usize = 2_000;
/// The limit for categories that a doubt lists.
const MOST_LISTED: usize = 8;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    Count,
    Total,
    P50,
    P99,
}

impl Figure {
    pub(super) const ALL: [Self; FIGURES] = [Self::Count, Self::Total, Self::P50, Self::P99];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Total => "total",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }
}

/// The traces of a side.
#[derive(Debug, Default)]
pub(super) struct Side {
    traces: Vec<Trace>,
}

impl Side {
    pub(super) fn add(&mut self, trace: Trace) {
        self.traces.push(trace);
    }

    /// The traces without slices.
    pub(super) fn empty(&self) -> impl Iterator<Item = &Trace> {
        self.traces.iter().filter(|trace| trace.parts.iter().all(BTreeMap::is_empty))
    }

    fn units(&self) -> impl Iterator<Item = &Part> {
        self.traces.iter().flat_map(|trace| &trace.parts)
    }

    fn categories(&self) -> BTreeSet<&str> {
        self.traces.iter().flat_map(|trace| trace.categories.iter().map(String::as_str)).collect()
    }
}

/// A figure of a name, on both sides.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: Name,
    pub(super) category: String,
    pub(super) figure: Figure,
    /// Whether the old side has such slices, and whether the new one has.
    pub(super) is_on: [bool; 2],
    /// The geometric mean of the traces of each side, a number or nanoseconds, where values far from the middle
    /// count as at its limit ([`Test::new`]); 0 on a side without such
    /// slices. A percentile is that of the parts, if there are parts.
    pub(super) old: f64,
    pub(super) new: f64,
    /// The change of the logarithm.
    pub(super) change: Change,
    /// Whether it is no chance and large enough.
    pub(super) is_changed: bool,
}

impl Line {
    /// The change as a factor minus 1.
    pub(super) fn part(&self) -> f64 {
        self.change.by.exp_m1()
    }

    /// The bounds of the change, as factors minus 1.
    pub(super) fn bounds(&self) -> [f64; 2] {
        self.change.interval.map(f64::exp_m1)
    }

    /// The least change in the interval, as a logarithm.
    fn surely(&self) -> f64 {
        let [low, high] = self.change.interval;
        if low > 0.0 { low } else { (-high).max(0.0) }
    }
}

/// All figures.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Those that changed first, by their least change.
    pub(super) lines: Vec<Line>,
    pub(super) names: usize,
    pub(super) left_out: usize,
    /// The number of names that are in some parts of a side only. Such a name cannot be compared by parts.
    pub(super) rare: usize,
    pub(super) traces: [usize; 2],
    /// The number of parts of each trace, if the traces are too few.
    pub(super) parts: Option<usize>,
    pub(super) least: f64,
}

impl Comparison {
    pub(super) fn of(sides: &[Side; 2], alarms: f64, least: f64, parts: Option<usize>) -> Self {
        let units: Vec<_> = sides.iter().flat_map(Side::units).collect();
        let old = sides[0].units().count();
        let per_trace = parts.unwrap_or(1);
        let Names { mut all, rare } = Names::of(&units, old, parts.is_some());
        let names = all.len();
        let left_out = names.saturating_sub(MOST_NAMES);
        all.truncate(MOST_NAMES);
        let about = all.iter().flat_map(|about| Figure::ALL.map(|figure| (about, figure)));
        // A percentile of no slices is not known.
        let is_known = |(about, figure): &(&About<'_>, Figure)| {
            matches!(figure, Figure::Count | Figure::Total) || about.units == [old, units.len() - old]
        };
        let about: Vec<_> = about.filter(is_known).collect();
        let tests: Vec<Test> =
            about.iter().map(|(about, figure)| test(about.name, *figure, &units)).collect();
        let changes = changes(&tests, old, units.len());
        let line = |((about, figure), (test, change)): ((&About<'_>, Figure), (&Test, Change))| {
            let side = |range: Range<usize>| {
                let units = &units[range.clone()];
                match units.iter().all(|unit| figure_of(unit, about.name, figure) == 0.0) {
                    true => 0.0,
                    false if per_trace == 1 => test.mean(range),
                    false => mean_of_parts(units, about.name, figure, per_trace),
                }
            };
            let (olds, news) = (side(0..old), side(old..units.len()));
            let is_changed = change.p <= alarms && change.by.exp_m1().abs() >= least;
            let (name, category) = (about.name.clone(), about.category.to_owned());
            let is_on = about.units.map(|units| units > 0);
            Line { name, category, figure, is_on, old: olds, new: news, change, is_changed }
        };
        let mut lines: Vec<Line> = about.into_iter().zip(tests.iter().zip(changes)).map(line).collect();
        lines.sort_by(|a, b| {
            let by_change = || b.surely().total_cmp(&a.surely());
            b.is_changed.cmp(&a.is_changed).then_with(by_change)
        });
        let traces = [sides[0].traces.len(), sides[1].traces.len()];
        Self { lines, names, left_out, rare, traces, parts, least }
    }

    /// The figures that changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.is_changed)
    }
}

/// What is compared of a name.
struct About<'n> {
    name: &'n Name,
    category: &'n str,
    /// The number of old units, and of new ones, that have it.
    units: [usize; 2],
    total: i64,
}

/// The names of all units, those with the most time first.
struct Names<'n> {
    all: Vec<About<'n>>,
    rare: usize,
}

impl<'n> Names<'n> {
    fn of(units: &[&'n Part], old: usize, are_parts: bool) -> Self {
        let mut all = BTreeMap::<&Name, About<'n>>::new();
        for (n, unit) in units.iter().enumerate() {
            for (name, row) in *unit {
                let empty = || About { name, category: &row.category, units: [0, 0], total: 0 };
                let about = all.entry(name).or_insert_with(empty);
                if about.category != row.category {
                    about.category = SEVERAL;
                }
                about.units[usize::from(n >= old)] += 1;
                about.total = about.total.saturating_add(row.figures[Figure::Total as usize]);
            }
        }
        let (before, sizes) = (all.len(), [old, units.len() - old]);
        // What one part has and another one has not says nothing of the program.
        all.retain(|_, about| !are_parts || about.units == sizes || about.units.contains(&0));
        let rare = before - all.len();
        let mut all: Vec<_> = all.into_values().collect();
        all.sort_by_key(|about| (std::cmp::Reverse(about.total), about.name));
        Self { all, rare }
    }
}

/// A figure of a unit, 0 without such slices.
#[allow(clippy::cast_precision_loss)] // a logarithm of it is taken
fn figure_of(unit: &Part, name: &Name, figure: Figure) -> f64 {
    unit.get(name).map_or(0, |row| row.figures[figure as usize]).max(0) as f64
}

/// Half a slice, or half a nanosecond, stands for none.
fn logarithm(value: f64) -> f64 {
    value.max(0.5).ln()
}

/// The logarithms of a figure in each unit.
#[allow(clippy::cast_precision_loss)] // a mean
fn test(name: &Name, figure: Figure, units: &[&Part]) -> Test {
    let values: Vec<f64> = units.iter().map(|unit| figure_of(unit, name, figure)).collect();
    // A count varies at least as that of independent events does.
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let variance = if figure == Figure::Count { 1.0 / mean.max(1.0) } else { 0.0 };
    Test::new(values.into_iter().map(logarithm).collect(), variance)
}

/// The geometric mean of a side whose traces are in parts: of whole traces for what can be added, else of
/// their parts.
#[allow(clippy::cast_precision_loss)] // a mean
fn mean_of_parts(units: &[&Part], name: &Name, figure: Figure, per_trace: usize) -> f64 {
    let together = if matches!(figure, Figure::Count | Figure::Total) { per_trace } else { 1 };
    let sum = |units: &[&Part]| units.iter().map(|unit| figure_of(unit, name, figure)).sum::<f64>();
    let values: Vec<f64> = units.chunks(together).map(sum).collect();
    (values.iter().copied().map(logarithm).sum::<f64>() / values.len() as f64).exp()
}

/// Why the sides can perhaps not be compared.
pub(super) fn doubts(sides: &[Side; 2]) -> Vec<String> {
    let mut doubts = Vec::new();
    for trace in sides.iter().flat_map(|side| &side.traces) {
        if trace.losses > 0 {
            let what = "events are missing from it, so its counts and times are too small";
            doubts.push(format!("{}: {what}", trace.path));
        }
    }
    for trace in sides.iter().flat_map(Side::empty) {
        doubts.push(format!("{}: it has no slices to compare", trace.path));
    }
    let mut first = BTreeMap::new();
    for trace in sides.iter().flat_map(|side| &side.traces) {
        let Some(uuid) = trace.uuid else { continue };
        if let Some(first) = first.insert(uuid, &trace.path) {
            doubts.push(format!("{}: it has the UUID of {first}: give traces of different runs", trace.path));
        }
    }
    let clocks: BTreeSet<_> =
        sides.iter().flat_map(|side| &side.traces).filter_map(|trace| trace.clock).collect();
    if clocks.len() > 1 {
        doubts.push(
            "the traces have different clocks, whose seconds may differ: record all with one".to_owned(),
        );
    }
    let [old, new] = [sides[0].categories(), sides[1].categories()];
    for (has, lacks, which) in [(&old, &new, "old"), (&new, &old, "new")] {
        let only: Vec<_> = has.difference(lacks).copied().filter(|category| !category.is_empty()).collect();
        if !only.is_empty() {
            let list: Vec<_> = only.iter().take(MOST_LISTED).map(|category| plain(category)).collect();
            let more = only.len() - list.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let list = list.join(", ") + &more;
            doubts.push(format!("only the {which} traces have the categories {list}: another filter?"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::reading::Row;

    fn name(name: &str) -> Name {
        Name { name: name.to_owned(), is_interval: false }
    }

    /// A trace with these names, categories, counts and times, in one part.
    fn trace(rows: &[(&str, &str, i64, i64)]) -> Trace {
        Trace { parts: vec![part(rows)], ..Trace::default() }
    }

    fn part(rows: &[(&str, &str, i64, i64)]) -> Part {
        let row = |(own, category, count, time): &(&str, &str, i64, i64)| {
            let figures = [*count, count * time, *time, *time];
            (name(own), Row { figures, category: (*category).to_owned() })
        };
        rows.iter().map(row).collect()
    }

    fn side(traces: impl Iterator<Item = Trace>) -> Side {
        Side { traces: traces.collect() }
    }

    fn line<'c>(comparison: &'c Comparison, own: &str, figure: Figure) -> &'c Line {
        let is_it = |line: &&Line| line.name == name(own) && line.figure == figure;
        comparison.lines.iter().find(is_it).expect("the line")
    }

    #[test]
    fn one_slice_of_another_category_makes_no_other_name() {
        let rows = [("a", "app", 9, 50)];
        let old = side((0..5).map(|_| trace(&rows)));
        let new = side((0..5).map(|n| trace(&[("a", if n == 0 { SEVERAL } else { "app" }, 9, 50)])));
        let comparison = Comparison::of(&[old, new], 0.01, 0.01, None);
        assert_eq!((comparison.names, comparison.lines.len()), (1, 4));
        assert_eq!(line(&comparison, "a", Figure::P99).category, SEVERAL);
        assert_eq!(comparison.changed().count(), 0);
    }

    #[test]
    fn a_name_that_a_side_has_not_is_0_there() {
        let old = side((0..30).map(|_| trace(&[("a", "app", 9, 50)])));
        let new = side((0..30).map(|_| trace(&[("a", "app", 9, 50), ("b", "app", 9, 20)])));
        let comparison = Comparison::of(&[old, new], 0.01, 0.01, None);
        let line = line(&comparison, "b", Figure::Count);
        assert_eq!((line.old, line.is_on, line.is_changed), (0.0, [false, true], true));
        assert!((line.new - 9.0).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn times_of_0_are_of_slices_that_are_there() {
        let old = side((0..6).map(|_| trace(&[("a", "app", 9, 0)])));
        let new = side((0..6).map(|_| trace(&[("a", "app", 9, 100)])));
        let comparison = Comparison::of(&[old, new], 0.01, 0.01, None);
        let line = line(&comparison, "a", Figure::P50);
        assert_eq!((line.old, line.is_on, line.is_changed), (0.0, [true, true], true));
    }

    #[test]
    fn by_parts_the_values_are_those_of_the_whole_trace() {
        let of_parts = |counts: &[i64]| {
            let parts = counts.iter().map(|count| match count {
                0 => part(&[("a", "app", 8, 10)]),
                count => part(&[("a", "app", 8, 10), ("b", "app", *count, 10)]),
            });
            side([Trace { parts: parts.collect(), ..Trace::default() }].into_iter())
        };
        let both = [of_parts(&[0; 4]), of_parts(&[100, 300, 0, 0])];
        let comparison = Comparison::of(&both, 0.01, 0.1, Some(4));
        assert!((line(&comparison, "a", Figure::Count).old - 32.0).abs() < 1e-9);
        assert!((line(&comparison, "b", Figure::Count).new - 400.0).abs() < 1e-9);
        let both = [of_parts(&[400, 0, 0, 0]), of_parts(&[100; 4])];
        let comparison = Comparison::of(&both, 0.01, 0.1, Some(4));
        assert_eq!((comparison.names, comparison.rare), (1, 1), "b is in some parts only");
    }

    #[test]
    fn doubts_are_lines_of_text() {
        let with = |category: &str| {
            let categories = (0..20).map(|n| format!("{category}{n}")).collect();
            side([Trace { categories, ..trace(&[("a", "app", 9, 50)]) }].into_iter())
        };
        let doubts = doubts(&[with("old\n\u{1b}[2J"), with("new")]);
        assert_eq!(doubts.len(), 2);
        assert!(
            doubts.iter().all(|doubt| !doubt.contains(char::is_control) && doubt.contains("and 12 more"))
        );
    }
}
