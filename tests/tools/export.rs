//! `hairline export`: what users see of it besides the rows, which `tests/conversion/tables.rs` compares.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::{Format, Overflow, Session, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, extension, record, record_with};
use serde_json::Value;

use crate::{hairline, run, stderr};

/// The answers of DuckDB about an export.
pub(crate) fn ask(folder: &Path, sql: &[&str]) -> Vec<Vec<Vec<Value>>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/tables.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(folder)
        .args(sql)
        .stdin(Stdio::null())
        .output()
        .expect("python3");
    assert!(output.status.success(), "run tests/oracle/setup.sh first: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

pub(crate) fn export(folder: &Path, arguments: &[&str]) -> std::process::Output {
    run(hairline(folder).arg("export").args(arguments).args(["-o", "out"]))
}

pub(crate) const SMALL: &str = r#"[
{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"web"}},
{"name":"outer","cat":"app,net","ph":"X","ts":0,"dur":10,"pid":1,"tid":1,"args":{"n":1,"list":[1,"a"]}},
{"name":"inner","cat":"db","ph":"X","ts":2,"dur":3,"pid":1,"tid":1},
{"name":"note","cat":"app","ph":"i","ts":3,"pid":1,"tid":1,"s":"t"},
{"name":"open","cat":"app","ph":"B","ts":20,"pid":1,"tid":1}
]"#;

#[test]
fn a_trace_has_a_folder_in_each_table_and_replaces_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("a.json"), SMALL).expect("a trace");
    for _ in 0..2 {
        let done = export(folder, &["a.json"]);
        assert!(done.status.success(), "{}", stderr(&done));
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.starts_with("a.json: ") && said.lines().count() == 1, "{said}");
        let place = said.trim().split(" in ").last().expect("a place");
        let mut ls = Command::new("sh");
        let ls = ls.current_dir(folder).args(["-c", &format!("ls -d {place}")]).output().expect("sh");
        assert_eq!(String::from_utf8_lossy(&ls.stdout).lines().count(), 10, "{place} is where the files are");
        let written = files(&folder.join("out"));
        assert_eq!(written.len(), 10, "{written:?}");
        assert!(written.iter().all(|file| file.ends_with("part-0.parquet")), "{written:?}");
        let of_slice = written[7].strip_prefix(folder).expect("below").to_string_lossy().into_owned();
        assert!(of_slice.starts_with("out/slice/date=unknown/service=web/trace="), "{of_slice}");
    }
    let sql = [
        "select name, start, duration, self_time, depth, parent, service, date from slice order by start",
        "select i.name, s.name from instant i join slice s on s.id = i.parent",
        "select key, flat_key, value_type, int_value, text_value from arg order by key",
        "select schema, losses, is_whole, service from trace",
    ];
    let answers = ask(&folder.join("out"), &sql);
    let expected = serde_json::json!([
        [
            ["outer", 0, 10_000, 7_000, 0, null, "web", "unknown"],
            ["inner", 2_000, 3_000, 3_000, 1, 1, "web", "unknown"],
            ["open", 20_000, null, null, 0, null, "web", "unknown"]
        ],
        [["note", "inner"]],
        [
            ["list[0]", "list", "int", 1, null],
            ["list[1]", "list", "text", null, "a"],
            ["n", "n", "int", 1, null]
        ],
        [[1, 0, true, "web"]]
    ]);
    assert_eq!(serde_json::to_value(answers).expect("JSON"), expected);

    // A name is one folder.
    let hostile = export(folder, &["a.json", "--service", "a/../b\u{1b}[31m"]);
    assert!(hostile.status.success(), "{}", stderr(&hostile));
    let written = files(&folder.join("out"));
    let place = "service=a%2F..%2Fb%1B%5B31m";
    assert_eq!(
        written.iter().filter(|file| file.to_string_lossy().contains(place)).count(),
        10,
        "{written:?}"
    );
}

