//! `hairline snapshot`

use std::path::{Path, PathBuf};

use hairline::Format;
use hairline::recovery::{self, FoundRegion, ProcessState, Recovered};

use crate::Outcome;
use crate::text::{complain, count, is_pid, say, size, who};

/// Writes the trace of a running process as it is now, without the process's help.
///
/// Of a flight recorder (HAIRLINE_OVERFLOW=overwrite) it is the last of what was recorded, as much as its ring holds; slices on tracks
/// that are still open are missing, since only the process has them. Of any other session it is a copy of its output with what is still
/// in the ring. The process notices nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline snapshot 4711                       to snapshot-4711.pftrace, or .fxt
  hairline snapshot $(pidof server) -o now.pftrace
  hairline ls                                  which processes there are")]
pub(crate) struct Arguments {
    /// A process's number, or the path of a region in /dev/shm (see `hairline ls`).
    #[arg(value_name = "PID|REGION")]
    region: PathBuf,
    /// Where it is written; replaced if it is there. The format is the session's.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
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
    match recovery::snapshot(&region, output) {
        Ok(done) => {
            report(&done);
            Outcome::Done
        }
        Err(e) => {
            complain(e);
            Outcome::Failed
        }
    }
}

/// The region of this path, or of the session of this process. One of a session that is over, or of the program that the process was
/// before, may be there too.
pub(crate) fn find(wanted: &Path) -> Result<FoundRegion, Outcome> {
    let mut found = recovery::find().map_err(|e| {
        complain(e);
        Outcome::Failed
    })?;
    let is_wanted = |region: &FoundRegion| {
        let is_of_process =
            Path::new(&region.pid.to_string()) == wanted && region.process != ProcessState::Dead;
        region.path == wanted || is_of_process
    };
    found.retain(is_wanted);
    let newest = |region: &FoundRegion| std::fs::metadata(&region.path).and_then(|m| m.modified()).ok();
    found.into_iter().max_by_key(newest).ok_or_else(|| {
        let what = if is_pid(wanted) { "is not being traced" } else { "is no region of a process" };
        complain(format_args!("{}: {what}; see `hairline ls`", wanted.display()));
        Outcome::NotFound
    })
}

fn output_for(region: &FoundRegion) -> PathBuf {
    let extension = if region.format == Some(Format::Fxt) { "fxt" } else { "pftrace" };
    PathBuf::from(format!("snapshot-{}.{extension}", region.pid))
}

fn report(done: &Recovered) {
    let who = who(done.pid, &done.process_name);
    if let Some(path) = &done.path {
        let mut line =
            format!("{who}: {}: {}", path.display(), size(std::fs::metadata(path).map_or(0, |m| m.len())));
        if done.lost.total() > 0 {
            line += &format!(", {} lost so far", count(done.lost.total(), "event"));
        }
        say(line);
    }
    done.notes.iter().for_each(|note| say(format_args!("{who}: {note}")));
}
