//! Questions whose columns do not fit into memory.

use std::fmt::Write as _;

use serde_json::json;

use crate::{Folder, stderr};

const SLICES: u32 = 100_000;

/// A trace whose names all differ.
fn large(folder: &Folder) {
    let mut text = String::from("[");
    for n in 0..SLICES {
        let comma = if n == 0 { "" } else { "," };
        let number = u64::from(n) * 2_654_435_761 % 4_294_967_291;
        let _ = write!(
            text,
            r#"{comma}{{"name":"slice {number:060}","ph":"X","ts":{n},"dur":0.5,"pid":1,"tid":1}}"#
        );
    }
    folder.write("a.json", text + "]");
}

#[test]
fn columns_that_do_not_fit_come_from_a_temporary_file_and_are_the_same() {
    let folder = Folder::new();
    large(&folder);
    let sums = "count(*) as n, sum(start) as s, max(name) as m, sum(self_time) as t";
    for (question, n) in [
        (format!("select {sums} from slice"), SLICES),
        (format!("select {sums} from slice where start >= 40000000"), 60_000),
        (format!("select {sums} from (select * from slice order by name, start)"), SLICES),
        (format!("select {sums} from (select distinct name, start, self_time from slice)"), SLICES),
        (
            "select count(*) as n from slice a join slice b on a.id = b.id where a.start < 10000000"
                .to_owned(),
            10_000,
        ),
    ] {
        let rows = folder.rows(&["--memory", "0", &question, "a.json"]);
        assert_eq!(rows, folder.rows(&[&question, "a.json"]), "{question}");
        assert_eq!(rows[0]["n"], json!(n), "{question}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_temporary_file() {
    use std::time::{Duration, Instant};

    let folder = Folder::new();
    large(&folder);
    let spill = folder.path().join("spill");
    std::fs::create_dir(&spill).expect("a folder");
    let question = "select count(*) from (select a.name, b.depth from slice a join slice b
                    on a.id % 1000 = b.id % 1000 order by a.name, b.depth)"; // 10 million rows
    let mut command = folder.command(&["--memory", "0", question, "a.json"]);
    let mut child = command.env("TMPDIR", &spill).env("SQLITE_TMPDIR", &spill).spawn().expect("it runs");
    let begin = Instant::now();
    let place = spill.canonicalize().expect("a path");
    let has_files = |pid: u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.starts_with(&place))
    };
    if cfg!(target_os = "linux") {
        while !has_files(child.id()) && begin.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(has_files(child.id()), "it spills");
    }
    assert_eq!(std::fs::read_dir(&spill).expect("a folder").count(), 0, "its file has no name");
    let killed = std::process::Command::new("kill").args(["-KILL", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    let status = child.wait().expect("it ends");
    assert!(!status.success(), "{status:?}");
    assert_eq!(std::fs::read_dir(&spill).expect("a folder").count(), 0);
}

#[test]
fn a_question_that_needs_no_table_reads_no_trace() {
    let folder = Folder::new();
    folder.write("a.json", "no trace at all");
    assert_eq!(folder.rows(&["select 7 / 2 as n", "a.json"]), [json!({"n": 3})]);
    let output = folder.run(&["select count(*) from slice", "a.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
