//! The options, results and errors of recovery.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::options::Format;
use crate::summary::Lost;

/// The options of [`recover`](super::recover).
///
/// ```
/// use hairline::recovery::{RecoverError, RecoverOptions, recover};
///
/// let region = std::path::Path::new("/dev/shm/no-such-region");
/// let options = RecoverOptions::new().to("crash.pftrace").keep_region(true);
/// match recover(region, &options) {
///     Err(RecoverError::Io { path, .. }) => assert_eq!(path, region),
///     Err(RecoverError::Disabled) => {} // without the feature `enable`
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Writes the whole trace to this path, and leaves the original unchanged. An existing file is replaced
    /// when the new one is complete.
    pub fn to(mut self, path: impl AsRef<Path>) -> Self {
        self.to = Some(path.as_ref().to_owned());
        self
    }

    /// Keeps the region (default: `false`).
    pub fn keep_region(mut self, keep: bool) -> Self {
        self.keep_region = keep;
        self
    }

    /// Recovers the region also if it is unknown whether its process is alive (default: `false`): its pid
    /// belongs to another pid namespace (a container), its start time to another time namespace, or `/proc` is
    /// missing, hides the process, or is that of another pid namespace. If the process is alive, its trace is
    /// spoilt.
    pub fn assume_dead(mut self, assume: bool) -> Self {
        self.assume_dead = assume;
        self
    }
}

/// The result of [`recover`](super::recover) or [`snapshot`](super::snapshot).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The id of the process.
    pub pid: u32,
    /// The name of its executable.
    pub process_name: String,
    /// The complete trace. `None` if there was nothing to write: the session had not begun, or had ended.
    pub path: Option<PathBuf>,
    /// Event records that were missing in the output.
    pub records: u64,
    /// Bytes that were appended to the complete records of the output, the tail included.
    pub bytes: u64,
    /// Bytes of an incomplete batch at the end of the output, which were removed or not copied.
    pub cut: u64,
    /// Events that the session did not record.
    pub lost: Lost,
    /// Facts that the user should know.
    pub notes: Vec<String>,
}

/// Whether a process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// The process is alive.
    Alive,
    /// The process is dead. Its region can be recovered.
    Dead,
    /// Unknown, for instance since the process is in a container.
    Unknown,
}

/// The file of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundRegion {
    /// The path of the file.
    pub path: PathBuf,
    /// The size of the file, in bytes.
    pub len: u64,
    /// The id of the process, from the name of the file.
    pub pid: u32,
    /// Whether the process is alive.
    pub process: ProcessState,
    /// The name of its executable. Empty if the session had not begun.
    pub process_name: String,
    /// The format of its trace. `None` if this version does not know the format.
    pub format: Option<Format>,
    /// The file of its trace, if it has one.
    pub output: Option<PathBuf>,
    /// Whether the session is a flight recorder: its trace is the content of the ring.
    pub overwrites: bool,
    /// The reason if the region cannot be read.
    pub unreadable: Option<String>,
}

impl FoundRegion {
    /// Whether [`recover`](super::recover) can recover the region.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.process == ProcessState::Dead && self.unreadable.is_none()
    }
}

/// Why a trace cannot be recovered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The process is alive, and writes the trace itself.
    #[non_exhaustive]
    Alive {
        /// The region.
        region: PathBuf,
        /// The id of the process.
        pid: u32,
    },
    /// It is unknown whether the process is alive: see [`RecoverOptions::assume_dead`].
    #[non_exhaustive]
    MaybeAlive {
        /// The region.
        region: PathBuf,
        /// The id of the process in its own pid namespace.
        pid: u32,
    },
    /// Another process recovers the region now.
    #[non_exhaustive]
    Busy {
        /// The region.
        region: PathBuf,
    },
    /// The process overwrites its region faster than another process can read it.
    #[non_exhaustive]
    Changing {
        /// The region.
        region: PathBuf,
        /// The id of the process.
        pid: u32,
    },
    /// The file is no region, or a damaged one, or one of another version.
    NotARegion(Box<dyn std::error::Error + Send + Sync>),
    /// The session's output was no file, so the trace has no path: see [`RecoverOptions::to`].
    #[non_exhaustive]
    NoPlace {
        /// The region.
        region: PathBuf,
    },
    /// The session has written the begin of its trace to an output that is no file, is gone, or holds something
    /// else, and what is left in the region cannot be read without it. The region stays.
    #[non_exhaustive]
    Unreadable {
        /// The path of the trace, if its output is a file.
        output: Option<PathBuf>,
        /// The event records that are left.
        records: u64,
    },
    /// A file cannot be read or written.
    #[non_exhaustive]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// This program was built without the crate feature `enable`.
    Disabled,
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive { region, pid } => write!(f, "{}: process {pid} is alive", region.display()),
            Self::MaybeAlive { region, pid } => {
                write!(f, "{}: unknown whether process {pid} is alive", region.display())
            }
            Self::Busy { region } => {
                write!(f, "{}: another process recovers this region now", region.display())
            }
            Self::Changing { region, pid } => write!(
                f,
                "{}: process {pid} overwrites the region while it is read; try again",
                region.display()
            ),
            Self::NotARegion(e) => write!(f, "{e}"),
            Self::NoPlace { region } => {
                write!(f, "{}: the session wrote to no file; give a path for the trace", region.display())
            }
            Self::Unreadable { output: Some(output), records } => write!(
                f,
                "{}: the trace is not there any more, and without it the {records} records that are left in the \
                 ring cannot be read; put it back and try again",
                output.display()
            ),
            Self::Unreadable { output: None, records } => write!(
                f,
                "the session wrote to no file, and without its output the {records} records that are left in the \
                 ring cannot be read"
            ),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Disabled => {
                f.write_str("this program was built without tracing (the crate feature `enable`)")
            }
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotARegion(e) => Some(&**e),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
