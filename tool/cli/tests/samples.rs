//! What commands make of stack samples: `flame --at`, `flame --diff`, profiles for pprof and for the Firefox
//! Profiler.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::read::GzDecoder;
use hairline_convert::{Context, TraceFormat, create, open};
use hairline_formats::track_event::{
    self as te, Frame, InternedStack, Mapping, PerfSample, SampledBy, SequenceId,
};
use serde_json::Value;

fn hairline(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("it ran")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it prints, of something that it can do.
#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = hairline(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// The only line of a failure.
#[track_caller]
fn failure(folder: &Path, arguments: &[&str]) -> String {
    let output = hairline(folder, arguments);
    let said = stderr(&output);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// ```text
/// main     request[ 10 .... request[ 30 .. 50 ] .... 100 ]   other[ 200 .. 300 ]   request[ 400 ... no end
/// helper   request[ 150 ... 160 ]
/// ```
const SLICES: &str = r#"[
    {"name":"process_name","ph":"M","pid":7,"args":{"name":"server"}},
    {"name":"thread_name","ph":"M","pid":7,"tid":7,"args":{"name":"main"}},
    {"name":"thread_name","ph":"M","pid":7,"tid":8,"args":{"name":"helper"}},
    {"name":"request","cat":"net","ph":"B","ts":10,"pid":7,"tid":7,"args":{"bytes":512,"of":{"host":"a"}}},
    {"name":"request","cat":"net","ph":"B","ts":30,"pid":7,"tid":7},
    {"ph":"E","ts":50,"pid":7,"tid":7,"args":{"type":"late"}},
    {"name":"retry","cat":"net","ph":"i","s":"t","ts":60,"pid":7,"tid":7},
    {"ph":"E","ts":100,"pid":7,"tid":7},
    {"name":"request","cat":"io","ph":"X","ts":150,"dur":10,"pid":7,"tid":8},
    {"name":"other","cat":"net","ph":"X","ts":200,"dur":100,"pid":7,"tid":7},
    {"name":"request","cat":"net","ph":"B","ts":400,"pid":7,"tid":7},
    {"name":"end","ph":"i","s":"t","ts":500,"pid":7,"tid":8}]"#;

const MAIN: u32 = 7;
const HELPER: u32 = 8;
const HASH: u64 = 1;
const WAIT: u64 = 2;

/// The slices, and samples: microseconds, thread, and the stack `main;around;hash` or `main;wait`.
fn trace(samples: &[(u64, u32, u64)], by: SampledBy) -> Vec<u8> {
    let mut trace = Vec::new();
    let (mut reader, mut context) = (open(SLICES.as_bytes(), None).expect("a trace"), Context::new());
    let mut writer = create(TraceFormat::TrackEvent, &mut trace);
    while let Some(item) = reader.next(&mut context).expect("an item") {
        writer.write(&item).expect("written");
    }
    writer.finish().expect("written");
    drop(writer);
    let sequence = SequenceId(99);
    te::start_of_samples(&mut trace, sequence, by);
    let frame = |function, rel_pc| Frame { function, mapping: 1, rel_pc };
    te::interned_stacks(
        &mut trace,
        sequence,
        false,
        &[
            InternedStack::BuildId { iid: 1, bytes: &[0xab, 0xcd, 0xef, 1, 2, 3, 4, 5] },
            InternedStack::Path { iid: 1, path: "/bin/server" },
            InternedStack::Mapping {
                iid: 1,
                mapping: Mapping { build_id: 1, path: &[1][..], ..Mapping::default() },
            },
            InternedStack::Function { iid: 1, name: "main" },
            InternedStack::Function { iid: 2, name: "wait" },
            InternedStack::Frame { iid: 1, frame: frame(1, 0x10) },
            InternedStack::Frame { iid: 2, frame: frame(0, 0x20) },
            InternedStack::Frame { iid: 3, frame: frame(2, 0x30) },
            InternedStack::Callstack { iid: HASH, frames: &[1, 2] },
            InternedStack::Callstack { iid: WAIT, frames: &[1, 3] },
        ],
    );
    for (time, tid, callstack) in samples {
        let sample = PerfSample { pid: 7, tid: *tid, callstack: *callstack, ..PerfSample::default() };
        te::perf_sample(&mut trace, sequence, time * 1_000, &sample);
    }
    let line = |function, line| te::Line { function, file: "src/hash.rs", line };
    let symbols = te::AddressSymbols { address: 0x20, lines: vec![line("hash", 7), line("around", 9)] };
    te::module_symbols(&mut trace, sequence, "/bin/server", &[0xab, 0xcd, 0xef, 1, 2, 3, 4, 5], &[symbols]);
    trace
}

const BY: SampledBy = SampledBy::CpuTime { period: 1_003_009 };

const SAMPLES: [(u64, u32, u64); 7] = [
    (9, MAIN, WAIT),
    (10, MAIN, HASH),
    (40, MAIN, HASH),
    (99, MAIN, WAIT),
    (250, MAIN, HASH),
    (155, HELPER, HASH),
    (450, MAIN, HASH),
];

fn folder_with(name: &str, trace: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), trace).expect("written");
    folder
}

