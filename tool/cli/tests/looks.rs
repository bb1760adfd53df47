//! `hairline stats`, `flame` and `validate` on small traces of each format, and on files that are no traces.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hairline_convert::{Context, TraceFormat, create, open};
use hairline_formats::Value;
use hairline_formats::fxt::{self, Event, EventKind, StringRef, ThreadRef};
use serde_json::json;

fn hairline(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("the command runs")
}

/// What it says, of something that it can do.
#[track_caller]
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = hairline(folder, arguments);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{arguments:?}: {:?}\n{out}\n{err}", output.status);
    out.into_owned()
}

struct Trace(Vec<u8>);

const MAIN: u64 = 8;
const OTHER: u64 = 9;

impl Trace {
    /// A process `server` with a thread `main`.
    fn new() -> Self {
        let mut out = Vec::new();
        fxt::magic(&mut out);
        fxt::provider_info(&mut out, 1, "test");
        fxt::initialization(&mut out, 1_000_000_000);
        let name = |name| StringRef::Inline(name);
        fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_PROCESS, 7, name("server"), &[]);
        let process = [(name("process"), Value::Koid(7))];
        fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, MAIN, name("main"), &process);
        Self(out)
    }

    fn event(
        mut self,
        thread: u64,
        timestamp: u64,
        kind: EventKind,
        name: &str,
        payload: Option<u64>,
    ) -> Self {
        let value = [(StringRef::Inline("value"), Value::I64(1))];
        let event = Event {
            kind,
            timestamp,
            thread: ThreadRef::Inline { process: 7, thread },
            category: StringRef::Inline(if thread == MAIN { "net" } else { "io" }),
            name: StringRef::Inline(name),
            args: if kind == EventKind::Counter { &value } else { &[] },
            payload,
        };
        fxt::event(&mut self.0, &event);
        self
    }

    fn begin(self, thread: u64, time: u64, name: &str) -> Self {
        self.event(thread, time, EventKind::DurationBegin, name, None)
    }

    fn end(self, thread: u64, time: u64, name: &str) -> Self {
        self.event(thread, time, EventKind::DurationEnd, name, None)
    }

    /// Writes it as `trace.fxt`, `trace.pftrace` and `trace.json`.
    fn write(self, folder: &Path) -> [&'static str; 3] {
        let formats = [
            ("trace.fxt", TraceFormat::Fxt),
            ("trace.pftrace", TraceFormat::TrackEvent),
            ("trace.json", TraceFormat::Json),
        ];
        formats.map(|(name, format)| {
            let mut reader = open(&self.0[..], None).expect("a trace");
            let mut writer = create(format, fs::File::create(folder.join(name)).expect("a file"));
            let mut context = Context::new();
            while let Some(item) = reader.next(&mut context).expect("a whole trace") {
                writer.write(&item).expect("written");
            }
            writer.finish().expect("written");
            name
        })
    }
}

/// Two threads, three names: `a` has two of `b` inside; another `b` is on a thread of its own.
fn trace() -> Trace {
    Trace::new()
        .begin(MAIN, 1_000, "a")
        .begin(MAIN, 2_000, "b")
        .event(MAIN, 2_500, EventKind::Instant, "now", None)
        .end(MAIN, 5_000, "b")
        .begin(MAIN, 6_000, "b")
        .end(MAIN, 7_000, "b")
        .end(MAIN, 11_000, "a")
        .event(MAIN, 11_000, EventKind::Counter, "queue", Some(0))
        .begin(OTHER, 1_000, "b")
        .end(OTHER, 3_000, "b")
}

