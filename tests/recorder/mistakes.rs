//! Settings that have no effect, or contradict each other: an error, or a note that says so.

use std::process::Command;
use std::time::Duration;

use hairline::{Error, Format, MemoryOutput, Overflow, Session, trace_scope};
use hairline_tests::recording::turn;

#[test]
fn a_snapshot_with_the_extension_of_another_format_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (format, wrong, right) in
        [(Format::TrackEvent, "x.fxt", "x.pftrace"), (Format::Fxt, "y.pftrace", "y.fxt")]
    {
        let _turn = turn();
        let builder = Session::builder().overflow(Overflow::Overwrite).format(format);
        let session = builder.buffer_size(256 << 10).start().unwrap();
        let error = session.snapshot(folder.path().join(wrong)).unwrap_err();
        assert!(matches!(error, Error::WrongExtension { .. }), "{error:?}");
        let text = error.to_string();
        let next_step = right.trim_start_matches(['x', 'y']);
        assert!(text.contains(wrong) && text.contains(next_step) && text.contains("records"), "{text}");
        assert!(!folder.path().join(wrong).exists());
        session.snapshot(folder.path().join(right)).unwrap();
        session.snapshot(folder.path().join("no-extension")).unwrap();
        session.stop().unwrap();
        let output = Session::builder().output(folder.path().join(wrong)).format(format);
        assert!(matches!(output.start(), Err(Error::WrongExtension { .. })));
    }
}

#[test]
fn the_path_of_a_snapshots_summary_is_absolute() {
    let _turn = turn();
    let session = Session::builder().overflow(Overflow::Overwrite).buffer_size(256 << 10).start().unwrap();
    let name = format!("relative-{}.pftrace", std::process::id());
    let path = session.snapshot(&name).unwrap().path.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(path, std::env::current_dir().unwrap().join(name));
    session.stop().unwrap();
}

/// The notes of a session of one scope, `app/step`.
fn notes(builder: hairline::SessionBuilder) -> Vec<String> {
    let _turn = turn();
    let session = builder.output_memory(&MemoryOutput::new()).buffer_size(256 << 10).start().unwrap();
    {
        trace_scope!("app", "step");
    }
    session.stop().unwrap().notes
}

#[test]
fn triggers_of_a_session_that_writes_no_window_are_noted() {
    let limit = Duration::from_secs(1);
    let builders = || {
        [
            Session::builder().trigger_on_panic(true),
            Session::builder().trigger_on_signal(12),
            Session::builder().trigger_on_slow("app/*", limit),
        ]
    };
    for builder in builders() {
        let notes = notes(builder);
        assert!(notes.iter().any(|note| note.contains("Overflow::Overwrite")), "{notes:?}");
    }
    let idle = |notes: &[String]| notes.iter().any(|note| note.starts_with("a trigger has no effect: "));
    for builder in builders() {
        let notes = notes(builder.overflow(Overflow::Overwrite));
        assert!(idle(&notes), "into memory: {notes:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    for builder in builders() {
        let _turn = turn();
        let recorder = builder.overflow(Overflow::Overwrite).buffer_size(256 << 10);
        let notes = recorder.output(folder.path().join("t.fxt")).start().unwrap().stop().unwrap().notes;
        assert!(!idle(&notes), "into a file: {notes:?}");
    }
}

#[test]
fn settings_of_an_output_that_have_no_effect_are_noted() {
    let fxt = || Session::builder().format(Format::Fxt);
    let recorder = || Session::builder().overflow(Overflow::Overwrite);
    for (builder, setting, reason) in [
        (fxt().compress(true), "`compress`", "FXT"),
        (fxt().rotate(1 << 20, 2), "`rotate`", "no regular file"),
        (recorder().compress(true), "`compress`", "flight recorder"),
        (recorder().rotate(1 << 20, 2), "`rotate`", "flight recorder"),
        (recorder().max_file_size(1 << 20), "`max_file_size`", "flight recorder"),
    ] {
        let notes = notes(builder);
        assert!(notes.iter().any(|note| note.contains(setting) && note.contains(reason)), "{notes:?}");
    }
    let good = Session::builder().format(Format::TrackEvent).compress(true).max_file_size(1 << 20);
    assert!(notes(good).iter().all(|note| !note.contains("no effect")));
}

#[test]
fn a_rule_for_slow_slices_that_matches_none_is_noted() {
    let limit = Duration::from_secs(1);
    let recorder = || Session::builder().overflow(Overflow::Overwrite);
    let wrong = notes(recorder().trigger_on_slow("app/stpe", limit).trigger_on_slow("app/*", limit));
    assert!(wrong.iter().any(|note| note.contains("\"app/stpe\"")), "{wrong:?}");
    assert!(wrong.iter().all(|note| !note.contains("\"app/*\"")), "{wrong:?}");
}

#[test]
fn the_environment_reports_settings_and_paths_without_effect() {
    let folder = tempfile::tempdir().unwrap();
    let run = |output: &str, more: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_victim"));
        command.arg("steps").env("HAIRLINE", folder.path().join(output)).envs(more.iter().copied());
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let line = run("t.fxt", &[("HAIRLINE_TRIGGER", "panic")]);
    assert!(line.contains("HAIRLINE_TRIGGER") && line.contains("HAIRLINE_OVERFLOW=overwrite"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let line = run("t.fxt", &[("HAIRLINE_COMPRESS", "on")]);
    assert!(line.contains("HAIRLINE_COMPRESS") && line.contains("FXT"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let recorder = ("HAIRLINE_OVERFLOW", "overwrite");
    let line = run("t.fxt", &[recorder, ("HAIRLINE_TRIGGER", "slow:nothing/here:1s")]);
    assert!(line.contains("\"nothing/here\"") && line.lines().count() == 1, "{line}");
    let line = run("t-%q.fxt", &[]);
    assert!(line.contains("\"%q\"") && line.lines().count() == 1, "{line}");
    assert_eq!(run("t-%p-%%.fxt", &[recorder, ("HAIRLINE_TRIGGER", "panic")]), "");
}