#[test]
fn flame_at_has_the_samples_inside_slices_of_a_name_on_their_threads() {
    let folder = folder_with("t.pftrace", &trace(&SAMPLES, BY));
    let at = |name: &str| printed(folder.path(), &["flame", "t.pftrace", "--at", name, "--by", "all"]);
    // A sample inside two of them counts once, one at an end is outside, a slice without an end lasts.
    assert_eq!(at("net/request"), "main;around;hash 3\nmain;wait 1\n");
    assert_eq!(at("request"), "main;around;hash 4\nmain;wait 1\n");
    assert_eq!(at("*/o*"), "main;around;hash 1\n");
    let by_thread = printed(folder.path(), &["flame", "t.pftrace", "--at", "io/*"]);
    assert_eq!(by_thread, "server (process 7);helper (8);main;around;hash 1\n");
    printed(folder.path(), &["flame", "t.pftrace", "--at", "request", "--by", "all", "--svg", "-o", "x.svg"]);
    let svg = fs::read_to_string(folder.path().join("x.svg")).expect("a picture");
    assert!(svg.contains("<title>hash (4 samples, 80.00%)</title>"), "{svg}");
}

#[test]
fn flame_at_says_what_is_not_there() {
    let folder = folder_with("t.pftrace", &trace(&SAMPLES, BY));
    fs::write(folder.path().join("none.pftrace"), trace(&[], BY)).expect("written");
    fs::write(folder.path().join("early.pftrace"), trace(&SAMPLES[..1], BY)).expect("written");
    let said = |trace: &str, at: &str| failure(folder.path(), &["flame", trace, "--at", at]);
    assert_eq!(said("t.pftrace", "db/*"), "hairline: t.pftrace: it has no slice db/* on a thread\n");
    let inside = "hairline: early.pftrace: it has no stack samples inside slices request\n";
    assert_eq!(said("early.pftrace", "request"), inside);
    let none = "hairline: none.pftrace: it has no stack samples: `hairline record --sample` adds them\n";
    assert_eq!(said("none.pftrace", "request"), none);
    assert_eq!(failure(folder.path(), &["flame", "none.pftrace", "--samples"]), none);
    assert_eq!(failure(folder.path(), &["convert", "none.pftrace", "none.pb.gz"]), none);
    assert!(!folder.path().join("none.pb.gz").exists());
    assert!(failure(folder.path(), &["flame", "--samples", "--diff", "t.pftrace", "none.pftrace"]) == none);
}

