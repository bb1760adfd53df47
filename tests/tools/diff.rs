//! `hairline diff`: what changed is found, what varies is not reported. `ci/diff.sh` does it with real
//! programs.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::{hairline, json, run, stderr};

/// A program with three functions in a loop, as the pipeline has them.
const FUNCTIONS: [(&str, f64); 3] = [("read", 20_000.0), ("parse", 50_000.0), ("count", 30_000.0)];

/// A generator of noise.
struct Noise(u64);

impl Noise {
    /// About normal, with the deviation 1.
    fn next(&mut self) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        }
        sum
    }
}

/// A trace of 60 rounds. A slice varies by 20 %, a whole run by 2 %: as on a machine that does other things
/// too.
fn trace(noise: &mut Noise, slower: &str, by: f64) -> String {
    let (mut events, mut now, run) = (String::from("["), 1_000.0, 1.0 + 0.02 * noise.next());
    for _ in 0..60 {
        let begin = now;
        for (name, typical) in FUNCTIONS {
            let factor = if name == slower { 1.0 + by } else { 1.0 };
            let duration = (typical * factor * run * (1.0 + 0.2 * noise.next()).max(0.1)).round();
            let (ts, dur) = (now / 1e3, duration / 1e3);
            let _ = write!(
                events,
                r#"{{"name":"{name}","cat":"app","ph":"X","ts":{ts:.3},"dur":{dur:.3},"pid":1,"tid":1}},"#
            );
            now += duration + 100.0;
        }
        let (ts, dur) = (begin / 1e3, (now - begin) / 1e3);
        let _ = write!(
            events,
            r#"{{"name":"round","cat":"app","ph":"X","ts":{ts:.3},"dur":{dur:.3},"pid":1,"tid":1}},"#
        );
    }
    events.pop();
    events + "]"
}

/// Writes the traces of both sides. `parse` is slower on the new one.
fn sides(folder: &Path, traces: usize, noise: &mut Noise, by: f64) {
    for n in 0..traces {
        std::fs::write(folder.join(format!("old-{n}.json")), trace(noise, "", 0.0)).expect("a trace");
        std::fs::write(folder.join(format!("new-{n}.json")), trace(noise, "parse", by)).expect("a trace");
    }
}

fn diff(folder: &Path, traces: usize, options: &[&str]) -> Output {
    let names = |side: &str| (0..traces).map(move |n| format!("{side}-{n}.json")).collect::<Vec<_>>();
    let mut command = hairline(folder);
    command.arg("diff").args(options).args(names("old")).arg("--").args(names("new"));
    run(&mut command)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_function_that_became_slower_is_the_first_row() {
    let folder = tempfile::tempdir().expect("a folder");
    sides(folder.path(), 10, &mut Noise(1), 0.08);
    let text = stdout(&diff(folder.path(), 10, &[]));
    let first = text.lines().nth(3).unwrap_or_default();
    assert!(first.starts_with("parse") && first.contains('+'), "{text}");

    let all = json::parse("diff", &diff(folder.path(), 10, &["--json"]).stdout);
    let figures = all["figures"].as_array().expect("figures");
    assert_eq!(figures.len(), 16, "4 names with 4 figures: {all}");
    assert_eq!((&all["parts"], &all["figures"][0]["name"]), (&Value::Null, &Value::from("parse")));
    let part = |key: &str| figures[0][key].as_f64().expect("a number");
    assert!(part("change_low") > 0.02 && part("change_low") < part("change"), "{all}");
    assert!(part("change") < part("change_high") && part("change_high") < 0.14, "{all}");
    let of_count = figures.iter().filter(|figure| figure["figure"] == "count");
    assert!(of_count.clone().all(|figure| figure["changed"] == false && figure["old"] == figure["new"]));

    let csv = stdout(&diff(folder.path(), 10, &["--csv"]));
    assert_eq!(csv.lines().count(), 17);
    assert!(csv.lines().nth(1).is_some_and(|row| row.starts_with("parse,app,thread,")), "{csv}");
    assert_eq!(stdout(&diff(folder.path(), 10, &[])), text, "the same at each run");
}

#[test]
fn a_condition_decides_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    sides(folder.path(), 6, &mut Noise(2), 0.5);
    let failed = diff(folder.path(), 6, &["--fail-if", "total > +20%"]);
    assert_eq!(failed.status.code(), Some(6));
    assert!(stderr(&failed).contains("total of parse: "), "{}", stderr(&failed));
    for met_by_none in ["total > +100%", "total < -1%", "count > +0%"] {
        assert_eq!(diff(folder.path(), 6, &["--fail-if", met_by_none]).status.code(), Some(0));
    }
    assert_eq!(diff(folder.path(), 6, &["--fail-if", "p98 > 1%"]).status.code(), Some(2));
}

/// A trace in which a process has a name only.
const WITHOUT_SLICES: &str = r#"[{"name":"process_name","ph":"M","pid":1,"args":{"name":"a"}}]"#;

/// A gate that sees nothing is not open.
#[test]
fn a_condition_needs_slices_on_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    sides(folder.path(), 5, &mut Noise(5), 0.0);
    std::fs::write(folder.path().join("new-3.json"), WITHOUT_SLICES).expect("a trace");
    assert_eq!(diff(folder.path(), 5, &[]).status.code(), Some(0));
    let failed = diff(folder.path(), 5, &["--fail-if", "p99 > +10%"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("new-3.json: it has no slices to compare"), "{}", stderr(&failed));
    assert!(stderr(&failed).contains("--fail-if needs slices in each trace"), "{}", stderr(&failed));
}

