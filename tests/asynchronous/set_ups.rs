//! `hairline::layer()` in the set-ups that programs have: it starts with each of them, and changes nothing
//! for the other layers. All in programs of their own, since a process has one subscriber and one logger.

use std::path::Path;
use std::process::Command;

use hairline_tests::judge;

/// The set-ups, each with the level of `log` that it has without the layer, and whether its filter is for all
/// layers.
const SET_UPS: [(&str, &str, bool); 17] = [
    ("fmt", "INFO", true),
    ("fmt-env", "TRACE", true),
    ("above", "TRACE", false),
    ("below", "TRACE", false),
    ("above-filtered", "INFO", false),
    ("below-filtered", "INFO", false),
    ("below-targets", "TRACE", false),
    ("global-first", "TRACE", true),
    ("global-last", "TRACE", true),
    ("boxed", "INFO", false),
    ("optional", "TRACE", false),
    ("list", "TRACE", false),
    ("tree", "TRACE", false),
    ("tree-below", "TRACE", false),
    ("reloadable-tree", "TRACE", false),
    ("reloadable", "TRACE", false),
    ("reloaded", "TRACE", false),
];

/// Runs the program in the directory. Returns its output.
fn run(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_beside"));
    let program = program.args(arguments).current_dir(directory).envs(variables.iter().copied());
    let output = program.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program with a layer that does nothing instead of Hairline's. A tree of layers passes the level
/// of such a layer on, so for a tree the two layers are above each other.
fn run_without(directory: &Path, set_up: &str) -> String {
    let set_up = if set_up.contains("tree") { "above" } else { set_up };
    run(directory, &[set_up, "without"], &[])
}

/// Returns the output of `fmt`, and the levels at the end.
fn parts(output: &str) -> (&str, &str) {
    let (text, levels) = output.split_once("levels: ").unwrap();
    (text, levels.trim())
}

/// Returns the texts of all events and the names of all spans, sorted.
fn recorded(trace: &Path) -> Vec<String> {
    let query = format!("select {} as text from slice s order by text", crate::TEXT);
    let verdict = judge::load(trace, &[&query]);
    verdict.require_clean();
    verdict.results[0].text().lines().map(str::to_owned).collect()
}

/// Returns the texts that a program records up to the level.
fn all_up_to(level: usize, with_noise: bool) -> Vec<String> {
    let levels = ["error", "warn", "info", "debug", "trace"];
    let of = |prefix: &str, n: usize| levels[..n].iter().map(|l| format!("{prefix}{l}")).collect::<Vec<_>>();
    let noise = if with_noise { levels.len() } else { level };
    let mut all = [of("", level), of("span ", level), of("log ", level), of("noisy ", noise)].concat();
    all.sort();
    all
}

#[test]
fn without_a_session_no_set_up_notices_the_layer() {
    let directory = tempfile::tempdir().unwrap();
    for (set_up, level, _) in SET_UPS {
        let without = run_without(directory.path(), set_up);
        let with = run(directory.path(), &[set_up, "with"], &[]);
        assert_eq!(with, without, "{set_up}");
        let levels = format!("{level} {}", level.to_lowercase());
        assert_eq!(parts(&with).1, levels, "{set_up}");
    }
}

#[test]
fn every_set_up_records_and_the_other_layers_have_what_they_have_without() {
    let directory = tempfile::tempdir().unwrap();
    for (set_up, _, is_global) in SET_UPS {
        let without = run_without(directory.path(), set_up);
        for extension in ["fxt", "pftrace"] {
            let trace = directory.path().join(format!("{set_up}.{extension}"));
            let variables = [("HAIRLINE", trace.to_str().unwrap()), ("HAIRLINE_LEVEL", "trace")];
            let with = run(directory.path(), &[set_up, "with"], &variables);
            assert_eq!(parts(&with).0, parts(&without).0, "{set_up}");
            let expected = if is_global { all_up_to(3, set_up != "fmt") } else { all_up_to(5, true) };
            assert_eq!(recorded(&trace), expected, "{set_up}");
        }
    }
}

#[test]
fn a_session_that_starts_after_the_set_up_has_the_messages_of_log_too() {
    for (set_up, level, is_global) in SET_UPS {
        let directory = tempfile::tempdir().unwrap();
        let without = run_without(directory.path(), set_up);
        let with = run(directory.path(), &[set_up, "session", "trace"], &[]);
        assert_eq!(parts(&with).0, parts(&without).0, "{set_up}");
        assert_eq!(
            parts(&with).1,
            format!("{level} {}", level.to_lowercase()),
            "{set_up}: after the session"
        );
        let expected = if is_global { all_up_to(3, set_up != "fmt") } else { all_up_to(5, true) };
        assert_eq!(recorded(&directory.path().join("own.pftrace")), expected, "{set_up}");
    }
}

#[test]
fn a_message_of_log_has_its_own_target_level_and_place() {
    let directory = tempfile::tempdir().unwrap();
    for set_up in ["above", "fmt", "subscriber"] {
        for extension in ["fxt", "pftrace"] {
            let trace = directory.path().join(format!("{set_up}.{extension}"));
            let path = trace.to_str().unwrap();
            let variables =
                [("HAIRLINE", path), ("HAIRLINE_CATEGORIES", "depend*"), ("HAIRLINE_SOURCE_LOCATIONS", "on")];
            run(directory.path(), &[set_up, "with"], &variables);
            let text = crate::TEXT;
            let verdict = judge::load(
                &trace,
                &[
                    &format!(
                        "select s.category, s.name like 'event %beside.rs:%', {text} as text from slice s \
                         order by text"
                    ),
                    "select count() from args where key like '%log.%'",
                    "select count(distinct arg_set_id) from args where display_value like '%beside.rs%' \
                     and key in ('source', 'source.file_name')",
                    "select distinct display_value from args where key in ('level', 'debug.level') order by 1",
                ],
            );
            verdict.require_clean();
            let [messages, fields, places, levels] = [0, 1, 2, 3].map(|n| verdict.results[n].text());
            let name = format!("{set_up}, {extension}");
            assert_eq!(
                messages, "dependency\t1\tlog error\ndependency\t1\tlog info\ndependency\t1\tlog warn",
                "{name}"
            );
            assert_eq!(fields, "0", "{name}");
            assert_eq!(places, "3", "{name}");
            assert_eq!(levels, "error\nwarn", "{name}");
        }
    }
}

#[test]
fn a_logger_that_comes_too_late_says_which_one_is_there() {
    let directory = tempfile::tempdir().unwrap();
    for (set_up, which) in [
        ("above", "the logger is tracing-log's `LogTracer` already"),
        ("subscriber", "the process has a logger already"),
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_beside"));
        let output = program.args([set_up, "logger"]).current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with(&format!("hairline: {which}")) && said.lines().count() == 1, "{said}");
    }
}
