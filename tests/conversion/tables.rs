//! `hairline export` and `hairline query`: the Parquet files, read by DuckDB, and the answers of SQLite have
//! the rows of trace_processor's tables.

use std::path::Path;
use std::process::Command;

use hairline::Session;
use hairline_tests::equal::Shown;
use hairline_tests::judge::{Rows, encode};
use hairline_tests::recording::{FORMATS, extension, record_with};
use serde_json::Value;

use crate::corpus;
use crate::matrix::{links, same};
use crate::track_event::everything;

/// The rows of [`Shown`], from the tables of an export.
const TABLES: [(&str, &str); 6] = [
    ("slices", SLICES),
    ("arguments", ARGUMENTS),
    ("counters", COUNTERS),
    ("flows", FLOWS),
    ("threads", "select tid, name, pid, process_name from thread where tid != 0"),
    ("processes", "select pid, name, command_line from process where pid != 0"),
];

/// trace_processor has instants as slices without a duration.
const SLICES: &str = "select start, coalesce(duration, -1), depth, coalesce(category, ''), coalesce(name, ''), \
     track_name, case when track = thread then tid end, thread_name, pid, process_name from slice union all \
     select time, 0, depth, coalesce(category, ''), coalesce(name, ''), \
     track_name, case when track = thread then tid end, thread_name, pid, process_name from instant";

const ARGUMENTS: &str = "with owners as (select id, start as at, name, 'slice' as kind from slice union all \
     select id, time, name, 'instant' from instant) \
     select o.at, coalesce(o.name, ''), a.key, case a.value_type when 'float' then printf('%g', float_value) \
       when 'bool' then case when bool_value then 'true' else 'false' end when 'text' then text_value when 'null' then 'null' \
       when 'pointer' then printf('0x%x', int_value) when 'bytes' then 'unknown' else cast(int_value as varchar) end \
     from arg a join owners o on a.owner = o.id and a.of = o.kind";

const COUNTERS: &str = "select time, case when series is null or series = 'value' then name \
     else name || ' ' || series end, unit, value, tid, pid from counter";

const FLOWS: &str = "with owners as (select id, start as at, name from slice union all \
     select id, time, name from instant) \
     select a.at, coalesce(a.name, ''), b.at, coalesce(b.name, '') from flow \
     join owners a on a.id = slice_out join owners b on b.id = slice_in";

/// The rows of a table.
type Table = Vec<Vec<Value>>;

/// What DuckDB shows of an export of a trace.
fn exported(trace: &Path) -> Shown {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    let done = command.arg("export").arg(trace).arg("-o").arg(folder.path()).output().expect("it ran");
    assert!(done.status.success(), "{}: {}", trace.display(), String::from_utf8_lossy(&done.stderr));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/tables.py");
    let asked =
        Command::new("python3").arg(script).arg(folder.path()).args(TABLES.map(|(_, sql)| sql)).output();
    let asked = asked.expect("python3");
    assert!(asked.status.success(), "tests/oracle/setup.sh? {}", String::from_utf8_lossy(&asked.stderr));
    shown(serde_json::from_slice(&asked.stdout).expect("JSON"))
}