#[test]
fn flame_diff_has_old_and_new_weights_of_runs_of_any_length() {
    let folder = folder_with("old.pftrace", &trace(&SAMPLES[..4], BY));
    let new: Vec<_> = (0..8).map(|n| (n, MAIN, if n < 6 { HASH } else { 3 })).collect();
    fs::write(folder.path().join("new.pftrace"), trace(&new, BY)).expect("written");
    let diff = |more: &[&str]| {
        let arguments =
            [&["flame", "--samples", "--by", "all", "--diff", "old.pftrace", "new.pftrace"], more];
        let output = hairline(folder.path(), &arguments.concat());
        assert!(output.status.success(), "{}", stderr(&output));
        (String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
    };
    // 4 samples beside 6: two of the new ones have no stack.
    let (raw, said) = diff(&["--raw"]);
    assert_eq!(raw, "main;around;hash 2 6\nmain;wait 2 0\n");
    assert!(!said.contains("multiplied"), "{said}");
    let (normalised, said) = diff(&[]);
    assert_eq!(normalised, "main;around;hash 3 6\nmain;wait 3 0\n");
    let factor = "old.pftrace: samples multiplied by 1.5000: their sum is then that of new.pftrace (--raw";
    assert!(said.contains(factor), "{said}");
    diff(&["--svg", "-o", "x.svg"]);
    let svg = fs::read_to_string(folder.path().join("x.svg")).expect("a picture");
    assert!(svg.contains("<title>hash (6 samples, 100.00%; +50.00%)</title>"), "{svg}");
    // Of slices, with names without ids.
    let slices = printed(folder.path(), &["flame", "--diff", "old.pftrace", "new.pftrace"]);
    assert!(slices.contains("server;main;request;request 20000 20000\n"), "{slices}");
    let both = hairline(folder.path(), &["flame", "--diff", "-", "-"]);
    assert_eq!(both.status.code(), Some(2), "stdin can be read only once");
}

fn firefox(folder: &Path, trace: &str) -> Value {
    printed(folder, &["convert", trace, "x.firefox.json"]);
    let json = fs::read(folder.join("x.firefox.json")).expect("a profile");
    let profile: Value = serde_json::from_slice(&json).expect("JSON");
    printed(folder, &["convert", trace, "x.firefox.json.gz"]);
    let mut unpacked = Vec::new();
    let gzip = fs::File::open(folder.join("x.firefox.json.gz")).expect("a profile");
    GzDecoder::new(gzip).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, json);
    require_valid(&profile);
    profile
}

/// Each column of a table has its length, and numbers of rows of other tables are of rows that exist.
fn require_valid(profile: &Value) {
    let shared = &profile["shared"];
    let rows = |table: &Value| table["length"].as_u64().expect("a length");
    let mut tables: Vec<&Value> =
        ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "sources"]
            .map(|table| &shared[table])
            .to_vec();
    let threads = profile["threads"].as_array().expect("threads");
    tables.extend(threads.iter().flat_map(|thread| [&thread["samples"], &thread["markers"]]));
    for table in tables {
        for (name, column) in table.as_object().expect("a table").iter().filter(|(_, of)| of.is_array()) {
            assert_eq!(column.as_array().map(Vec::len), usize::try_from(rows(table)).ok(), "{name}: {table}");
        }
    }
    let texts = shared["stringArray"].as_array().expect("texts").len() as u64;
    let refers = |table: &Value, column: &str, most: u64| {
        for value in table[column].as_array().expect("a column") {
            assert!(value.is_null() || value.as_u64().is_some_and(|row| row < most), "{column}: {value}");
        }
    };
    refers(&shared["stackTable"], "frame", rows(&shared["frameTable"]));
    for (row, prefix) in shared["stackTable"]["prefix"].as_array().expect("a column").iter().enumerate() {
        assert!(prefix.as_u64().is_none_or(|prefix| prefix < row as u64), "callers come first");
    }
    refers(&shared["frameTable"], "func", rows(&shared["funcTable"]));
    refers(&shared["funcTable"], "name", texts);
    refers(&shared["funcTable"], "resource", rows(&shared["resourceTable"]));
    refers(&shared["funcTable"], "source", rows(&shared["sources"]));
    refers(&shared["resourceTable"], "lib", profile["libs"].as_array().expect("libs").len() as u64);
    refers(&shared["resourceTable"], "name", texts);
    refers(&shared["sources"], "filename", texts);
    let categories = profile["meta"]["categories"].as_array().expect("categories").len() as u64;
    let schemas = profile["meta"]["markerSchema"].as_array().expect("types");
    for thread in threads {
        refers(&thread["samples"], "stack", rows(&shared["stackTable"]));
        refers(&thread["markers"], "name", texts);
        refers(&thread["markers"], "category", categories);
        for data in thread["markers"]["data"].as_array().expect("data") {
            let schema = schemas.iter().find(|schema| schema["name"] == data["type"]).expect("its type");
            let fields = schema["fields"].as_array().expect("fields");
            let keys = data.as_object().expect("members").keys().filter(|key| *key != "type");
            assert!(keys.into_iter().all(|key| fields.iter().any(|field| field["key"] == **key)), "{data}");
        }
    }
}

