//! Questions that do not fit into memory.

use std::fmt::Write as _;

use serde_json::json;

use crate::{Folder, stderr};

const SLICES: u32 = 250_000;

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

/// The command with its own folder for temporary files, and the peak of its memory in MiB.
fn asked(folder: &Folder, question: &str, memory: &str) -> (Vec<serde_json::Value>, u64) {
    let spill = folder.path().join("spill");
    std::fs::create_dir_all(&spill).expect("a folder");
    let script = r#"import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)"#;
    let output = std::process::Command::new("python3")
        .args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_hairline-query"),
            "--json",
            "--memory",
            memory,
            question,
            "a.json",
        ])
        .current_dir(folder.path())
        .env("TMPDIR", &spill)
        .output()
        .expect("python3");
    assert!(output.status.success(), "{question}: {}", stderr(&output));
    let left: Vec<_> =
        std::fs::read_dir(&spill).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{question}: {left:?} is left");
    let said = stderr(&output);
    let peak = said.trim().parse().unwrap_or_else(|_| panic!("{question}: {said}"));
    (crate::rows_of(&output), peak)
}

#[test]
fn sorting_grouping_and_joining_need_no_more_memory_than_they_may_have() {
    let folder = Folder::new();
    large(&folder);
    for (question, expected) in [
        (
            "select count(*) as n, max(r) as r from (select name, row_number() over (order by name) as r from slice)",
            json!({"n": SLICES, "r": SLICES}),
        ),
        (
            "select count(*) as n, max(c) as c from (select name, count(*) as c from slice group by name)",
            json!({"n": SLICES, "c": 1}),
        ),
        (
            "select count(*) as n, count(distinct a.id) as c from slice a join slice b on a.name = b.name",
            json!({"n": SLICES, "c": SLICES}),
        ),
    ] {
        let (rows, peak) = asked(&folder, question, "128");
        assert_eq!(rows, [expected], "{question}");
        // The names alone take 17 MB, and a join has them twice.
        assert!(peak < 600, "{question}: {peak} MiB");
    }
}

#[cfg(unix)]
#[test]
fn its_temporary_folder_is_private_and_no_signal_leaves_it() {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    let folder = Folder::new();
    large(&folder);
    let spill = folder.path().join("spill");
    std::fs::create_dir(&spill).expect("a folder");
    let question = "select sum(r) from (select row_number() over (order by a.name, b.depth) as r
                    from slice a join slice b on a.id % 1000 = b.id % 1000)"; // 160 million rows
    let mut command = folder.command(&["--memory", "128", question, "a.json"]);
    let mut child = command.env("TMPDIR", &spill).spawn().expect("it runs");
    let begin = Instant::now();
    let has_files = || {
        let folders = std::fs::read_dir(&spill).expect("a folder").flatten();
        folders.flat_map(|folder| std::fs::read_dir(folder.path())).flatten().count() > 0
    };
    while !has_files() && begin.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(has_files(), "it spills");
    let folders = std::fs::read_dir(&spill).expect("a folder").flatten();
    let modes: Vec<u32> =
        folders.map(|f| f.metadata().expect("its mode").permissions().mode() & 0o777).collect();
    assert_eq!(modes, [0o700], "nobody else may read what it writes there");
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(143));
    assert_eq!(std::fs::read_dir(&spill).expect("a folder").count(), 0);
}
