//! The table of threads by state: how long each ran, waited for a core and slept, in slices and outside.

use serde_json::{Value, json};

use crate::stats::tables::{Sort, Stats};
use crate::table::Table;
use crate::text::{duration, grouped};
use crate::thread_times::ThreadTimes;

/// The threads in the given order.
pub(super) fn lines<'a>(stats: &Stats<'a>, sort: Sort) -> Vec<&'a ThreadTimes> {
    let column = |thread: &ThreadTimes| match sort {
        Sort::Waiting => thread.waiting(),
        Sort::Asleep => thread.asleep(),
        Sort::Samples => i64::try_from(thread.samples).unwrap_or(i64::MAX),
        _ => thread.running(),
    };
    let mut lines: Vec<&ThreadTimes> = stats.gathered.states.iter().collect();
    if sort == Sort::Name {
        lines.sort_by(|a, b| a.name.cmp(&b.name));
    } else {
        lines.sort_by_key(|thread| std::cmp::Reverse(column(thread)));
    }
    lines
}

/// The rows for people, without the columns that the trace does not have.
pub(super) fn table(lines: &[&ThreadTimes]) -> Table {
    let has_states = lines.iter().any(|thread| thread.split.is_some());
    let has_samples = lines.iter().any(|thread| thread.samples > 0);
    let mut titles = vec!["thread", "process"];
    if has_states {
        titles.extend(["running", "waiting for a core", "asleep"]);
    }
    if has_samples {
        titles.push("samples");
    }
    let mut table = Table::new(2, &titles);
    for thread in lines {
        let mut cells = vec![thread.name.clone(), thread.process.clone()];
        if has_states {
            let times = thread.split.map(|split| [split.running, split.waiting, split.asleep].map(duration));
            cells.extend(times.unwrap_or_else(|| ["-"; 3].map(str::to_owned)));
        }
        if has_samples {
            cells.push(grouped(thread.samples));
        }
        table.add(cells);
    }
    table
}

/// A row for programs. A time is null if the trace does not have the states of the thread.
pub(super) fn row(thread: &ThreadTimes) -> Vec<(&'static str, Value)> {
    vec![
        ("thread", json!(thread.name)),
        ("process", json!(thread.process)),
        ("tid", json!(thread.tid)),
        ("pid", json!((thread.pid != 0).then_some(thread.pid))),
        ("running_ns", json!(thread.split.map(|split| split.running))),
        ("waiting_ns", json!(thread.split.map(|split| split.waiting))),
        ("asleep_ns", json!(thread.split.map(|split| split.asleep))),
        ("samples", json!(thread.samples)),
    ]
}
