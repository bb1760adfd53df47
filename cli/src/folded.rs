//! Folded stacks, and flame graphs of them.

use std::io::{self, Write};

use hairline_convert::SampleKind;
use hairline_convert::sampled::Samples;

use crate::text::grouped_count;

/// Says that a program has no symbols, if more than a tenth of the samples are of functions without a name.
pub(crate) fn without_symbols(samples: &Samples) -> Option<String> {
    let mut all = 0_usize;
    samples.each(SampleKind::OnCpu, &mut |_, _, _| all += 1);
    let (file, count) = samples.unnamed(SampleKind::OnCpu).filter(|(_, count)| count * 10 > all)?;
    let count = grouped_count(count as u64, "sample");
    let how =
        "in a release profile, `strip = false` and `debug = \"line-tables-only\"` give it names and lines";
    Some(format!("{file} has no symbols for the functions of {count}, shown as addresses: {how}"))
}

/// Draws a flame graph of folded stacks. The words are its title, the unit of the weights, and what a name
/// is.
pub(crate) fn draw(
    folded: &str,
    (title, unit, what): (String, &str, &str),
    output: &mut impl Write,
) -> io::Result<()> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = title;
    unit.clone_into(&mut options.count_name);
    what.clone_into(&mut options.name_type);
    inferno::flamegraph::from_lines(&mut options, folded.lines(), output)
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
