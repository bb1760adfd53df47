//! Each trace of a corpus in each format: trace_processor shows the same, or it is said why not.
//!
//! Importers have their own ways to show what is the same: [`same`] brings rows to one form, [`Why::Shown`]
//! is for the rest.

use std::path::Path;
use std::time::Duration;

use hairline::{Flow, Format, Overflow, Session, SessionBuilder, Track};
use hairline::{trace_begin, trace_counter, trace_end, trace_instant, trace_scope};
use hairline_convert::{Report, TraceFormat};
use hairline_tests::equal::Shown;
use hairline_tests::judge::{Stat, encode};
use hairline_tests::mortal::files;
use hairline_tests::recording::{FORMATS, record_with};
use hairline_tests::thread_0::without_thread_0;

use crate::track_event::everything;
use crate::{convert, corpus, read};
use TraceFormat::{Fxt, Json, TrackEvent};

/// A trace, and what is shown of it.
pub(crate) struct Entry {
    name: String,
    bytes: Vec<u8>,
    shown: Shown,
    /// What the importer has against the trace itself.
    complaints: Vec<Stat>,
}

impl Entry {
    fn of(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let shown = Shown::of_clean(&bytes);
        Self { name: name.into(), bytes, shown, complaints: Vec::new() }
    }

    /// Of another tracer, about whose trace the importer may complain.
    pub(crate) fn of_other(path: &Path) -> Self {
        let (file, bytes) = (path.file_name().expect("a name").to_string_lossy(), read(path));
        let bytes = without_thread_0(&bytes).unwrap_or(bytes);
        let (shown, complaints) = Shown::with_complaints(&bytes);
        // A thread's id that is the low half of an address is negative at random.
        let is_negative = shown.table("threads").iter().any(|row| row.starts_with('-'));
        let name = if is_negative { format!("negative ids, {file}") } else { file.into_owned() };
        Self { name, bytes, shown, complaints }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.name.ends_with(".json") || self.name.ends_with(".json.gz")
    }
}

/// Why something is not the same.
pub(crate) enum Why {
    /// The report says it, in these words.
    Said(&'static str),
    /// It is all there; the importer shows it otherwise.
    Shown(&'static str),
}
use Why::{Said, Shown as Only};

/// A table that is not the same: of entries that begin so, in this format or as JSON that was in this format.
pub(crate) type Exception = (&'static str, TraceFormat, &'static str, Why);

#[rustfmt::skip] // a table
const EXCEPTIONS: &[Exception] = &[
    ("everything Fxt", TrackEvent, "arguments", Said(NAMES_OF_ARGUMENTS)),
    ("detail Fxt", TrackEvent, "arguments", Said(NAMES_OF_ARGUMENTS)),
    ("json of Fxt", TrackEvent, "arguments", Said(NAMES_OF_ARGUMENTS)),
    ("json of detail Fxt", TrackEvent, "arguments", Said(NAMES_OF_ARGUMENTS)),
    ("viztracer.json", TrackEvent, "arguments", Only(EMPTY)),
    ("viztracer.json", Fxt, "arguments", Only(EMPTY)),
    ("detail TrackEvent", Fxt, "arguments", Said("functions of source locations left out")),
    ("everything", Json, "counters", Said(COUNTERS_OF_THREADS)),
    ("detail", Json, "counters", Said(COUNTERS_OF_THREADS)),
    ("json of", TrackEvent, "counters", Said(SERIES)),
    ("chrome.json", TrackEvent, "counters", Said(SERIES)),
    ("everything", Json, "processes", Said("command lines")),
    ("detail", Json, "processes", Said("command lines")),
    ("ring", Json, "processes", Said("command lines")),
    ("rotated", Json, "processes", Said("command lines")),
    ("links", Json, "processes", Said("command lines")),
    ("links Fxt", TrackEvent, "flows", Said("flows between slices of threads and of tracks, cut in two")),
    ("links", Json, "flows", Said("flows between threads and intervals, cut in two")),
    ("no_end.json", TrackEvent, "slices", Said(NUMBERED)),
    ("no_end.json", TrackEvent, "threads", Said(NUMBERED)),
    ("no_end.json", TrackEvent, "processes", Said(NUMBERED)),
    ("no_end.json", Fxt, "slices", Said(NUMBERED)),
    ("no_end.json", Fxt, "threads", Said(NUMBERED)),
    ("no_end.json", Fxt, "processes", Said(NUMBERED)),
    ("no_end.json", Json, "slices", Said(NUMBERED)),
    ("no_end.json", Json, "threads", Said(NUMBERED)),
    ("no_end.json", Json, "processes", Said(NUMBERED)),
];

const NAMES_OF_ARGUMENTS: &str = "names of arguments with . or [ ] in them, for which importers show _";
const COUNTERS_OF_THREADS: &str = "thread counters that became process counters, with the thread as id";
const SERIES: &str = "series of counters became counters of their own";
const NUMBERED: &str = "processes and threads with a text as id, which got a number";
const EMPTY: &str = "JSON's importer leaves out what is null in a list, and counts on; TrackEvent's has _ for the dots of keys";

/// What is compared. Logs are tables of TrackEvent only, and how tracks are shown is in
/// [`crate::track_event`].
const TABLES: [&str; 6] = ["slices", "arguments", "counters", "flows", "threads", "processes"];

/// Rows in a form that does not depend on the importer.
pub(crate) fn same(shown: &Shown, table: &str) -> Vec<String> {
    let rows = shown.table(table).iter().map(|row| row.split('\t').collect::<Vec<_>>());
    let mut rows: Vec<String> = match table {
        // Tracks have other names in each importer, and FXT's has one place for the intervals of all
        // processes.
        "slices" => rows
            .map(|row| {
                let of_thread = row[6] != "NULL";
                let name = row[4].trim_start_matches("[No name]"); // JSON's importer has this for none
                let owner = if of_thread { [row[6], row[8]] } else { [""; 2] };
                [&row[..4], &[name], &owner[..]].concat()
            })
            .map(|row| row.join("\t"))
            .collect(),
        "arguments" => rows.filter_map(argument).collect(),
        // Units are words of the name in JSON. The CPU time of threads is no counter there, but a field of
        // slices.
        "counters" => rows
            .filter(|row| row[1] != "thread_time")
            .map(|row| [row[0], counter(row[1]).as_str(), row[3], row[4], row[5]].join("\t"))
            .collect(),
        _ => rows.map(|row| row.join("\t")).collect(),
    };
    rows.sort();
    rows
}

/// JSON's importer does not show what is empty. A message and its place are columns of another table in
/// TrackEvent; places have two names.
fn argument(row: Vec<&str>) -> Option<String> {
    if matches!(row[3], "{}" | "[]" | "null") {
        return None;
    }
    let key = match row[2] {
        "track_event.log_message" => "message",
        "level" | "priority" | "track_event.priority" => return None,
        key if key.starts_with("track_event.log_message.") => return None,
        key => key.strip_prefix("source_location.").unwrap_or(key.strip_prefix("source.").unwrap_or(key)),
    };
    Some([row[0], row[1], key, row[3]].join("\t"))
}

/// "name:series:number" in FXT and "name series" in JSON, where "value" is the only series.
fn counter(name: &str) -> String {
    let mut parts = name.rsplitn(3, ':');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(series), Some(name)) => format!("{name} {series}"),
        _ => name.to_owned(),
    };
    let bare = [" value", " bytes"].iter().find_map(|end| name.strip_suffix(end).map(str::to_owned));
    bare.unwrap_or(name)
}

