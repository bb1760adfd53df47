use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::backing::Locked;
use crate::platform;
use crate::process::Life;
#[cfg(feature = "recovery")]
use crate::recover::chunk::lost_by_owners;
use crate::recover::dead::DeadRegion;
use crate::recover::error::RecoverError;
#[cfg(feature = "recovery")]
use crate::recover::glance::Glance;
use crate::recover::header::{Facts, facts_of};

/// The file of a region, seen from outside. Its process may be alive.
///
/// ```
/// use hairline_shm::recover::{Life, RecoverError, RegionFile};
/// use hairline_shm::{Backing, BackingChoice, Region, RegionConfig};
///
/// let (backing, process_name) = (BackingChoice::File, "server".to_owned());
/// let region = Region::create(&RegionConfig { backing, process_name, ..RegionConfig::small() })?;
/// let Backing::File(path) = region.backing() else { panic!() };
/// let file = RegionFile::open(path.as_ref())?;
/// assert_eq!((&*file.facts().process_name, file.life()), ("server", Life::Alive));
/// let error = file.lock(false).unwrap_err(); // the process writes the trace itself
/// assert!(matches!(error, RecoverError::Alive { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RegionFile {
    file: File,
    path: PathBuf,
    facts: Facts,
}

impl RegionFile {
    /// Opens the file and reads everything before the chunks.
    ///
    /// # Errors
    /// If the file is not a readable region of this user.
    pub fn open(path: &Path) -> Result<Self, RecoverError> {
        let failed = |source| RecoverError::File { path: path.to_owned(), source };
        let file = platform::open_file(path).map_err(failed)?;
        Self::of(file, path.to_owned())
    }

    /// Reads the region in an open file. `path` is used in messages and by [`DeadRegion::remove`]. If the
    /// region has no header yet, the pid is taken from the file name in `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(file: File, path: PathBuf) -> Result<Self, RecoverError> {
        let facts = facts_of(&file, &path)?;
        Ok(Self { file, path, facts })
    }

    /// The content of the region's header.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn into_facts(self) -> Facts {
        self.facts
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the region's process is alive.
    #[must_use]
    pub fn life(&self) -> Life {
        self.facts.life()
    }

    /// Copies the present content of the region while its process goes on. Takes at most as much memory as
    /// the ring.
    ///
    /// # Errors
    /// If the file cannot be read, or changes faster than it can be read.
    #[cfg(feature = "recovery")]
    pub fn glance(&self) -> Result<Glance, RecoverError> {
        Glance::take(&self.file, &self.path)
    }

    /// Locks the region for recovery, against other processes that want to recover it.
    ///
    /// # Errors
    /// If the process is alive; if that is not known and `assume_dead` is `false`; if another process holds
    /// the lock.
    pub fn lock(self, assume_dead: bool) -> Result<DeadRegion, RecoverError> {
        let Self { file, path, facts } = self;
        let pid = facts.pid;
        match facts.life() {
            Life::Alive => return Err(RecoverError::Alive { path, pid }),
            Life::Unknown if !assume_dead => return Err(RecoverError::Unknown { path, pid }),
            Life::Unknown | Life::Dead => {}
        }
        let file = match Locked::new(file) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(RecoverError::Busy { path }),
            Err(source) => return Err(RecoverError::File { path, source }),
        };
        // A file without a name was recovered and removed by the process that held the lock before.
        if platform::is_removed(&file) {
            return Err(RecoverError::File { path, source: io::ErrorKind::NotFound.into() });
        }
        // Read again: the process may have written after the first read and before its death.
        #[cfg_attr(not(feature = "recovery"), allow(unused_mut))]
        let mut facts = facts_of(&file, &path)?;
        #[cfg(feature = "recovery")]
        match lost_by_owners(&file, &facts) {
            Ok(lost) => facts.add_lost_to_full_ring(lost),
            Err(source) => return Err(RecoverError::File { path, source }),
        }
        Ok(DeadRegion::new(file, path, facts))
    }
}

impl DeadRegion {
    /// Opens and locks the region of a dead process: [`RegionFile::open`], then [`RegionFile::lock`].
    ///
    /// # Errors
    /// As those.
    pub fn open(path: &Path) -> Result<Self, RecoverError> {
        RegionFile::open(path)?.lock(false)
    }
}
