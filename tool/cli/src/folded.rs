//! Folded stacks, and flame graphs of them.

use std::io::{self, Write};

use hairline_convert::sampled::Samples;

use crate::text::{complain, grouped, grouped_count};

/// Said of a trace that has no samples that show where the time goes.
pub(crate) const NO_SAMPLES: &str = "it has no stack samples: `hairline record --sample` adds them";

/// Says that a program's functions have no names, if more than a tenth of the samples are of such.
pub(crate) fn without_symbols(samples: &Samples) -> Option<String> {
    let mut all = 0_usize;
    samples.each(samples.of_time(), &mut |_, _, _| all += 1);
    let (file, count) = samples.unnamed(samples.of_time()).filter(|(_, count)| count * 10 > all)?;
    let count = grouped_count(count as u64, "sample");
    let how = "in a release profile, `strip = false` and `debug = \"line-tables-only\"` give it names and lines, \
               unless the file was replaced or deleted before the recording ended, or the trace is cut";
    Some(format!("{file}: no names for the functions of {count}, shown as addresses: {how}"))
}

/// The limit for the sum of all weights: the drawing crate adds them up in a `usize`.
const MOST_WEIGHT: u128 = isize::MAX as u128;

/// The weights of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighed {
    Once,
    /// The old weight and the new one.
    Twice,
}

/// Draws a flame graph of folded stacks. The words are its title, the unit of the weights, and what a name
/// is. Weights with a sum beyond the limit are divided by a power of two, and a line says so.
pub(crate) fn draw(
    (folded, weighed): (&str, Weighed),
    (title, unit, what): (String, &str, &str),
    output: &mut impl Write,
) -> io::Result<()> {
    let lines: Vec<_> = folded.lines().filter_map(|line| parse(line, weighed)).collect();
    let sum = |of: usize| lines.iter().fold(0_u128, |sum, (_, all)| sum.saturating_add(all[of]));
    let sum = sum(0).max(sum(1));
    let shift = (0..u128::BITS).find(|shift| sum >> shift <= MOST_WEIGHT).unwrap_or_default();
    let mut options = inferno::flamegraph::Options::default();
    options.title = title;
    options.count_name = unit.to_owned();
    if shift > 0 {
        let factor = 1_u128 << shift;
        options.count_name = format!("x {factor} {unit}");
        complain(format_args!(
            "the weights add up to more than {} {unit}: the picture shows them divided by {factor}",
            grouped(MOST_WEIGHT as u64), // it fits
        ));
    }
    what.clone_into(&mut options.name_type);
    let line = |(stack, [old, new]): &(String, [u128; 2])| match weighed {
        Weighed::Once => format!("{stack} {}", new >> shift),
        Weighed::Twice => format!("{stack} {} {}", old >> shift, new >> shift),
    };
    let lines: Vec<_> = lines.iter().map(line).collect();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), output)
}

/// A line of folded stacks: the stack, its old weight (0 if there is only one) and its new one. A number at
/// the end of the last name gets another kind of space before it: one more number would be a weight.
fn parse(line: &str, weighed: Weighed) -> Option<(String, [u128; 2])> {
    let (stack, new) = line.rsplit_once(' ')?;
    let (stack, old) = match weighed {
        Weighed::Once => (stack, "0"),
        Weighed::Twice => stack.rsplit_once(' ')?,
    };
    let stack = match stack.rsplit_once(' ') {
        Some((before, last)) if last.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{before}\u{a0}{last}")
        }
        _ => stack.to_owned(),
    };
    Some((stack, [old.parse().ok()?, new.parse().ok()?]))
}

/// Replaces the characters that separate names in folded stacks.
pub(crate) fn step(name: &str) -> String {
    let replace = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    name.chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(folded: &str) -> String {
        let mut out = Vec::new();
        draw((folded, Weighed::Once), ("title".to_owned(), "ns", "Slice:"), &mut out).expect("drawn");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn weights_that_add_up_to_more_than_the_limit_are_divided() {
        let svg = drawn(&format!("a {0}\nb {0}\nc {0}\n", i64::MAX));
        assert_eq!(svg.matches(" x 4 ns, 33.33%)</title>").count(), 3, "{svg}");
        let svg = drawn(&format!("a {0}\nb 1\n", i64::MAX - 1));
        assert!(!svg.contains(" x 2 ns"), "at the limit nothing is divided: {svg}");
    }

    #[test]
    fn a_number_at_the_end_of_a_name_is_a_part_of_the_name() {
        let svg = drawn("round 12 100\nround 7 300\n");
        assert!(svg.contains("<title>round\u{a0}12 (100 ns, 25.00%)</title>"), "{svg}");
        assert!(svg.contains("<title>round\u{a0}7 (300 ns, 75.00%)</title>"), "{svg}");
    }

    #[test]
    fn a_comparison_shows_how_much_of_all_each_stack_changed() {
        let mut svg = Vec::new();
        let titles = ("title".to_owned(), "ns", "Slice:");
        draw(("round 12 100 300\nround 7 300 100\n", Weighed::Twice), titles, &mut svg).expect("drawn");
        let svg = String::from_utf8(svg).expect("text");
        assert!(svg.contains("<title>round\u{a0}12 (300 ns, 75.00%; +50.00%)</title>"), "{svg}");
        assert!(svg.contains("<title>round\u{a0}7 (100 ns, 25.00%; -50.00%)</title>"), "{svg}");
    }
}