/// No figure can be rarer than one exchange of all.
#[test]
fn a_share_of_alarms_that_no_figure_reaches_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    sides(folder.path(), 8, &mut Noise(6), 0.5);
    for alarms in ["0.0001", "0", "1", "-1", "NaN", "x"] {
        let refused = diff(folder.path(), 8, &[&format!("--alarms={alarms}")]);
        assert_eq!(refused.status.code(), Some(2), "{alarms}: {}", stderr(&refused));
    }
    let found = stdout(&diff(folder.path(), 8, &["--alarms=0.001"]));
    assert!(found.lines().any(|line| line.starts_with("parse")), "{found}");
}

#[test]
fn names_of_any_text_are_one_cell() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "a\u{1b}[31m,\"\n\u{0}\u{9b}b";
    let event =
        serde_json::json!({"name": name, "cat": "c\r\"", "ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1});
    for n in 0..5 {
        std::fs::write(folder.path().join(format!("old-{n}.json")), format!("[{event}]")).expect("a trace");
        std::fs::write(folder.path().join(format!("new-{n}.json")), format!("[{event}]")).expect("a trace");
    }
    let text = stdout(&diff(folder.path(), 5, &["--all"]));
    assert!(text.lines().count() == 7 && !text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    let all = json::parse("diff", &diff(folder.path(), 5, &["--json"]).stdout);
    assert_eq!(all["figures"][3]["name"], name);
    let csv = stdout(&diff(folder.path(), 5, &["--csv"]));
    assert!(csv.contains(&format!("\"{}\",\"c\r\"\"\",thread,count,", name.replace('"', "\"\""))), "{csv:?}");
}

/// The chance of an alarm is 1 % a comparison. More than 3 in 60 come up once in 1,700 times.
#[test]
fn equal_programs_raise_few_alarms() {
    let (folder, mut noise, mut alarms) = (tempfile::tempdir().expect("a folder"), Noise(3), 0);
    for _ in 0..60 {
        sides(folder.path(), 5, &mut noise, 0.0);
        let all = json::parse("diff", &diff(folder.path(), 5, &["--json"]).stdout);
        alarms += u32::from(all["changed"] != 0);
    }
    assert!(alarms <= 3, "{alarms} of 60");
}

#[test]
fn one_trace_a_side_is_compared_by_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    sides(folder.path(), 1, &mut Noise(4), 0.5);
    let mut command = hairline(folder.path());
    let text = stdout(&run(command.args(["diff", "old-0.json", "new-0.json"])));
    assert!(text.contains("by 16 parts of each trace") && text.contains("five traces a side"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("parse")), "{text}");
}

#[test]
fn sides_that_cannot_be_compared_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let event =
        |cat: &str| format!(r#"[{{"name":"a","cat":"{cat}","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}}]"#);
    for (name, text) in [("old", event("app")), ("new", event("db")), ("empty", WITHOUT_SLICES.to_owned())] {
        std::fs::write(folder.path().join(format!("{name}.json")), text).expect("a trace");
    }
    let said = |names: [&str; 2]| {
        let output = run(hairline(folder.path()).arg("diff").args(names));
        assert_eq!(output.status.code(), Some(0));
        stderr(&output)
    };
    let filters = said(["old.json", "new.json"]);
    assert!(filters.contains("only the old traces have the categories app"), "{filters}");
    assert!(filters.contains("only the new traces have the categories db"), "{filters}");
    assert!(said(["old.json", "empty.json"]).contains("empty.json: it has no slices to compare"));
    for usage in [&["old.json"][..], &["old.json", "new.json", "empty.json"], &["-", "new.json"]] {
        assert_eq!(run(hairline(folder.path()).arg("diff").args(usage)).status.code(), Some(2), "{usage:?}");
    }
    let missing = run(hairline(folder.path()).args(["diff", "old.json", "none.json"]));
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn a_trace_that_is_on_both_sides_is_told_and_values_have_no_more_digits_than_are_true() {
    use hairline_tests::recording::record;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let trace = record(hairline::Format::Fxt, |_| {
        for _ in 0..41 {
            hairline::trace_scope!("t", "a");
        }
    });
    std::fs::copy(trace.path(), folder.join("a.fxt")).expect("copied");
    std::fs::copy(trace.path(), folder.join("b.fxt")).expect("copied");
    let output = run(hairline(folder).args(["diff", "a.fxt", "b.fxt"]));
    let said = stderr(&output);
    assert!(said.contains("hairline: b.fxt: it has the UUID of a.fxt: "), "{said}");
    let slice = |n: u32| format!(r#"{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{},"dur":1}}"#, 2 * n);
    for n in 0..10 {
        let all = (0..41).map(slice).collect::<Vec<_>>().join(",");
        std::fs::write(folder.join(format!("{n}.json")), format!("[{all}]")).expect("a trace");
    }
    let names = |from: usize| (from..from + 5).map(|n| format!("{n}.json")).collect::<Vec<_>>();
    for form in ["--csv", "--json"] {
        let mut command = hairline(folder);
        command.args(["diff", form]).args(names(0)).arg("--").args(names(5));
        let output = run(&mut command);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("41.0") && !said.contains("00000") && !said.contains("99999"), "{said}");
    }
}
