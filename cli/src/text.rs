//! Output and the form of numbers.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use crate::outcome::Outcome;
use crate::table::plain;

/// Prints a line. A closed pipe is no failure.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{}", one_line(&line.to_string()));
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

/// A path as a part of a line.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Replaces line breaks, and what else a terminal would obey: names of files and texts from traces are in all
/// messages.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
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

/// `1 record`, `2 records`.
pub(crate) fn count(n: u64, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}

/// `1 record`, `2,000 records`.
pub(crate) fn grouped_count(n: u64, what: &str) -> String {
    count(n, what).replacen(&n.to_string(), &grouped(n), 1)
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
    fn one_is_not_many() {
        let counts = [count(1, "record"), count(0, "byte"), count(2, "process")];
        assert_eq!(counts, ["1 record", "0 bytes", "2 processes"]);
    }
}
