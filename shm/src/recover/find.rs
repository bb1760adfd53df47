//! The search for regions: in `/dev/shm`, or in the directory for temporary files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::backing::pid_in;
use crate::platform;
use crate::process::Life;
use crate::recover::error::RecoverError;
use crate::recover::file::RegionFile;
use crate::recover::header::{Facts, NOT_OURS, is_ours};

/// A region that was found.
#[derive(Debug)]
pub struct Found {
    /// The path of its file.
    pub path: PathBuf,
    /// The length of the file, in bytes.
    pub len: u64,
    /// The process, by the pid in the file's name.
    pub pid: u32,
    /// Whether the process is alive. `Unknown` if the file cannot be read.
    pub life: Life,
    /// The content of its header, or the reason why the file cannot be read.
    pub facts: Result<Facts, RecoverError>,
}

/// Finds the regions of this user, of living and of dead processes. Sorted by pid.
///
/// ```
/// use hairline_shm::recover::{Life, find};
/// use hairline_shm::{BackingChoice, Region, RegionConfig};
///
/// let config = RegionConfig { backing: BackingChoice::File, ..RegionConfig::small() };
/// let region = Region::create(&config)?; // a region of this process
/// let found = find()?.into_iter().find(|found| found.pid == std::process::id()).unwrap();
/// assert_eq!((found.life, found.facts?.pid), (Life::Alive, std::process::id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the directory of the regions cannot be read. A region that cannot be read is in the result, with the
/// reason.
pub fn find() -> Result<Vec<Found>, RecoverError> {
    find_in(&platform::directory())
}

/// The size in bytes of the file system that has the regions: on Linux `/dev/shm`. The regions of all
/// processes share it.
///
/// # Errors
/// If the directory of the regions does not exist.
pub fn room() -> io::Result<u64> {
    platform::size_of_file_system(&platform::directory())
}

/// Returns the number of the user whose region of the process with this pid [`find`] omits: one of another
/// user than the caller. The newest, if there are several.
#[must_use]
pub fn other_user_of(pid: u32) -> Option<u32> {
    let names = std::fs::read_dir(platform::directory()).ok()?.flatten().map(|entry| entry.path());
    names
        .filter(|path| path.file_name().and_then(OsStr::to_str).and_then(pid_in) == Some(pid))
        .filter_map(|path| std::fs::symlink_metadata(path).ok())
        .filter(|about| about.is_file() && !is_ours(about))
        .max_by_key(|about| about.modified().ok())
        .and_then(|about| platform::user_of(&about))
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

/// A search for this user's regions in steps of bounded work: other users can put any number of files into
/// their directory.
///
/// ```
/// use hairline_shm::recover::Search;
/// use hairline_shm::{BackingChoice, Region, RegionConfig};
///
/// let config = RegionConfig { backing: BackingChoice::File, ..RegionConfig::small() };
/// let region = Region::create(&config)?; // a region of this process
/// let (mut search, mut pids) = (Search::new()?, Vec::new());
/// while let Some(step) = search.step(100) {
///     pids.extend(step.map(|found| found.pid)); // a caller with little time continues later
/// }
/// assert!(pids.contains(&std::process::id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Search {
    directory: PathBuf,
    /// The names of the directory's files.
    names: Box<dyn Iterator<Item = OsString> + Send>,
    /// A region that is not looked at.
    skipped: Option<PathBuf>,
    /// The name of the processes whose regions are looked for; all if there is none.
    process_name: Option<String>,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Search {
    /// Starts a search.
    ///
    /// # Errors
    /// If the directory of the regions cannot be read.
    pub fn new() -> Result<Self, RecoverError> {
        Self::of(&platform::directory())
    }

    fn of(directory: &Path) -> Result<Self, RecoverError> {
        let failed = |source| RecoverError::File { path: directory.to_owned(), source };
        let entries = std::fs::read_dir(directory).map_err(failed)?;
        let names = Box::new(entries.flatten().map(|entry| entry.file_name()));
        Ok(Self { directory: directory.to_owned(), names, skipped: None, process_name: None })
    }

    /// Reads the names now, the first `most`, and closes the directory: for a process that may close its
    /// descriptor behind the back of the search.
    #[must_use]
    pub fn at_once(self, most: usize) -> Self {
        let names: Vec<OsString> = self.names.take(most).collect();
        Self { names: Box::new(names.into_iter()), ..self }
    }

    /// Leaves out the region at this path: a session that searches need not open its own.
    #[must_use]
    pub fn except(self, path: PathBuf) -> Self {
        Self { skipped: Some(path), ..self }
    }

    /// Finds only regions of processes with this name that can be read. Whether a process lives, for which
    /// several files of `/proc` are read, is asked for these alone.
    #[must_use]
    pub fn of_processes(self, name: String) -> Self {
        Self { process_name: Some(name), ..self }
    }

    /// Reads up to `entries` more names of the directory, and stops after the first region.
    ///
    /// Returns `Some(Some(region))` if it found one, `Some(None)` if it did not, `None` at the end of the
    /// directory.
    pub fn step(&mut self, entries: usize) -> Option<Option<Found>> {
        for _ in 0..entries {
            let name = self.names.next()?;
            let found = self.look(&name);
            if found.is_some() {
                return Some(found);
            }
        }
        Some(None)
    }

    fn look(&self, name: &OsStr) -> Option<Found> {
        let pid = name.to_str().and_then(pid_in)?;
        let path = self.directory.join(name);
        if self.skipped.as_ref() == Some(&path) {
            return None;
        }
        // The files of other users are not opened: their file system can make that slow, and can see it.
        let len = std::fs::symlink_metadata(&path).ok().filter(is_ours)?.len();
        let wanted = self.process_name.as_deref();
        let (life, facts) = match RegionFile::open(&path) {
            Ok(region) if wanted.is_some_and(|name| name != region.facts().process_name) => return None,
            Ok(region) => (region.life(), Ok(region.into_facts())),
            Err(RecoverError::File { source, .. }) if gone(&source) => return None,
            Err(RecoverError::NotARegion { what, .. }) if what == NOT_OURS => return None,
            Err(_) if wanted.is_some() => return None,
            Err(e) => (Life::Unknown, Err(e)),
        };
        Some(Found { path, len, pid, life, facts })
    }
}

/// Whether the file was removed meanwhile, or belongs to another user.
fn gone(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}
