//! Output for people and for programs. The names of columns are stable.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::diff::compare::{Comparison, Figure, Line};
use crate::json_version::JSON_VERSION;
use crate::stats::{SEVERAL, SEVERAL_SAID};
use crate::table::{Table, in_colour, plain};
use crate::text::{count, duration, grouped};

/// `+5.1 %`
pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        large if large >= 1000.0 => format!("x{:.0}", part + 1.0),
        large if large >= 100.0 => format!("{percent:+.0} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// A value of the line's figure.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
pub(super) fn value(line: &Line, value: f64) -> String {
    match line.figure {
        Figure::Count => grouped(value.round() as u64),
        _ => duration(value.round() as i64),
    }
}

/// The change and its interval: of a figure that is not 0 on both sides, percentages.
pub(super) fn change(line: &Line) -> [String; 2] {
    let [low, high] = line.bounds();
    let word = match (line.is_on, line.old > 0.0, line.new > 0.0) {
        ([false, true], ..) => "new",
        ([true, false], ..) => "gone",
        (_, false, true) => "from 0",
        (_, true, false) => "to 0",
        _ => return [percent(line.part()), format!("{} to {}", percent(low), percent(high))],
    };
    [word.to_owned(), String::new()]
}

pub(super) fn text(comparison: &Comparison, all: bool) -> String {
    let (lines, mut out) = (&comparison.lines, String::new());
    let [old, new] = comparison.traces.map(|n| count(n as u64, "trace"));
    let changed = comparison.changed().count();
    let _ = writeln!(
        out,
        "{old} and {new}, {}, {}: {}",
        count(comparison.names as u64, "name"),
        count(lines.len() as u64, "figure"),
        match changed {
            0 => "no change beyond chance".to_owned(),
            n => format!("{n} changed beyond chance"),
        }
    );
    if comparison.left_out > 0 {
        let _ = writeln!(out, "{} more names, with the least time, are not compared", comparison.left_out);
    }
    if comparison.rare > 0 {
        let names = count(comparison.rare as u64, "name");
        let enough = "five traces a side need no parts, and compare them";
        let _ = writeln!(out, "{names} more, in some parts of a trace only, cannot be compared: {enough}");
    }
    if let Some(parts) = comparison.parts {
        let _ = writeln!(
            out,
            "by {parts} parts of each trace: a change may be one of the run, not of the program; \
             more traces, recorded in turns, can tell: five traces a side, if --alarms is not set"
        );
    }
    let shown = if all { lines.len() } else { changed };
    if shown > 0 {
        out.push('\n');
        let mut table =
            Table::new(3, &["name", "category", "figure", "old", "new", "change", "95 % interval", "p"]);
        for line in &lines[..shown] {
            let [by, interval] = change(line);
            let (old, new) = (value(line, line.old), value(line, line.new));
            let (name, category) = (plain(&line.name.name), plain(&line.category));
            let p = format!("{:.4}", line.change.p);
            table.add(vec![name, category, line.figure.name().to_owned(), old, new, by, interval, p]);
        }
        out.push_str(&table.lines(in_colour()));
        if lines[..shown].iter().any(|line| line.category == SEVERAL) {
            let _ = writeln!(out, "{SEVERAL_SAID}");
        }
    }
    out
}

/// The first twelve digits. Those after them are errors of the computation, as in 41.00000000000001.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// The columns of a line.
fn columns(line: &Line) -> Vec<(&'static str, Value)> {
    let [low, high] = line.bounds();
    let is_on_both = line.old > 0.0 && line.new > 0.0;
    let part = |part: f64| if is_on_both { json!(rounded(part)) } else { Value::Null };
    vec![
        ("name", json!(line.name.name)),
        ("category", json!(line.category)),
        ("on", json!(if line.name.is_interval { "track" } else { "thread" })),
        ("figure", json!(line.figure.name())),
        ("old", json!(rounded(line.old))),
        ("new", json!(rounded(line.new))),
        ("change", part(line.part())),
        ("change_low", part(low)),
        ("change_high", part(high)),
        ("p", json!(rounded(line.change.p))),
        ("changed", json!(line.is_changed)),
    ]
}

pub(super) fn json(comparison: &Comparison) -> String {
    let figure = |line: &Line| {
        Value::Object(columns(line).into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let all = json!({
        "version": JSON_VERSION,
        "old_traces": comparison.traces[0],
        "new_traces": comparison.traces[1],
        "parts": comparison.parts,
        "least_change": comparison.least,
        "names": comparison.names,
        "names_left_out": comparison.left_out,
        "names_in_some_parts": comparison.rare,
        "changed": comparison.changed().count(),
        "figures": comparison.lines.iter().map(figure).collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

pub(super) fn csv(comparison: &Comparison) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let titles = "name,category,on,figure,old,new,change,change_low,change_high,p,changed";
    let mut write = |row: Vec<String>| drop(writer.write_record(row)); // into memory
    write(titles.split(',').map(str::to_owned).collect());
    for line in &comparison.lines {
        let cell = |(_, value): (&str, Value)| match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        write(columns(line).into_iter().map(cell).collect());
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
