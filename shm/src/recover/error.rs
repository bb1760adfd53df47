use std::path::PathBuf;
use std::{fmt, io};

use crate::abi::ABI_VERSION;

/// Why a region cannot be read or recovered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be opened or read.
    File {
        /// The region's file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a region, is not this user's, or is damaged.
    NotARegion {
        /// The file.
        path: PathBuf,
        /// The first check that failed.
        what: &'static str,
    },
    /// The region was written by another version of this library.
    Version {
        /// The region's file.
        path: PathBuf,
        /// Its ABI version.
        found: u32,
    },
    /// The region's process is alive and writes the trace itself.
    Alive {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// This process cannot tell whether the region's process is alive.
    Unknown {
        /// The region's file.
        path: PathBuf,
        /// The process, by its pid in its own namespace.
        pid: u32,
    },
    /// The region's process writes faster than the region can be read from outside.
    Changing {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Another process is recovering the region.
    Busy {
        /// The region's file.
        path: PathBuf,
    },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NotARegion { path, what } => {
                write!(f, "{}: not a region that can be read: {what}", path.display())
            }
            Self::Version { path, found } => write!(
                f,
                "{}: a region of ABI version {found}; this program reads version {ABI_VERSION}",
                path.display()
            ),
            Self::Alive { path, pid } => write!(f, "{}: process {pid} is alive", path.display()),
            Self::Unknown { path, pid } => {
                write!(f, "{}: cannot tell from here whether process {pid} is alive", path.display())
            }
            Self::Changing { path, pid } => {
                write!(f, "{}: process {pid} writes faster than it can be read from outside", path.display())
            }
            Self::Busy { path } => write!(f, "{}: is being recovered by somebody else", path.display()),
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
