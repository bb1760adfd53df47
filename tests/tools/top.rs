//! `hairline top`

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hairline_tests::recording::{FORMATS, extension};

use crate::{Traced, first_line, hairline, hairline_that_heeds_signals, run, stderr};

/// Two threads that record all the time, into a file or a ring: not faster than a build without optimization
/// reads.
fn busy(trace: &Path, overflow: &str) -> Traced {
    Traced::start(&["busy", "2", "1"], trace, &[("HAIRLINE_OVERFLOW", overflow)])
}

#[test]
fn what_a_process_does_at_the_moment_is_shown_by_name() {
    for (format, overflow) in FORMATS.into_iter().flat_map(|format| [(format, "drop"), (format, "overwrite")])
    {
        let folder = tempfile::tempdir().expect("a folder");
        let busy = busy(&folder.path().join(format!("trace.{}", extension(format))), overflow);
        let pid = busy.pid();
        let output = run(hairline(folder.path()).args(["top", &pid, "--once", "--interval", "0.3"]));
        let table = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{format:?} {overflow}: {}{table}", stderr(&output));
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with(&format!("{pid} (family): ")), "{format:?} {overflow}: {table}");
        let step = lines.iter().find(|line| line.starts_with("step ")).expect("a row of it");
        let columns: Vec<&str> = step.split_whitespace().collect();
        let per_second: u64 = columns[2].replace(',', "").parse().expect("a number");
        assert!(columns[1] == "family" && per_second > 0, "{format:?} {overflow}: {table}");
    }
}

#[test]
fn the_end_of_the_process_is_the_end_of_the_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    for overflow in ["drop", "overwrite"] {
        let busy = busy(&folder.path().join("trace.fxt"), overflow);
        let pid = busy.pid();
        let mut command = hairline(folder.path());
        let mut top = command.args(["top", &pid, "--interval", "0.1"]).spawn().expect("it starts");
        let first = first_line(&mut top);
        drop(busy);
        let output = top.wait_with_output().expect("its end");
        assert!(first.starts_with(&pid), "{overflow}: {first}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{overflow}: {}", stderr(&output));
        assert!(stderr(&output).contains("has ended"), "{overflow}: {}", stderr(&output));
    }
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let busy = busy(&folder.path().join("trace.fxt"), "overwrite");
    let pid = busy.pid();
    let mut command = hairline(folder.path());
    let mut top = command.args(["top", &pid, "--interval", "0.05"]).spawn().expect("it starts");
    assert!(first_line(&mut top).starts_with(&pid));
    drop(top.stdout.take());
    assert_eq!(top.wait().expect("its end").code(), Some(0));
}

#[test]
fn a_process_that_is_not_traced_has_no_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).args(["top", "4294967290"]));
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(3), 1));
    let nonsense = run(hairline(folder.path()).args(["top", "1", "--interval", "0"]));
    assert_eq!(nonsense.status.code(), Some(2));
}

#[test]
fn its_temporary_folder_is_private_and_no_signal_leaves_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let busy = busy(&folder.path().join("trace.fxt"), "overwrite");
    let pid = busy.pid();
    for signal in ["HUP", "INT", "QUIT", "TERM"] {
        let temporary = tempfile::tempdir().expect("a folder");
        let mut command = hairline_that_heeds_signals(folder.path());
        command.env("TMPDIR", temporary.path());
        let mut top = command.args(["top", &pid, "--interval", "0.1"]).spawn().expect("it starts");
        assert!(first_line(&mut top).starts_with(&pid));
        let names = || std::fs::read_dir(temporary.path()).expect("the folder").count();
        assert_eq!(names(), 1, "the folder of its snapshots");
        let folder = std::fs::read_dir(temporary.path()).expect("the folder").flatten().next();
        let mode = folder.expect("a folder").metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "a region is private, and so is what is copied out of it");
        let kill = [format!("-{signal}"), top.id().to_string()];
        let killed = std::process::Command::new("kill").args(kill).status();
        assert!(killed.expect("kill").success());
        let output = top.wait_with_output().expect("its end");
        assert_eq!(names(), 0, "{signal}: {}", stderr(&output));
    }
}
