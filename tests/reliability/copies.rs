//! A process with two copies of Hairline, one of them in a library that the process loads.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use hairline_tests::children;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::program::{Run, has_the_work, run};

/// Builds a library with a copy of Hairline of its own. Returns its path.
fn plugin() -> String {
    // With the features of a test of the whole workspace, which has built it then.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--offline", "--profile", "test", "--example", "plugin"])
        .args(["--message-format", "json", "--workspace", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    let said = String::from_utf8_lossy(&built.stdout);
    let library = said.split('"').find(|word| word.ends_with("libplugin.so"));
    let library = library.unwrap_or_else(|| panic!("no library: {built:?}"));
    library.to_owned()
}

#[test]
fn a_library_with_its_own_copy_has_its_own_session_and_trace() {
    let library = &*plugin();
    for format in FORMATS {
        for way in ["plugin", "plugin-stop"] {
            let (trace, other) =
                (format!("t.{}", extension(format)), format!("plugin.{}", extension(format)));
            let variables = [("PLUGIN", library), ("PLUGIN_OUTPUT", &other), ("HAIRLINE", "")];
            let run = run(&[way, &trace], &variables);
            assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 0), "{:?}", run.output);
            assert!(run.region().is_none());
            has_the_work(&run.path(&trace));
            let sql = ["select name, count(*) from slice group by name"];
            let verdict = judge::load(run.path(&other), &sql);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), "of the plugin\t20");
            let verdict =
                judge::load(run.path(&trace), &["select count(*) from slice where category = 'plugin'"]);
            assert_eq!(verdict.results[0].single_i64(), 0);
        }
        // Both are asked for one file: each has one.
        let (trace, second) = (format!("t.{}", extension(format)), format!("t-2.{}", extension(format)));
        let run = run(&["plugin"], &[("PLUGIN", library), ("PLUGIN_OUTPUT", &trace), ("HAIRLINE", &trace)]);
        assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
        assert!(run.said().iter().any(|line| line.contains("another copy of Hairline")), "{:?}", run.output);
        has_the_work(&run.path(&trace));
        let verdict = judge::load(run.path(&second), &["select name, count(*) from slice group by name"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "of the plugin\t20");
    }
}

/// The slices of the program and of its library.
fn of_both(trace: &std::path::Path) -> String {
    let sql =
        "select name, count(*) from slice where name in ('work', 'of the plugin') group by name order by 1";
    judge::load(trace, &[sql]).results[0].text()
}

#[test]
fn the_copies_of_a_process_are_in_one_recording_and_one_snapshot() {
    let library = &*plugin();
    let hairline = || Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let name = format!("t.{}", extension(format));
        let path = directory.path().join(&name);
        let recorded = hairline()
            .args(["record", "-o"])
            .arg(&path)
            .args(["--", env!("CARGO_BIN_EXE_ending"), "plugin"])
            .current_dir(directory.path())
            .env("PLUGIN", library)
            .env("PLUGIN_OUTPUT", "of-its-own.fxt")
            .output()
            .expect("it ran");
        assert!(recorded.status.success(), "{recorded:?}");
        assert_eq!(of_both(&path), "of the plugin\t20\nwork\t20", "{recorded:?}");
        // Both go on until they are told to end.
        let variables = [("PLUGIN", library), ("PLUGIN_OUTPUT", &*name), ("HAIRLINE", &*name)];
        let settings = [("HAIRLINE_SIGNALS", "on")];
        let variables = [&variables[..], &settings].concat();
        let ending = env!("CARGO_BIN_EXE_ending");
        let mut run = Run::start(ending, tempfile::tempdir().expect("one"), &["plugin-waits"], &variables);
        while !run.path("ready").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pid = run.pid.to_string();
        let snapshot = directory.path().join(format!("s.{}", extension(format)));
        let snapped = hairline().args(["snapshot", &pid, "-o"]).arg(&snapshot).output().expect("it ran");
        assert!(snapped.status.success(), "{snapped:?}");
        assert_eq!(of_both(&snapshot), "of the plugin\t20\nwork\t20", "{snapped:?}");
        let top = hairline().args(["top", "--once", "--interval", "0.1", &pid]).output().expect("it ran");
        let tables = String::from_utf8_lossy(&top.stdout).matches("(ending)").count();
        assert_eq!(tables, 2, "{top:?}");
        // Each completes its trace before the process dies of the signal.
        children::signal(run.pid, libc::SIGTERM);
        run.end(std::time::Duration::from_secs(60)).expect("its end");
        assert_eq!(run.output.status.signal(), Some(libc::SIGTERM), "{:?}", run.output);
        assert!(run.region().is_none(), "nothing is left to recover");
        assert_eq!(of_both(&run.path(&name)), "work\t20");
        assert_eq!(of_both(&run.path(&format!("t-2.{}", extension(format)))), "of the plugin\t20");
    }
}
