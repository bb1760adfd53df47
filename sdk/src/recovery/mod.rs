//! The trace of a process that was killed.
//!
//! While a session runs, the records that its threads have committed and its drain thread has not yet written
//! are in a file in `/dev/shm`, the *region*. The region remains if the process is killed, aborts or crashes.
//! [`recover`] removes an incomplete batch from the end of the trace, appends the records of the region and
//! the statistics that end a trace, and removes the region:
//!
//! ```no_run
//! use hairline::recovery::{self, RecoverOptions};
//!
//! for region in recovery::find()? {
//!     if region.is_dead() {
//!         let recovered = recovery::recover(&region.path, &RecoverOptions::new())?;
//!         println!("{}: {} records", recovered.path.unwrap_or_default().display(), recovered.records);
//!     }
//! }
//! # Ok::<(), recovery::RecoverError>(())
//! ```
//!
//! The trace then has all records that a thread had committed, each once and in order. Slices that were open
//! have no end. Without the crate feature `enable` the functions here return [`RecoverError::Disabled`].

pub(crate) mod report;

use std::path::Path;

use crate::imp;
pub use report::{FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};

/// Completes the trace of a dead process from its region, and removes the region.
///
/// By default the trace is repaired in its place. For that the file must be the one that the session wrote:
/// its head has the random number of the trace. If the session had no file, or somebody has removed or
/// replaced it, the records of the region are written to a file beside it, `OUTPUT.recovered-PID`. It has the
/// threads whose records are all in the region; the records of the others, whose names and settings went with
/// the file, are counted in [`Recovered::lost`].
///
/// Recovery locks the output as a session does. A session that starts with the same path meanwhile takes the
/// next free name.
///
/// Recovery may be killed and run again. The region remains until the trace is on the disk, and each run
/// starts at the point where the session had ended.
///
/// ```no_run
/// use hairline::recovery::{RecoverOptions, recover};
///
/// let recovered = recover("/dev/shm/hairline-4711-x".as_ref(), &RecoverOptions::new().to("crash.pftrace"))?;
/// println!("{} records, {} lost", recovered.records, recovered.lost.total());
/// # Ok::<(), hairline::recovery::RecoverError>(())
/// ```
///
/// # Errors
/// If the process is alive, the region or the trace cannot be read, the trace cannot be written, another
/// process has locked the region, or no thread's records are all in the region and the trace is gone. The
/// region then remains, and the trace is a prefix of the trace before.
pub fn recover(region: &Path, options: &RecoverOptions) -> Result<Recovered, RecoverError> {
    imp::recover::recover(region, options)
}

/// Writes a snapshot of the trace of a running process to a file of its own. The process takes no part in it.
/// An existing file is replaced when the new one is complete.
///
/// The snapshot of a flight recorder has the content of the ring, as that of
/// [`Session::snapshot`](crate::Session::snapshot) does, with two differences. Open slices on tracks are
/// missing, since their begins are in the process's own memory. And while threads overwrite the ring within
/// milliseconds, some of its oldest records are missing. The snapshot of another session has the records of
/// the output and those that are still in the ring.
///
/// ```no_run
/// # use hairline::recovery;
/// for region in recovery::find()?.iter().filter(|region| !region.is_dead()) {
///     recovery::snapshot(&region.path, format!("{}.pftrace", region.pid))?;
/// }
/// # Ok::<(), hairline::recovery::RecoverError>(())
/// ```
///
/// # Errors
/// If no session runs in the region, the region or the output cannot be read, or the file cannot be written.
pub fn snapshot(region: &Path, to: impl AsRef<Path>) -> Result<Recovered, RecoverError> {
    imp::recover::snapshot(region, to.as_ref())
}

/// Returns the regions of this user on this machine, of living and of dead processes, in the order of their
/// pids.
///
/// ```
/// match hairline::recovery::find() {
///     Ok(regions) => regions.iter().for_each(|region| println!("{} {:?}", region.pid, region.process)),
///     Err(e) => eprintln!("{e}"), // without the feature `enable`, for example
/// }
/// ```
///
/// # Errors
/// If `/dev/shm` cannot be read.
pub fn find() -> Result<Vec<FoundRegion>, RecoverError> {
    imp::recover::find()
}

/// Returns the number of the user who has a region of the process with this pid, if that is another user than
/// the caller. Such a region is not opened: [`find`] omits it, also for root.
///
/// ```
/// assert_eq!(hairline::recovery::other_user_of(std::process::id()), None);
/// ```
#[must_use]
pub fn other_user_of(pid: u32) -> Option<u32> {
    imp::recover::other_user_of(pid)
}
