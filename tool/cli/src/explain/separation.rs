//! The argument that separates slow slices from typical ones.

use std::collections::HashSet;

use crate::explain::arguments::Argument;
use crate::explain::shares::percent;
use crate::explain::target::{Part, Target};
use crate::table::{WIDEST, cut_path, is_path, plain};

/// An argument that most slow slices have, and few of the typical ones.
pub(super) struct Separation {
    pub(super) name: String,
    /// `=` or `>=`.
    pub(super) is: &'static str,
    pub(super) value: String,
    /// The slow and the typical examples that have it, and all of them.
    pub(super) slow: (usize, usize),
    pub(super) typical: (usize, usize),
}

/// The probability below which a separation is no chance, for all that are tried together.
const CHANCE: f64 = 0.01;

/// What the value of an argument is compared with.
enum Test<'a> {
    Is(&'a str),
    AtLeast(f64),
}

impl Separation {
    pub(super) fn text(&self) -> String {
        let share = |(some, all): (usize, usize)| percent(some as i64, all as i64);
        let value = if is_path(&self.value) { cut_path(&self.value, WIDEST) } else { self.value.clone() };
        let (name, value) = (plain(&self.name), plain(&value));
        let (slow, typical) = (share(self.slow), share(self.typical));
        format!(
            "Arguments: `{name} {} {value}` is in {slow} of the slowest and {typical} of the typical ones.",
            self.is
        )
    }

    /// The clearest separation that is not by chance: most of the slow examples have it, and at most half as
    /// large a part of the typical ones.
    pub(super) fn of(target: &Target) -> Option<Self> {
        let of = |parts: &[Part]| -> Vec<&[Argument]> {
            let of =
                |part: &Part| target.arguments.get(&(part.track, part.start)).map_or(&[][..], Vec::as_slice);
            parts.iter().map(of).collect()
        };
        let (slow, typical) = (of(target.slow_examples.all()), of(target.typical_examples.all()));
        let mut seen = HashSet::new();
        let all = slow.iter().copied().flatten().filter(|of| seen.insert((&of.name, &of.value)));
        let tests: Vec<_> = all
            .flat_map(|of| {
                let at_least = of.number.map(|number| (of, ">=", Test::AtLeast(number)));
                [Some((of, "=", Test::Is(&of.value))), at_least].into_iter().flatten()
            })
            .collect();
        let mut best: Option<(f64, Self)> = None;
        for (of, is, test) in &tests {
            let passes = |other: &Argument| {
                other.name == of.name
                    && match test {
                        Test::Is(value) => other.value == *value,
                        Test::AtLeast(number) => other.number.is_some_and(|other| other >= *number),
                    }
            };
            let count = |all: &[&[Argument]]| all.iter().filter(|of| of.iter().any(passes)).count();
            let [of_slow, of_typical] = [&slow, &typical].map(|all| (count(all), all.len()));
            let is_clear =
                of_slow.0 * 2 > of_slow.1 && of_typical.0 * of_slow.1 * 2 <= of_slow.0 * of_typical.1;
            let chance = chance(of_slow, of_typical);
            let is_better = best.as_ref().is_none_or(|(least, _)| chance < *least);
            if is_clear && is_better && chance * (tests.len() as f64) < CHANCE {
                let (name, value) = (of.name.clone(), of.value.clone());
                best = Some((chance, Self { name, is, value, slow: of_slow, typical: of_typical }));
            }
        }
        best.map(|(_, best)| best)
    }
}

/// The probability that so many of the slow ones, or more, have by chance what as many of all have.
fn chance(slow: (usize, usize), typical: (usize, usize)) -> f64 {
    let choose = |all: usize, some: usize| -> f64 {
        (0..some).map(|n| ((all - n) as f64).ln() - ((some - n) as f64).ln()).sum()
    };
    let (having, lacking) = (slow.0 + typical.0, slow.1 + typical.1 - slow.0 - typical.0);
    let all = choose(having + lacking, slow.1);
    let of = |some: usize| {
        let others = slow.1 - some;
        if others > lacking { 0.0 } else { (choose(having, some) + choose(lacking, others) - all).exp() }
    };
    (slow.0..=having.min(slow.1)).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_separation_is_that_of_drawing_without_putting_back() {
        // Of 5 of 82, both of two: 5 / 82 * 4 / 81.
        assert!((chance((2, 2), (3, 80)) - 20.0 / 6642.0).abs() < 1e-9);
        assert!((chance((0, 2), (3, 80)) - 1.0).abs() < 1e-9);
        // One of one that has what no other has: a number of the request.
        assert!((chance((1, 2), (0, 80)) - 2.0 / 82.0).abs() < 1e-9);
    }
}