fn exception<'e>(entry: &Entry, by: TraceFormat, table: &str, all: &[&'e [Exception]]) -> Option<&'e Why> {
    all.iter()
        .flat_map(|some| some.iter())
        .find(|(name, format, of, _)| entry.name.starts_with(name) && (*format, *of) == (by, table))
        .map(|(.., why)| why)
}

/// All that is wrong with an entry in a format.
fn wrong(entry: &Entry, to: TraceFormat) -> Vec<String> {
    let (converted, report) = convert(&entry.bytes, to);
    let exceptions = [EXCEPTIONS, crate::others::EXCEPTIONS];
    compared(entry, (&converted, &report), to, &format!("{} as {}", entry.name, to.name()), &exceptions)
}

/// All that is wrong with an entry as JSON after it was in another format.
fn wrong_back(entry: &Entry, by: TraceFormat, exceptions: &[Exception]) -> Vec<String> {
    let (there, mut report) = convert(&entry.bytes, by);
    let (back, of_back) = convert(&there, Json);
    report.add_all(&of_back);
    let about = format!("{} back from {}", entry.name, by.name());
    compared(entry, (&back, &report), by, &about, &[exceptions])
}

fn compared(
    entry: &Entry,
    (converted, report): (&[u8], &Report),
    by: TraceFormat,
    about: &str,
    exceptions: &[&[Exception]],
) -> Vec<String> {
    let (shown, complaints) = Shown::with_complaints(converted);
    // Of complaints only those that are not about the trace itself.
    let of_input = |stat: &Stat| entry.complaints.iter().find(|other| other.name == stat.name);
    let is_new = |stat: &&Stat| of_input(stat).is_none_or(|other| other.value < stat.value);
    let new = complaints.iter().filter(is_new).map(|stat| format!("{} {}", stat.name, stat.value)).collect();
    let mut compared = vec![("complaints", Vec::new(), new)];
    compared.extend(TABLES.map(|table| (table, same(&entry.shown, table), same(&shown, table))));
    let mut wrong = Vec::new();
    for (table, before, after) in compared {
        let about = format!("{about}: {table}");
        match exception(entry, by, table, exceptions) {
            None if before != after => {
                wrong.push(format!("{about}\n{}", difference(&before, &after, report)));
            }
            Some(Said(why) | Only(why)) if before == after => {
                wrong.push(format!("{about}: is no exception any more: {why}"));
            }
            Some(Said(words)) if !report.iter().any(|(what, _)| what == *words) => {
                wrong.push(format!("{about}: nothing is said of {words}: {report:?}"));
            }
            _ => {}
        }
    }
    wrong
}

