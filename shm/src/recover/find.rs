//! Which regions there are.

use std::io;
use std::path::{Path, PathBuf};

use super::{Facts, Life, RecoverError, RegionFile};
use crate::backing::{self, DIRECTORY, pid_in};

/// A region's file.
#[derive(Debug)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of the file.
    pub len: u64,
    /// The process, as it stands in the file's name.
    pub pid: u32,
    /// Whether it lives; Unknown if it cannot be read.
    pub life: Life,
    /// What it says of itself, or why it cannot be read.
    pub facts: Result<Facts, RecoverError>,
}

/// The regions of this machine that are this user's, living and dead, by their pids.
///
/// # Errors
/// When `/dev/shm` cannot be read. A file in it that cannot be read is an entry that says so.
pub fn find() -> Result<Vec<Found>, RecoverError> {
    find_in(Path::new(DIRECTORY))
}

/// Bytes that the regions of all processes together have room for: the size of `/dev/shm`.
///
/// # Errors
/// When there is none.
pub fn room() -> io::Result<u64> {
    backing::directory_size()
}

fn find_in(directory: &Path) -> Result<Vec<Found>, RecoverError> {
    let failed = |source| RecoverError::File { path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(pid_in) else { continue };
        let path = entry.path();
        let (life, facts) = match RegionFile::open(&path) {
            Ok(region) => (region.life(), Ok(region.facts)),
            Err(RecoverError::File { source, .. }) if gone(&source) => continue,
            Err(RecoverError::NotARegion { what, .. }) if what == super::NOT_OURS => continue,
            Err(e) => (Life::Unknown, Err(e)),
        };
        let len = entry.metadata().map_or(0, |m| m.len());
        found.push(Found { path, len, pid, life, facts });
    }
    found.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
    Ok(found)
}

/// Removed meanwhile, or another user's.
fn gone(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}
