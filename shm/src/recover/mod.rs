//! Reads the region of a process that is gone; or, without its help, of one that lives ([`RegionFile::glance`]).
//!
//! After SIGKILL, an abort or a crash the region's file is still in `/dev/shm`. It says whose it is, where the output went,
//! how much of that is whole, and which bytes the output does not have yet:
//!
//! ```no_run
//! use hairline_shm::recover::{DeadRegion, Part, find};
//!
//! for found in find()? {
//!     let region = DeadRegion::open(&found.path)?;            // refuses that of a process that lives
//!     println!("{}: {:?}", region.facts().pid, region.facts().output);
//!     let mut fragments = region.fragments(Part::NotInOutput)?;
//!     while let Some(fragment) = fragments.next()? {
//!         println!("{} bytes, {} records", fragment.bytes.len(), fragment.records);
//!     }
//! }
//! # Ok::<(), hairline_shm::recover::RecoverError>(())
//! ```
//!
//! # What is believed
//!
//! Nothing that was not checked. The file must be a regular one of this user; every number that leads somewhere is compared
//! with what there is before it is used; a chunk whose numbers make no sense is left out and counted. The file is
//! read, never mapped, so one that shrinks meanwhile is an error and no SIGBUS. Memory: the head of the stream (at most 1 MiB),
//! one chunk (at most 16 MiB), and 24 bytes for each chunk that is not free.
//!
//! What is *not* checked is the payload: whoever may write the region may write the trace.

mod find;
mod fragments;
mod glance;
mod header;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::backing::{self, Locked};

pub use crate::process::Life;
pub use find::{Found, Search, find, room};
pub use fragments::{Fragment, Fragments, Part};
pub use glance::Glance;
pub use header::{Facts, NextOutput, SessionState};

/// A file that is not even looked into.
const NOT_OURS: &str = "not a regular file of this user";

/// Why a region cannot be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The region's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a region, or not one of ours, or a damaged one.
    #[error("{}: not a region that can be read: {what}", path.display())]
    NotARegion {
        /// The file.
        path: PathBuf,
        /// The first thing that does not hold.
        what: &'static str,
    },
    /// It was written by another version of this library.
    #[error("{}: a region of ABI version {found}; this program reads version {}", path.display(), crate::abi::ABI_VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Its process lives and writes the trace itself.
    #[error("{}: process {pid} is alive", path.display())]
    Alive {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// From here it cannot be told whether its process lives.
    #[error("{}: cannot tell from here whether process {pid} is alive", path.display())]
    Unknown {
        /// The region's file.
        path: PathBuf,
        /// The process, as it is called there.
        pid: u32,
    },
    /// Its process writes faster than it can be read from outside.
    #[error("{}: process {pid} writes faster than it can be read from outside", path.display())]
    Changing {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Somebody else is recovering it.
    #[error("{}: is being recovered by somebody else", path.display())]
    Busy {
        /// The region's file.
        path: PathBuf,
    },
}

/// A region's file, looked at from outside. Its process may be alive.
#[derive(Debug)]
pub struct RegionFile {
    file: File,
    path: PathBuf,
    facts: Facts,
}

impl RegionFile {
    /// Opens the file and reads what stands before the chunks.
    ///
    /// # Errors
    /// When it is no readable region of this user's.
    pub fn open(path: &Path) -> Result<Self, RecoverError> {
        let failed = |source| RecoverError::File { path: path.to_owned(), source };
        // Nonblocking: a FIFO of that name must not keep us.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        Self::of(file, path.to_owned())
    }

    /// The region in an open file. `path` is for messages, for [`DeadRegion::remove`], and has the pid of a session that never
    /// began.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(file: File, path: PathBuf) -> Result<Self, RecoverError> {
        let facts = facts_of(&file, &path)?;
        Ok(Self { file, path, facts })
    }

    /// What the region says of itself.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its process lives.
    #[must_use]
    pub fn life(&self) -> Life {
        self.facts.life()
    }

    /// What the region holds at this moment, while its process goes on. Takes as much memory as the ring at most.
    ///
    /// # Errors
    /// When the file cannot be read, or changes faster than it is read.
    pub fn glance(&self) -> Result<Glance, RecoverError> {
        Glance::take(&self.file, &self.path)
    }

    /// To be recovered: by nobody else meanwhile.
    ///
    /// # Errors
    /// When the process lives, or it cannot be told and `assume_dead` is not set; or when somebody else is at it.
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
        // Without a name: whoever held the lock before us is done with it.
        if file.metadata().is_ok_and(|m| m.nlink() == 0) {
            return Err(RecoverError::File { path, source: io::ErrorKind::NotFound.into() });
        }
        // Read again: while it lived it may have gone on after the first look.
        let facts = facts_of(&file, &path)?;
        Ok(DeadRegion { file, path, facts })
    }
}

/// Whether a file may be a region that this process may recover, by what can be known of it without opening
/// it.
fn is_ours(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && metadata.uid() == backing::own_user()
}

fn facts_of(file: &File, path: &Path) -> Result<Facts, RecoverError> {
    let metadata = file.metadata().map_err(|source| RecoverError::File { path: path.to_owned(), source })?;
    if !is_ours(&metadata) {
        return Err(RecoverError::NotARegion { path: path.to_owned(), what: NOT_OURS });
    }
    header::read(file, metadata.len(), path).map_err(|e| e.at(path.to_owned()))
}

/// The region of a dead process, locked.
#[derive(Debug)]
pub struct DeadRegion {
    file: Locked,
    path: PathBuf,
    facts: Facts,
}

impl DeadRegion {
    /// [`RegionFile::open`] and [`RegionFile::lock`] in one.
    ///
    /// # Errors
    /// As those.
    pub fn open(path: &Path) -> Result<Self, RecoverError> {
        RegionFile::open(path)?.lock(false)
    }

    /// What the region says of itself.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The committed bytes, in each sequence's order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn fragments(&self, part: Part) -> Result<Fragments<'_>, RecoverError> {
        let fragments = Fragments::new(self, part);
        fragments.map_err(|source| RecoverError::File { path: self.path.clone(), source })
    }

    /// Removes the file: all that it held is safe elsewhere.
    ///
    /// # Errors
    /// When it cannot be removed. That it is gone already is no error.
    pub fn remove(self) -> Result<(), RecoverError> {
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RecoverError::File { path: self.path, source })
            }
            _ => Ok(()),
        }
    }
}
