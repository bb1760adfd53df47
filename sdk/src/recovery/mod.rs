//! What a killed process leaves behind, and how it becomes a whole trace.
//!
//! While a session runs, what its threads recorded and its writer thread has not yet written stands in a file in `/dev/shm`,
//! the *region*. A process that is killed, aborts or crashes leaves it there. [`recover`] appends what the region holds to
//! the trace, cuts off what was half written, adds the statistics that end a trace, and removes the region:
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
//! All that a thread had committed is then in the trace, once, and in order; slices that were open have no end. Without
//! the crate feature `enable` the functions here say [`RecoverError::Disabled`].

pub(crate) mod report;

use std::path::Path;

use crate::imp;
pub use report::{FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};

/// Makes a whole trace of what a dead process left, and removes its region.
///
/// By default the trace is repaired where it is. That needs the file to be the one that the session wrote: its head, with the
/// trace's own random number, is compared. Where the session had no file, or there is another trace in its place by now,
/// what the region holds is written to a file beside it, `OUTPUT.recovered-PID`: older records are gone with the old file.
///
/// Meanwhile the output is locked as by a session: one that starts with the same path waits for it, 1 s at most.
///
/// May be killed and run again: until the trace is on the disk the region stays, and a second run begins where the session had
/// ended.
///
/// # Errors
/// When the process lives, the region or the trace cannot be read, or the trace cannot be written, or another process
/// has it locked. The region stays then, and the trace is a prefix of what it was.
pub fn recover(region: &Path, options: &RecoverOptions) -> Result<Recovered, RecoverError> {
    imp::recover::recover(region, options)
}

/// Writes the trace of a process that goes on, as it is at this moment, to a file of its own: from outside, without the
/// process's help. A file that is there is replaced when the new one is complete.
///
/// Of a flight recorder it is what the ring holds, as by [`Session::snapshot`](crate::Session::snapshot), with two differences:
/// the slices on tracks that are open are missing, since their begins are kept in the process's own memory; and while
/// threads record so fast that the ring is overwritten within milliseconds, some of the oldest of it is too. Of other sessions it is
/// a copy of what the output has, and what it does not have yet.
///
/// # Errors
/// When no session goes on in the region, the region or the output cannot be read, or the file cannot be written.
pub fn snapshot(region: &Path, to: impl AsRef<Path>) -> Result<Recovered, RecoverError> {
    imp::recover::snapshot(region, to.as_ref())
}

/// The regions of this user on this machine: of living processes and of dead ones, by their pids.
///
/// # Errors
/// When `/dev/shm` cannot be read.
pub fn find() -> Result<Vec<FoundRegion>, RecoverError> {
    imp::recover::find()
}
