//! `hairline doctor`
//!
//! ```text
//! machine.rs     this machine and its environment: what each session needs; a test event
//! program.rs     the program's file: whether Hairline is in it
//! command.rs     a command, which is recorded for that
//! process.rs     a running process
//! finding.rs     what they found
//! ```
//!
//! Nothing is checked twice: events are recorded by the recorder, traces are read by the readers, and the
//! messages of the recorder are findings.

mod command;
mod finding;
mod machine;
mod process;
mod program;

use std::ffi::OsString;

use serde_json::json;

use crate::doctor::finding::{Finding, State};
use crate::json_version::JSON_VERSION;
use crate::outcome::Outcome;
use crate::text::{complain, for_programs, nanoseconds, put, say_all, written};

/// Finds out whether a program records, and if not, why.
///
/// Looks at this machine: the clock, the memory of regions, the events of the kernel, the variables of the
/// environment, and a test event that is recorded and read back. With a command, also looks at the program's
/// file, runs the command as `hairline record` does, and counts its events; its output goes to stderr. With
/// -p, looks at a running process: its program, its environment, and the events of its session, or those of a
/// second if it listens. No trace is kept. Each line is a finding: ok, note (events are recorded without it)
/// or wrong (a reason for an empty trace).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline doctor                              this machine
  hairline doctor -- ./server --port 80        a program
  hairline doctor -p server --json             a running process, for a health check

Exit codes:
  0  nothing is wrong
  1  something is wrong
  2  the arguments are invalid
  3  the process does not exist")]
pub(crate) struct Arguments {
    /// Look at a running process, by pid or by name.
    #[arg(short, long, value_name = "PID|NAME", conflicts_with = "command")]
    process: Option<String>,
    /// The categories that are recorded: "net,db.*,-db.verbose". Default: HAIRLINE_CATEGORIES, or all.
    #[arg(long, value_name = "FILTER")]
    categories: Option<String>,
    /// The time to record a process that listens: "500ms", "10s".
    #[arg(long = "for", value_name = "TIME", value_parser = nanoseconds, default_value = "1s")]
    time: i64,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Record one event, and nothing else. `doctor` runs itself so.
    #[arg(long, hide = true)]
    test_event: bool,
    /// A command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.test_event {
        hairline::trace_instant!("hairline.doctor", "test event");
        return Outcome::Done;
    }
    let processes = match arguments.process.as_deref().map(process::wanted).transpose() {
        Ok(processes) => processes.unwrap_or_default(),
        Err(why) => {
            complain(why);
            return Outcome::NotFound;
        }
    };
    let mut findings = machine::findings();
    if !arguments.command.is_empty() {
        findings.extend(command::findings(&arguments.command, arguments.categories.as_deref()));
    }
    for pid in processes {
        findings.extend(process::findings(pid, arguments.categories.as_deref(), arguments.time));
    }
    let is_wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    match show(&unique(findings), arguments.json, is_wrong) {
        Outcome::Done if is_wrong => Outcome::Failed,
        outcome => outcome,
    }
}

/// Removes findings that were there before.
fn unique(findings: Vec<Finding>) -> Vec<Finding> {
    let mut unique: Vec<Finding> = Vec::new();
    for finding in findings {
        if !unique.iter().any(|before| before.is_again(&finding)) {
            unique.push(finding);
        }
    }
    unique
}

fn show(findings: &[Finding], as_json: bool, is_wrong: bool) -> Outcome {
    if !as_json {
        return say_all(findings);
    }
    let all: Vec<_> = findings.iter().map(Finding::json).collect();
    let text = json!({"version": JSON_VERSION, "healthy": !is_wrong, "findings": all});
    written(put(for_programs(format!("{text:#}\n"))), "stdout")
}
