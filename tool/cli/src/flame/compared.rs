//! The stacks of two traces beside each other.

use std::fmt::Write as _;

use crate::flame::stacked::Stacked;

/// Multiplies the weights of `old`, so that they have the sum of those of `new`: then a stack's share in a
/// short run compares with its share in a long one. Returns the factor.
pub(super) fn normalise(old: &mut Stacked, new: &Stacked) -> f64 {
    let sum = |of: &Stacked| of.weights.values().map(|weight| *weight as f64).sum::<f64>();
    let factor = sum(new) / sum(old);
    #[allow(clippy::cast_possible_truncation)] // saturates
    old.weights.values_mut().for_each(|weight| *weight = (*weight as f64 * factor).round() as i64);
    factor
}

/// The lines of all stacks, in alphabetical order: the stack, its weight in `old` and in `new`.
pub(super) fn lines(old: &Stacked, new: &Stacked) -> String {
    let mut stacks: Vec<_> = old.weights.keys().chain(new.weights.keys()).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let weight = |of: &Stacked, stack: &String| of.weights.get(stack).copied().unwrap_or(0);
    stacks.into_iter().fold(String::new(), |mut out, stack| {
        let _ = writeln!(out, "{stack} {} {}", weight(old, stack), weight(new, stack));
        out
    })
}