#[test]
fn every_format_has_the_same_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in trace().write(folder.path()) {
        let stats: serde_json::Value =
            serde_json::from_str(&said(folder.path(), &["stats", name, "--json"])).expect("JSON");
        let totals = ["slices", "instants", "counter_values", "processes", "threads", "span_ns", "losses"];
        let totals = totals.map(|total| stats[total].as_i64().unwrap_or(-1));
        assert_eq!(totals, [4, 1, 1, 1, 2, 10_000, 0], "{name}: {stats:#}");
        let a = json!({"name": "a", "category": "net", "count": 1, "total_ns": 10_000, "self_ns": 6_000,
            "min_ns": 10_000, "p50_ns": 10_000, "p90_ns": 10_000, "p99_ns": 10_000, "max_ns": 10_000});
        let b = json!({"name": "b", "category": "*", "count": 3, "total_ns": 6_000, "self_ns": 6_000,
            "min_ns": 1_000, "p50_ns": 2_000, "p90_ns": 3_000, "p99_ns": 3_000, "max_ns": 3_000});
        assert_eq!(stats["names"], json!([a, b]), "{name}");
        let categories = stats["categories"].as_array().expect("an array");
        let categories: Vec<_> =
            categories.iter().map(|c| (&c["category"], &c["count"], &c["self_ns"])).collect();
        assert_eq!(
            categories,
            [(&json!("net"), &json!(3), &json!(10_000)), (&json!("io"), &json!(1), &json!(2_000))]
        );
        let busy = stats["by_thread"].as_array().expect("an array");
        let busy: Vec<_> = busy.iter().map(|t| (&t["thread"], &t["process"], &t["busy_ns"])).collect();
        let process = &json!("server (process 7)");
        let expected =
            [(&json!("main (8)"), process, &json!(10_000)), (&json!("thread 9"), process, &json!(2_000))];
        assert_eq!(busy, expected, "{name}");
    }
}

#[test]
fn a_table_is_for_people() {
    let folder = tempfile::tempdir().expect("a folder");
    trace().write(folder.path());
    let table = said(folder.path(), &["stats", "trace.fxt", "--by", "name", "--sort", "count", "--top", "1"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("trace.fxt: ") && lines[0].ends_with(" B, 10.0 us"), "{table}");
    assert_eq!(lines[1], "1 process, 2 threads, 4 slices, 1 instant, 1 counter value");
    assert_eq!(
        lines[3],
        "name  category  count    total     self      min      p50      p90      p99      max"
    );
    assert_eq!(
        lines[4],
        "b     *             3  6.00 us  6.00 us  1.00 us  2.00 us  3.00 us  3.00 us  3.00 us"
    );
    assert_eq!(lines[5], "and 1 more (--top 0 shows all)");
    assert!(!table.contains('\u{1b}'), "no colours where there is no terminal");
}

/// As of a process that was killed.
#[test]
fn a_thread_is_busy_in_a_slice_without_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = Trace::new().begin(MAIN, 1_000, "a").begin(MAIN, 2_000, "b").end(MAIN, 5_000, "b");
    for name in open.begin(OTHER, 7_000, "c").end(OTHER, 11_000, "c").write(folder.path()) {
        let csv = said(folder.path(), &["stats", name, "--by", "thread", "--csv"]);
        let column = |row: &str, at| row.split(',').nth(at).map(str::to_owned);
        let at = csv.lines().next().and_then(|titles| titles.split(',').position(|title| title == "busy_ns"));
        let mut busy: Vec<_> = csv.lines().skip(1).map(|row| column(row, at.expect("a column"))).collect();
        busy.sort();
        assert_eq!(busy, [Some("10000".to_owned()), Some("4000".to_owned())], "{name}: {csv}");
        let table = said(folder.path(), &["stats", name, "--by", "thread"]);
        assert!(table.contains("10.0 us   100.0"), "{table}");
        let folded = said(folder.path(), &["flame", name, "--by", "all"]);
        assert_eq!(folded, "a 7000\na;b 3000\nc 4000\n", "the same time");
    }
    let only_open = Trace::new().begin(MAIN, 1_000, "a").event(MAIN, 3_000, EventKind::Instant, "i", None);
    for name in only_open.write(folder.path()) {
        let table = said(folder.path(), &["stats", name, "--by", "thread"]);
        assert!(table.contains("2.00 us   100.0      0   0 ns"), "{table}");
    }
}

