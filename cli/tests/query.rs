//! `hairline query`: which program it starts, and what it does without one.

#![cfg(unix)] // the programs are shell scripts

use std::path::Path;
use std::process::{Command, Output};

use tempfile::tempdir;

mod programs;

/// Writes a program.
fn program(folder: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    programs::script(&folder.join(name), script);
}

/// Runs a copy of `hairline` that has nothing beside it, in a folder, with a PATH.
fn hairline(folder: &Path, path: &str, arguments: &[&str]) -> Output {
    let own = folder.join("own");
    std::fs::create_dir_all(&own).expect("a folder");
    let copy = own.join("hairline");
    if !copy.exists() {
        programs::copy(env!("CARGO_BIN_EXE_hairline"), &copy);
    }
    let mut command = Command::new(copy);
    command.current_dir(folder).env("PATH", path).arg("query").args(arguments).output().expect("it ran")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const ECHO: &str = "for a in \"$@\"; do echo \"<$a>\"; done; exit 7";

#[test]
fn all_arguments_and_the_exit_code_are_handed_over() {
    let folder = tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    program(&bin, "hairline-query", ECHO);
    let path = format!("/nowhere:{}", bin.display());
    let output = hairline(folder.path(), &path, &["--csv", "select 'a b'", "--", "-x", ""]);
    assert_eq!(text(&output.stdout), "<--csv>\n<select 'a b'>\n<-->\n<-x>\n<>\n");
    assert_eq!(output.status.code(), Some(7));
    let help = hairline(folder.path(), &path, &["--help"]);
    assert_eq!(text(&help.stdout), "<--help>\n");
}

#[test]
fn the_program_beside_hairline_comes_first_and_the_current_folder_never() {
    let folder = tempdir().expect("a folder");
    program(folder.path(), "hairline-query", "echo from the current folder");
    for path in ["", ".", ":", "own/.."] {
        let output = hairline(folder.path(), path, &["select 1", "x.fxt"]);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(1)), "PATH={path}");
        assert!(
            text(&output.stderr).contains("`hairline-query` is not installed"),
            "{}",
            text(&output.stderr)
        );
    }
    let bin = folder.path().join("bin");
    program(&bin, "hairline-query", "echo from PATH");
    program(&folder.path().join("own"), "hairline-query", "echo from beside");
    let output = hairline(folder.path(), bin.to_str().expect("UTF-8"), &["select 1"]);
    assert_eq!(text(&output.stdout), "from beside\n");
}

#[test]
fn without_the_program_another_engine_gets_its_views() {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("fleet/trace")).expect("a folder");
    std::fs::create_dir_all(folder.path().join("fleet/slice")).expect("a folder");
    let none = hairline(folder.path(), "/nowhere", &["select 1", "fleet"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("duckdb, clickhouse, datafusion-cli"), "{}", text(&none.stderr));
    let bin = folder.path().join("bin");
    program(&bin, "clickhouse", "");
    let output = hairline(folder.path(), bin.to_str().expect("UTF-8"), &["select 1", "fleet"]);
    assert_eq!(output.status.code(), Some(1), "the question is not answered");
    let shown = text(&output.stdout);
    assert!(shown.contains("file('fleet/slice/*/*/*/*.parquet', 'Parquet'"), "{shown}");
    assert!(shown.contains("create or replace view critical as"), "{shown}");
}

#[test]
fn the_views_of_each_engine_are_printed_in_any_case() {
    let folder = tempdir().expect("a folder");
    for (engine, expected) in [
        ("duckdb", "read_parquet('s3://bucket/fleet/slice/*/*/*/*.parquet'"),
        ("clickhouse", "s3('s3://bucket/fleet/slice/*/*/*/*.parquet'"),
        ("datafusion", "location 's3://bucket/fleet/slice/'"),
        ("spark", "parquet.`s3://bucket/fleet/slice`"),
    ] {
        let output = hairline(folder.path(), "/nowhere", &["--views", engine, "s3://bucket/fleet/"]);
        let shown = text(&output.stdout);
        assert!(output.status.success() && shown.contains(expected), "{engine}: {shown}");
    }
    let output = hairline(folder.path(), "/nowhere", &["--views", "oracle"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("duckdb, clickhouse, datafusion, spark"));
}

#[test]
fn help_without_the_program_says_how_to_use_it() {
    let folder = tempdir().expect("a folder");
    let help = hairline(folder.path(), "", &["--help"]);
    let said = text(&help.stdout);
    assert!(
        help.status.success() && said.contains("\nUsage: hairline query [OPTIONS] SQL TRACE|DIR..."),
        "{said}"
    );
    assert!(said.contains("`cargo install hairline-query`"), "{said}");
}
