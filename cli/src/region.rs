//! Finds the region that an argument names.

use std::path::Path;

use hairline::recovery::{self, FoundRegion, ProcessState};

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
