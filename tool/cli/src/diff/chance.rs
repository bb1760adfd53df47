//! Which differences chance does not explain.
//!
//! The unit is a whole trace, since the slices of one trace are not independent: they share the placement of
//! code and memory, the frequency of the processor, and whatever else ran on the machine.
//!
//! ```text
//!              trace 1  trace 2 ... | trace 1  trace 2 ...
//! read, p50      102      104       |   101      103        one test for each name and figure
//! parse, p50      88       85       |    93       95
//! ```
//!
//! * Each test has a t: the difference of the mean logarithms, over its standard error.
//! * If both sides are the same program, recorded in turns, each exchange of traces between the sides is as
//!   likely as what was observed. So the exchanges show how large the largest t of all tests gets by chance.
//!   All tests move together, which heeds that names are correlated (a slice and the one around it). Tests
//!   above the level that this largest t passes in 1 % of the exchanges are reported: Westfall and Young's
//!   maxT, which bounds the chance of any false alarm, however many names there are.
//! * A value far from the middle of both sides counts as at [`FAR`]: a run that something else on the machine
//!   disturbed would hide a change of the others. That is done before the sides are known, so the exchanges
//!   stay equally likely.
//! * Intervals come from the bootstrap: traces drawn with replacement, on each side.
//!
//! With few traces there are few exchanges, and none is rare enough. Each trace is then cut into parts of
//! equal time, which are exchanged instead. That sees what varies within a run, and not what varies between
//! runs.

use std::ops::Range;

use crate::diff::random::Random;

/// The number of exchanges, and of draws for the intervals.
const EXCHANGES: usize = 9_999;
const DRAWS: usize = 1_999;
/// The limit for additions of all exchanges: some seconds.
const MOST_STEPS: usize = 2_000_000_000;
/// The standard error of a difference of logarithms is at least so large. Percentiles have steps of 1 %.
const LEAST_ERROR: f64 = 0.002;
/// A value counts as at most this many typical distances from the median of all units. Of normal values 87 %
/// are nearer, and little is lost by the others.
const FAR: f64 = 1.5;
/// The standard deviation of normal values, in medians of the distance from their median.
const DEVIATION: f64 = 1.4826;
/// The number of parts on each side.
const PARTS: usize = 16;

/// The values of a figure on both sides, one for each unit.
#[derive(Clone, Debug)]
pub(super) struct Test {
    /// The logarithms: those of the old units, then those of the new ones.
    values: Vec<f64>,
    /// The error that each value has at least, squared.
    variance: f64,
}

/// How a figure changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// The difference of the mean logarithms.
    pub(super) by: f64,
    /// The interval in which it is with 95 %.
    pub(super) interval: [f64; 2],
    /// The share of exchanges in which any figure changed as clearly.
    pub(super) p: f64,
}

/// The number of parts that each trace has to be cut into; `None` if there are enough traces.
pub(super) fn parts(traces: [usize; 2], alarms: f64) -> Option<usize> {
    // The two labellings of the observed division have the largest t, so it takes 2 / alarms exchanges.
    let (mut exchanges, all) = (1.0, traces[0] + traces[1]);
    for n in 0..traces[0].min(traces[1]) {
        #[allow(clippy::cast_precision_loss)] // small numbers
        let factor = (all - n) as f64 / (n + 1) as f64;
        exchanges *= factor;
    }
    let enough = exchanges * alarms >= 2.0;
    (!enough).then(|| PARTS.div_ceil(traces[0].min(traces[1]).max(1)).max(2))
}

impl Test {
    /// A figure with these logarithms, those of the old units first, that have this error squared at least.
    pub(super) fn new(mut values: Vec<f64>, variance: f64) -> Self {
        let middle = median(values.iter().copied());
        let far = FAR * DEVIATION * median(values.iter().map(|value| (value - middle).abs()));
        // If most values are equal, each other one means something.
        if far > 0.0 {
            values.iter_mut().for_each(|value| *value = value.clamp(middle - far, middle + far));
        }
        Self { values, variance }
    }

