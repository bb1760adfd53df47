//! Output and the form of numbers.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use hairline_convert::Report;

use crate::outcome::Outcome;
use crate::table::{is_harmful, plain};

/// Prints a line. A closed pipe is no failure.
#[must_use]
pub(crate) fn say(line: impl Display) -> Outcome {
    let mut stdout = io::stdout().lock();
    let line = one_line(&line.to_string());
    written(writeln!(stdout, "{line}").and_then(|()| stdout.flush()), "stdout")
}

/// Prints lines, up to the first that cannot be printed.
pub(crate) fn say_all(lines: impl IntoIterator<Item = impl Display>) -> Outcome {
    lines.into_iter().map(say).find(|outcome| *outcome != Outcome::Done).unwrap_or_default()
}

/// Prints the whole output of a command.
pub(crate) fn put(all: impl AsRef<[u8]>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(all.as_ref()).and_then(|()| stdout.flush())
}

/// The outcome of printing. A closed pipe is no failure.
pub(crate) fn written(result: io::Result<()>, place: impl Display) -> Outcome {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => failed(format_args!("{place}: {e}")),
        _ => Outcome::Done,
    }
}

/// Prints a line on stderr.
pub(crate) fn complain(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "hairline: {}", one_line(&what.to_string()));
}

/// Replaces what a terminal would obey: names of files and texts from traces are in all messages.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if is_harmful(c) && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// The output of a command for other programs. They get all of it as it is, but a terminal does not.
pub(crate) fn for_programs(all: String) -> String {
    if io::stdout().is_terminal() { harmless(&all) } else { all }
}

/// A path as a part of a line.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Replaces line breaks, and what else a terminal would obey: names of files and texts from traces are in all
/// messages.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Reports why a command failed.
pub(crate) fn failed(why: impl Display) -> Outcome {
    complain(why);
    Outcome::Failed
}

/// Bytes with a unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = ((bytes.ilog2() / 10) as usize).min(UNITS.len());
    #[allow(clippy::cast_precision_loss)] // one digit is shown
    let value = bytes as f64 / (1_u64 << (10 * power)) as f64;
    format!("{value:.1} {}", UNITS[power - 1])
}

/// Nanoseconds as three digits and a unit.
pub(crate) fn duration(ns: i64) -> String {
    const UNITS: [(&str, f64); 3] = [("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    if ns.unsigned_abs() < 1000 {
        return format!("{ns} ns");
    }
    #[allow(clippy::cast_precision_loss)] // three digits are shown
    let ns = ns as f64;
    // A value that rounds to 1000 becomes 1.00 of the next unit.
    let fits = |(_, unit): &&(&str, f64)| (ns / unit).abs() < 999.5;
    let (unit, size) = UNITS.iter().find(fits).unwrap_or(&UNITS[2]);
    let value = ns / size;
    let digits = if value.abs() < 9.995 { 2 } else { usize::from(value.abs() < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// Reads a time with its unit.
pub(crate) fn nanoseconds(text: &str) -> Result<i64, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let parse = |(unit, size): (&str, f64)| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * size);
    match units.into_iter().find_map(parse) {
        #[allow(clippy::cast_possible_truncation)] // within the range
        Some(ns) if (0.0..9e18).contains(&ns) => Ok(ns as i64),
        _ => Err("give a number with ns, us, ms or s, like 5ms".to_owned()),
    }
}

/// `1 record`, `2 records`.
pub(crate) fn count(n: u64, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}

/// `1 record`, `2,000 records`.
pub(crate) fn grouped_count(n: u64, what: &str) -> String {
    count(n, what).replacen(&n.to_string(), &grouped(n), 1)
}

/// `1 command line`, `2 command lines`: what a report counts, by a description in the plural.
pub(crate) fn described(n: u64, what: &str) -> Cow<'_, str> {
    if n == 1 { Cow::Owned(singular(what)) } else { Cow::Borrowed(what) }
}

/// The ids that a report names: `: 64, 65`.
pub(crate) fn ids(report: &Report, what: &str) -> String {
    let ids: Vec<String> = report.ids(what).iter().map(u64::to_string).collect();
    if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) }
}

