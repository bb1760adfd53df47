//! `hairline snapshot`

use std::path::PathBuf;

use hairline::Format;
use hairline::recovery::{self, FoundRegion, Recovered};

use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::region::{check_output, find, is_missing, refuse_stdout};
use crate::text::{complain, count, failed, is_pid, say_all, size, who};

/// Writes the current trace of a running process, without its help.
///
/// For a flight recorder (HAIRLINE_OVERFLOW=overwrite), writes the latest events in its ring. Slices on
/// custom tracks that are still open are missing, because only the process has them. For any other session,
/// writes a copy of its output and of the records still in the ring. The process does not notice.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline snapshot 4711                       to snapshot-4711.pftrace, or .fxt
  hairline snapshot $(pidof server) -o now.pftrace
  hairline ls                                  which processes there are")]
pub(crate) struct Arguments {
    /// A pid, or the path of a region in /dev/shm (see `hairline ls`).
    #[arg(value_name = "PID|REGION")]
    region: PathBuf,
    /// The output file, which is replaced. Its format is that of the session.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.output.as_deref().is_some_and(is_standard) {
        return refuse_stdout();
    }
    let (region, output) = match (&arguments.region, &arguments.output) {
        (region, Some(output)) if !is_pid(region) => (region.clone(), output.clone()),
        (region, output) => match find(region) {
            Ok(found) => {
                let output = output.clone().unwrap_or_else(|| output_for(&found));
                (found.path, output)
            }
            Err(outcome) => return outcome,
        },
    };
    if let Err(outcome) = check_output(&output, &region) {
        return outcome;
    }
    match recovery::snapshot(&region, output) {
        Ok(done) => report(&done),
        Err(e) if is_missing(&e, &region) => {
            complain(e);
            Outcome::NotFound
        }
        Err(e) => failed(e),
    }
}

fn output_for(region: &FoundRegion) -> PathBuf {
    let extension = if region.format == Some(Format::Fxt) { "fxt" } else { "pftrace" };
    PathBuf::from(format!("snapshot-{}.{extension}", region.pid))
}

fn report(done: &Recovered) -> Outcome {
    let mut lines = Vec::new();
    let who = who(done.pid, &done.process_name);
    if let Some(path) = &done.path {
        let mut line =
            format!("{who}: {}: {}", path.display(), size(std::fs::metadata(path).map_or(0, |m| m.len())));
        if done.lost.total() > 0 {
            line += &format!(", {} lost so far", count(done.lost.total(), "event"));
        }
        lines.push(line);
    }
    lines.extend(done.notes.iter().map(|note| format!("{who}: {note}")));
    say_all(lines)
}
