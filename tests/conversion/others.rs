//! Traces of other people's tools, which `ci/others.sh` records into the folder that a variable names.

use std::path::PathBuf;

use hairline_convert::TraceFormat::{Fxt, Json, TrackEvent};

use crate::matrix::Why::{Said, Shown as Only};
use crate::matrix::{Entry, Exception, in_all_formats};

#[rustfmt::skip] // a table
pub(crate) const EXCEPTIONS: &[Exception] = &[
    ("clang.json", TrackEvent, "slices", Only(AT_THE_END)),
    ("clang.json", Fxt, "slices", Only(AT_THE_END)),
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
    ("trace_builder", Json, "counters", Only("units are words of the name in JSON")),
    ("trace_builder", Json, "flows", Said("flows between threads and intervals, cut in two")),
    ("tracing_chrome_by_span", TrackEvent, "threads", Only("JSON's importer takes thread 0 for the process's first")),
    ("tracing_chrome_by_span", Fxt, "threads", Only("JSON's importer takes thread 0 for the process's first")),
    ("tracing_perfetto", TrackEvent, "arguments", Only(PLACES)),
    ("tracing_perfetto", Fxt, "arguments", Only(PLACES)),
    ("tracing_perfetto", Json, "slices", Said(LATE)),
    ("tracing_perfetto", Json, "arguments", Said(LATE)),
    ("work_of_viztracer", TrackEvent, "arguments", Only("TrackEvent's importer has _ for the dots of keys")),
];

const AT_THE_END: &str = "slices of 0 ns at the very end of another: inside of it, or after it";
const CUT_IDS: &str = "process and thread ids beyond 32 bits, which importers cut";
const PLACES: &str = "a place without a function: NULL, nothing, or file and line as one";
const LATE: &str = "move of all times to about a day, because JSON holds times of up to 26 days; \
     otherData.timeOffsetNs has the rest, which only Hairline adds again";

#[test]
fn traces_of_other_peoples_tools_are_the_same_in_each_format() {
    let Some(folder) = std::env::var_os("OTHER_TRACES").map(PathBuf::from) else { return };
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    in_all_formats(&paths.iter().map(|path| Entry::of_other(path)).collect::<Vec<_>>());
}
