//! Whether two traces show the same, table by table, whatever their formats.
//!
//! Rows are lines of cells between tabs, sorted. No row has a number in it that an importer gives, or a
//! track's uuid: a slice is told by its time and name, a track by its name and the thread or process that it
//! belongs to.

use std::path::Path;

use crate::judge::{self, Stat, Verdict};

/// A table of [`Shown`]: its name, and its rows.
pub type Table = (&'static str, Vec<String>);

/// Who a track belongs to: name of the track, tid and name of the thread, pid and name of the process.
const OWNERS: &str = "with owner as (select tr.id as track_id, tr.name as track, t.tid, t.name as thread, p.pid, p.name as process \
     from track tr \
     left join thread_track tt on tt.id = tr.id left join thread_counter_track tc on tc.id = tr.id \
     left join thread t on t.utid = ifnull(tt.utid, tc.utid) \
     left join process_track pt on pt.id = tr.id left join process_counter_track pc on pc.id = tr.id \
     left join process p on p.upid = coalesce(t.upid, pt.upid, pc.upid)) ";

const SLICES: &str = "select s.ts, s.dur, s.depth, ifnull(s.category, ''), ifnull(s.name, ''), o.track, o.tid, o.thread, o.pid, o.process \
     from slice s join owner o using (track_id)";

/// TrackEvent's importer puts debug annotations under `debug.`; that of FXT writes them as they are, that of
/// JSON under `args.`.
const ARGUMENTS: &str = "select s.ts, ifnull(s.name, ''), \
     case when a.key like 'debug.%' then substr(a.key, 7) when a.key like 'args.%' then substr(a.key, 6) else a.key end, a.display_value \
     from slice s join args a using (arg_set_id) where a.key not in ('legacy_event.passthrough_utid', 'source_location_iid')";

/// FXT's importer names a track "name:argument:id".
const COUNTERS: &str = "select c.ts, replace(o.track, ':value:0', ''), ct.unit, c.value, o.tid, o.pid \
     from counter c join owner o using (track_id) join counter_track ct on ct.id = c.track_id";

const FLOWS: &str = "select a.ts, ifnull(a.name, ''), b.ts, ifnull(b.name, '') from flow \
     join slice a on a.id = slice_out join slice b on b.id = slice_in";

const THREADS: &str =
    "select t.tid, t.name, p.pid, p.name from thread t left join process p using (upid) where t.tid != 0";

const PROCESSES: &str = "select pid, name, cmdline from process where pid != 0";

const LOGS: &str = "select l.ts, l.prio, l.msg, t.tid from android_logs l left join thread t using (utid)";

/// Tracks that are neither a thread's nor a process's own, and how they are to be shown.
const TRACKS: &str = "select tr.name, ifnull(p.name, ''), o.tid, o.pid, (select group_concat(property) from ( \
       select key || '=' || display_value as property from args where arg_set_id = tr.source_arg_set_id and \
       key in ('child_ordering', 'sibling_order_rank', 'description', 'merge_behavior', 'merge_key', 'y_axis_share_key', 'category') order by key)) \
     from track tr join owner o on o.track_id = tr.id left join track p on p.id = tr.parent_id where tr.name is not null";

const TABLES: [(&str, &str); 8] = [
    ("slices", SLICES),
    ("arguments", ARGUMENTS),
    ("counters", COUNTERS),
    ("flows", FLOWS),
    ("threads", THREADS),
    ("processes", PROCESSES),
    ("logs", LOGS),
    ("tracks", TRACKS),
];

/// What the judge shows of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Slices, arguments, counters, flows, threads, processes, logs, tracks.
    pub tables: Vec<Table>,
}

impl Shown {
    /// What the judge shows of a file.
    ///
    /// # Panics
    /// If it cannot be loaded.
    #[track_caller]
    #[must_use]
    pub fn of(trace: &Path) -> Self {
        Self::of_verdict(&judge::load(trace, &queries()))
    }

    /// What the judge shows of a trace in memory, about which it has no complaint.
    ///
    /// # Panics
    /// If it cannot be loaded, or has complaints.
    #[track_caller]
    #[must_use]
    pub fn of_clean(trace: &[u8]) -> Self {
        let verdict = judge::load_bytes(trace, &queries());
        verdict.require_clean();
        Self::of_verdict(&verdict)
    }

    /// What the judge shows of a trace in memory, and its complaints about it.
    ///
    /// # Panics
    /// If it cannot be loaded.
    #[track_caller]
    #[must_use]
    pub fn with_complaints(trace: &[u8]) -> (Self, Vec<Stat>) {
        let verdict = judge::load_bytes(trace, &queries());
        (Self::of_verdict(&verdict), verdict.complaints)
    }

    fn of_verdict(verdict: &Verdict) -> Self {
        let rows = |text: String| {
            let mut rows: Vec<_> = text.lines().map(str::to_owned).collect();
            rows.sort();
            rows
        };
        let tables = TABLES.iter().zip(&verdict.results);
        Self { tables: tables.map(|((name, _), result)| (*name, rows(result.text()))).collect() }
    }

    /// The rows of a table.
    ///
    /// # Panics
    /// If there is no such table.
    #[must_use]
    pub fn table(&self, name: &str) -> &[String] {
        let table = self.tables.iter().find(|(table, _)| *table == name);
        &table.unwrap_or_else(|| panic!("no table {name}")).1
    }

    /// The same without these tables, which a format has no place for.
    #[must_use]
    pub fn without(mut self, tables: &[&str]) -> Self {
        self.tables.retain(|(name, _)| !tables.contains(name));
        self
    }

    /// Requires that another trace shows the same.
    ///
    /// # Panics
    /// If it does not; the message has the first rows that only one of them has.
    #[track_caller]
    pub fn require_equal(&self, converted: &Self) {
        for ((name, left), (_, right)) in self.tables.iter().zip(&converted.tables) {
            let lost = only_in(left, right);
            let new = only_in(right, left);
            assert!(
                lost.is_empty() && new.is_empty(),
                "{name}: {} rows, then {}\nlost ({}):\n{}\nnew ({}):\n{}",
                left.len(),
                right.len(),
                lost.len(),
                few(&lost),
                new.len(),
                few(&new)
            );
        }
    }
}

fn queries() -> Vec<&'static str> {
    static QUERIES: std::sync::LazyLock<Vec<String>> =
        std::sync::LazyLock::new(|| TABLES.iter().map(|(_, sql)| format!("{OWNERS}{sql}")).collect());
    QUERIES.iter().map(String::as_str).collect()
}

/// Rows of `these` that `others` has fewer of; both are sorted.
fn only_in<'a>(these: &'a [String], others: &[String]) -> Vec<&'a str> {
    let mut others = others.iter().peekable();
    let mut only = Vec::new();
    for row in these {
        while others.next_if(|other| *other < row).is_some() {}
        if others.next_if(|other| *other == row).is_none() {
            only.push(row.as_str());
        }
    }
    only
}

fn few(rows: &[&str]) -> String {
    rows.iter().take(8).map(|row| format!("  {row}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_come_more_often_are_only_there() {
        let rows = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (left, right) = (rows("aabcd"), rows("abbd"));
        assert_eq!((only_in(&left, &right), only_in(&right, &left)), (vec!["a", "c"], vec!["b"]));
    }
}
