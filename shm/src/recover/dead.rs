#![cfg_attr(not(feature = "recovery"), allow(dead_code))] // fields that only recovery reads

use std::io;
use std::path::{Path, PathBuf};

use crate::backing::Locked;
#[cfg(feature = "recovery")]
use crate::recover::chunk::Part;
use crate::recover::error::RecoverError;
#[cfg(feature = "recovery")]
use crate::recover::fragments::Fragments;
use crate::recover::header::Facts;
#[cfg(feature = "recovery")]
use crate::recover::tape;

/// The region of a dead process, locked. Made by [`RegionFile::lock`](crate::recover::RegionFile::lock).
///
/// ```
/// # #[cfg(feature = "recovery")] {
/// use hairline_shm::recover::{DeadRegion, Part, find};
/// use hairline_shm::{BackingChoice, ChunkInfo, Region, RegionConfig};
///
/// // A child writes a record and dies.
/// // SAFETY: the child calls no code that needs another thread.
/// let child = unsafe { libc::fork() };
/// if child == 0 {
///     let config = RegionConfig { backing: BackingChoice::File, ..RegionConfig::small() };
///     let region = Region::create(&config).unwrap();
///     region.activate(None);
///     let info = ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() };
///     region.claim(info, b"").unwrap().append(b"a record", 1);
///     // SAFETY: ends the child at once, as SIGKILL does.
///     unsafe { libc::_exit(0) };
/// }
/// // SAFETY: no status is asked for.
/// unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
///
/// let found = find()?.into_iter().find(|found| found.pid == child.unsigned_abs()).unwrap();
/// let region = DeadRegion::open(&found.path)?;
/// let mut fragments = region.fragments(Part::NotInOutput)?;
/// let fragment = fragments.next()?.unwrap();
/// assert_eq!((fragment.bytes, fragment.records), (&b"a record"[..], 1));
/// drop(fragments);
/// region.remove()?; // the trace is complete now
/// # }
/// # Ok::<(), hairline_shm::recover::RecoverError>(())
/// ```
#[derive(Debug)]
pub struct DeadRegion {
    file: Locked,
    path: PathBuf,
    facts: Facts,
}

impl DeadRegion {
    pub(super) fn new(file: Locked, path: PathBuf, facts: Facts) -> Self {
        Self { file, path, facts }
    }

    /// The content of the region's header.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The committed bytes, in the order of each sequence.
    ///
    /// # Errors
    /// If the file cannot be read.
    #[cfg(feature = "recovery")]
    pub fn fragments(&self, part: Part) -> Result<Fragments<'_>, RecoverError> {
        let fragments = Fragments::new(&self.file, &self.path, &self.facts, part);
        fragments.map_err(|source| RecoverError::File { path: self.path.clone(), source })
    }

    /// The entries of this [tape](crate::Tape), for [`tape_entries`](crate::tape_entries).
    ///
    /// # Errors
    /// If the file cannot be read.
    #[cfg(feature = "recovery")]
    pub fn tape(&self, number: usize) -> Result<Vec<u8>, RecoverError> {
        tape::read(&self.file, &self.facts, number)
            .map_err(|source| RecoverError::File { path: self.path.clone(), source })
    }

    /// Removes the file. Call it when the trace is complete.
    ///
    /// # Errors
    /// If the file cannot be removed. A file that is already gone is no error.
    pub fn remove(self) -> Result<(), RecoverError> {
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RecoverError::File { path: self.path, source })
            }
            _ => Ok(()),
        }
    }
}
