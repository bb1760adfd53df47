//! The cost of an event in a program with many threads or many callsites.

mod callsites;
mod sites;
mod threads;

use hairline::Format;

use crate::Outcome;
use crate::machine::aside;
use crate::row::Row;

/// Measures all of them. Call it first in a process: the rows name the numbers of callsites in the process.
///
/// # Errors
/// If a session cannot be started or stopped, or a thread cannot be started.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    let formats = [Format::Fxt, Format::TrackEvent];
    let mut rows = Vec::new();
    for format in formats {
        for count in [1, 2, 8, 64, 1_000, 10_000] {
            rows.extend(threads::rows(format, count, rounds.min(3))?);
        }
    }
    for few in [true, false] {
        for format in formats {
            rows.extend(aside(|| callsites::rows(format, few, rounds * 4))?);
        }
    }
    Ok(rows)
}
