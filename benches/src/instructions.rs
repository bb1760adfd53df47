//! The counts of `ci/instructions.sh` as rows.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::row::{Budget, Row};

/// Counts them. No row where that needs what is not there (valgrind, an x86-64).
///
/// # Errors
/// If the script does not run.
pub fn rows() -> Outcome<Vec<Row>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(root.join("ci/instructions.sh")).stderr(Stdio::inherit()).output()?;
    let rows: Vec<Row> = String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect();
    // It fails too where a count is above its limit.
    if rows.is_empty() && !output.status.success() {
        return Err(format!("ci/instructions.sh: {}", output.status).into());
    }
    Ok(rows)
}

/// Reads a line: the event's name, its count, its limit, and perhaps a word.
fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A name may have numbers of its own: the count is the one with a point.
    let at = words.iter().rposition(|word| word.contains('.') && word.parse::<f64>().is_ok())?;
    let count = words.get(at)?.parse().ok()?;
    let limit = words.get(at + 1)?.parse().ok()?;
    let name = format!("instructions, {}", words.get(..at)?.join(" "));
    Some(Row::figure(&name, "instructions", count, count, Budget::AtMost, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_script_is_a_row() {
        let of = |line| row(line).map(|row| (row.name.clone(), row.median, row.budget));
        let line = "FXT: scope + i64 + &str of 16                   193.0     202 ";
        assert_eq!(of(line), Some(("instructions, FXT: scope + i64 + &str of 16".to_owned(), 193.0, 202.0)));
        assert_eq!(of("event                                    instructions   limit"), None);
        assert_eq!(of("valgrind is not installed: not checked here"), None);
    }
}
