//! Output for people.

use std::collections::HashSet;
use std::fmt::Write;

use crate::stats::tables::{By, Line, SEVERAL, SEVERAL_SAID, Sort, Stats, TableArguments};
use crate::stats::{counter_lines, states};
use crate::table::{Table, in_colour, plain};
use crate::text::{described, duration, grouped, grouped_count, ids, one_line, size};

/// The default number of rows.
const ROWS: usize = 25;

pub(super) fn text(stats: &Stats<'_>, choice: &TableArguments) -> String {
    let mut out = totals(stats);
    for by in By::ALL.into_iter().filter(|by| choice.by.is_none_or(|only| only == *by)) {
        let lines = stats.lines(by, choice.sort);
        let threads = if by == By::State { states::lines(stats, choice.sort) } else { Vec::new() };
        let counters = if by == By::Counter { counter_lines::lines(stats, choice.sort) } else { Vec::new() };
        let all = lines.len() + threads.len() + counters.len(); // all but one are empty
        let rows = match choice.top.unwrap_or(ROWS) {
            0 => all,
            rows => rows.min(all),
        };
        if rows == 0 {
            continue;
        }
        let table = match by {
            By::State => states::table(&threads[..rows]),
            By::Counter => counter_lines::table(&counters[..rows]),
            _ => table(stats, by, &lines[..rows]),
        };
        let _ = write!(out, "\n{}", table.lines(in_colour()));
        if rows < all {
            let _ = writeln!(out, "and {} more (--top 0 shows all)", all - rows);
        }
        let lines = lines.get(..rows).unwrap_or_default();
        let has_several = |line: &Line<'_>| line.of == SEVERAL;
        if matches!(by, By::Name | By::Interval) && lines.iter().any(has_several) {
            let _ = writeln!(out, "{SEVERAL_SAID}");
        }
        let polls = if by == By::Name { polls(stats, lines) } else { Vec::new() };
        if !polls.is_empty() {
            let _ = writeln!(out, "polls, because intervals have the same name: {}", polls.join(", "));
        }
    }
    let is_hidden = choice.by == Some(By::Name) && stats.gathered.intervals.iter().next().is_some();
    if is_hidden {
        let _ = writeln!(out, "\nintervals, which are on other tracks than threads: --by interval");
    }
    if choice.by == Some(By::Thread) && !stats.gathered.states.is_empty() {
        let _ = writeln!(out, "\nthreads with and without slices: --by state");
    }
    out
}

/// The names of slices that are polls: intervals have the same name and category.
fn polls(stats: &Stats<'_>, lines: &[Line<'_>]) -> Vec<String> {
    let intervals = stats.lines(By::Interval, Sort::Name);
    let intervals: HashSet<_> = intervals.iter().map(|line| (&line.what, &line.of)).collect();
    let polls = lines.iter().filter(|line| intervals.contains(&(&line.what, &line.of)));
    polls.map(|line| plain(&line.what)).collect()
}

fn totals(stats: &Stats<'_>) -> String {
    let (t, track_names) = (&stats.gathered.totals, stats.track_names);
    let mut out = format!("{}: {}, {}\n", one_line(stats.name), size(stats.bytes), duration(t.span()));
    let intervals = stats.gathered.intervals.iter().map(|row| row.count).sum::<u64>();
    let slices = t.slices.saturating_sub(intervals);
    let parts = [(track_names.processes, "process"), (track_names.threads, "thread"), (slices, "slice")];
    let more = [
        (intervals, "interval"),
        (t.instants, "instant"),
        (t.counter_values, "counter value"),
        (t.flow_points, "flow point"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .chain(more.into_iter().filter(|(n, _)| *n > 0))
        .map(|(n, what)| grouped_count(n, what))
        .collect();
    let _ = writeln!(out, "{}", parts.join(", "));
    for line in t.far_apart.lines() {
        let _ = writeln!(out, "{}", one_line(&line));
    }
    if t.open_slices > 0 {
        let _ = writeln!(out, "{} without an end", grouped_count(t.open_slices, "slice"));
    }
    if t.left_out > 0 {
        let left_out = grouped_count(t.left_out, "slice");
        let _ = writeln!(out, "{left_out} left out, because too many others were open at the begin");
    }
    if t.carriers > 0 {
        let carriers = grouped_count(t.carriers, "slice");
        let _ = writeln!(out, "{carriers} of 0 ns that only carry a flow, in no table");
    }
    let no_row = stats.gathered.counters.left_out();
    if no_row > 0 {
        let _ = writeln!(out, "{} of further counters, in no row", grouped_count(no_row, "counter value"));
    }
    if t.losses > 0 {
        let lost =
            if t.lost_events > 0 { grouped_count(t.lost_events, "event") } else { "events".to_owned() };
        let _ = writeln!(out, "{lost} lost, at {}", grouped_count(t.losses, "place"));
    }
    for (what, n) in stats.report.iter() {
        let _ = writeln!(out, "{} {}{}", grouped(n), described(n, what), ids(stats.report, what));
    }
    for (what, n) in stats.unread.iter() {
        let _ = writeln!(out, "not shown: {} {}", grouped(n), described(n, what));
    }
    out
}

fn table(stats: &Stats<'_>, by: By, lines: &[Line<'_>]) -> Table {
    let numbers = ["count", "total", "self", "min", "p50", "p90", "p99", "max"];
    let (texts, mut titles) = match by {
        By::Category => (1, vec![by.title()]),
        By::Name | By::Interval => (2, vec![by.title(), "category"]),
        By::Thread => (2, vec![by.title(), "process", "busy", "busy %"]),
        By::Track => (2, vec![by.title(), "process", "tracks"]),
        By::State | By::Counter => (2, vec![by.title(), "process"]),
    };
    let has_states = has_states(stats, by);
    titles.extend(numbers);
    if has_states {
        titles.extend(["running", "waiting"]);
    }
    let has_polls = by == By::Interval && lines.iter().any(|line| stats.polled(line.row).is_some());
    if has_polls {
        titles.push("polled");
    }
    let mut table = Table::new(texts, &titles);
    let span = stats.gathered.totals.span();
    for line in lines {
        let row = line.row;
        let mut cells = vec![line.what.clone()];
        if texts == 2 {
            cells.push(line.of.clone());
        }
        if by == By::Thread {
            // The row of all further threads together has no share: they run at the same time.
            let share = row.what.map_or_else(|| "-".to_owned(), |_| share(row.busy, span));
            cells.extend([duration(row.busy), share]);
        }
        if by == By::Track {
            cells.push(grouped(stats.tracks_of(row)));
        }
        cells.push(grouped(row.count));
        let [p50, p90, p99] = line.percentiles;
        cells.extend([row.total, row.own, row.min, p50, p90, p99, row.max].map(duration));
        if has_states {
            cells.extend(row.states().map(|time| time.map_or_else(|| "-".to_owned(), duration)));
        }
        if has_polls {
            cells.push(stats.polled(row).map_or_else(|| "-".to_owned(), duration));
        }
        table.add(cells);
    }
    table
}

/// Whether a table has the times in which threads ran and waited. Other tracks are no threads.
pub(super) fn has_states(stats: &Stats<'_>, by: By) -> bool {
    stats.gathered.has_scheduling && matches!(by, By::Category | By::Name | By::Thread)
}

#[allow(clippy::cast_precision_loss)] // one digit is shown
fn share(part: i64, whole: i64) -> String {
    if whole <= 0 { "-".to_owned() } else { format!("{:.1}", 100.0 * part as f64 / whole as f64) }
}
