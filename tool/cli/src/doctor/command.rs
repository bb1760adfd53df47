//! A command: its program, and the events of a run.

use std::ffi::OsString;

use crate::doctor::finding::Finding;
use crate::doctor::machine::said;
use crate::doctor::program::Program;
use crate::record::{Trial, of_command};
use crate::text::{count, grouped_count, shown, who};

const WHAT: &str = "trace";

/// The exit codes of a command that a signal has ended: 128 and its number.
const SIGNALS: std::ops::RangeInclusive<u8> = 129..=192;

pub(super) fn findings(command: &[OsString], categories: Option<&str>) -> Vec<Finding> {
    let trial = match of_command(command, categories) {
        Ok(trial) => trial,
        Err(why) => return vec![Finding::wrong("command", why, "")],
    };
    let program = command.first().map(|name| Program::of_command(name));
    let whole = &trial.whole;
    let has_recorded = whole.parts > 0 || !whole.alive.is_empty();
    let mut findings = match program {
        Some(Ok(program)) => program.findings(has_recorded),
        Some(Err(e)) => vec![Finding::remark("program", format!("its file cannot be read: {e}"), "")],
        None => Vec::new(),
    };
    let of_environment = std::env::var("HAIRLINE_CATEGORIES").ok();
    findings.extend(trace(&trial, categories.or(of_environment.as_deref())));
    findings.extend(said(trial.messages, whole.totals.events > 0));
    for (pid, name) in &whole.quiet {
        let found = format!("process {} still runs, and has recorded nothing", who(*pid, name));
        findings.push(Finding::remark(
            "process",
            found,
            "`hairline record --wait` waits for its first event",
        ));
    }
    findings
}

/// What the trace has. `categories`: the filter of the session.
pub(super) fn trace(trial: &Trial, categories: Option<&str>) -> Vec<Finding> {
    let whole = &trial.whole;
    let running = whole.alive.iter().map(|(pid, name, path)| {
        let found = format!("process {} still runs, and records to {}", who(*pid, name), shown(path));
        Finding::remark(WHAT, found, "wait for it with `hairline record --wait`, or look at it with -p")
    });
    let mut findings: Vec<Finding> = running.collect();
    if whole.totals.events > 0 {
        let processes = count(whole.totals.processes() as u64, "process");
        let found = format!("{} of {processes}, read back", grouped_count(whole.totals.events, "event"));
        findings.push(Finding::good(WHAT, found));
        if whole.totals.lost > 0 {
            let found = format!("{} lost: the buffer was full", grouped_count(whole.totals.lost, "event"));
            findings.push(Finding::remark("loss", found, "use a larger --buffer, or --overflow block"));
        }
        return findings;
    }
    if findings.is_empty() {
        findings.push(empty(trial, categories));
    }
    findings
}

/// Why there is no event.
fn empty(trial: &Trial, categories: Option<&str>) -> Finding {
    let filter = categories.filter(|filter| !filter.is_empty());
    match (trial.whole.parts, filter, trial.code) {
        (1.., Some(filter), _) => Finding::wrong(
            WHAT,
            format!("a session ran, and the categories {filter:?} matched no event that was reached"),
            "record without them, or name one that the program has",
        ),
        (1.., None, _) => Finding::wrong(
            WHAT,
            "a session ran, and no event was recorded",
            "the program must reach an event; spans of `tracing` need a level that --level records",
        ),
        (0, _, code) if SIGNALS.contains(&code) => Finding::wrong(
            WHAT,
            format!(
                "the command ended with the code {code}, as by the signal {}, before its first event",
                code - 128
            ),
            "let it reach an event",
        ),
        (0, ..) => Finding::wrong(
            WHAT,
            format!("no process began to record; the command ended with the code {}", trial.code),
            "a program must reach an event, with the environment of the command: the first event starts the \
             session",
        ),
    }
}
