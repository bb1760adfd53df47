//! Variables of the environment beside those that every session has: names that are unknown, values that have
//! no effect, losses, and the level and the mode of `tracing` and `log`.

use super::{Run, run, run_program};
use hairline_tests::judge;

#[test]
fn an_unknown_name_is_one_line_with_the_nearest_known_one() {
    let variables = [("HAIRLINE", "{}/t.pftrace"), ("HAIRLINE_CATEGORY", "net"), ("HAIRLINE_TRIGER", "")];
    let run = run(&["return"], &variables);
    let mut said = run.stderr();
    said.sort();
    assert_eq!(
        said,
        [
            "hairline: HAIRLINE_CATEGORY is unknown and has no effect; do you mean HAIRLINE_CATEGORIES?",
            "hairline: HAIRLINE_TRIGER is unknown and has no effect; do you mean HAIRLINE_TRIGGER?",
        ]
    );
    super::work_of_both_threads(&run.path("t.pftrace"));
}

#[test]
fn a_name_unlike_all_known_ones_is_one_line_with_all_of_them() {
    let run = run(&["return"], &[("HAIRLINE_OUTPUT", "{}/t.pftrace")]);
    let said = run.stderr();
    assert_eq!(said.len(), 1, "{said:?}");
    let starts =
        "hairline: HAIRLINE_OUTPUT is unknown and has no effect; known are HAIRLINE, HAIRLINE_BUFFER,";
    assert!(said[0].starts_with(starts), "{said:?}");
    assert!(run.files().is_empty());
    let quiet = super::run(&["return"], &[("HAIRLINE_OUTPUT", "{}/t.fxt"), ("HAIRLINE_LOG", "off")]);
    assert_eq!(quiet.stderr(), [""; 0]);
}

