//! Finds the region that an argument names, and checks the output for its trace.

use std::io;
use std::path::Path;

use hairline::Format;
use hairline::recovery::{self, FoundRegion, ProcessState, RecoverError};
use hairline_convert::{FileFormat, TraceFormat};

use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::text::{complain, failed, is_pid};

/// Finds the region with this path, or those that the process with this pid records into: one for each copy
/// of Hairline in it, the oldest first. At least one.
pub(crate) fn find(wanted: &Path) -> Result<Vec<FoundRegion>, Outcome> {
    let mut found = recovery::find().map_err(failed)?;
    let is_wanted = |region: &FoundRegion| {
        let is_of_process =
            Path::new(&region.pid.to_string()) == wanted && region.process != ProcessState::Dead;
        region.path == wanted || is_of_process
    };
    found.retain(is_wanted);
    found.sort_by_cached_key(|region| std::fs::metadata(&region.path).and_then(|m| m.modified()).ok());
    let Some(newest) = found.last().cloned() else {
        if is_pid(wanted) {
            return Err(of_no_process(wanted, "is not being traced; see `hairline ls`"));
        }
        complain(format_args!("{}: is no region of a process; see `hairline ls`", wanted.display()));
        return Err(Outcome::NotFound);
    };
    // Others are left of an earlier session, or of the program before an exec: the process does not map them.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", newest.pid)).unwrap_or_default();
    found.retain(|region| {
        region.path.to_str().is_some_and(|path| maps.lines().any(|line| line.ends_with(path)))
    });
    Ok(if found.is_empty() { vec![newest] } else { found })
}

/// Reports that this user has no region of a process, or that another user has one.
pub(crate) fn of_no_process(pid: &Path, what: &str) -> Outcome {
    let shown = pid.display();
    match shown.to_string().parse().ok().and_then(recovery::other_user_of) {
        Some(user) => complain(format_args!(
            "process {shown}: its region belongs to another user, with the number {user}: only that user reads \
             it, for example with `sudo -u '#{user}' hairline ...`"
        )),
        None => complain(format_args!("process {shown} {what}")),
    }
    Outcome::NotFound
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
