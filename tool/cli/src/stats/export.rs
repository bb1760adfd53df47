//! Output for programs. The column names and units are stable.

use serde_json::{Map, Value, json};

use crate::json_version::JSON_VERSION;
use crate::stats::show::has_states;
use crate::stats::tables::{By, Line, Stats, TableArguments};
use crate::stats::{counter_lines, states};

/// The numeric columns of a row.
fn numbers(stats: &Stats<'_>, by: By, line: &Line<'_>) -> Vec<(&'static str, Value)> {
    let row = line.row;
    let [p50, p90, p99] = line.percentiles;
    let mut numbers = vec![
        ("count", json!(row.count)),
        ("total_ns", json!(row.total)),
        ("self_ns", json!(row.own)),
        ("min_ns", json!(row.min)),
        ("p50_ns", json!(p50)),
        ("p90_ns", json!(p90)),
        ("p99_ns", json!(p99)),
        ("max_ns", json!(row.max)),
    ];
    if by == By::Thread {
        numbers.push(("busy_ns", json!(row.busy)));
    }
    if has_states(stats, by) {
        let [running, waiting] = row.states(); // null, or an empty cell
        numbers.extend([("running_ns", json!(running)), ("waiting_ns", json!(waiting))]);
    }
    if by == By::Interval {
        numbers.push(("polled_ns", json!(stats.polled(row)))); // null, or an empty cell
    }
    if by == By::Track {
        numbers.push(("tracks", json!(stats.tracks_of(row))));
    }
    numbers
}

/// The text columns of a row.
fn words(by: By, line: &Line<'_>) -> Vec<(&'static str, Value)> {
    let mut words = vec![(by.title(), json!(line.what))];
    match by {
        By::Category | By::State | By::Counter => {}
        By::Name | By::Interval => words.push(("category", json!(line.of))),
        By::Thread | By::Track => words.push(("process", json!(line.of))),
    }
    words
}

fn rows<'a, 's>(
    stats: &'s Stats<'a>,
    by: By,
    choice: &TableArguments,
) -> impl Iterator<Item = Vec<(&'static str, Value)>> + use<'a, 's> {
    let lines = stats.lines(by, choice.sort);
    let most = choice.top.filter(|top| *top > 0).unwrap_or(usize::MAX);
    let row = move |line: Line<'s>| words(by, &line).into_iter().chain(numbers(stats, by, &line)).collect();
    let threads = if by == By::State { states::lines(stats, choice.sort) } else { Vec::new() };
    let counters = if by == By::Counter { counter_lines::lines(stats, choice.sort) } else { Vec::new() };
    let others = threads.into_iter().map(states::row).chain(counters.into_iter().map(counter_lines::row));
    lines.into_iter().map(row).chain(others).take(most)
}

pub(super) fn json(stats: &Stats<'_>, choice: &TableArguments) -> String {
    let (t, track_names) = (&stats.gathered.totals, stats.track_names);
    let mut left_out = stats.report.clone(); // both may count the same
    left_out.add_all(stats.unread);
    let mut all = json!({
        "version": JSON_VERSION,
        "trace": stats.name,
        "bytes": stats.bytes,
        "events": t.events,
        "slices": t.slices,
        "slices_without_end": t.open_slices,
        "slices_left_out": t.left_out,
        "slices_that_carry_flows": t.carriers,
        "instants": t.instants,
        "counter_values": t.counter_values,
        "counter_values_in_no_row": stats.gathered.counters.left_out(),
        "flow_points": t.flow_points,
        "processes": track_names.processes,
        "threads": track_names.threads,
        "foreign_records": t.foreign,
        "losses": t.losses,
        "lost_events": t.lost_events,
        "first_ns": t.first,
        "last_ns": t.last,
        "span_ns": t.span(),
        "left_out": left_out
            .iter()
            .map(|(what, n)| (what.to_owned(), json!(n)))
            .collect::<Map<_, _>>(),
    });
    let tables = [
        (By::Category, "categories"),
        (By::Name, "names"),
        (By::Interval, "intervals"),
        (By::Thread, "by_thread"),
        (By::Track, "by_track"),
        (By::State, "by_state"),
        (By::Counter, "counters"),
    ];
    for (by, name) in tables.into_iter().filter(|(by, _)| choice.by.is_none_or(|only| only == *by)) {
        let object = |row: Vec<(&str, Value)>| {
            row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
        };
        all[name] = rows(stats, by, choice).map(object).collect();
    }
    let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
    text.push('\n');
    text
}

pub(super) fn csv(stats: &Stats<'_>, choice: &TableArguments) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    let mut is_first = true;
    let cell = |value: Value| match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    for row in rows(stats, choice.by.unwrap_or(By::Name), choice) {
        let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        // Writing to memory cannot fail.
        if std::mem::take(&mut is_first) {
            let _ = out.write_record(names);
        }
        let _ = out.write_record(values.into_iter().map(cell));
    }
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}
