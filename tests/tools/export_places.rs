//! `hairline export`: where its files go, and what is left of them when something fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::{Format, Session, trace_scope};
use hairline_tests::recording::{FORMATS, extension, record, turn};

use crate::export::{SMALL, ask, export, files, large};
use crate::{hairline_that_heeds_signals, run, stderr};

/// The files of an export, as paths below its folder.
fn exported(folder: &Path) -> Vec<String> {
    let out = folder.join("out");
    let below = |file: PathBuf| file.strip_prefix(&out).expect("below").to_string_lossy().into_owned();
    files(&out).into_iter().map(below).collect()
}

/// A trace with a UUID is moved with all its tables, also those that are not written now.
#[test]
fn a_trace_has_one_place_also_if_only_some_tables_are_written() {
    for format in FORMATS {
        let trace = record(format, |_: &Session| {
            trace_scope!("t", "step");
        });
        let folder = tempfile::tempdir().expect("a folder");
        let (folder, input) = (folder.path(), format!("in.{}", extension(format)));
        std::fs::copy(trace.path(), folder.join(&input)).expect("a copy");
        for arguments in [&[][..], &["--table", "slice"], &["--table", "trace,slice"]] {
            let service = format!("s{}", arguments.join("").len());
            let done = export(folder, &[&[input.as_str(), "--service", &service], arguments].concat());
            assert!(done.status.success(), "{}", stderr(&done));
            let written = exported(folder);
            assert_eq!(written.len(), 10, "{format:?}: {written:?}");
            let of_service = format!("/service={service}/");
            assert!(written.iter().all(|file| file.contains(&of_service)), "{format:?}: {written:?}");
            let folders = std::fs::read_dir(folder.join("out/slice"))
                .expect("dates")
                .map(|date| std::fs::read_dir(date.expect("a date").path()).expect("services").count());
            assert_eq!(folders.collect::<Vec<_>>(), [1], "no empty folder is left");
        }
        assert_eq!(
            ask(&folder.join("out"), &["select count(*) from trace join slice using (trace)"])[0][0][0],
            1
        );
    }
}

/// Equal hashes of events do not prove that two traces are the same one.
#[test]
fn a_trace_without_a_uuid_replaces_only_files_at_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("a.json"), SMALL).expect("a trace");
    for service in ["one", "two", "one"] {
        let done = export(folder, &["a.json", "--service", service]);
        assert!(done.status.success(), "{}", stderr(&done));
    }
    let written = exported(folder);
    for service in ["/service=one/", "/service=two/"] {
        assert_eq!(written.iter().filter(|file| file.contains(service)).count(), 10, "{written:?}");
    }
}

/// They differ only in what the time, the track and the number of the name do not say.
#[test]
fn different_traces_without_a_uuid_have_different_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let of = |from: &str, to: &str| SMALL.replace(from, to);
    let traces = [
        SMALL.to_owned(),
        of("\"dur\":3", "\"dur\":4"),
        of("\"n\":1", "\"n\":2"),
        of("\"list\":[1", "\"list\":[2"),
        of("inner", "other"),
        of("\"db\"", "\"dc\""),
        of("\"tid\":1", "\"tid\":2"),
        of("\"pid\":1", "\"pid\":2"),
        of("\"web\"", "\"wed\""),
        of("\"ph\":\"i\"", "\"ph\":\"B\""),
    ];
    let names: Vec<String> = (0..traces.len()).map(|n| format!("{n}.json")).collect();
    for (name, text) in names.iter().zip(&traces) {
        std::fs::write(folder.join(name), text).expect("a trace");
    }
    let mut arguments = vec!["--service", "all"];
    arguments.extend(names.iter().map(String::as_str));
    let done = export(folder, &arguments);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(exported(folder).iter().filter(|file| file.starts_with("slice/")).count(), traces.len());
}