#[test]
fn a_firefox_profile_has_samples_functions_and_slices_with_arguments() {
    let folder = folder_with("t.pftrace", &trace(&SAMPLES, BY));
    let profile = firefox(folder.path(), "t.pftrace");
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 60);
    assert_eq!(
        (&profile["meta"]["interval"], &profile["meta"]["product"]),
        (&Value::from(1.003009), &"server".into())
    );
    assert_eq!(profile["libs"][0]["path"], "/bin/server");
    assert_eq!(profile["libs"][0]["codeId"], "abcdef0102030405");
    assert_eq!(profile["libs"][0]["breakpadId"], "01EFCDAB0302050400000000000000000");
    let threads = profile["threads"].as_array().expect("threads");
    let [main, helper] = &threads[..] else { panic!("{threads:?}") };
    let about =
        |thread: &Value| ["name", "processName", "pid", "tid", "isMainThread"].map(|key| thread[key].clone());
    assert_eq!(about(main), ["main".into(), "server".into(), "7".into(), Value::from(7), true.into()]);
    assert_eq!(about(helper), ["helper".into(), "server".into(), "7".into(), Value::from(8), false.into()]);
    // In milliseconds since the first sample.
    assert_eq!(main["samples"]["threadCPUDelta"], Value::from(vec![1_003_009; 6]));
    assert_eq!(main["samples"]["time"], serde_json::json!([0.0, 0.001, 0.031, 0.09, 0.241, 0.441]));

    let text =
        |row: &Value| &profile["shared"]["stringArray"][usize::try_from(row.as_u64().unwrap()).unwrap()];
    let cell = |table: &str, column: &str, row: &Value| {
        let row = usize::try_from(row.as_u64().expect("a row")).expect("it is small");
        profile["shared"][table][column][row].clone()
    };
    let mut names = Vec::new();
    let mut stack = helper["samples"]["stack"][0].clone();
    while !stack.is_null() {
        let frame = cell("stackTable", "frame", &stack);
        let function = cell("frameTable", "func", &frame);
        let depth = cell("frameTable", "inlineDepth", &frame);
        names.push(format!(
            "{}:{}:{depth}",
            text(&cell("funcTable", "name", &function)).as_str().expect("text"),
            cell("frameTable", "line", &frame)
        ));
        stack = cell("stackTable", "prefix", &stack);
    }
    assert_eq!(names, ["hash:7:1", "around:9:0", "main:null:0"]);

    let markers = &main["markers"];
    let names: Vec<_> = markers["name"].as_array().expect("names").iter().map(text).collect();
    assert_eq!(names, ["request", "request", "retry", "other", "request"]);
    assert_eq!(markers["startTime"], serde_json::json!([0.001, 0.021, 0.051, 0.191, 0.391]));
    assert_eq!(markers["endTime"], serde_json::json!([0.091, 0.041, null, 0.291, 0.491]));
    assert_eq!(markers["phase"], serde_json::json!([1, 1, 0, 1, 1]));
    let data = serde_json::json!({"type": "net/request", "arg.bytes": "512", "arg.of.host": "a"});
    assert_eq!(markers["data"][0], data);
    assert_eq!(markers["data"][1], serde_json::json!({"type": "net/request", "arg.type": "late"}));
    let category = usize::try_from(markers["category"][0].as_u64().expect("a number")).expect("it is small");
    assert_eq!(profile["meta"]["categories"][category]["name"], "net");
}

