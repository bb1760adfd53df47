//! `hairline recover`

use std::path::{Path, PathBuf};

use hairline::recovery::{self, FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};

use crate::outcome::Outcome;
use crate::text::{complain, count, is_pid, say, size, who};

/// Completes the traces of processes that were killed, and removes what they left in /dev/shm.
///
/// The trace is repaired where it is: what was half written at its end is cut off, what the ring still held is appended. If it is
/// gone, or another trace is in its place, what is left is written beside it, to OUTPUT.recovered-PID. Processes
/// that live are never touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline recover --all                       all that can be recovered on this machine
  hairline recover 4711                        that of one process
  hairline recover 4711 -o whole.pftrace       into a new file; the original stays as it is
  hairline recover --keep /dev/shm/hairline-4711-0123456789abcdef")]
pub(crate) struct Arguments {
    /// A process's number, or the path of a region in /dev/shm (see `hairline ls`).
    #[arg(value_name = "PID|REGION", required_unless_present = "all", conflicts_with = "all")]
    region: Option<PathBuf>,
    /// Every region whose process is gone.
    #[arg(long)]
    all: bool,
    /// Writes the whole trace there and leaves the original as it is.
    #[arg(short, long, value_name = "FILE", conflicts_with = "all")]
    output: Option<PathBuf>,
    /// Leaves the region in its place.
    #[arg(long)]
    keep: bool,
    /// Recovers also where it cannot be told whether the process lives (a region of another container, or a
    /// process that /proc hides). If it does, its trace is spoilt.
    #[arg(long)]
    assume_dead: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let regions = match &arguments.region {
        Some(region) if !is_pid(region) => vec![region.clone()],
        one => match find(one.as_deref(), arguments.assume_dead) {
            Ok(regions) => regions,
            Err(outcome) => return outcome,
        },
    };
    let mut options = RecoverOptions::new().keep_region(arguments.keep).assume_dead(arguments.assume_dead);
    if let Some(output) = &arguments.output {
        options = options.to(output);
    }
    let outcome = |region: &PathBuf| match recovery::recover(region, &options) {
        Ok(recovered) => {
            report(&recovered);
            Outcome::Done
        }
        Err(e) => {
            complain(&e);
            match e {
                RecoverError::Alive { .. } | RecoverError::MaybeAlive { .. } => Outcome::Alive,
                _ => Outcome::Failed,
            }
        }
    };
    regions.iter().map(outcome).max().unwrap_or_default()
}

/// The dead regions of a process, or of all.
fn find(pid: Option<&Path>, assume_dead: bool) -> Result<Vec<PathBuf>, Outcome> {
    let mut found = recovery::find().map_err(|e| {
        complain(e);
        Outcome::Failed
    })?;
    if let Some(pid) = pid {
        found.retain(|region| Path::new(&region.pid.to_string()) == pid);
        if found.is_empty() {
            complain(format_args!("process {} has left nothing", pid.display()));
            return Err(Outcome::NotFound);
        }
        // The one that is asked for is tried whatever it is: the answer says why not.
        return Ok(found.into_iter().map(|region| region.path).collect());
    }
    let wanted = |region: &FoundRegion| {
        region.is_dead()
            || (assume_dead && region.process == ProcessState::Unknown && region.unreadable.is_none())
    };
    found.retain(wanted);
    Ok(found.into_iter().map(|region| region.path).collect())
}

fn report(recovered: &Recovered) {
    let Recovered { pid, process_name, path, records, bytes, cut, lost, notes, .. } = recovered;
    let who = who(*pid, process_name);
    if let Some(path) = path {
        let mut line =
            format!("{who}: {}: {} in {} added", path.display(), count(*records, "record"), size(*bytes));
        if *cut > 0 {
            line += &format!(", {} half written cut off", size(*cut));
        }
        if lost.total() > 0 {
            line += &format!(", {} lost while it ran", count(lost.total(), "event"));
        }
        say(line);
    }
    notes.iter().for_each(|note| say(format_args!("{who}: {note}")));
}
