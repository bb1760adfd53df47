//! A program that starts a session itself, run with `HAIRLINE`: the environment's session is its session.

use super::{Run, run_program};
use hairline_tests::judge;

const OF_PARTS: &str = "select a.string_value, count(*) from slice join args a using (arg_set_id) \
    where a.key in ('part', 'debug.part') group by 1 order by 1";

fn both(way: &str, variables: &[(&str, &str)]) -> Run {
    let run = run_program(env!("CARGO_BIN_EXE_both"), &[way, "own.pftrace"], variables);
    assert_eq!(run.output.status.code(), Some(0), "{way}: {:?}", run.output);
    run
}

fn parts(run: &Run, file: &str) -> String {
    let verdict = judge::load(run.path(file), &[OF_PARTS]);
    verdict.require_clean();
    verdict.results[0].text()
}

#[test]
fn the_environments_session_is_the_programs_whichever_comes_first() {
    for extension in ["fxt", "pftrace"] {
        let asked = format!("asked.{extension}");
        let variables = [("HAIRLINE", &*format!("{{}}/{asked}"))];
        for (way, records, rows) in [("before", 20, "within\t10"), ("after", 40, "early\t10\nwithin\t10")] {
            let run = both(way, &variables);
            assert_eq!(run.stdout(), format!("first: {records} records in {asked}\ndone\n"), "{way}");
            assert_eq!(run.files(), std::slice::from_ref(&asked), "{way}");
            assert_eq!(parts(&run, &asked), rows, "{way}");
            let line = format!(
                "hairline: HAIRLINE is set: recording to {}; the program's own settings have no effect: output, \
                 categories, buffer_size",
                run.path(&asked).display()
            );
            assert_eq!(run.stderr(), [line], "{way}");
        }
    }
}

#[test]
fn the_line_about_settings_that_do_not_apply_can_be_switched_off() {
    let run = both("before", &[("HAIRLINE", "{}/asked.fxt"), ("HAIRLINE_LOG", "off")]);
    assert_eq!(run.stderr(), [""; 0]);
}

#[test]
fn each_handle_of_the_environments_session_has_the_same_summary() {
    let run = both("two", &[("HAIRLINE", "{}/asked.fxt")]);
    assert_eq!(run.stdout(), "first: 20 records in asked.fxt\nsecond: 20 records in asked.fxt\ndone\n");
    assert_eq!(run.files(), ["asked.fxt"]);
}

#[test]
fn without_the_environment_a_second_session_is_refused() {
    let run = both("two", &[]);
    let refused = "a tracing session is already running in this process";
    assert_eq!(run.stdout(), format!("{refused}\nfirst: 20 records in own.pftrace\ndone\n"));
    assert_eq!((run.stderr(), run.files()), (vec![], vec!["own.pftrace".to_owned()]));
}

#[test]
fn after_the_end_of_the_environments_session_the_program_has_its_own() {
    let run = both("again", &[("HAIRLINE", "{}/asked.pftrace")]);
    let printed = "first: 20 records in asked.pftrace\nsecond: 20 records in second-own.pftrace\ndone\n";
    assert_eq!(run.stdout(), printed);
    assert_eq!(parts(&run, "asked.pftrace"), "within\t10");
    assert_eq!(parts(&run, "second-own.pftrace"), "second\t10");
}

#[test]
fn a_dropped_handle_ends_the_environments_session_and_info_reports_each_end() {
    for way in ["before", "dropped"] {
        let run = both(way, &[("HAIRLINE", "{}/asked.pftrace"), ("HAIRLINE_LOG", "info")]);
        let said = run.stderr();
        assert_eq!(said.first().map(String::as_str), Some("hairline: tracing"), "{way}: {said:?}");
        let ends = said.iter().filter(|line| line.contains("20 records") && line.contains("0 events lost"));
        assert_eq!(ends.count(), 1, "{way}: {said:?}");
        assert_eq!(parts(&run, "asked.pftrace"), "within\t10", "{way}");
    }
}

#[test]
fn a_forked_child_that_starts_a_session_has_the_environments_for_itself() {
    for extension in ["fxt", "pftrace"] {
        let run = both("fork", &[("HAIRLINE", &format!("{{}}/t-%p.{extension}"))]);
        let files = run.files();
        assert_eq!(files.len(), 2, "{files:?}");
        let mut found: Vec<_> = files.iter().map(|file| parts(&run, file)).collect();
        found.sort();
        assert_eq!(found, ["child\t10", "within\t10"], "{extension}");
        assert_eq!(run.stderr().len(), 2, "a line in each process: {:?}", run.stderr());
    }
}

#[test]
fn a_wrong_value_in_the_environment_leaves_the_program_its_own_session() {
    let run = both("before", &[("HAIRLINE", "{}/asked.fxt"), ("HAIRLINE_CLOCK", "sundial")]);
    assert_eq!(run.stdout(), "first: 20 records in own.pftrace\ndone\n");
    let line = "hairline: HAIRLINE_CLOCK \"sundial\": use counter or system; \
                the session of the program's own settings starts instead";
    assert_eq!((run.stderr(), run.files()), (vec![line.to_owned()], vec!["own.pftrace".to_owned()]));
}