#[test]
fn only_the_chosen_tables_and_categories_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("a.json"), SMALL).expect("a trace");
    let done = export(folder, &["a.json", "--table", "slice,arg", "--category", "db"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(files(&folder.join("out")).len(), 2);
    let one = export(folder, &["a.json", "--table", "slice", "--category", "db"]);
    let said = String::from_utf8_lossy(&one.stdout).into_owned();
    assert!(said.contains(" in out/slice/date=unknown/service=web/trace="), "{said}");
    let answers = ask(&folder.join("out"), &["select name, parent, depth from slice", "select * from arg"]);
    assert_eq!(serde_json::to_value(answers).expect("JSON"), serde_json::json!([[["inner", 1, 1]], []]));
    std::fs::write(folder.join("file"), "").expect("written");
    let file = run(hairline(folder).args(["export", "a.json", "-o", "file"]));
    assert_eq!(stderr(&file), "hairline: file: it is a file, not a folder\n");
    let wrong = export(folder, &["a.json", "--table", "slices"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("slice, instant"), "{}", stderr(&wrong));
}

#[test]
fn loss_is_in_the_table_by_reason() {
    for format in FORMATS {
        let small = |b: hairline::SessionBuilder| b.buffer_size(256 << 10).overflow(Overflow::Drop);
        let trace = record_with(format, small, |_: &Session| {
            let big = "x".repeat(1_000);
            for _ in 0..50_000 {
                trace_instant!("t", "big", text = big.as_str());
            }
        });
        let lost = &trace.summary.lost;
        assert!(lost.buffer_full > 0, "{lost:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let input = format!("in.{}", extension(format));
        std::fs::copy(trace.path(), folder.path().join(&input)).expect("a copy");
        let done = export(folder.path(), &[&input]);
        assert!(done.status.success(), "{}", stderr(&done));
        // The place is the same, whichever tables are written.
        let again = export(folder.path(), &[&input, "--table", "slice"]);
        assert!(again.status.success(), "{}", stderr(&again));
        assert_eq!(files(&folder.path().join("out")).len(), 10, "{format:?}");
        let sql =
            "select lost_buffer_full, lost_too_large, losses > 0, lost_damaged, date != 'unknown' from trace";
        let answers = ask(&folder.path().join("out"), &[sql]);
        let expected = serde_json::json!([[[lost.buffer_full, lost.too_large, true, 0, true]]]);
        assert_eq!(serde_json::to_value(answers).expect("JSON"), expected, "{format:?}");
    }
}

/// Names with parts of paths, control characters and 64 KiB are text in the tables, and no part of a path.
#[test]
fn hostile_names_are_only_text() {
    for format in FORMATS {
        let long = "n".repeat(1 << 16);
        let names = ["../../x", "a/b", "\u{1b}[31m\"\n\u{1}", "date=1/service=2", ".", long.as_str()];
        let trace = record(format, |_: &Session| {
            for name in names {
                trace_scope!("t", "any", name: name, text = name);
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        let input = format!("in.{}", extension(format));
        std::fs::copy(trace.path(), folder.path().join(&input)).expect("a copy");
        let done = export(folder.path(), &[&input, "--service", &long]);
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(files(folder.path()).len(), 11);
        let answers =
            ask(&folder.path().join("out"), &["select text_value from arg where key = 'text' order by time"]);
        let texts: Vec<&str> = answers[0].iter().map(|row| row[0].as_str().expect("text")).collect();
        let longest = texts[5].len();
        assert_eq!(texts[..5], names[..5], "{format:?}");
        // The recorder cuts a text that is too long for its chunk, and says so.
        let begin = texts[5].strip_suffix('…').expect("the mark of a text that was cut");
        assert!(longest > 7_000 && long.starts_with(begin), "{format:?}: {longest}");
    }
}

#[test]
fn nothing_is_written_of_a_damaged_trace_and_all_before_the_end_of_a_cut_one() {
    for format in FORMATS {
        let trace = record(format, |_: &Session| {
            for n in 0..1_000 {
                trace_scope!("t", "step", n);
            }
        });
        let bytes = std::fs::read(trace.path()).expect("a trace");
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let input = format!("in.{}", extension(format));
        let half = |more: usize| {
            std::fs::write(folder.join(&input), &bytes[..bytes.len() / 2 + more]).expect("half of it");
            export(folder, &[&input])
        };
        let mut cut = half(3);
        if cut.status.success() {
            cut = half(4); // it was the end of a record, by chance
        }
        assert_eq!(cut.status.code(), Some(1), "{format:?}: {}", stderr(&cut));
        let answers = ask(&folder.join("out"), &["select is_whole, events > 100 from trace"]);
        assert_eq!(serde_json::to_value(answers).expect("JSON"), serde_json::json!([[[false, true]]]));
        std::fs::remove_dir_all(folder.join("out")).expect("removed");

        let mut damaged = bytes.clone();
        let middle = bytes.len() / 2 / 8 * 8;
        damaged[middle..middle + 64].fill(0);
        std::fs::write(folder.join(&input), damaged).expect("written");
        let done = export(folder, &[&input]);
        if !done.status.success() {
            assert_eq!(files(&folder.join("out")), [] as [PathBuf; 0], "{format:?}: {}", stderr(&done));
        }
        std::fs::write(folder.join(&input), b"no trace").expect("written");
        assert_eq!(export(folder, &[&input]).status.code(), Some(1));
        assert_eq!(export(folder, &["missing.fxt"]).status.code(), Some(1));
        let _ = std::fs::remove_dir_all(folder.join("out"));
        std::fs::write(folder.join("out"), b"a file").expect("written");
        assert_eq!(export(folder, &[&input]).status.code(), Some(1), "the folder is a file");
    }
}

/// A trace of up to 24 MB, and the number of its slices.
pub(crate) fn large(folder: &Path) -> u64 {
    let trace = record(Format::Fxt, |_: &Session| {
        for n in 0..400_000 {
            trace_scope!("t", "step", n);
        }
    });
    std::fs::copy(trace.path(), folder.join("large.fxt")).expect("a copy");
    trace.summary.records / 2
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_in_the_middle_leaves_nothing_that_looks_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let slices = large(folder.path());
    let mut command = hairline(folder.path());
    let mut child = command.args(["export", "large.fxt", "-o", "out"]).spawn().expect("it starts");
    let until = Instant::now() + Duration::from_secs(60);
    while files(&folder.path().join("out")).is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().and_then(|()| child.wait()).expect("killed");
    let left = files(&folder.path().join("out"));
    assert!(left.iter().all(|file| file.extension().is_none()), "{left:?}");
    let done = export(folder.path(), &["large.fxt"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(ask(&folder.path().join("out"), &["select count(*) from slice"])[0][0][0], slices);
}

/// A limit for the size of files stands for a full disk: writing fails in the middle.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    large(folder.path());
    let program = env!("CARGO_BIN_EXE_hairline_command");
    let script = format!("trap '' XFSZ; ulimit -f 64; exec '{program}' export large.fxt -o out");
    let done =
        run(Command::new("sh").current_dir(folder.path()).args(["-c", &script]).stderr(Stdio::piped()));
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert!(stderr(&done).contains("out: "), "{}", stderr(&done));
    assert_eq!(files(&folder.path().join("out")), [] as [PathBuf; 0]);
}