/// Whoever starts the program chooses its names. A terminal obeys escapes in what it prints.
#[test]
fn a_name_of_any_length_and_any_characters_is_one_short_line() {
    let names = ["HAIRLINE_\u{1b}[2J\nroot#".to_owned(), format!("HAIRLINE_{}", "A".repeat(100_000))];
    let began = std::time::Instant::now();
    let run = run(&["return"], &names.each_ref().map(|name| (&**name, "1")));
    let mut said = run.stderr();
    said.sort();
    let known = " is unknown and has no effect; known are HAIRLINE, HAIRLINE_BUFFER,";
    assert_eq!(said.len(), 2, "{said:?}");
    let long = format!("hairline: HAIRLINE_{}...{known}", "A".repeat(64 - 9));
    assert!(said[0].starts_with(&long), "{said:?}");
    let escaped = format!(r"hairline: HAIRLINE_\u{{1b}}[2J\nroot#{known}");
    assert!(said[1].starts_with(&escaped), "{said:?}");
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn a_filter_that_matches_nothing_is_one_line_with_the_categories() {
    for extension in ["fxt", "pftrace"] {
        let variables = [("HAIRLINE", &*format!("{{}}/t.{extension}")), ("HAIRLINE_CATEGORIES", "victims")];
        let run = run(&["return"], &variables);
        let line = "hairline: the categories \"victims\" match nothing: the events that the program has reached \
                    have the categories victim";
        assert_eq!(run.stderr(), [line], "{extension}");
        judge::load(run.path(&format!("t.{extension}")), &[]).require_clean();
    }
}

#[test]
fn a_pattern_that_misses_the_category_above_it_is_one_line_beside_that() {
    let run = run(&["return"], &[("HAIRLINE", "{}/t.fxt"), ("HAIRLINE_CATEGORIES", "victim.*")]);
    let hint = "hairline: the category `victim` is not recorded: `victim.*` does not match it; use \
                `victim,victim.*`";
    assert_eq!(run.stderr().get(1).map(String::as_str), Some(hint), "{:?}", run.stderr());
}

#[test]
fn what_was_asked_for_and_had_no_effect_is_one_line() {
    let cases = [
        (
            ("HAIRLINE_HEAP", "on"),
            "the heap profile is empty: the program's #[global_allocator] is no `hairline::Heap`",
        ),
        (
            ("HAIRLINE_STACKS", "nosuch"),
            "the stacks of the categories \"nosuch\" match nothing: the events that the program has reached have \
             the categories victim",
        ),
        (
            ("HAIRLINE_SAMPLE", "wall:99:nobody*"),
            "no thread was sampled by the clock: none had a name like \"nobody*\"; names have 15 bytes",
        ),
        (
            ("HAIRLINE_TRIGGER", "stack"),
            "no slice that the program has reached has a limit, so there are no stacks of slow ones; a rule sets \
             one: CATEGORY/NAME:LIMIT",
        ),
    ];
    for (variable, line) in cases {
        for extension in ["fxt", "pftrace"] {
            let run = run(&["return"], &[("HAIRLINE", &*format!("{{}}/t.{extension}")), variable]);
            assert_eq!(run.stderr(), [format!("hairline: {line}")], "{extension}");
            super::work_of_both_threads(&run.path(&format!("t.{extension}")));
        }
    }
    for heeded in [("HAIRLINE_STACKS", "victim"), ("HAIRLINE_SAMPLE", "wall:99:victim")] {
        let run = run(&["return"], &[("HAIRLINE", "{}/t.pftrace"), heeded]);
        assert_eq!(run.stderr(), [""; 0], "{heeded:?}");
    }
}

#[test]
fn lost_events_are_one_line() {
    for extension in ["fxt", "pftrace"] {
        let path = format!("{{}}/t.{extension}");
        let run = run(&["fork"], &[("HAIRLINE", &path), ("HAIRLINE_BUFFER", "64K")]);
        let said = run.stderr();
        assert_eq!(said.len(), 1, "{extension}: {said:?}");
        for part in [
            format!("t.{extension}: "),
            " events lost (a scope counts once), beside ".to_owned(),
            " records: buffer full ".to_owned(),
            "; a larger HAIRLINE_BUFFER, ".to_owned(),
        ] {
            assert!(said[0].contains(&part), "{extension}: {said:?}");
        }
    }
}

/// Each process has the hold that it began itself, on its own thread.
#[test]
fn holds_of_the_limit_are_recorded_in_a_forked_child_too() {
    let sql = "select count(*) || ' of ' || min(dur >= 20000000) || ' on ' || min(t.tid = p.pid) from slice s \
               join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid) \
               where s.name = 'hold: victim'";
    for extension in ["fxt", "pftrace"] {
        for (limit, expected) in [("10ms", "1 of 1 on 1"), ("10s", "NULL")] {
            let variables = [("HAIRLINE", &*format!("{{}}/%p.{extension}")), ("HAIRLINE_HOLD", limit)];
            let run = run(&["hold"], &variables);
            assert_eq!(run.stderr(), [""; 0], "{extension}");
            let files = run.files();
            assert_eq!(files.len(), 2, "{extension}: {files:?}");
            for file in files {
                let verdict = judge::load(run.path(&file), &[sql]);
                verdict.require_clean();
                assert_eq!(verdict.results[0].text(), expected, "{file} {limit}");
            }
        }
    }
}

#[test]
fn a_limit_that_is_no_time_is_one_line_and_an_untraced_run() {
    for (variable, limit) in ["1", "0ms", "soon", "-1ms"]
        .map(|limit| ("HAIRLINE_HOLD", limit))
        .into_iter()
        .chain([("HAIRLINE_POLL", "0")])
    {
        let run = run(&["hold"], &[("HAIRLINE", "{}/t.fxt"), (variable, limit)]);
        let line = format!("hairline: {variable} {limit:?}: use a limit above 0, like 1ms; not tracing");
        assert_eq!(run.stderr(), [line]);
        assert!(run.files().is_empty());
    }
}

fn leveled(listener: &str, extension: &str, variables: &[(&str, &str)]) -> (Run, String) {
    let trace = format!("t.{extension}");
    let path = format!("{{}}/{trace}");
    let variables = [&[("HAIRLINE", path.as_str())], variables].concat();
    let run = run_program(env!("CARGO_BIN_EXE_spans_victim"), &[listener, "levels"], &variables);
    assert_eq!(run.stdout(), "done\n", "{:?}", run.output);
    (run, trace)
}

/// The levels of what was recorded: the target of a span, which is its category, names the level, and so does
/// the text of a message.
fn levels(run: &Run, trace: &str) -> String {
    let sql = "select distinct substr(category, 10) from slice where category like 'level is %' \
               union select distinct substr(string_value, 10) from args \
               where string_value like 'level is %' order by 1";
    let verdict = judge::load(run.path(trace), &[sql]);
    verdict.require_clean();
    verdict.results[0].text().replace('\n', " ")
}

#[test]
fn the_level_is_the_most_verbose_one_of_tracing_and_log_that_is_recorded() {
    for listener in ["subscriber", "layer", "log"] {
        for extension in ["fxt", "pftrace"] {
            for (level, expected) in [
                ("trace", "debug error info trace warn"),
                ("info", "error info warn"),
                ("WARN", "error warn"),
                ("error", "error"),
            ] {
                let (run, trace) = leveled(listener, extension, &[("HAIRLINE_LEVEL", level)]);
                assert_eq!(levels(&run, &trace), expected, "{listener} {level} {extension}");
            }
            let (run, trace) = leveled(listener, extension, &[("HAIRLINE_LOG", "info")]);
            assert_eq!(levels(&run, &trace), "error info warn", "{listener} {extension}, by default");
            let said = "hairline: tracing; of the crates `tracing` and `log` up to INFO, the rest with \
                        HAIRLINE_LEVEL=trace";
            assert_eq!(run.stderr().first().map(String::as_str), Some(said), "{listener} {extension}");
        }
    }
}

#[test]
fn a_level_or_a_mode_that_is_unknown_is_one_line_and_an_untraced_run() {
    for (name, expected) in [
        ("HAIRLINE_LEVEL", "use trace, debug, info, warn or error"),
        ("HAIRLINE_MODE", "use auto, threads or lifetimes"),
    ] {
        let (run, _) = leveled("layer", "fxt", &[(name, "loud")]);
        assert_eq!(run.stderr(), [format!("hairline: {name} \"loud\": {expected}; not tracing")]);
        assert!(run.files().is_empty());
    }
}

#[test]
fn the_mode_of_the_environment_replaces_that_of_the_program() {
    let async_tracks = "select count(*) from slice s join thread_track t on s.track_id = t.id \
                        where s.name = 'span' union all \
                        select count(*) from slice s where s.name = 'span' \
                        and s.track_id not in (select id from thread_track)";
    for listener in ["subscriber", "layer"] {
        for extension in ["fxt", "pftrace"] {
            // The program asks for `Mode::Threads`; a span of it is entered once.
            for (mode, expected) in [(None, "3\n0"), (Some("threads"), "3\n0"), (Some("Lifetimes"), "3\n3")] {
                let variables: Vec<_> = mode.map(|mode| ("HAIRLINE_MODE", mode)).into_iter().collect();
                let (run, trace) = leveled(listener, extension, &variables);
                let verdict = judge::load(run.path(&trace), &[async_tracks]);
                verdict.require_clean();
                assert_eq!(verdict.results[0].text(), expected, "{listener} {mode:?} {extension}");
            }
        }
    }
}