#[test]
fn a_thread_is_busy_once_where_its_slices_overlap() {
    let folder = tempfile::tempdir().expect("a folder");
    let slice = |begin: u32| format!(r#"{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{begin},"dur":100}}"#);
    fs::write(folder.path().join("t.json"), format!("[{},{}]", slice(50), slice(0))).expect("written");
    let table = said(folder.path(), &["stats", "t.json", "--by", "thread"]);
    assert!(table.contains("  150 us   100.0      2  200 us"), "{table}");
}

#[test]
fn threads_without_a_row_have_no_share() {
    let folder = tempfile::tempdir().expect("a folder");
    let slice = |tid| format!(r#"{{"ph":"X","name":"a","pid":1,"tid":{tid},"ts":0,"dur":10}}"#);
    let all = (0..(1 << 14) + 2).map(slice).collect::<Vec<_>>();
    fs::write(folder.path().join("t.json"), format!("[{}]", all.join(","))).expect("written");
    let table = said(folder.path(), &["stats", "t.json", "--by", "thread", "--top", "0"]);
    let others = table.lines().find(|line| line.starts_with("(others)")).expect("a row");
    let columns: Vec<_> = others.split_whitespace().collect();
    assert_eq!(columns[..5], ["(others)", "20.0", "us", "-", "2"], "{others}");
}

#[test]
fn a_long_path_is_printed_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = format!("{}\u{202e}.json", "d".repeat(100));
    fs::write(folder.path().join(&name), r#"[{"ph":"X","name":"a\u202eb","pid":1,"tid":1,"ts":0,"dur":10}]"#)
        .expect("written");
    let shown = name.replace('\u{202e}', "\u{fffd}");
    assert!(said(folder.path(), &["stats", &name]).starts_with(&format!("{shown}: ")));
    assert!(said(folder.path(), &["stats", &name]).contains("\na\u{fffd}b "));
    assert!(said(folder.path(), &["validate", &name]).starts_with(&format!("{shown}: ")));
    let csv = said(folder.path(), &["stats", &name, "--csv"]);
    assert!(csv.contains("a\u{202e}b"), "other programs get all of it: {csv}");
}

#[test]
fn slices_for_which_there_was_no_room_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = Trace::new();
    for n in 0..(1 << 19) + 3 {
        trace = trace.begin(MAIN, 1_000 + n, "a");
    }
    fs::write(folder.path().join("t.fxt"), &trace.0).expect("written");
    let table = said(folder.path(), &["stats", "t.fxt"]);
    let told = "\n3 slices left out, because too many others were open at the begin\n";
    assert!(table.contains(told), "{table}");
    let stats: serde_json::Value =
        serde_json::from_str(&said(folder.path(), &["stats", "t.fxt", "--json"])).expect("JSON");
    assert_eq!(stats["slices_left_out"], json!(3));
}

#[test]
fn a_slice_of_fxt_that_only_carries_a_flow_is_in_no_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let carrier = |trace: Trace, time, kind| {
        let begin = trace.begin(MAIN, time, "wake");
        begin.event(MAIN, time, kind, "flow", Some(77)).end(MAIN, time, "wake")
    };
    let trace = carrier(Trace::new().begin(MAIN, 1_000, "a"), 2_000, EventKind::FlowBegin);
    let trace =
        carrier(trace.begin(MAIN, 3_000, "quick").end(MAIN, 3_000, "quick"), 4_000, EventKind::FlowEnd);
    fs::write(folder.path().join("trace.fxt"), &trace.end(MAIN, 5_000, "a").0).expect("a file");
    let table = said(folder.path(), &["stats", "trace.fxt", "--by", "name"]);
    let names: Vec<_> = table.lines().skip(5).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["a", "quick"], "{table}");
    assert!(table.contains(" 2 slices, 2 flow points\n"), "{table}");
    assert!(table.contains("\n2 slices of 0 ns that only carry a flow, in no table\n"), "{table}");
}