/// What `hairline query` shows of a trace.
fn queried(trace: &Path) -> Shown {
    let results = TABLES.map(|(table, sql)| {
        // Objects have their names in the order of letters.
        let names = if table == "slices" { "a, b, c, d, e, f, g, h, i, j" } else { "a, b, c, d, e, f" };
        let count = [("counters", 6), ("processes", 3)].iter().find(|(of, _)| *of == table);
        let end = if table == "slices" { names.len() } else { count.map_or(4, |(_, count)| *count) * 3 - 2 };
        let question = format!("with t({}) as ({sql}) select * from t", &names[..end]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
        let asked = command.args(["query", "--json", &question]).arg(trace).output().expect("it ran");
        assert!(asked.status.success(), "{}: {}", trace.display(), String::from_utf8_lossy(&asked.stderr));
        let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_slice(&asked.stdout).expect("JSON");
        rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect()
    });
    shown(results.into())
}

fn shown(results: Vec<Table>) -> Shown {
    let lines = |rows: Table| {
        let text = Rows { columns: Vec::new(), rows }.text();
        text.lines().map(str::to_owned).collect()
    };
    Shown { tables: TABLES.iter().zip(results).map(|((name, _), rows)| (*name, lines(rows))).collect() }
}

/// What is not the same: rows that only one side has, beside those that an exception explains.
fn differences(name: &str, trace: &Path) -> String {
    let judged = Shown::of(trace);
    let (exported, queried) = (exported(trace), queried(trace));
    differ(name, "exported", &judged, &exported) + &differ(name, "queried", &judged, &queried)
}

fn differ(name: &str, by: &str, judged: &Shown, found: &Shown) -> String {
    let mut all = String::new();
    for (table, _) in TABLES {
        if EXCEPTIONS.iter().any(|(of, excepted, _)| name.starts_with(of) && *excepted == table) {
            continue;
        }
        let (mut before, mut after) = (same(judged, table), same(found, table));
        if table == "threads" {
            // The importer makes a thread without a name for each process that has none of its id.
            let is_made = |row: &String| row.split('\t').nth(1) == Some("NULL");
            before.retain(|row| !is_made(row) || after.contains(row));
        }
        if table == "processes" {
            // The importer takes the line of the process tree, which begins with the process's name instead
            // of the program's path.
            [&mut before, &mut after].into_iter().flatten().for_each(|row| *row = without_folder(row));
        }
        if table == "arguments" {
            // An argument of the begin and of the end: the importer shows the later one.
            before.dedup();
            after.dedup();
        }
        if before == after {
            continue;
        }
        let only = |these: &[String], those: &[String], sign| {
            let rows = these.iter().filter(|row| !those.contains(row)).take(6);
            rows.map(|row| format!("  {sign} {row}\n")).collect::<String>()
        };
        let (lost, new) = (only(&before, &after, '-'), only(&after, &before, '+'));
        all += &format!("{name}: {table}: {} rows, {} {by}\n{lost}{new}", before.len(), after.len());
    }
    all
}

/// A row of a process without the folder of its program.
fn without_folder(row: &str) -> String {
    let (of, command_line) = row.rsplit_once('\t').expect("columns");
    let (program, arguments) = command_line.split_once(' ').unwrap_or((command_line, ""));
    let name = program.rsplit_once('/').map_or(program, |(_, name)| name);
    format!("{of}\t{name} {arguments}")
}

const NUMBERED: &str = "processes and threads with a text as id, which got a number";
const THREAD_0: &str = "JSON's importer takes thread 0 for the process's first";

/// What an importer shows otherwise, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("viztracer.json", "arguments", "JSON's importer leaves out what is null in a list, and counts on"),
    (
        "chrome.json",
        "arguments",
        "of a name that a begin and its end have, the importer shows the one of the end",
    ),
    ("tracing_chrome", "slices", THREAD_0),
    ("tracing_chrome_by_span", "threads", THREAD_0),
    ("perfetto_recorder", "arguments", "a place without a function is NULL there, and left out here"),
    (
        "bazel.json",
        "slices",
        "JSON's importer leaves out what begins before 0, and takes thread 0 for another",
    ),
    ("bazel.json", "counters", "JSON's importer leaves out what is before 0"),
    ("bazel.json", "threads", THREAD_0),
    ("recursion_of_viztracer", "slices", "the importer's depth is 0 again after 511"),
    ("no_end.json", "slices", NUMBERED),
    ("no_end.json", "threads", NUMBERED),
    ("no_end.json", "processes", NUMBERED),
];

/// A name and a program that records.
type Recording<'p> = (&'p str, &'p dyn Fn(&Session));

#[track_caller]
fn are_the_same(recordings: &[Recording<'_>]) {
    let mut wrong = String::new();
    for (name, program) in recordings {
        for format in FORMATS {
            let plain = record_with(format, |b| b, *program);
            wrong += &differences(&format!("{name} {}", extension(format)), plain.path());
            let detailed = record_with(format, |b| b.source_locations(true).thread_time(true), *program);
            wrong += &differences(&format!("detailed {name} {}", extension(format)), detailed.path());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn recordings_have_the_rows_of_trace_processor() {
    are_the_same(&[("everything", &|_: &Session| everything()), ("links", &links)]);
}

#[test]
fn traces_of_other_tracers_have_the_rows_of_trace_processor() {
    let names =
        ["viztracer.json", "tracing_chrome.json", "tracing_chrome_async.json", "chrome.json", "no_end.json"];
    let wrong: String = names.iter().map(|name| differences(name, &corpus(name))).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// Those that `ci/others.sh` records into a folder that a variable names.
#[test]
fn recorded_traces_of_other_tracers_have_the_rows_of_trace_processor() {
    let Some(folder) = std::env::var_os("OTHER_TRACES").map(std::path::PathBuf::from) else { return };
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let wrong: String =
        files.map(|path| differences(&path.file_name().expect("a name").to_string_lossy(), &path)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// Those of Perfetto's document on TrackEvents.
#[test]
fn the_examples_of_the_document_have_the_rows_of_trace_processor() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabulary/examples");
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let entry = entry.expect("an example");
        let text = std::fs::read_to_string(entry.path()).expect("text");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), encode(&text)).expect("written");
        wrong += &differences(&entry.file_name().to_string_lossy(), file.path());
    }
    assert!(wrong.is_empty(), "{wrong}");
}
