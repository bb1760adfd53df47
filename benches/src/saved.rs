//! The figures of earlier runs, a line of JSON for each run, and those of a new run beside them.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{Outcome, machine};

/// A figure changes by that part between two runs of the same code on a quiet machine.
const MOODS: f64 = 0.1;

/// Appends a run to the file.
///
/// # Errors
/// If the file cannot be written.
pub fn save(path: &Path, rows: &[Value]) -> Outcome<()> {
    let figures: BTreeMap<_, _> = rows.iter().filter_map(|row| Some((name(row)?, &row["judged"]))).collect();
    let run = json!({
        "commit": said("git", &["describe", "--always", "--dirty"]), "date": said("date", &["-u", "+%F"]),
        "machine": machine::processor(), "figures": figures,
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{run}")?;
    Ok(())
}

/// Returns the runs in the file that are of this model of processor.
///
/// # Errors
/// If the file cannot be read, or has none.
pub fn runs(path: &Path) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut runs = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let own = machine::processor();
    runs.retain(|run| run["machine"] == *own);
    if runs.is_empty() {
        return Err(format!("{}: it has no run of this processor ({own})", path.display()).into());
    }
    Ok(runs)
}

/// Returns a table of the rows beside earlier runs.
#[must_use]
pub fn compare(runs: &[Value], rows: &[Value]) -> String {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return String::new() };
    let of = |run: &Value| format!("{} of {}", text_of(&run["commit"]), text_of(&run["date"]));
    let mut table = format!("{} runs, from {} to {}\n\n", runs.len(), of(first), of(last));
    table.push_str(&format!("| {:<70} | {:>17} | {:>8} | {:<6} |\n", "what", "saved", "now", ""));
    table.push_str(&format!("|{:-<72}|{:->19}|{:->10}|{:-<8}|\n", "", ":", ":", ""));
    for row in rows {
        let (Some(name), Some(now)) = (name(row), row["judged"].as_f64()) else { continue };
        let saved = runs.iter().filter_map(|run| run["figures"][&*name].as_f64());
        let (least, most) = saved.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if least <= most {
            let verdict = verdict(row, now, (least, most));
            let range = format!("{least:.2} to {most:.2}");
            table.push_str(&format!("| {name:<70} | {range:>17} | {now:>8.2} | {verdict:<6} |\n"));
        }
    }
    table
}

fn verdict(row: &Value, now: f64, (least, most): (f64, f64)) -> &'static str {
    let moods = if row["unit"] == "instructions" { 0.002 } else { MOODS };
    let is_more_better = text_of(&row["budget_is"]).contains("at least");
    let (is_above, is_below) = (now > most + moods * most.abs(), now < least - moods * least.abs());
    match (is_above, is_below) {
        (true, _) if is_more_better => "better",
        (_, true) if is_more_better => "WORSE",
        (true, _) => "WORSE",
        (_, true) => "better",
        _ => "",
    }
}

/// The name of a figure: that of its row, and what is compared.
fn name(row: &Value) -> Option<String> {
    let unit = if text_of(&row["budget_is"]).starts_with("ratio") { "x" } else { row["unit"].as_str()? };
    Some(format!("{} ({unit})", row["name"].as_str()?))
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// What a command prints, or "?".
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    output.map_or_else(|| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(judged: f64, budget_is: &str, unit: &str) -> Value {
        json!({"name": "scope", "unit": unit, "judged": judged, "budget_is": budget_is})
    }

    #[test]
    fn a_run_is_compared_with_all_that_are_saved() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.jsonl");
        let ratio = |judged| row(judged, "ratio to the floor, at most", "ns");
        for judged in [1.0, 1.2] {
            save(&path, &[ratio(judged)]).expect("saved");
        }
        let runs = runs(&path).expect("two runs");
        let said = |row: Value| compare(&runs, &[row]);
        let line = |text: String| {
            text.lines().last().expect("a line").split('|').map(str::trim).collect::<Vec<_>>().join("|")
        };
        assert_eq!(line(said(ratio(1.25))), "|scope (x)|1.00 to 1.20|1.25||");
        assert_eq!(line(said(ratio(1.4))), "|scope (x)|1.00 to 1.20|1.40|WORSE|");
        assert_eq!(line(said(ratio(0.8))), "|scope (x)|1.00 to 1.20|0.80|better|");
        assert!(said(ratio(1.0)).starts_with("2 runs, from "));
        assert!(super::runs(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_should_be_large_is_worse_when_it_is_small_and_a_count_hardly_changes() {
        let verdict =
            |judged, budget_is, unit| super::verdict(&row(judged, budget_is, unit), judged, (100.0, 100.0));
        assert_eq!(verdict(80.0, "at least", "MB/s"), "WORSE");
        assert_eq!(verdict(120.0, "at least", "MB/s"), "better");
        assert_eq!(verdict(101.0, "at most", "ns"), "");
        assert_eq!(verdict(101.0, "at most", "instructions"), "WORSE");
        assert_eq!(verdict(99.0, "at most", "instructions"), "better");
    }
}