#[test]
fn a_firefox_profile_of_a_part_has_its_samples_and_threads() {
    let folder = folder_with("t.pftrace", &trace(&SAMPLES, BY));
    let samples = |part: &[&str]| -> Vec<i64> {
        let arguments = [&["convert", "t.pftrace", "part.firefox.json"], part].concat();
        printed(folder.path(), &arguments);
        let profile = fs::read(folder.path().join("part.firefox.json")).expect("the profile");
        let profile: Value = serde_json::from_slice(&profile).expect("JSON");
        let threads = profile["threads"].as_array().expect("threads").iter();
        threads.filter_map(|thread| thread["samples"]["length"].as_i64()).filter(|n| *n > 0).collect()
    };
    let time = |n: usize| SAMPLES[n].0;
    let until = SAMPLES.iter().filter(|sample| sample.0 < time(3)).count();
    let range = format!("..{}", time(3) * 1_000);
    assert_eq!(samples(&[]).iter().sum::<i64>(), 7);
    assert_eq!(samples(&["--time-range", &range]).iter().sum::<i64>(), until as i64);
    let of_main = SAMPLES.iter().filter(|sample| sample.1 == MAIN).count();
    assert_eq!(samples(&["--thread", &MAIN.to_string()]), [of_main as i64]);
}

#[test]
fn a_firefox_profile_needs_samples_or_slices() {
    let folder = folder_with("slices.json", SLICES.as_bytes());
    let counter = r#"[{"name":"c","ph":"C","ts":1,"pid":1,"tid":1,"args":{"n":1}}]"#;
    fs::write(folder.path().join("empty.json"), counter).expect("written");
    let profile = firefox(folder.path(), "slices.json");
    assert_eq!(profile["threads"][0]["markers"]["length"], 5);
    let said = failure(folder.path(), &["convert", "empty.json", "y.firefox.json"]);
    assert!(said.contains("empty.json: it has no slices, and it has no stack samples"), "{said}");
    assert!(!folder.path().join("y.firefox.json").exists());
}

#[test]
fn profiles_say_what_they_leave_out_and_strict_writes_nothing_then() {
    let folder = folder_with("t.pftrace", &trace(&SAMPLES, SampledBy::CpuTime { period: 0 }));
    for (name, left_out) in [
        ("x.pb.gz", "9 events left out: pprof has samples only"),
        ("x.pprof", "1 trace without the CPU time of a sample: the profile has numbers of samples only"),
    ] {
        let said = stderr(&hairline(folder.path(), &["convert", "t.pftrace", name]));
        assert!(said.contains(left_out), "{said}");
        let output =
            hairline(folder.path(), &["convert", "--strict", "t.pftrace", &format!("strict-{name}")]);
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        assert!(!folder.path().join(format!("strict-{name}")).exists());
    }
    let counters = r#"[{"name":"c","ph":"C","ts":1,"pid":1,"tid":1,"args":{"n":1}},
        {"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]"#;
    fs::write(folder.path().join("c.json"), counters).expect("written");
    let output = hairline(folder.path(), &["convert", "--strict", "c.json", "c.firefox.json"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("1 counter value left out"), "{}", stderr(&output));
    let part = hairline(folder.path(), &["convert", "t.pftrace", "x.otlp", "--time-range", "1ms.."]);
    assert_eq!(part.status.code(), Some(2), "{}", stderr(&part));
}

#[test]
fn damaged_traces_with_samples_are_shown_up_to_the_damage() {
    let whole = trace(&SAMPLES, BY);
    let folder = tempfile::tempdir().expect("a folder");
    for len in (0..whole.len()).step_by(7) {
        fs::write(folder.path().join("t.pftrace"), &whole[..len]).expect("written");
        for arguments in [
            &["convert", "t.pftrace", "x.pb.gz"][..],
            &["convert", "t.pftrace", "x.firefox.json"],
            &["flame", "t.pftrace", "--at", "request"],
        ] {
            let output = hairline(folder.path(), arguments);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{len} {arguments:?}: {}", stderr(&output));
        }
    }
}
