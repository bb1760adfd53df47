//! `hairline ls`

use std::io::IsTerminal;

use hairline::recovery::{self, FoundRegion, ProcessState};

use crate::outcome::Outcome;
use crate::table::plain;
use crate::text::{failed, say, size};

/// Lists traced processes, and killed ones with a recoverable trace.
///
/// Each line is a region: pid, state, size, executable, output. A `dead` process can be recovered with
/// `hairline recover`. Empty output means that there are no regions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline ls
  hairline ls | awk '$2 == \"dead\"'")]
pub(crate) struct Arguments {}

pub(crate) fn run(Arguments {}: &Arguments) -> Outcome {
    let found = match recovery::find() {
        Ok(found) => found,
        Err(e) => return failed(e),
    };
    if std::io::stdout().is_terminal() && !found.is_empty() {
        say("    PID STATE          SIZE  PROCESS          OUTPUT");
    }
    found.iter().for_each(|region| say(line(region)));
    Outcome::Done
}

fn line(region: &FoundRegion) -> String {
    let state = match region.process {
        _ if region.unreadable.is_some() => "unreadable",
        ProcessState::Alive => "alive",
        ProcessState::Dead => "dead",
        _ => "unknown",
    };
    let name = if region.process_name.is_empty() { "-".to_owned() } else { plain(&region.process_name) };
    let output = region.output.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    let output = region.unreadable.as_ref().unwrap_or(&output);
    format!("{:>7} {state:<10} {:>10}  {name:<16} {output}", region.pid, size(region.len))
}
