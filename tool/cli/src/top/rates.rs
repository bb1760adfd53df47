//! The slices of an interval as a table.

use std::io::IsTerminal;
use std::time::Duration;

use hairline_convert::Report;
use hairline_convert::slices::Keys;

use crate::stats::{By, Gathered, Line, Sort, Stats};
use crate::table::{Table, in_colour};
use crate::text::{count, duration, grouped, grouped_count, size};
use crate::track_names::TrackNames;

/// The counts of an interval, and the names in them.
pub(super) struct Rates {
    pub(super) gathered: Gathered,
    pub(super) keys: Keys,
    /// The bytes of the trace that are not read yet, because the process writes faster than this command
    /// reads.
    pub(super) behind: u64,
    /// The covered time, if the ring did not hold the whole interval.
    pub(super) covered: Option<Duration>,
}

/// The bytes that a process may write while a table is made.
const MUCH: u64 = 64 << 20;

/// Moves to the upper left corner of a terminal, and clears it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Clears a terminal.
pub(super) fn screen() -> String {
    if std::io::stdout().is_terminal() { CLEAR.to_owned() } else { String::new() }
}

impl Rates {
    pub(super) fn table(&self, name: &str, elapsed: Duration, sort: Sort, top: usize) -> String {
        let (report, track_names) = (Report::default(), TrackNames::default());
        let stats = Stats {
            name,
            bytes: 0,
            gathered: &self.gathered,
            keys: &self.keys,
            track_names: &track_names,
            report: &report,
            unread: &report,
        };
        let mut lines = stats.lines(By::Name, sort);
        lines.extend(stats.lines(By::Interval, sort));
        let rows = if top == 0 { lines.len() } else { top.min(lines.len()) };
        let seconds = self.covered.unwrap_or(elapsed).as_secs_f64();
        let totals = &self.gathered.totals;
        let mut title = format!("{name}: {}/s", grouped_count(per_second(totals.slices, seconds), "slice"));
        title += &format!(", {}", count(lines.len() as u64, "name"));
        if totals.losses > 0 {
            title += &format!(", {} lost", count(totals.lost_events, "event"));
        }
        if let Some(covered) = self.covered {
            let covered = i64::try_from(covered.as_nanos()).unwrap_or(i64::MAX);
            title += &format!(", only the last {} of it, because the ring holds no more", duration(covered));
        }
        if self.behind > MUCH {
            title += &format!(", {} behind", size(self.behind));
        }
        let mut titles = vec!["name", "category", "count/s", "total/s", "self/s", "p50", "p90", "p99", "max"];
        let has_states = self.gathered.has_scheduling;
        if has_states {
            titles.extend(["running/s", "waiting/s"]);
        }
        let mut table = Table::new(2, &titles);
        lines[..rows].iter().for_each(|line| table.add(cells(line, seconds, has_states)));
        format!("{title}\n{}\n", table.lines(in_colour()))
    }
}

fn cells(line: &Line<'_>, seconds: f64, has_states: bool) -> Vec<String> {
    let row = line.row;
    let [p50, p90, p99] = line.percentiles;
    let time = |ns: i64| duration(per_second(ns.unsigned_abs(), seconds).cast_signed());
    let mut cells = vec![line.what.clone(), line.of.clone(), grouped(per_second(row.count, seconds))];
    cells.extend([row.total, row.own].map(time));
    cells.extend([p50, p90, p99, row.max].map(duration));
    if has_states {
        cells.extend(row.states().map(|state| state.map_or_else(|| "-".to_owned(), time)));
    }
    cells
}

// The result is rounded anyway.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn per_second(n: u64, seconds: f64) -> u64 {
    (n as f64 / seconds).round() as u64
}