fn difference(before: &[String], after: &[String], report: &Report) -> String {
    let only = |these: &[String], those: &[String], sign| {
        let rows = these.iter().filter(|row| !those.contains(row)).take(6);
        rows.map(|row| format!("  {sign} {row}\n")).collect::<String>()
    };
    format!("{}{}  {report:?}", only(before, after, '-'), only(after, before, '+'))
}

#[track_caller]
pub(crate) fn in_all_formats(entries: &[Entry]) {
    let all = entries.iter().flat_map(|entry| [TrackEvent, Fxt, Json].map(|to| wrong(entry, to)));
    let wrong: Vec<_> = all.flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
pub(crate) fn back_from_other_formats(entries: &[Entry], exceptions: &[Exception]) {
    let all = entries.iter().flat_map(|entry| [TrackEvent, Fxt].map(|by| wrong_back(entry, by, exceptions)));
    let wrong: Vec<_> = all.flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn recorded(
    name: &str,
    configure: impl Fn(SessionBuilder) -> SessionBuilder,
    program: impl Fn(&Session),
    take: impl Fn(&Path) -> Vec<u8>,
) -> Vec<Entry> {
    let entry = |format: Format| {
        let trace = record_with(format, &configure, &program);
        Entry::of(format!("{name} {format:?}"), take(trace.path()))
    };
    FORMATS.map(entry).into()
}

#[test]
fn recordings() {
    in_all_formats(&recorded("everything", |b| b, |_| everything(), read));
}

#[test]
fn recordings_with_places_and_cpu_time() {
    in_all_formats(&recorded(
        "detail",
        |b| b.source_locations(true).thread_time(true),
        |_| everything(),
        read,
    ));
}

/// Flows from a thread over a slice on a track to another thread, and through an instant.
pub(crate) fn links(_: &Session) {
    let (flow, track) = (Flow::new(), Track::process().child("rows"));
    {
        trace_scope!("t", "from", flow: &flow);
    }
    trace_begin!("t", "over", track: &track, flow: &flow);
    trace_end!(&track);
    trace_instant!("t", "note", flow: &flow);
    trace_scope!("t", "to", end_flow: &flow);
}

#[test]
fn flows_from_track_to_track() {
    in_all_formats(&recorded("links", |b| b, links, read));
}

/// More than a ring of 256 KiB has room for, around and through all of which something is open.
fn much(_: &Session) {
    let (flow, track) = (Flow::new(), Track::process().child("rows"));
    trace_begin!("t", "on the track", track: &track);
    trace_scope!("t", "outer", what = "main");
    for n in 0..20_000_i64 {
        trace_scope!("t", "step", n, flow: &flow);
        trace_instant!("t", "instant", text = "some");
        trace_counter!("t", "count", n);
    }
}

#[test]
fn flight_recorders() {
    in_all_formats(&recorded("ring", |b| b.overflow(Overflow::Overwrite).buffer_size(256 << 10), much, read));
}

#[test]
fn files_of_a_rotated_output() {
    in_all_formats(&recorded(
        "rotated",
        // A file has at most this size and what the ring holds.
        |b| b.rotate(128 << 10, 0).buffer_size(256 << 10).overflow(Overflow::Block(Duration::from_secs(60))),
        much,
        |path| {
            let files = files(path);
            assert!(files.len() > 3, "{files:?}");
            read(&files[1])
        },
    ));
}

/// Those of Perfetto's document on TrackEvents.
#[test]
fn the_examples_of_the_document() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabulary/examples");
    let entries = std::fs::read_dir(folder).expect("the examples").map(|entry| {
        let entry = entry.expect("an example");
        let text = std::fs::read_to_string(entry.path()).expect("text");
        Entry::of(entry.file_name().to_string_lossy(), encode(&text))
    });
    in_all_formats(&entries.collect::<Vec<_>>());
}

#[test]
fn traces_of_other_tracers() {
    let names =
        ["viztracer.json", "tracing_chrome.json", "tracing_chrome_async.json", "chrome.json", "no_end.json"];
    in_all_formats(&names.map(|name| Entry::of_other(&corpus(name))));
}

#[test]
fn recordings_that_were_json_in_between() {
    let mut entries = recorded("json of", |b| b, |_| everything(), |path| convert(&read(path), Json).0);
    entries.extend(recorded(
        "json of detail",
        |b| b.source_locations(true),
        |_| everything(),
        |path| convert(&read(path), Json).0,
    ));
    in_all_formats(&entries);
}
