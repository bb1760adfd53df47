//! What recovery is told, and what it answers.

use std::io;
use std::path::{Path, PathBuf};

use crate::options::Format;
use crate::summary::Lost;

/// How [`recover`](super::recover) goes about it.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RecoverOptions {
    pub(crate) to: Option<PathBuf>,
    pub(crate) keep_region: bool,
    pub(crate) assume_dead: bool,
}

impl RecoverOptions {
    /// Repairs the trace in its place, and removes the region.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the whole trace to this path, and leaves the original as it is. A file that is there is replaced when the new one
    /// is complete.
    pub fn to(mut self, path: impl AsRef<Path>) -> Self {
        self.to = Some(path.as_ref().to_owned());
        self
    }

    /// Leaves the region in its place (`false` by default).
    pub fn keep_region(mut self, keep: bool) -> Self {
        self.keep_region = keep;
        self
    }

    /// Recovers also where it cannot be told from here whether the process lives: its pid is of another pid
    /// namespace (a container), or `/proc` is not there or hides it (`false` by default). The trace of one that
    /// does live is spoilt.
    pub fn assume_dead(mut self, assume: bool) -> Self {
        self.assume_dead = assume;
        self
    }
}

/// What [`recover`](super::recover) or [`snapshot`] found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The process.
    pub pid: u32,
    /// Its executable's name.
    pub process_name: String,
    /// The whole trace. None if there was nothing to write: the session had not begun, or had ended.
    pub path: Option<PathBuf>,
    /// Event records that the output did not have.
    pub records: u64,
    /// Bytes that were appended to what was whole, the tail included.
    pub bytes: u64,
    /// Bytes at the end of the output that were half written, and are gone or not copied.
    pub cut: u64,
    /// Events that the session did not record.
    pub lost: Lost,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// It does.
    Alive,
    /// It does not: its region is to be recovered.
    Dead,
    /// It cannot be told from here.
    Unknown,
}

/// A region's file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundRegion {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of the file.
    pub len: u64,
    /// The process, as it stands in the file's name.
    pub pid: u32,
    /// Whether it lives.
    pub process: ProcessState,
    /// Its executable's name; empty if the session had not begun.
    pub process_name: String,
    /// Its trace's format, if that is known here.
    pub format: Option<Format>,
    /// The file that its trace goes to, if it does.
    pub output: Option<PathBuf>,
    /// Whether the session is a flight recorder: its trace is what the ring holds.
    pub overwrites: bool,
    /// Why the region cannot be read, if so.
    pub unreadable: Option<String>,
}

impl FoundRegion {
    /// Whether [`recover`](super::recover) takes it.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.process == ProcessState::Dead && self.unreadable.is_none()
    }
}

/// Why a trace could not be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The process lives, and writes the trace itself.
    #[error("{}: process {pid} is alive", region.display())]
    Alive {
        /// The region.
        region: PathBuf,
        /// The process.
        pid: u32,
    },
    /// It cannot be told whether the process lives: see [`RecoverOptions::assume_dead`].
    #[error("{}: cannot tell from here whether process {pid} is alive", region.display())]
    MaybeAlive {
        /// The region.
        region: PathBuf,
        /// The process, as it is called where it runs.
        pid: u32,
    },
    /// Somebody else is recovering it.
    #[error("{}: is being recovered by somebody else", region.display())]
    Busy {
        /// The region.
        region: PathBuf,
    },
    /// The process writes faster than its region can be read from outside.
    #[error("{}: process {pid} writes faster than it can be read from outside; try again", region.display())]
    Changing {
        /// The region.
        region: PathBuf,
        /// The process.
        pid: u32,
    },
    /// It is no region, or damaged, or of another version.
    #[error("{0}")]
    NotARegion(String),
    /// The session's output was no file, so there is no place for the trace: see [`RecoverOptions::to`].
    #[error("{}: the session wrote to no file; say where the trace is to go", region.display())]
    NoPlace {
        /// The region.
        region: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This program was built without the crate feature `enable`.
    #[error("this program was built without tracing (the crate feature `enable`)")]
    Disabled,
}
