//! Messages of the `log` crate.

use std::cell::Cell;
use std::fmt;
use std::process::Command;
use std::sync::{Mutex, Once};

use hairline::Format;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, record_in, turn};
use log::{Level, LevelFilter, debug, error, info, log_enabled, trace, warn};

use crate::TEXT;

/// What the logger beside Hairline's was given.
static OTHER: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Other;

impl log::Log for Other {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        OTHER.lock().unwrap().push(format!("{} {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| hairline::Logger::new().beside(Other, LevelFilter::Warn).install().unwrap());
}

#[test]
fn a_message_has_its_target_as_category_its_level_its_text_and_its_place() {
    let turn = turn();
    install();
    for format in FORMATS {
        let mut first = 0;
        let trace = record_in(
            &turn,
            format,
            |b| b.source_locations(true),
            |_| {
                first = line!() + 1;
                warn!(target: "net", "no answer after {} attempts", std::hint::black_box(3));
                trace!("plain");
                error!(target: "net", "");
            },
        );
        let path = module_path!();
        let place = |line| format!("event {}:{line}", file!());
        assert_eq!(
            trace.rows("select category, name, dur from slice order by ts"),
            format!("net\t{}\t0\n{path}\tplain\t0\nnet\t{}\t0", place(first), place(first + 2)),
            "{format:?}"
        );
        if format == Format::TrackEvent {
            let lines = [first, first + 1, first + 2];
            assert_eq!(
                trace.rows("select prio, tag, msg from android_logs order by ts"),
                format!(
                    "5\tnet:{}\tno answer after 3 attempts\n2\t{path}:{}\tplain\n6\tnet:{}\t",
                    lines[0], lines[1], lines[2]
                ),
            );
        } else {
            let said = "select a.display_value from slice s join args a using (arg_set_id) where a.key = ";
            assert_eq!(trace.rows(&format!("{said} 'level' order by s.ts")), "warn\ntrace\nerror");
            assert_eq!(
                trace.rows(&format!("{said} 'message' order by s.ts")),
                "no answer after 3 attempts\nplain\n"
            );
        }
    }
}

/// Counts how often it is shown.
struct Formatted(Cell<u32>);

impl fmt::Display for Formatted {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.set(self.0.get() + 1);
        Ok(())
    }
}

#[test]
fn only_targets_that_the_filter_takes_are_recorded_and_without_a_session_none_is_formatted() {
    let turn = turn();
    install();
    for format in FORMATS {
        let formatted = Formatted(Cell::new(0));
        let trace = record_in(
            &turn,
            format,
            |b| b.categories("net"),
            |session| {
                info!(target: "net", "net");
                info!(target: "db", "left out {formatted}");
                assert!(
                    log_enabled!(target: "net", Level::Trace) && !log_enabled!(target: "db", Level::Info)
                );
                session.set_categories("db").unwrap();
                info!(target: "net", "left out");
                debug!(target: "db", "db");
            },
        );
        assert_eq!(
            trace.rows("select category, name from slice order by ts"),
            "net\tnet\ndb\tdb",
            "{format:?}"
        );
        assert_eq!(log::max_level(), LevelFilter::Warn, "{format:?}");
        info!(target: "db", "{formatted}");
        assert_eq!(formatted.0.get(), 0, "{format:?}");
    }
}

#[test]
fn another_logger_has_the_messages_up_to_its_level_with_and_without_a_session() {
    let turn = turn();
    install();
    for format in FORMATS {
        let trace = record_in(
            &turn,
            format,
            |b| b.categories("-o.left"),
            |_| {
                warn!(target: "o.taken", "{format:?} 1");
                warn!(target: "o.left", "{format:?} 2");
                info!(target: "o.taken", "{format:?} 3");
            },
        );
        warn!(target: "o.taken", "{format:?} 4");
        assert_eq!(
            trace.rows(&format!("select {TEXT} from slice s order by ts")),
            format!("{format:?} 1\n{format:?} 3"),
            "{format:?}"
        );
        let mut all = OTHER.lock().unwrap().clone();
        all.retain(|line| line.starts_with("o.") && line.contains(&format!("{format:?}")));
        let expected =
            [("taken", 1), ("left", 2), ("taken", 4)].map(|(t, n)| format!("o.{t} {format:?} {n}"));
        assert_eq!(all, expected);
    }
}

#[test]
fn the_first_message_starts_what_the_environment_asks_for_and_made_up_targets_are_bounded() {
    for extension in ["fxt", "pftrace"] {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join(format!("trace.{extension}"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_spans_victim"));
        program.args(["log"]).env("HAIRLINE", &trace).env("HAIRLINE_BUFFER", "16M");
        program.env("HAIRLINE_LEVEL", "trace");
        let output = program.output().unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"done\n"[..], &b""[..]), "{extension}");
        let verdict = judge::load(
            &trace,
            &[
                "select category, name from slice order by ts limit 2",
                "select count(*), count(distinct category), sum(category = 'log') from slice where name = 'm'",
            ],
        );
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "victim\tfirst\nmade.up.0\tm", "{extension}");
        // 16,384 places, one of them the first message's; the rest have one category.
        assert_eq!(verdict.results[1].text(), format!("20000\t16384\t{}", 20000 - 16383), "{extension}");
    }
}
