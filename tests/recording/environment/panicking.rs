//! Panics of a real process as instants.

use super::{Run, run_program};
use hairline::recovery::{self, RecoverOptions};
use hairline_tests::judge;
use hairline_tests::regions::region_of;

/// The panics of a trace: thread, enclosing slice, message, and the file of the location.
const PANICS: &str = "select t.name, p.name, m.string_value, l.string_value like 'tests/src/bin/panics.rs:%:%' \
    from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
    left join slice p on s.parent_id = p.id \
    join args m on m.arg_set_id = s.arg_set_id and m.key in ('message', 'debug.message') \
    join args l on l.arg_set_id = s.arg_set_id and l.key in ('location', 'debug.location') \
    where s.category = 'panic' and s.name = 'panic' and s.dur = 0 order by s.ts";

const EXTENSIONS: [&str; 2] = ["fxt", "pftrace"];

fn panics(way: &str, file: &str, variables: &[(&str, &str)]) -> Run {
    run_program(env!("CARGO_BIN_EXE_panics"), &[way, file], variables)
}

fn recorded(run: &Run, file: &str) -> String {
    let verdict = judge::load(run.path(file), &[PANICS]);
    verdict.require_clean();
    verdict.results[0].text()
}

#[test]
fn a_panic_is_an_instant_in_its_scope_and_the_programs_hook_runs_too() {
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let run = panics("hook", &file, &[]);
        assert_eq!(run.stdout(), "hook: on purpose\n0 lost\n", "{:?}", run.output);
        assert_eq!(recorded(&run, &file), "main\twork\ton purpose\t1", "{extension}");
    }
}

#[test]
fn the_environment_records_panics_though_its_filter_does_not_name_them() {
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let variables = [
            ("HAIRLINE", &*format!("{{}}/{file}")),
            ("HAIRLINE_PANICS", "1"),
            ("HAIRLINE_CATEGORIES", "app"),
        ];
        let run = panics("thread", "", &variables);
        assert_eq!((run.stdout(), run.stderr()), ("hook: ?\n".to_owned(), vec![]), "{:?}", run.output);
        assert_eq!(recorded(&run, &file), "worker\tNULL\tnumber 2\t1", "{extension}");
    }
}

#[test]
fn panics_are_not_recorded_unless_a_setting_asks() {
    let run = panics("hook", "", &[("HAIRLINE", "{}/t.pftrace")]);
    assert_eq!(recorded(&run, "t.pftrace"), "");
}

#[test]
fn a_hook_that_is_set_later_may_call_the_one_before() {
    let run = panics("replaced", "t.fxt", &[]);
    assert_eq!(run.stdout(), "later hook\nhook: on purpose\n0 lost\n");
    assert_eq!(recorded(&run, "t.fxt"), "main\twork\ton purpose\t1");
    let run = panics("lost", "t.fxt", &[]);
    assert_eq!(run.stdout(), "later hook\n0 lost\n");
    assert_eq!(recorded(&run, "t.fxt"), "");
}

#[test]
fn a_panic_in_the_code_of_an_argument_is_an_instant() {
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let run = panics("argument", &file, &[]);
        assert_eq!(run.stdout(), "hook: in an argument\nhook: on purpose\n0 lost\n", "{:?}", run.output);
        let expected = "main\tNULL\tin an argument\t1\nmain\tNULL\ton purpose\t1";
        assert_eq!(recorded(&run, &file), expected, "{extension}");
    }
}

#[test]
fn a_panic_inside_of_an_event_is_counted() {
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let run = panics("inside", &file, &[]);
        assert_eq!(run.stdout(), "hook: in an argument\nhook: on purpose\n1 lost\n", "{:?}", run.output);
        // The judge sees the loss, so the trace is not clean.
        let rows = judge::load(run.path(&file), &[PANICS]).results[0].text();
        assert_eq!(rows, "main\tNULL\ton purpose\t1", "{extension}");
    }
}

#[test]
fn a_panic_that_aborts_the_process_is_in_the_file_already() {
    use std::os::unix::process::ExitStatusExt;
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let run = panics("abort", &file, &[]);
        assert_eq!(run.output.status.signal(), Some(libc::SIGABRT), "{:?}", run.output);
        let flushed = std::fs::read(run.path(&file)).expect("the trace");
        assert!(flushed.windows(10).any(|bytes| bytes == b"on purpose"), "{extension}");
        recovery::recover(&region_of(&run.path(&file)), &RecoverOptions::new()).expect("recovered");
        let rows = recorded(&run, &file);
        // The second panic is that of the boundary, and its location is in the standard library.
        assert_eq!(rows.lines().next(), Some("main\tfatal\ton purpose\t1"), "{extension}: {rows}");
    }
}

#[test]
fn the_snapshot_of_a_panic_has_its_instant() {
    for extension in EXTENSIONS {
        let variables = [
            ("HAIRLINE", &*format!("{{}}/t-%n.{extension}")),
            ("HAIRLINE_OVERFLOW", "overwrite"),
            ("HAIRLINE_TRIGGER", "panic"),
            ("HAIRLINE_PANICS", "on"),
        ];
        let run = panics("hook", "", &variables);
        assert_eq!(run.files(), [format!("t-1.{extension}"), format!("t-2.{extension}")]);
        assert_eq!(recorded(&run, &format!("t-1.{extension}")), "main\twork\ton purpose\t1", "{extension}");
    }
}

#[test]
fn a_hook_that_ends_the_process_does_not_keep_the_panic_from_the_trace() {
    for extension in EXTENSIONS {
        let file = format!("t.{extension}");
        let run = panics("exit", &file, &[]);
        assert_eq!(run.output.status.code(), Some(3));
        assert_eq!(recorded(&run, &file), "main\twork\ton purpose\t1", "{extension}");
    }
}

#[test]
fn panics_wait_for_an_output_that_is_stuck_once_and_not_for_long() {
    let directory = tempfile::tempdir().expect("a directory");
    // The pipe has its reader, who never reads, before the program opens it.
    let script = "mkfifo t.fxt; exec 3<>t.fxt; sleep 60 <&3 3<&- & exec 3<&-; \"$1\" stuck t.fxt; kill %1";
    let run = std::process::Command::new("bash")
        .args(["-c", script, "-"])
        .arg(env!("CARGO_BIN_EXE_panics"))
        .env_remove("HAIRLINE")
        .current_dir(&directory)
        .output()
        .expect("it ran");
    let printed = String::from_utf8_lossy(&run.stdout);
    assert_eq!(printed, "hook: on purpose\n".repeat(5) + "1 s\n", "{run:?}");
    let recovered = directory.path().join("recovered.fxt");
    let region = region_of(&directory.path().join("t.fxt"));
    recovery::recover(&region, &RecoverOptions::new().to(&recovered)).expect("recovered");
    let panics = judge::load(recovered, &[PANICS]).results[0].text();
    assert_eq!(panics.lines().count(), 5, "none is lost: {panics}");
}
