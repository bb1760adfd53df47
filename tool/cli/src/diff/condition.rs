//! `--fail-if`

use crate::diff::compare::{Comparison, Figure, Line};
use crate::diff::show::{change, value};

/// A condition: a figure changed by more than so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Condition {
    figure: Figure,
    /// The change, as a factor minus 1. Changes further from 0 meet the condition.
    limit: f64,
    is_increase: bool,
}

impl Condition {
    /// Reads `p99 > +10%` or `total < -5%`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?} is no condition: write it like \"p99 > +10%\" or \"total < -5%\"");
        let at = text.find(['<', '>']).ok_or_else(fail)?;
        let (figure, is_increase) = (text[..at].trim(), &text[at..=at] == ">");
        let figure = Figure::ALL
            .into_iter()
            .find(|known| known.name() == figure)
            .ok_or_else(|| format!("{figure:?} is no figure: write count, total, p50 or p99"))?;
        let number = text[at + 1..].trim().strip_suffix('%').ok_or_else(fail)?.trim();
        let limit: f64 = number.parse().map_err(|_| fail())?;
        let is_sensible =
            limit.is_finite() && if is_increase { limit >= 0.0 } else { (-100.0..=0.0).contains(&limit) };
        if !is_sensible {
            return Err(format!("{text:?} has no change beyond chance: > goes with +, < with -"));
        }
        Ok(Self { figure, limit: limit / 100.0, is_increase })
    }

    fn is_met_by(&self, line: &Line) -> bool {
        let part = line.part();
        line.figure == self.figure && if self.is_increase { part > self.limit } else { part < self.limit }
    }

    /// The message, if a figure that changed beyond chance meets the condition.
    pub(super) fn met(&self, comparison: &Comparison) -> Option<String> {
        let line = comparison.changed().find(|line| self.is_met_by(line))?;
        let more = comparison.changed().filter(|line| self.is_met_by(line)).count() - 1;
        let others = if more > 0 { format!(", and {more} more") } else { String::new() };
        Some(format!(
            "{} of {}: {} to {}, {}{others} (--fail-if)",
            line.figure.name(),
            crate::table::plain(&line.name.name),
            value(line, line.old),
            value(line, line.new),
            change(line)[0],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_figure_a_direction_and_a_number_of_percent() {
        let slower = Condition { figure: Figure::P99, limit: 0.1, is_increase: true };
        for text in ["p99 > +10%", "p99>10%", " p99 > 10.0 % "] {
            assert_eq!(Condition::parse(text), Ok(slower), "{text}");
        }
        assert!(Condition::parse("total < -5%").is_ok() && Condition::parse("count > +0%").is_ok());
        for bad in [
            "",
            "p99",
            "p99 > 10",
            "p98 > 10%",
            "p99 > -10%",
            "p99 < +10%",
            "p99 > NaN%",
            "p99 < -101%",
            "> 1%",
            "p99 >= 1%",
            "p99 > 1e400%",
            "p99 > +10%%",
            "p99 > 1% > 2%",
            "p99 \u{2265} 1%",
            "total < inf%",
        ] {
            assert!(Condition::parse(bad).is_err(), "{bad}");
        }
    }
}