    /// The geometric mean of some of the units.
    #[allow(clippy::cast_precision_loss)] // a number of units
    pub(super) fn mean(&self, units: Range<usize>) -> f64 {
        let of_units = &self.values[units];
        (of_units.iter().sum::<f64>() / of_units.len() as f64).exp()
    }

    /// The sums of the values and of their squares.
    fn sums(values: impl Iterator<Item = f64>) -> [f64; 2] {
        values.fold([0.0, 0.0], |[sum, squares], value| [sum + value, squares + value * value])
    }

    /// The difference of the means, and its standard error.
    #[allow(clippy::cast_precision_loss)] // numbers of units
    fn difference(&self, counts: [usize; 2], sums: [[f64; 2]; 2]) -> (f64, f64) {
        let side = |side: usize| {
            let (n, [sum, squares]) = (counts[side] as f64, sums[side]);
            let mean = sum / n;
            let variance = if n > 1.0 { ((squares - sum * mean) / (n - 1.0)).max(0.0) } else { 0.0 };
            (mean, variance.max(self.variance) / n)
        };
        let ((old, old_error), (new, new_error)) = (side(0), side(1));
        (new - old, (old_error + new_error + LEAST_ERROR * LEAST_ERROR).sqrt())
    }

    fn t(&self, counts: [usize; 2], olds: &[usize], all: [f64; 2]) -> f64 {
        let old = Self::sums(olds.iter().map(|unit| self.values[*unit]));
        let new = [all[0] - old[0], all[1] - old[1]];
        let (difference, error) = self.difference(counts, [old, new]);
        (difference / error).abs()
    }

    fn by(&self, olds: &[usize], news: &[usize]) -> f64 {
        let sums = [olds, news].map(|units| Self::sums(units.iter().map(|unit| self.values[*unit])));
        self.difference([olds.len(), news.len()], sums).0
    }
}

/// The middle value; 0 without any.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count => f64::midpoint(values[(count - 1) / 2], values[count / 2]),
    }
}

/// Finds how each figure changed from the first `old` units to the others.
pub(super) fn changes(tests: &[Test], old: usize, units: usize) -> Vec<Change> {
    let (counts, mut random) = ([old, units - old], Random::new());
    let sums: Vec<_> = tests.iter().map(|test| Test::sums(test.values.iter().copied())).collect();
    let mut order: Vec<usize> = (0..units).collect();
    let observed: Vec<f64> =
        tests.iter().zip(&sums).map(|(test, all)| test.t(counts, &order[..old], *all)).collect();
    let steps = tests.len().max(1) * units.max(1);
    let exchanges = EXCHANGES.min(MOST_STEPS / steps).max(999);
    let mut largest: Vec<f64> = Vec::with_capacity(exchanges + 1);
    largest.push(observed.iter().copied().fold(0.0, f64::max));
    for _ in 0..exchanges {
        random.choose(&mut order, old);
        let t = tests.iter().zip(&sums).map(|(test, all)| test.t(counts, &order[..old], *all));
        largest.push(t.fold(0.0, f64::max));
    }
    largest.sort_by(f64::total_cmp);
    let intervals = intervals(tests, old, units, &mut random);
    let change = |(n, test): (usize, &Test)| {
        // A little less, since the same sum in another order differs in its last bits.
        let above = largest.len() - largest.partition_point(|t| *t < observed[n] * (1.0 - 1e-9));
        #[allow(clippy::cast_precision_loss)] // at most 10,000
        let p = above.max(1) as f64 / largest.len() as f64;
        let (olds, news): (Vec<_>, Vec<_>) = (0..units).partition(|unit| *unit < old);
        Change { by: test.by(&olds, &news), interval: intervals[n], p }
    };
    tests.iter().enumerate().map(change).collect()
}