#[test]
fn a_table_says_what_a_star_is_and_which_slices_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace().event(MAIN, 12_000, EventKind::AsyncBegin, "life", Some(5));
    let trace = trace.begin(MAIN, 12_500, "life").end(MAIN, 12_600, "life");
    let trace = trace.event(MAIN, 13_000, EventKind::AsyncEnd, "life", Some(5));
    fs::write(folder.path().join("trace.fxt"), &trace.0).expect("a file");
    let table = said(folder.path(), &["stats", "trace.fxt", "--by", "name"]);
    assert!(table.contains(" 5 slices, 1 interval"), "{table}");
    let polls = "polls, because intervals have the same name: life";
    let star = "*: slices of several categories have this name; --category FILTER counts those of some";
    let others = "intervals, which are on other tracks than threads: --by interval";
    assert!(table.ends_with(&format!("{star}\n{polls}\n\n{others}\n")), "{table}");
    let threads = said(folder.path(), &["stats", "trace.fxt", "--by", "thread"]);
    assert!(!threads.contains(star) && !threads.contains(others), "{threads}");
}

#[test]
fn csv_is_one_table() {
    let folder = tempfile::tempdir().expect("a folder");
    trace().write(folder.path());
    let csv = said(folder.path(), &["stats", "trace.pftrace", "--csv", "--by", "category", "--sort", "name"]);
    let expected = "category,count,total_ns,self_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns\n\
        io,1,2000,2000,2000,2000,2000,2000,2000\nnet,3,14000,10000,1000,3000,10000,10000,10000\n";
    assert_eq!(csv, expected);
}

#[test]
fn categories_are_chosen_as_they_are_for_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    trace().write(folder.path());
    let count = |filter| {
        said(folder.path(), &["stats", "trace.fxt", "--csv", "--category", filter]).lines().count() - 1
    };
    assert_eq!((count("net"), count("i*"), count("-net"), count("net,io")), (2, 1, 1, 2));
    assert_eq!(hairline(folder.path(), &["stats", "trace.fxt", "--category", "a,,b"]).status.code(), Some(2));
}

