//! The judge: Perfetto's own trace_processor, asked with SQL.
//!
//! ```text
//!  test --load(trace, sql)--> Judge --a line of JSON--> node tests/oracle/judge.mjs
//!       <-----Verdict------         <--a line of JSON--      trace_processor.wasm
//! ```
//!
//! The engine takes a second to start and some milliseconds a trace, so a test process starts one, at the
//! first use, and all its tests take turns. It ends when the test process does: its stdin is closed then.
//!
//! What the importer finds wrong it does not refuse, it counts. [`Verdict::complaints`] has those counts;
//! a test of a trace without loss begins with [`Verdict::require_clean`]. A cut tail and an end without a
//! begin are not counted by anybody: compare rows as well.

mod process;
#[cfg(test)]
mod tests;
mod traceconv;
mod verdict;

pub use process::{Judge, JudgeError};
pub use traceconv::encode;
pub use verdict::{Row, Rows, Stat, Verdict};

use std::io::Write;
use std::path::Path;

/// [`Judge::load`], with this process's judge.
///
/// # Panics
/// As [`Judge::load`] does.
#[track_caller]
pub fn load(trace: impl AsRef<Path>, sql: &[&str]) -> Verdict {
    Judge::load(trace, sql)
}

/// Judges a trace that is in memory.
///
/// # Panics
/// As [`Judge::load`] does.
#[track_caller]
pub fn load_bytes(trace: &[u8], sql: &[&str]) -> Verdict {
    match try_load_bytes(trace, sql) {
        Ok(verdict) => verdict,
        Err(error) => panic!("{error}"),
    }
}

/// The rows of each query, of a trace in memory without a complaint.
///
/// # Panics
/// As [`Judge::load`] does, and if there is a complaint.
#[must_use]
#[track_caller]
pub fn rows<const N: usize>(trace: &[u8], sql: [&str; N]) -> [String; N] {
    let verdict = load_bytes(trace, &sql);
    verdict.require_clean();
    std::array::from_fn(|n| verdict.results[n].text())
}

/// Judges a trace that is in memory and may be a broken one.
///
/// # Errors
/// As [`Judge::try_load`].
pub fn try_load_bytes(trace: &[u8], sql: &[&str]) -> Result<Verdict, JudgeError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file for the trace");
    file.write_all(trace).expect("the trace written to a temporary file");
    Judge::try_load(file.path(), sql)
}
