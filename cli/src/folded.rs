//! Folded stacks, and flame graphs of them.

use std::io::{self, Write};

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
