//! `hairline snapshot`

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use hairline::Format;
use hairline::recovery::{self, FoundRegion, Recovered};
use hairline_convert::TraceFormat;
use hairline_convert::splice::Splice;

use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::platform::Folder;
use crate::region::{check_output, find, is_missing, refuse_stdout};
use crate::text::{complain, count, failed, is_pid, say_all, size, who};

/// Writes the current trace of a running process, without its help.
///
/// For a flight recorder (HAIRLINE_OVERFLOW=overwrite), writes the latest events in its ring. Slices on
/// custom tracks that are still open are missing, because only the process has them. For any other session,
/// writes a copy of its output and of the records still in the ring. The process does not notice. The trace
/// has all copies of Hairline that a process contains.
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
    if let (region, Some(output)) = (&arguments.region, &arguments.output)
        && !is_pid(region)
    {
        return checked(output, region, || one(region, output));
    }
    let regions = match find(&arguments.region) {
        Ok(regions) => regions,
        Err(outcome) => return outcome,
    };
    let output = arguments.output.clone().unwrap_or_else(|| output_for(&regions[0]));
    checked(&output, &regions[0].path, || match &regions[..] {
        [region] => one(&region.path, &output),
        _ => all(&regions, &output),
    })
}

/// Checks the output, and takes the snapshot.
fn checked(output: &Path, region: &Path, take: impl FnOnce() -> Outcome) -> Outcome {
    match check_output(output, region) {
        Ok(()) => take(),
        Err(outcome) => outcome,
    }
}

fn one(region: &Path, output: &Path) -> Outcome {
    match recovery::snapshot(region, output) {
        Ok(done) => report(&done, done.lost.total(), &[]),
        Err(e) if is_missing(&e, region) => {
            complain(e);
            Outcome::NotFound
        }
        Err(e) => failed(e),
    }
}

/// Writes one trace of all copies of Hairline in a process. Copies with another format than the first one are
/// named, and left out.
fn all(regions: &[FoundRegion], output: &Path) -> Outcome {
    let (same, others): (Vec<_>, Vec<_>) =
        regions.iter().partition(|region| region.format == regions[0].format);
    let note = |other: &&FoundRegion| {
        let path = other.path.display();
        format!("another copy of Hairline in the process records in another format: its region is {path}")
    };
    let notes: Vec<String> = others.iter().map(note).collect();
    match join(&same, output) {
        Ok((done, lost)) => report(&done, lost, &notes),
        Err(e) => failed(e),
    }
}

/// Returns the outcome, and the losses of all copies.
fn join(regions: &[&FoundRegion], output: &Path) -> Result<(Recovered, u64), String> {
    let at = |e: io::Error| format!("{}: {e}", output.display());
    let format = match regions[0].format {
        Some(Format::Fxt) => TraceFormat::Fxt,
        _ => TraceFormat::TrackEvent,
    };
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = Folder::create(parent, ".hairline-".as_ref()).map_err(at)?;
    let out = Output::create(output, &[]).map_err(at)?;
    let mut splice = Splice::new(format, BufWriter::new(out)).ok_or("no such format")?;
    let (mut all, mut lost): (Option<Recovered>, u64) = (None, 0);
    for (n, region) in regions.iter().enumerate() {
        let part = format!("{n}");
        let done = recovery::snapshot(&region.path, folder.path().join(&part)).map_err(|e| e.to_string())?;
        splice.add(folder.open_file(&part).map_err(at)?).map_err(|e| e.to_string())?;
        lost = lost.saturating_add(done.lost.total());
        match &mut all {
            Some(all) => all.notes.extend(done.notes),
            None => all = Some(done),
        }
    }
    let (out, _) = splice.finish().map_err(at)?;
    out.into_inner().map_err(|e| at(e.into_error()))?.keep().map_err(at)?;
    let mut done = all.ok_or("no region")?;
    done.path = Some(output.to_owned());
    Ok((done, lost))
}

fn output_for(region: &FoundRegion) -> PathBuf {
    let extension = if region.format == Some(Format::Fxt) { "fxt" } else { "pftrace" };
    PathBuf::from(format!("snapshot-{}.{extension}", region.pid))
}

fn report(done: &Recovered, lost: u64, notes: &[String]) -> Outcome {
    let mut lines = Vec::new();
    let who = who(done.pid, &done.process_name);
    if let Some(path) = &done.path {
        let mut line =
            format!("{who}: {}: {}", path.display(), size(std::fs::metadata(path).map_or(0, |m| m.len())));
        if lost > 0 {
            line += &format!(", {} lost so far", count(lost, "event"));
        }
        lines.push(line);
    }
    lines.extend(done.notes.iter().chain(notes).map(|note| format!("{who}: {note}")));
    say_all(lines)
}
