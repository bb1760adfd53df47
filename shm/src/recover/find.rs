//! Which regions there are.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use super::{Facts, Life, RecoverError, RegionFile, is_ours};
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
    let mut search = Search::of(directory)?;
    let mut found = Vec::new();
    while let Some(more) = search.step(usize::MAX) {
        found.extend(more);
    }
    found.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
    Ok(found)
}

/// A search for this user's regions that does a bounded amount of work at a time: another user may have put
/// any number of files into `/dev/shm`.
#[derive(Debug)]
pub struct Search {
    entries: std::fs::ReadDir,
}

impl Search {
    /// Begins a search.
    ///
    /// # Errors
    /// When `/dev/shm` cannot be read.
    pub fn new() -> Result<Self, RecoverError> {
        Self::of(Path::new(DIRECTORY))
    }

    fn of(directory: &Path) -> Result<Self, RecoverError> {
        let failed = |source| RecoverError::File { path: directory.to_owned(), source };
        Ok(Self { entries: std::fs::read_dir(directory).map_err(failed)? })
    }

    /// Looks at up to `entries` further names in the directory, and ends early after the first region.
    /// Returns the region, if there was one. Returns `None` at the directory's end.
    pub fn step(&mut self, entries: usize) -> Option<Option<Found>> {
        for _ in 0..entries {
            let found = self.entries.next()?.ok().and_then(|entry| look(&entry));
            if found.is_some() {
                return Some(found);
            }
        }
        Some(None)
    }
}

fn look(entry: &DirEntry) -> Option<Found> {
    let pid = entry.file_name().to_str().and_then(pid_in)?;
    // Another user's file is not even opened: to open it takes as long as its file system likes, and shows
    // that somebody looks.
    let len = entry.metadata().ok().filter(is_ours)?.len();
    let path = entry.path();
    let (life, facts) = match RegionFile::open(&path) {
        Ok(region) => (region.life(), Ok(region.facts)),
        Err(RecoverError::File { source, .. }) if gone(&source) => return None,
        Err(RecoverError::NotARegion { what, .. }) if what == super::NOT_OURS => return None,
        Err(e) => (Life::Unknown, Err(e)),
    };
    Some(Found { path, len, pid, life, facts })
}

/// Removed meanwhile, or another user's.
fn gone(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}
