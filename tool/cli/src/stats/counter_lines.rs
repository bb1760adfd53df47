//! The table of counters.

use std::cmp::Ordering;

use hairline_convert::TrackId;
use hairline_formats::track_event::Unit;
use serde_json::{Value, json};

use crate::stats::counters::Counter;
use crate::stats::tables::{Sort, Stats};
use crate::table::Table;
use crate::text::grouped;

/// A row: a counter in its unit.
pub(super) struct Line {
    name: String,
    /// The thread or track of the counter, if it does not belong to the whole process.
    track: String,
    process: String,
    unit: String,
    count: u64,
    min: f64,
    /// The mean of the values, each with the same weight.
    mean: f64,
    max: f64,
    last: f64,
}

impl Line {
    #[allow(clippy::cast_precision_loss)] // as in trace_processor
    fn new(counter: &Counter, stats: &Stats<'_>) -> Self {
        let (about, names) = (&counter.about, stats.track_names);
        let factor = about.multiplier as f64;
        let (a, b) = (counter.min * factor, counter.max * factor);
        let process = names.process_of(counter.track);
        let above = names.parent(counter.track).filter(|above| Some(*above) != process);
        let name = |track: Option<TrackId>| track.map_or_else(String::new, |track| names.name(track));
        let series = match &*about.series {
            "" | "value" => String::new(),
            series => format!(":{series}"),
        };
        let unit = match about.unit {
            _ if !about.unit_name.is_empty() => &about.unit_name,
            Unit::TimeNs => "ns",
            Unit::Count => "count",
            Unit::SizeBytes => "bytes",
            _ => "",
        };
        Self {
            name: format!("{}{series}", counter.name),
            track: name(above),
            process: name(process),
            unit: unit.to_owned(),
            count: counter.count,
            min: a.min(b), // the multiplier may be negative
            mean: counter.sum * factor / counter.count as f64,
            max: a.max(b),
            last: counter.last * factor,
        }
    }
}

/// The counters that have values, by name, or with the largest in a column first.
pub(super) fn lines(stats: &Stats<'_>, sort: Sort) -> Vec<Line> {
    let with_values = stats.gathered.counters.all.iter().filter(|counter| counter.count > 0);
    let mut lines: Vec<Line> = with_values.map(|counter| Line::new(counter, stats)).collect();
    let by_name = |a: &Line, b: &Line| (&a.name, &a.process, &a.track).cmp(&(&b.name, &b.process, &b.track));
    let column = |a: &Line, b: &Line| match sort {
        Sort::Count => b.count.cmp(&a.count),
        Sort::Min => b.min.total_cmp(&a.min),
        Sort::Max => b.max.total_cmp(&a.max),
        _ => Ordering::Equal,
    };
    lines.sort_by(|a, b| column(a, b).then_with(|| by_name(a, b)));
    lines
}

/// The rows for people.
pub(super) fn table(lines: &[Line]) -> Table {
    let has_tracks = lines.iter().any(|line| !line.track.is_empty());
    let texts = if has_tracks {
        vec!["counter", "track", "process", "unit"]
    } else {
        vec!["counter", "process", "unit"]
    };
    let numbers = ["values", "min", "mean of values", "max", "last"];
    let mut table = Table::new(texts.len(), &[&texts[..], &numbers[..]].concat());
    for line in lines {
        let mut cells = vec![line.name.clone()];
        cells.extend(has_tracks.then(|| line.track.clone()));
        cells.extend([line.process.clone(), line.unit.clone(), grouped(line.count)]);
        cells.extend([line.min, line.mean, line.max, line.last].map(number));
        table.add(cells);
    }
    table
}

/// A row for programs.
pub(super) fn row(line: Line) -> Vec<(&'static str, Value)> {
    vec![
        ("counter", json!(line.name)),
        ("track", json!(line.track)),
        ("process", json!(line.process)),
        ("unit", json!(line.unit)),
        ("values", json!(line.count)),
        ("min", json!(line.min)),
        ("mean", json!(line.mean)),
        ("max", json!(line.max)),
        ("last", json!(line.last)),
    ]
}

/// A number for people: whole ones as they are, others with three digits after the point.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is whole
        let whole = grouped(value.abs() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    if (1e-3..1e15).contains(&value.abs()) { format!("{value:.3}") } else { format!("{value:.3e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0.0, -1_234.0, 59.5, 1e300, 0.000_25, f64::NAN].map(number);
        assert_eq!(all, ["0", "-1,234", "59.500", "1.000e300", "2.500e-4", "NaN"]);
    }
}