/// Somebody else who may write in the output folder plants links to files and folders outside of it.
#[cfg(unix)]
#[test]
fn no_link_in_the_output_folder_is_followed() {
    use std::os::unix::fs::symlink;

    let trace = record(Format::Fxt, |_: &Session| {
        trace_scope!("t", "step");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::copy(trace.path(), folder.join("in.fxt")).expect("a copy");
    assert!(export(folder, &["in.fxt", "--service", "a"]).status.success());
    let slice = exported(folder).into_iter().find(|file| file.starts_with("slice/")).expect("slices");
    let of_trace = folder.join("out").join(slice).parent().expect("a folder").to_owned();
    let (outside, of_service) = (folder.join("outside"), of_trace.parent().expect("a folder").to_owned());
    let levels = [of_trace.clone(), of_service.clone(), of_service.parent().expect("a date").to_owned()];
    for level in levels {
        // The files of the trace are elsewhere, and the link leads there.
        std::fs::rename(&level, &outside).expect("renamed");
        symlink(&outside, &level).expect("a link");
        let before = files(&outside);
        let there = std::fs::metadata(&before[0]).expect("a file").modified().expect("a time");
        let through = export(folder, &["in.fxt", "--service", "a"]);
        assert_eq!(through.status.code(), Some(1), "{}", level.display());
        assert!(stderr(&through).contains("is a link"), "{}", stderr(&through));
        let other = export(folder, &["in.fxt", "--service", "b"]);
        let is_date = level == *of_service.parent().expect("a date");
        assert_eq!(other.status.success(), !is_date, "{}: {}", level.display(), stderr(&other));
        assert_eq!(files(&outside), before, "{}", level.display());
        assert_eq!(std::fs::metadata(&before[0]).expect("a file").modified().expect("a time"), there);
        std::fs::remove_file(&level).expect("the link");
        std::fs::rename(&outside, &level).expect("renamed");
        assert!(export(folder, &["in.fxt", "--service", "a"]).status.success());
        assert_eq!(exported(folder).len(), 10);
    }
}

/// A row of `trace` says that the other tables are complete and belong to it.
#[cfg(unix)]
#[test]
fn what_cannot_be_replaced_completely_has_no_row_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("a.json"), SMALL).expect("a trace");
    for arguments in [&["a.json"][..], &["a.json", "--table", "slice,thread"]] {
        assert!(export(folder, &["a.json"]).status.success());
        let thread = exported(folder).into_iter().find(|file| file.starts_with("thread/")).expect("threads");
        let thread = folder.join("out").join(thread);
        std::fs::remove_file(&thread).expect("removed");
        std::fs::create_dir_all(thread.join("no file")).expect("a folder in place of the file");
        assert_eq!(export(folder, arguments).status.code(), Some(1));
        let left = exported(folder);
        assert!(
            !left.iter().any(|file| file.starts_with("trace/") && file.ends_with(".parquet")),
            "{left:?}"
        );
        std::fs::remove_dir_all(&thread).expect("removed");
        let done = export(folder, &["a.json"]);
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(exported(folder).len(), 10, "{:?}", exported(folder));
    }
}

/// Each open file of an export counts, but only while it is written.
#[cfg(target_os = "linux")]
#[test]
fn many_traces_need_no_more_descriptors_than_one() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.json"), SMALL).expect("a trace");
    let program = env!("CARGO_BIN_EXE_hairline_command");
    let many = "a.json ".repeat(100);
    let script = format!("ulimit -n 64; exec '{program}' export {many} -o out");
    let done =
        run(Command::new("sh").current_dir(folder.path()).args(["-c", &script]).stderr(Stdio::piped()));
    assert!(done.status.success(), "{}", stderr(&done));
}

/// All files have a temporary name when the signal comes.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_removes_all_temporary_files() {
    use std::os::unix::process::ExitStatusExt;

    let folder = tempfile::tempdir().expect("a folder");
    large(folder.path());
    for signal in ["INT", "TERM"] {
        let mut child = hairline_that_heeds_signals(folder.path())
            .args(["export", "large.fxt", "-o", "out"])
            .spawn()
            .expect("it starts");
        let until = Instant::now() + Duration::from_secs(60);
        while files(&folder.path().join("out")).len() < 10 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().expect("kill").success());
        let status = child.wait().expect("ended");
        assert!(status.signal().is_some(), "{status}");
        assert_eq!(exported(folder.path()), [] as [String; 0]);
    }
}

/// A name of a file is no command to the terminal.
#[cfg(unix)]
#[test]
fn a_path_has_no_escapes_in_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "a\u{1b}[2J.json";
    std::fs::write(folder.path().join(name), SMALL).expect("a trace");
    let outputs = [export(folder.path(), &[name]), export(folder.path(), &["b\u{1b}[2J.json"])];
    for done in outputs {
        let said = [&done.stdout[..], &done.stderr[..]].concat();
        assert!(!said.is_empty() && !said.contains(&0x1b), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn the_files_of_a_rotated_output_are_traces_of_their_own() {
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let path = folder.join(format!("t.{}", extension(format)));
        let session = Session::builder()
            .output(&path)
            .rotate(64 << 10, 0)
            .buffer_size(1 << 20)
            .start()
            .expect("a session");
        for n in 0..4_000 {
            trace_scope!("t", "step", n);
            if n % 500 == 0 {
                session.flush().expect("no error");
            }
        }
        session.stop().expect("no error");
        let inputs: Vec<String> = std::fs::read_dir(folder)
            .expect("files")
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        assert!(inputs.len() > 2, "{inputs:?}");
        let done = export(folder, &inputs.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(done.status.success() && !stderr(&done).contains("same trace"), "{}", stderr(&done));
        let sql = ["select count(distinct trace) from trace", "select count(distinct int_value) from arg"];
        let answers = ask(&folder.join("out"), &sql);
        assert_eq!((&answers[0][0][0], &answers[1][0][0]), (&inputs.len().into(), &4_000.into()));
    }
}
