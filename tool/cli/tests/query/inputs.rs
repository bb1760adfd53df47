//! What can be asked: traces, folders, and several of them.

use std::fs::File;
use std::process::Stdio;

use serde_json::json;

use crate::{Folder, SMALL, rows_of, stderr};

const COUNT: &str = "select count(*) as n from slice";

#[test]
fn rows_of_several_inputs_say_where_they_come_from() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.write("b.json", SMALL.replace("\"web\"", "\"a/b c=ä\"").replace("outer", "other"));
    folder.hairline(&["export", "a.json", "b.json", "-o", "tables"]);
    let question = "select service, date, count(*) as n, count(distinct trace) as traces
                    from slice group by 1, 2 order by 1";
    let expected = [
        json!({"service": "a/b c=ä", "date": "unknown", "n": 4, "traces": 1}),
        json!({"service": "web", "date": "unknown", "n": 4, "traces": 1}),
    ];
    assert_eq!(folder.rows(&[question, "a.json", "b.json"]), expected);
    assert_eq!(folder.rows(&[question, "tables"]), expected);
    // Their ids are the same, too.
    let traces = "select distinct trace from slice order by 1";
    assert_eq!(folder.rows(&[traces, "a.json", "b.json"]), folder.rows(&[traces, "tables"]));
    for input in [&["a.json", "b.json"][..], &["tables"]] {
        let question = "select name from slice where service = 'a/b c=ä' and depth = 0 order by start";
        let names = folder.rows(&[&[question][..], input].concat());
        assert_eq!(names, [json!({"name": "other"}), json!({"name": "open"})], "{input:?}");
    }
}

#[test]
fn a_service_that_the_export_named_is_asked_by_that_name() {
    let folder = Folder::new();
    folder.record("a.pftrace");
    folder.hairline(&["export", "--service", "100% web", "a.pftrace", "-o", "tables"]);
    let question = "select distinct service from slice";
    assert_eq!(folder.rows(&[question, "tables"]), [json!({"service": "100% web"})]);
}

#[test]
fn a_trace_that_is_given_twice_counts_once() {
    let folder = Folder::new();
    let trace = folder.record("a.pftrace");
    std::fs::copy(&trace, folder.path().join("copy.pftrace")).expect("a copy");
    folder.hairline(&["export", "a.pftrace", "-o", "tables"]);
    folder.hairline(&["export", "copy.pftrace", "-o", "more"]);
    for (inputs, said) in [
        (["a.pftrace", "./a.pftrace"], "./a.pftrace: it is the same as a.pftrace, and is read once"),
        (
            ["a.pftrace", "copy.pftrace"],
            "copy.pftrace: it is the same trace as in a.pftrace, and counts once",
        ),
        (["copy.pftrace", "tables"], "copy.pftrace: it is the same trace as in tables, and counts once"),
        (["tables", "more"], "is in another input, too, and counts once"),
        (["tables", "tables/"], "it is the same as tables, and is read once"),
    ] {
        let output = folder.run(&["--json", COUNT, inputs[0], inputs[1]]);
        assert_eq!(output.status.code(), Some(0), "{inputs:?}: {}", stderr(&output));
        assert_eq!(rows_of(&output), [json!({"n": 600})], "{inputs:?}");
        let all = stderr(&output);
        assert!(all.contains(said), "{inputs:?}: {all}");
        assert_eq!(all.lines().count(), 1, "each note once: {all}");
    }
}

#[test]
fn traces_without_a_uuid_are_never_taken_for_one_another() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.write("b.json", SMALL);
    assert_eq!(folder.rows(&[COUNT, "a.json", "b.json"]), [json!({"n": 8})]);
}

#[test]
fn a_trace_may_be_compressed_or_come_through_a_pipe() {
    let folder = Folder::new();
    let trace = folder.write("a.json", SMALL);
    let gzip = std::process::Command::new("gzip").arg("-k").arg(&trace).status().expect("gzip");
    assert!(gzip.success());
    assert_eq!(folder.rows(&[COUNT, "a.json.gz"]), [json!({"n": 4})]);
    // A question that reads it several times.
    let question = "select count(*) as n from slice a join slice b on a.id = b.parent and a.trace = b.trace";
    let mut command = folder.command(&["--json", question, "-"]);
    let output = command.stdin(File::open(&trace).expect("a trace")).output().expect("it runs");
    assert_eq!(rows_of(&output), [json!({"n": 2})]);
    let mut cat = std::process::Command::new("cat").arg(&trace).stdout(Stdio::piped()).spawn().expect("cat");
    let mut command = folder.command(&["--json", question, "-"]);
    let output = command.stdin(cat.stdout.take().expect("a pipe")).output().expect("it runs");
    assert_eq!(rows_of(&output), [json!({"n": 2})], "{}", stderr(&output));
    cat.wait().expect("cat ends");
}

#[test]
fn a_condition_on_the_place_reads_only_the_files_of_that_place() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.write("b.json", SMALL.replace("\"web\"", "\"other\""));
    folder.hairline(&["export", "a.json", "b.json", "-o", "tables"]);
    // The other one's file is no Parquet any more.
    let places =
        std::fs::read_dir(folder.path().join("tables/slice/date=unknown/service=other")).expect("a folder");
    let place = places.map(|entry| entry.expect("an entry").path()).next().expect("a trace");
    std::fs::write(place.join("part-0.parquet"), "damaged").expect("a file");
    let question = "select count(*) as n from slice where service = 'web'";
    assert_eq!(folder.rows(&[question, "tables"]), [json!({"n": 4})]);
    let question =
        "select count(*) as n from slice where date = 'unknown' and service in ('web') and name = 'inner'";
    assert_eq!(folder.rows(&[question, "tables"]), [json!({"n": 2})]);
    let output = folder.run(&[COUNT, "tables"]);
    assert_eq!(output.status.code(), Some(1), "the damaged one is read otherwise");
}

#[test]
fn a_folder_that_lacks_a_table_is_said_to() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.hairline(&["export", "--table", "slice", "a.json", "-o", "tables"]);
    assert_eq!(folder.rows(&[COUNT, "tables"]), [json!({"n": 4})]);
    let output = folder.run(&["--json", "select count(*) as n from arg", "tables"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows_of(&output), [json!({"n": 0})]);
    let said = "hairline: tables: it has no table `arg`: export with `--table arg`\n";
    assert_eq!(stderr(&output), said);
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    let output = folder.run(&[COUNT, "empty"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it has no tables of `hairline export`"), "{}", stderr(&output));
}

#[test]
fn loss_is_noted_once_and_what_is_cut_fails() {
    let folder = Folder::new();
    let bytes = std::fs::read(folder.record("a.fxt")).expect("a trace");
    folder.write("cut.fxt", &bytes[..bytes.len() / 16 * 8 + 4]); // in the middle of a word, so of a record
    // The question reads it three times.
    let question =
        "select count(*) > 100 as has_rows from slice a join slice b using (id) where a.trace = b.trace";
    let output = folder.run(&["--json", question, "cut.fxt"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows_of(&output), [json!({"has_rows": 1})]);
    let cut: Vec<_> = stderr(&output)
        .lines()
        .filter(|line| line.contains("everything before that"))
        .map(str::to_owned)
        .collect();
    assert_eq!(cut.len(), 1, "{cut:?}");
    let is_whole = folder.run(&["--json", "select is_whole from trace", "cut.fxt"]);
    assert_eq!(rows_of(&is_whole), [json!({"is_whole": 0})]);
}