#[test]
fn a_pipe_is_read_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let mut child = command
        .args(["stats", "-", "--csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("piped").write_all(&trace().0).expect("written");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success() && output.stdout.starts_with(b"name,category,count"));
}

#[test]
fn folded_stacks_have_each_slice_with_its_own_time() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in trace().write(folder.path()) {
        let folded = said(folder.path(), &["flame", name]);
        let process = "server (process 7)";
        let expected =
            format!("{process};main (8);a 6000\n{process};main (8);a;b 4000\n{process};thread 9;b 2000\n");
        assert_eq!(folded, expected, "{name}");
    }
    assert_eq!(said(folder.path(), &["flame", "trace.fxt", "--by", "all"]), "a 6000\na;b 4000\nb 2000\n");
    assert_eq!(
        said(folder.path(), &["flame", "trace.fxt", "--by", "all", "--total"]),
        "a 10000\na;b 4000\nb 2000\n"
    );
    assert_eq!(said(folder.path(), &["flame", "trace.fxt", "--svg", "-o", "x.svg"]), "");
    let svg = fs::read_to_string(folder.path().join("x.svg")).expect("a graph");
    assert!(svg.contains("</svg>") && svg.contains("main (8)") && svg.contains("10,000 ns"), "{svg}");
    // Three slices that take as long as a slice can.
    let longest =
        |tid| format!(r#"{{"ph":"X","name":"a","pid":1,"tid":{tid},"ts":0,"dur":9223372036854775}}"#);
    let all = format!("[{},{},{}]", longest(1), longest(2), longest(3));
    fs::write(folder.path().join("long.json"), all).expect("written");
    let output = hairline(folder.path(), &["flame", "long.json", "--svg", "-o", "x.svg"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.contains("divided by 4"), "{err}");
    let svg = fs::read_to_string(folder.path().join("x.svg")).expect("a graph");
    assert!(svg.contains(" x 4 ns, 33.33%)"), "{svg}");
}

#[test]
fn a_trace_in_which_nothing_is_wrong_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in trace().write(folder.path()) {
        let report = said(folder.path(), &["validate", name]);
        assert!(report.ends_with(" events, nothing is wrong\n"), "{report}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = Trace::new().end(MAIN, 5, "lost").begin(MAIN, 10, "open");
    let place = Trace::new().0.len();
    let flow = trace.event(MAIN, 20, EventKind::FlowBegin, "flow", Some(77));
    fs::write(folder.path().join("trace.fxt"), &flow.0).expect("a file");
    let output = hairline(folder.path(), &["validate", "trace.fxt"]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout);
    let begin = format!("1 x end without a begin\n  on main (8), at 5 ns (5 ns), byte {place}\n");
    assert!(report.starts_with(&begin), "{report}");
    assert!(
        report.contains("1 x slice without an end\n  \"open\", on main (8), at 10 ns (10 ns)\n"),
        "{report}"
    );
    assert!(report.contains("1 x flow with one end\n"), "{report}");
    assert!(report.ends_with("1 kind of defect\n"), "{report}");
    let strict = hairline(folder.path(), &["validate", "trace.fxt", "--strict"]);
    assert!(String::from_utf8_lossy(&strict.stdout).ends_with("2 kinds of defects\n"));
    let ignored = hairline(folder.path(), &["validate", "trace.fxt", "--ignore", "no-begin"]);
    assert_eq!(ignored.status.code(), Some(0));
    let ignored = ["validate", "trace.fxt", "--strict", "--ignore", "no-begin,no-end,flow"];
    let ignored = hairline(folder.path(), &ignored);
    assert_eq!(ignored.status.code(), Some(0));
    let unknown = Trace::new().0;
    let mut unknown = Trace(unknown);
    let event = Event {
        kind: EventKind::Instant,
        timestamp: 1,
        thread: ThreadRef::Index(5),
        category: StringRef::Empty,
        name: StringRef::Index(5),
        args: &[],
        payload: None,
    };
    fxt::event(&mut unknown.0, &event);
    fs::write(folder.path().join("trace.fxt"), &unknown.0).expect("a file");
    let output = hairline(folder.path(), &["validate", "trace.fxt"]);
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && report.contains("1 x record with "), "{report}");
}

#[test]
fn what_is_no_trace_is_one_line_and_no_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = trace().0;
    let huge = [&whole[..], &0xfff1_u64.to_le_bytes(), &[0xff; 5]].concat();
    let files: [(&str, &[u8]); 5] = [
        ("empty.fxt", b""),
        ("garbage.fxt", &[0x93; 1000]),
        ("text.json", b"once upon a time"),
        ("cut.fxt", &whole[..whole.len() - 3]),
        ("huge.fxt", &huge),
    ];
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let no_traces = ["empty.fxt", "garbage.fxt", "text.json", "missing.fxt", "."];
    let partly = ["cut.fxt", "huge.fxt"];
    for command in ["stats", "flame", "validate"] {
        for name in no_traces.into_iter().chain(partly) {
            let output = hairline(folder.path(), &[command, name]);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (output.status.code(), error.lines().count()),
                (Some(1), 1),
                "{command} {name}: {error}"
            );
            assert!(error.starts_with(&format!("hairline: {name}: ")), "{command} {name}: {error}");
        }
    }
    for name in no_traces {
        let output = hairline(folder.path(), &["flame", name, "--svg", "-o", "out.svg"]);
        assert!(output.status.code() == Some(1) && !folder.path().join("out.svg").exists(), "{name}");
        assert!(hairline(folder.path(), &["stats", name]).stdout.is_empty());
    }
    let cut = hairline(folder.path(), &["stats", "cut.fxt"]);
    assert!(String::from_utf8_lossy(&cut.stdout).contains("3 slices"), "what is whole is shown");
}

