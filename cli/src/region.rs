//! Finds the region that an argument names, and checks the output for its trace.

use std::io;
use std::path::Path;

use hairline::Format;
use hairline::recovery::{self, FoundRegion, ProcessState, RecoverError};
use hairline_convert::{FileFormat, TraceFormat};

use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::text::{complain, failed, is_pid};

/// Finds the newest region with this path or pid. Older regions may be left of an earlier session, or of the
/// program before an exec.
pub(crate) fn find(wanted: &Path) -> Result<FoundRegion, Outcome> {
    let mut found = recovery::find().map_err(failed)?;
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

/// Whether an error means that there is no file at a region's path.
pub(crate) fn is_missing(error: &RecoverError, region: &Path) -> bool {
    matches!(error, RecoverError::Io { path, source, .. }
        if path == region && source.kind() == io::ErrorKind::NotFound)
}

/// Refuses `-` as the output.
pub(crate) fn refuse_stdout() -> Outcome {
    complain("-: a trace of a region cannot go to stdout: give the name of a file");
    Outcome::Usage
}

/// Refuses an output that is no file, and one whose name says another format than that of the region's trace.
pub(crate) fn check_output(output: &Path, region: &Path) -> Result<(), Outcome> {
    let shown = output.display();
    if is_standard(output) {
        return Err(refuse_stdout());
    }
    let found = recovery::find().unwrap_or_default();
    let format = found.into_iter().find(|found| found.path == region).and_then(|found| found.format);
    let (Some(format), Some(named)) = (format, FileFormat::by_name(output)) else { return Ok(()) };
    let (format, extension) = match format {
        Format::Fxt => (TraceFormat::Fxt, "fxt"),
        _ => (TraceFormat::TrackEvent, "pftrace"),
    };
    if named != (FileFormat { format, gzip: false }) {
        let compressed = if named.gzip { ", compressed" } else { "" };
        complain(format_args!(
            "{shown}: its name says {}{compressed}, but the session writes {}: end it in .{extension} \
             (`hairline convert` writes other formats)",
            named.format.name(),
            format.name()
        ));
        return Err(Outcome::Usage);
    }
    Ok(())
}
