//! Inputs and questions that mean harm.

use crate::{Folder, SMALL, stderr, stdout};

#[test]
fn a_question_can_only_read() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.write("secret.csv", "a,b\n1,2\n");
    for question in [
        "create table t as select 1",
        "create temp table t (a)",
        "create virtual table t using fts5(a)",
        "create view v as select 1",
        "drop view slowest",
        "insert into slice values (1)",
        "delete from slice",
        "attach 'other.db' as other",
        "vacuum into 'copy.db'",
        "begin",
        "analyze",
        "pragma writable_schema = 1",
        "pragma temp_store_directory = '.'",
        "pragma user_version = 7",
        "select * from pragma_database_list",
        "update sqlite_schema set sql = ''",
        "select load_extension('./evil')",
        "select fts3_tokenizer('simple', x'00')",
        "select readfile('secret.csv')",
        "select writefile('out.csv', 'x')",
        "select * from 'secret.csv'",
        ".shell touch out",
        "explain insert into slice select * from slice",
        "select 1; drop view slowest",
    ] {
        let output = folder.run(&[question, "a.json"]);
        assert_eq!(output.status.code(), Some(1), "{question}: {}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).is_empty() && !stderr(&output).is_empty(), "{question}");
    }
    let mut left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.json", "secret.csv"]);
}

#[test]
fn damaged_inputs_are_errors_with_their_name() {
    let folder = Folder::new();
    folder.write("zeros.fxt", [0; 4096]);
    folder.write("text.pftrace", "\u{1b}]0;title\u{7}no trace");
    folder.write("empty.json", "");
    folder.write("deep.json", "[".repeat(100_000));
    for name in ["zeros.fxt", "text.pftrace", "deep.json"] {
        let output = folder.run(&["select * from slice", name]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", stdout(&output));
        assert!(stderr(&output).contains(name), "{name}: {}", stderr(&output));
        assert!(!stderr(&output).contains('\u{1b}'), "{name}");
    }
}

#[test]
fn names_are_only_text_in_messages() {
    let folder = Folder::new();
    let name = "a\u{1b}[31m.json";
    folder.write(name, SMALL.replace("outer", "\\u001b[2Jouter"));
    let output = folder.run(&["select name from slice where", name]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!stderr(&output).contains('\u{1b}'));
    let output = folder.run(&["select name from slice order by start limit 1", name]);
    assert_eq!(stdout(&output), "name\n\u{fffd}[2Jouter\n");
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_not_followed_and_unfinished_files_not_read() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.hairline(&["export", "a.json", "-o", "tables"]);
    folder.write("b.json", SMALL.replace("\"web\"", "\"other\""));
    folder.hairline(&["export", "b.json", "-o", "elsewhere"]);
    let date = folder.path().join("tables/slice/date=unknown");
    symlink(folder.path().join("elsewhere/slice/date=unknown/service=other"), date.join("service=other"))
        .expect("a link");
    let place = std::fs::read_dir(date.join("service=web"))
        .expect("a folder")
        .flatten()
        .next()
        .expect("a trace")
        .path();
    std::fs::copy(place.join("part-0.parquet"), place.join(".part-1.parquet")).expect("a file");
    symlink(place.join("part-0.parquet"), place.join("part-2.parquet")).expect("a link");
    let rows = folder.rows(&["select count(*) as n from slice", "tables"]);
    assert_eq!(rows, [serde_json::json!({"n": 4})]);
}