/// Words after the noun that have another form in the singular. Verbs have it after `that` and `which`.
const VERBS: [(&str, &str); 9] = [
    ("are", "is"),
    ("were", "was"),
    ("begin", "begins"),
    ("end", "ends"),
    ("overlap", "overlaps"),
    ("differ", "differs"),
    ("depend", "depends"),
    ("precede", "precedes"),
    ("lead", "leads"),
];

/// The singular of a description like `slices that overlap others of their thread`.
fn singular(what: &str) -> String {
    let mut words: Vec<String> = what.split(' ').map(str::to_owned).collect();
    let is_plural = |word: &String| word.ends_with('s') && !word.ends_with("ss");
    let noun = words.iter().position(is_plural).filter(|noun| words[*noun] != "series");
    let Some(noun) = noun else { return what.to_owned() };
    let is_pair = words.get(noun + 1).is_some_and(|word| word == "and");
    let nouns = if is_pair { vec![noun, noun + 2] } else { vec![noun] };
    for noun in nouns {
        if let Some(word) = words.get_mut(noun).filter(|word| is_plural(word)) {
            let stem = [("sses", "ss"), ("ies", "y"), ("s", "")];
            let stem = stem.iter().find_map(|(end, new)| Some(word.strip_suffix(end)?.to_owned() + new));
            *word = stem.unwrap_or_default();
        }
    }
    for n in noun + 1..words.len() {
        let is_verb = ["that", "which"].contains(&words[n - 1].as_str());
        let of_one = VERBS.iter().find(|(plural, _)| is_verb && words[n] == *plural);
        let of_one = of_one.map(|(_, one)| *one).or_else(|| (words[n] == "their").then_some("its"));
        if let Some(word) = of_one {
            words[n] = word.to_owned();
        }
    }
    words.join(" ").replace(": they are ", ": it is ")
}

/// A process with its name. The process chose the name, so it may have any characters.
pub(crate) fn who(pid: u32, name: &str) -> String {
    if name.is_empty() { pid.to_string() } else { format!("{pid} ({})", plain(name)) }
}

/// Whether a text is a pid, not a path.
pub(crate) fn is_pid(text: &Path) -> bool {
    text.to_str().is_some_and(|t| t.parse::<u32>().is_ok())
}

/// `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit() {
        let sizes = [0, 1023, 1024, 1536, 16 << 20, 5 << 30, 1 << 40, u64::MAX].map(size);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "16.0 MiB", "5.0 GiB", "1.0 TiB", "16777216.0 TiB"]
        );
    }

    #[test]
    fn what_changes_the_text_around_it_is_replaced() {
        let text = "a\u{1b}b\u{202e}c\u{2066}d\u{200b}e\u{feff}f\tg\n";
        assert_eq!(harmless(text), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f\tg\n");
        assert_eq!(one_line("a\u{2069}\n\u{e4}"), "a\u{fffd}\u{fffd}\u{e4}");
    }

    #[test]
    fn digits_come_in_groups_of_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn durations_have_three_digits() {
        let durations = [0, 999, 1000, 1_234, 99_960, 999_499, 999_500, 12_345_678, 1 << 40].map(duration);
        assert_eq!(
            durations,
            ["0 ns", "999 ns", "1.00 us", "1.23 us", "100 us", "999 us", "1.00 ms", "12.3 ms", "1100 s"]
        );
    }

    #[test]
    fn a_description_of_one_is_in_the_singular() {
        let ones = [
            ("command lines", "command line"),
            ("process ids beyond 31 bits, cut", "process id beyond 31 bits, cut"),
            ("series of counters became their own", "series of counters became their own"),
            ("names and categories of flows", "name and category of flows"),
            ("processes and threads with a text as id", "process and thread with a text as id"),
            ("thread states left out: they are malformed", "thread state left out: it is malformed"),
            ("counter values that are not finite", "counter value that is not finite"),
            (
                "slices that overlap others of their thread, on a track beside it",
                "slice that overlaps others of its thread, on a track beside it",
            ),
            (
                "flows that begin before the end of an earlier flow with their id",
                "flow that begins before the end of an earlier flow with its id",
            ),
        ];
        for (many, one) in ones {
            assert_eq!((&*described(2, many), &*described(1, many)), (many, one));
        }
    }

    #[test]
    fn one_is_not_many() {
        let counts = [count(1, "record"), count(0, "byte"), count(2, "process")];
        assert_eq!(counts, ["1 record", "0 bytes", "2 processes"]);
    }
}
