//! Traces of other people's tools, which `ci/others.sh` records into the folder that a variable names.

use std::path::PathBuf;

use hairline_convert::TraceFormat::{Fxt, Json, TrackEvent};

use crate::matrix::Why::{Said, Shown as Only};
use crate::matrix::{Entry, Exception, back_from_other_formats, in_all_formats};

#[rustfmt::skip] // a table
pub(crate) const EXCEPTIONS: &[Exception] = &[
    ("bazel.json", TrackEvent, "slices", Said(EARLY)),
    ("bazel.json", TrackEvent, "counters", Said(EARLY)),
    ("bazel.json", TrackEvent, "threads", Only(THREAD_0)),
    ("bazel.json", Fxt, "slices", Said(EARLY)),
    ("bazel.json", Fxt, "counters", Said(EARLY)),
    ("bazel.json", Fxt, "threads", Only(THREAD_0)),
    ("bazel.json", Json, "slices", Said(LONG_BEFORE)),
    ("bazel.json", Json, "counters", Said(LONG_BEFORE)),
    ("clang.json", TrackEvent, "slices", Only(AT_THE_END)),
    ("clang.json", Fxt, "slices", Only(AT_THE_END)),
    ("jax", TrackEvent, "slices", Said(WIDE_IDS)),
    ("jax", TrackEvent, "threads", Said(WIDE_IDS)),
    ("negative ids, tracing_perfetto", TrackEvent, "arguments", Only(PLACES)),
    ("negative ids, tracing_perfetto", Fxt, "arguments", Only(PLACES)),
    ("negative ids, tracing_perfetto", Fxt, "slices", Said(CUT_IDS)),
    ("negative ids, tracing_perfetto", Fxt, "threads", Said(CUT_IDS)),
    ("negative ids, tracing_perfetto", Json, "slices", Said(LATE)),
    ("negative ids, tracing_perfetto", Json, "arguments", Said(LATE)),
    ("negative ids, tracing_perfetto", Json, "threads", Said("process and thread ids beyond 32 bits, replaced")),
    ("node.json", Fxt, "arguments", Only("an argument with the name args, which JSON's importer shows twice")),
    ("perfetto_recorder", Fxt, "arguments", Only(PLACES)),
    ("perfetto_recorder", Json, "slices", Said(LATE)),
    ("perfetto_recorder", Json, "arguments", Said(LATE)),
    ("perfetto_recorder", Json, "counters", Said(LATE)),
    ("recursion_of_viztracer", TrackEvent, "slices", Said(DEEP)),
    ("torch.json", TrackEvent, "slices", Said(NUMBERED)),
    ("torch.json", TrackEvent, "threads", Said(NUMBERED)),
    ("torch.json", TrackEvent, "processes", Said(NUMBERED)),
    ("torch.json", Fxt, "slices", Said(NUMBERED)),
    ("torch.json", Fxt, "threads", Said(NUMBERED)),
    ("torch.json", Fxt, "processes", Said(NUMBERED)),
    ("torch.json", Json, "slices", Said(NUMBERED)),
    ("torch.json", Json, "threads", Said(NUMBERED)),
    ("torch.json", Json, "processes", Said(NUMBERED)),
    ("trace_builder", Json, "counters", Only("units are words of the name in JSON")),
    ("trace_builder", Json, "flows", Said("flows between threads and intervals, cut in two")),
    ("tracing_chrome_by_span", TrackEvent, "slices", Only(THREAD_0)),
    ("tracing_chrome_by_span", TrackEvent, "threads", Only(THREAD_0)),
    ("tracing_chrome_by_span", Fxt, "slices", Only(THREAD_0)),
    ("tracing_chrome_by_span", Fxt, "threads", Only(THREAD_0)),
    ("tracing_perfetto", TrackEvent, "arguments", Only(PLACES)),
    ("tracing_perfetto", Fxt, "arguments", Only(PLACES)),
    ("tracing_perfetto", Json, "slices", Said(LATE)),
    ("tracing_perfetto", Json, "arguments", Said(LATE)),
    ("work_of_viztracer", TrackEvent, "arguments", Only("TrackEvent's importer has _ for the dots of keys")),
];

/// Of JSON that was in another format.
#[rustfmt::skip] // a table
const BACK: &[Exception] = &[
    ("bazel.json", TrackEvent, "slices", Said(EARLY)),
    ("bazel.json", TrackEvent, "counters", Said(EARLY)),
    ("bazel.json", Fxt, "slices", Said(EARLY)),
    ("bazel.json", Fxt, "counters", Said(EARLY)),
    ("node.json", Fxt, "complaints", Said(SHARED_IDS)),
    ("node.json", Fxt, "slices", Said(SHARED_IDS)),
    ("node.json", Fxt, "counters", Only("the CPU time of slices is a counter in FXT, and stays one")),
    ("recursion_of_viztracer", TrackEvent, "slices", Said(DEEP)),
    ("torch.json", TrackEvent, "slices", Said(NUMBERED)),
    ("torch.json", TrackEvent, "threads", Said(NUMBERED)),
    ("torch.json", TrackEvent, "processes", Said(NUMBERED)),
    ("torch.json", Fxt, "slices", Said(NUMBERED)),
    ("torch.json", Fxt, "threads", Said(NUMBERED)),
    ("torch.json", Fxt, "processes", Said(NUMBERED)),
];

const EARLY: &str = "times before 0, which became 0";
const LONG_BEFORE: &str = "events long before the others, moved to time 0 of the output";
const NUMBERED: &str = "processes and threads with a text as id, which got a number";
const SHARED_IDS: &str =
    "intervals of other names with the id of one before, which importers of FXT show with it";
const THREAD_0: &str = "JSON's importer takes thread 0 for the process's first";

const AT_THE_END: &str = "slices of 0 ns at the very end of another: inside of it, or after it";
const DEEP: &str =
    "slices among more than 480 levels, where importers end the wrong ones, on a track beside their thread";
const WIDE_IDS: &str = "process and thread ids beyond 31 bits, cut by importers";
const CUT_IDS: &str = "process and thread ids beyond 32 bits, which importers cut";
const PLACES: &str = "a place without a function: NULL, nothing, or file and line as one";
const LATE: &str = "move of all times to about a day, because JSON holds times of up to 26 days; \
     otherData.timeOffsetNs has the rest, which only Hairline adds again";

fn entries() -> Option<Vec<Entry>> {
    let folder = std::env::var_os("OTHER_TRACES").map(PathBuf::from)?;
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    Some(paths.iter().map(|path| Entry::of_other(path)).collect())
}

#[test]
fn traces_of_other_peoples_tools_are_the_same_in_each_format() {
    if let Some(entries) = entries() {
        in_all_formats(&entries);
    }
}

/// JSON that becomes another format, and JSON again.
#[test]
fn json_of_other_peoples_tools_is_the_same_after_another_format() {
    if let Some(entries) = entries() {
        let of_json: Vec<_> = entries.into_iter().filter(Entry::is_json).collect();
        back_from_other_formats(&of_json, BACK);
    }
}
