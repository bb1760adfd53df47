//! `hairline recover`

use std::path::{Path, PathBuf};

use hairline::recovery::{self, FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};

use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::record::PARTS;
use crate::region::{check_output, is_missing, of_no_process, refuse_stdout};
use crate::text::{complain, count, failed, is_pid, say_all, shown, size, who};

/// Completes the traces of killed processes, and removes their regions from /dev/shm.
///
/// Repairs each trace in place: removes an incomplete record at its end, and appends the records left in the
/// ring. If the trace is missing or replaced by another one, the records go to OUTPUT.recovered-PID. Running
/// processes are never touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline recover --all                       all that can be recovered on this machine
  hairline recover 4711                        that of one process
  hairline recover 4711 -o whole.pftrace       into a new file; the original stays as it is
  hairline recover --keep /dev/shm/hairline-4711-0123456789abcdef")]
pub(crate) struct Arguments {
    /// A pid, or the path of a region in /dev/shm (see `hairline ls`).
    #[arg(value_name = "PID|REGION", conflicts_with = "all")]
    region: Option<PathBuf>,
    /// Recover all regions of dead processes.
    #[arg(long)]
    all: bool,
    /// Write the complete trace to this file, and leave the original unchanged.
    #[arg(short, long, value_name = "FILE", conflicts_with = "all")]
    output: Option<PathBuf>,
    /// Keep the region.
    #[arg(long)]
    keep: bool,
    /// Also recover if the state of the process is unknown (a region of another container, or a process that
    /// /proc hides). This damages the trace of a running process.
    #[arg(long)]
    assume_dead: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.region.is_none() && !arguments.all {
        complain("give a pid or a region, which `hairline ls` lists, or --all for all dead processes");
        return Outcome::Usage;
    }
    if arguments.output.as_deref().is_some_and(is_standard) {
        return refuse_stdout();
    }
    if let Some(folder) = arguments.region.as_ref().filter(|region| is_of_parts(region)) {
        complain(format_args!(
            "{0}: the traces of the processes that a killed `hairline record` has left: `hairline recover --all` \
             completes them, and `hairline merge -o OUTPUT {0}/*.*` joins them. The states of threads are lost",
            shown(folder)
        ));
        return Outcome::Failed;
    }
    let regions = match &arguments.region {
        Some(region) if !is_pid(region) => vec![region.clone()],
        one => match find(one.as_deref(), arguments.assume_dead) {
            Ok(regions) => regions,
            Err(outcome) => return outcome,
        },
    };
    let mut options = RecoverOptions::new().keep_region(arguments.keep).assume_dead(arguments.assume_dead);
    if let Some(output) = &arguments.output {
        if let Some(refused) = regions.iter().find_map(|region| check_output(output, region).err()) {
            return refused;
        }
        options = options.to(output);
    }
    let outcome = |region: &PathBuf| match recovery::recover(region, &options) {
        Ok(recovered) => report(&recovered),
        Err(e) => {
            complain(format_args!("{e}{}", after_folder(&e, region)));
            match e {
                RecoverError::Alive { .. } | RecoverError::MaybeAlive { .. } => Outcome::Alive,
                _ if is_missing(&e, region) => Outcome::NotFound,
                _ => Outcome::Failed,
            }
        }
    };
    regions.iter().map(outcome).max().unwrap_or_default()
}

/// Whether a path is the folder of the parts of `record`.
fn is_of_parts(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().contains(PARTS))
}

/// The regions of a process, or all dead regions.
fn find(pid: Option<&Path>, assume_dead: bool) -> Result<Vec<PathBuf>, Outcome> {
    let mut found = recovery::find().map_err(failed)?;
    if let Some(pid) = pid {
        found.retain(|region| Path::new(&region.pid.to_string()) == pid);
        if found.is_empty() {
            return Err(of_no_process(pid, "has left nothing"));
        }
        // A requested region is always tried: the error explains why it cannot be recovered.
        return Ok(found.into_iter().map(|region| region.path).collect());
    }
    let wanted = |region: &FoundRegion| {
        region.is_dead()
            || (assume_dead && region.process == ProcessState::Unknown && region.unreadable.is_none())
    };
    for region in found.iter().filter(|region| region.process == ProcessState::Unknown && !wanted(region)) {
        let path = region.path.display();
        match &region.unreadable {
            Some(why) => complain(format_args!("{path}: {why}")),
            None => complain(format_args!(
                "{path}: not recovered: whether process {} is alive cannot be told from here, as for a \
                 container's; recover it there, or if you know that it is dead, with --assume-dead",
                region.pid
            )),
        }
    }
    found.retain(wanted);
    Ok(found.into_iter().map(|region| region.path).collect())
}

/// What to do when the folder of the trace is gone.
fn after_folder(e: &RecoverError, region: &Path) -> String {
    let RecoverError::Io { path, source, .. } = e else { return String::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match folder {
        Some(folder) if source.kind() == std::io::ErrorKind::NotFound && path != region => format!(
            "; the folder {} is gone: make it again, or name a file with -o; `rm {}` discards the events",
            shown(folder),
            shown(region)
        ),
        _ => String::new(),
    }
}

fn report(recovered: &Recovered) -> Outcome {
    let mut lines = Vec::new();
    let Recovered { pid, process_name, path, records, bytes, cut, lost, notes, .. } = recovered;
    let who = who(*pid, process_name);
    if let Some(path) = path {
        let mut line =
            format!("{who}: {}: {} in {} added", path.display(), count(*records, "record"), size(*bytes));
        if *cut > 0 {
            line += &format!(", {} of an incomplete record removed", size(*cut));
        }
        if lost.total() > 0 {
            line += &format!(", {} lost while it ran", count(lost.total(), "event"));
        }
        lines.push(line);
    }
    lines.extend(notes.iter().map(|note| format!("{who}: {note}")));
    say_all(lines)
}