/// The middle 95 % of the differences between sides that are drawn with replacement.
fn intervals(tests: &[Test], old: usize, units: usize, random: &mut Random) -> Vec<[f64; 2]> {
    let draws = DRAWS.min(MOST_STEPS / (tests.len().max(1) * units.max(1))).max(199);
    let mut drawn: Vec<Vec<f64>> = vec![Vec::with_capacity(draws); tests.len()];
    for _ in 0..draws {
        let olds: Vec<usize> = (0..old).map(|_| random.below(old)).collect();
        let news: Vec<usize> = (old..units).map(|_| old + random.below(units - old)).collect();
        for (test, drawn) in tests.iter().zip(&mut drawn) {
            drawn.push(test.by(&olds, &news));
        }
    }
    let middle = |mut drawn: Vec<f64>| {
        drawn.sort_by(f64::total_cmp);
        [drawn[draws / 40], drawn[draws - 1 - draws / 40]]
    };
    drawn.into_iter().map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around 0, `n` on each side, of which the new ones are larger by `by`.
    fn test(random: &mut Random, n: usize, by: f64) -> Test {
        let mut noise = || (0..12).map(|_| random.below(1000) as f64 / 1000.0 - 0.5).sum::<f64>() * 0.02;
        let mut values: Vec<f64> = (0..2 * n).map(|_| noise()).collect();
        values[n..].iter_mut().for_each(|value| *value += by);
        Test { values, variance: 0.0 }
    }

    #[test]
    fn five_traces_a_side_are_enough() {
        assert_eq!([[5, 5], [3, 11], [20, 20]].map(|traces| parts(traces, 0.01)), [None; 3]);
        assert_eq!(parts([1, 1], 0.01), Some(16));
        assert_eq!(parts([4, 4], 0.01), Some(4));
        assert_eq!(parts([1, 30], 0.01), Some(16));
    }

    #[test]
    fn a_change_of_five_percent_is_found_among_twenty_that_did_not_change() {
        let mut random = Random::new();
        let mut tests: Vec<Test> = (0..20).map(|_| test(&mut random, 10, 0.0)).collect();
        tests[7] = test(&mut random, 10, 0.05);
        let changes = changes(&tests, 10, 20);
        let found: Vec<usize> = (0..20).filter(|n| changes[*n].p <= 0.01).collect();
        assert_eq!(found, [7], "{changes:?}");
        let Change { by, interval: [low, high], .. } = changes[7];
        assert!(low > 0.02 && low < by && by < high && high < 0.08, "{changes:?}");
        assert_eq!(changes, super::changes(&tests, 10, 20), "the same at each run");
    }

    #[test]
    fn one_disturbed_run_in_ten_does_not_hide_a_change() {
        let (mut random, mut found) = (Random::new(), 0);
        for _ in 0..20 {
            let mut slower = test(&mut random, 40, 0.03);
            slower.values.iter_mut().step_by(10).for_each(|value| *value += 0.2);
            let others = (0..8).map(|_| test(&mut random, 40, 0.0));
            let tests: Vec<Test> =
                others.chain([slower]).map(|test| Test::new(test.values, test.variance)).collect();
            found += u32::from(changes(&tests, 40, 80)[8].p <= 0.01);
        }
        assert!(found >= 18, "{found} of 20");
    }

    #[test]
    fn a_figure_that_few_runs_have_keeps_its_values() {
        let mut values = vec![0.0; 20];
        values[18] = 5.0;
        assert_eq!(Test::new(values.clone(), 0.0).values, values);
    }

    #[test]
    fn few_comparisons_of_equals_raise_an_alarm() {
        let (mut random, mut alarms) = (Random::new(), 0);
        for _ in 0..100 {
            let tests: Vec<Test> = (0..8).map(|_| test(&mut random, 6, 0.0)).collect();
            let smallest = changes(&tests, 6, 12).iter().map(|change| change.p).fold(1.0, f64::min);
            alarms += u32::from(smallest <= 0.05);
        }
        assert!(alarms <= 12, "{alarms} of 100, where 5 are expected");
    }

    #[test]
    fn figures_that_never_vary_change_only_with_their_value() {
        let same = Test { values: vec![1.0; 12], variance: 0.0 };
        let other = Test { values: [vec![1.0; 6], vec![1.1; 6]].concat(), variance: 0.0 };
        let changes = changes(&[same, other], 6, 12);
        assert!(changes[0].p > 0.9 && changes[0].by == 0.0 && changes[1].p <= 0.01, "{changes:?}");
    }
}