#[test]
fn an_extension_that_lies_does_not_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    trace().write(folder.path());
    fs::rename(folder.path().join("trace.pftrace"), folder.path().join("wrong.json")).expect("renamed");
    assert!(said(folder.path(), &["stats", "wrong.json"]).contains("4 slices"));
}

#[test]
fn what_cannot_be_shown_is_a_failure_but_for_a_reader_that_has_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.json"), br#"[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]"#)
        .expect("written");
    for arguments in [&["stats", "t.json", "--json"][..], &["validate", "t.json"], &["man"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("opened");
        let command = command.current_dir(folder.path()).args(arguments);
        let failed = command.stdout(full).output().expect("it ran");
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{arguments:?}: {said}");
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("its end").code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn times_and_losses_beyond_all_measure_are_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let (least, most) = ("-9223372036854775", "9223372036854775");
    let json =
        [("X", least, most), ("X", least, most), ("B", most, "0"), ("E", least, "0"), ("B", least, "0")];
    let events = json
        .map(|(ph, ts, dur)| format!(r#"{{"name":"a","ph":"{ph}","ts":{ts},"dur":{dur},"pid":1,"tid":1}}"#));
    fs::write(folder.path().join("t.json"), format!("[{}]", events.join(","))).expect("written");
    for command in ["stats", "flame", "validate"] {
        let code = hairline(folder.path(), &[command, "t.json"]).status.code();
        assert!(code == Some(0) || command == "validate" && code == Some(1), "{command}: {code:?}");
    }
}

#[test]
fn deep_stacks_take_time_in_proportion_to_their_slices() {
    const DEPTH: usize = 60_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = Trace::new();
    for n in 0..DEPTH {
        trace = trace.begin(MAIN, n as u64, if n % 2 == 0 { "even" } else { "odd" });
    }
    for n in (0..DEPTH).rev() {
        trace = trace.end(MAIN, (2 * DEPTH - n) as u64, if n % 2 == 0 { "even" } else { "odd" });
    }
    fs::write(folder.path().join("t.fxt"), &trace.0).expect("written");
    let began = std::time::Instant::now();
    let output = hairline(folder.path(), &["flame", "t.fxt", "--by", "all"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.contains("59,488 slices with more than 512 others"), "{err}");
    assert_eq!(out.lines().count(), 513);
    // No time is lost and none counts twice.
    let own = out.lines().map(|line| line.rsplit_once(' ').expect("a weight").1.parse::<u64>().expect("ns"));
    assert_eq!(own.sum::<u64>(), 2 * DEPTH as u64);
    let total = hairline(folder.path(), &["flame", "t.fxt", "--by", "all", "--total"]).stdout;
    let total = String::from_utf8_lossy(&total);
    let deeper = total.lines().find(|line| line.contains("(deeper)")).expect("the last level");
    let inner = 2 * (DEPTH - 512);
    assert!(deeper.ends_with(&format!("(deeper) {inner}")), "{}", &deeper[deeper.len() - 40..]);
}

#[test]
fn lives_are_apart_from_polls_and_threads_from_tracks() {
    let folder = tempfile::tempdir().expect("a folder");
    // 3 requests of 500 us on two lanes; each has 5 polls of 2 us on a thread, by the same name.
    let mut events = Vec::new();
    for request in 0..3 {
        let start = 1000 * request;
        let about = json!({"cat": "net", "name": "request", "pid": 7, "id": request % 2});
        for (ph, ts) in [("b", start), ("e", start + 500)] {
            let mut event = about.clone();
            (event["ph"], event["ts"]) = (json!(ph), json!(ts));
            events.push(event);
        }
        for poll in 0..5 {
            let ts = start + 100 * poll;
            events.push(
                json!({"cat": "net", "name": "request", "ph": "X", "ts": ts, "dur": 2, "pid": 7, "tid": 8}),
            );
        }
    }
    fs::write(folder.path().join("t.json"), json!(events).to_string()).expect("written");
    let stats: serde_json::Value =
        serde_json::from_str(&said(folder.path(), &["stats", "t.json", "--json"])).expect("JSON");
    let rows = |table: &str| {
        let rows = stats[table].as_array().expect("an array").iter();
        rows.map(|row| (row["count"].clone(), row["total_ns"].clone(), row["p50_ns"].clone()))
            .collect::<Vec<_>>()
    };
    let (polls, lives) =
        ((json!(15), json!(30_000), json!(2_000)), (json!(3), json!(1_500_000), json!(500_000)));
    for table in ["categories", "names", "by_thread"] {
        assert_eq!(rows(table), std::slice::from_ref(&polls), "{table}: {stats:#}");
    }
    for table in ["intervals", "by_track"] {
        assert_eq!(rows(table), std::slice::from_ref(&lives), "{table}: {stats:#}");
    }
    assert_eq!(stats["by_track"][0]["tracks"], 2, "{stats:#}");
    let text = said(folder.path(), &["stats", "t.json"]);
    let at = |title: &str| text.find(title).unwrap_or_else(|| panic!("{title}: {text}"));
    assert!(at("\nname ") < at("\ninterval ") && at("\ninterval ") < at("\nthread "), "{text}");
    assert!(at("\nthread ") < at("\ntrack "), "{text}");
}

#[test]
fn the_order_of_records_changes_no_number() {
    let folder = tempfile::tempdir().expect("a folder");
    // More events than wait in a window; the begin of the outermost slice is the last record.
    const INNER: u64 = 70_000;
    let outer = |trace: Trace| trace.begin(MAIN, 0, "outer");
    let inner = |mut trace: Trace| {
        for n in 0..INNER {
            trace = trace.begin(MAIN, 10 * n + 10, "inner").end(MAIN, 10 * n + 14, "inner");
        }
        trace.end(MAIN, 10 * INNER + 20, "outer")
    };
    fs::write(folder.path().join("sorted.fxt"), inner(outer(Trace::new())).0).expect("written");
    fs::write(folder.path().join("late.fxt"), outer(inner(Trace::new())).0).expect("written");
    for command in [&["stats", "--csv"][..], &["flame"]] {
        let of = |name| said(folder.path(), &[command, &[name]].concat());
        assert_eq!(of("late.fxt"), of("sorted.fxt"), "{command:?}");
        assert!(of("late.fxt").contains(&(10 * INNER + 20 - 4 * INNER).to_string()), "{command:?}");
        // A stream cannot be read twice.
        let stdin = fs::File::open(folder.path().join("late.fxt")).expect("opened");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"))
            .args(command)
            .arg("-")
            .stdin(stdin)
            .output()
            .expect("it ran");
        let error = String::from_utf8_lossy(&std::mem::take(&mut command.stderr)).into_owned();
        assert!(!command.status.success() && command.stdout.is_empty(), "{error}");
        assert!(error.contains("save it to a file, which can be read twice"), "{error}");
    }
}

#[test]
fn a_comparison_without_a_result_says_how_to_get_one() {
    let folder = tempfile::tempdir().expect("a folder");
    trace().write(folder.path());
    let compared = said(folder.path(), &["diff", "trace.fxt", "trace.fxt"]);
    let expected = "in some parts of a trace only, cannot be compared: five traces a side need no parts";
    assert!(compared.contains(expected), "{compared}");
}
