use std::io;
use std::path::PathBuf;

use crate::abi::ABI_VERSION;

/// Why a region cannot be read or recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The region's file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a region, is not this user's, or is damaged.
    #[error("{}: not a region that can be read: {what}", path.display())]
    NotARegion {
        /// The file.
        path: PathBuf,
        /// The first check that failed.
        what: &'static str,
    },
    /// The region was written by another version of this library.
    #[error("{}: a region of ABI version {found}; this program reads version {ABI_VERSION}", path.display())]
    Version {
        /// The region's file.
        path: PathBuf,
        /// Its ABI version.
        found: u32,
    },
    /// The region's process is alive and writes the trace itself.
    #[error("{}: process {pid} is alive", path.display())]
    Alive {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// This process cannot tell whether the region's process is alive.
    #[error("{}: cannot tell from here whether process {pid} is alive", path.display())]
    Unknown {
        /// The region's file.
        path: PathBuf,
        /// The process, by its pid in its own namespace.
        pid: u32,
    },
    /// The region's process writes faster than the region can be read from outside.
    #[error("{}: process {pid} writes faster than it can be read from outside", path.display())]
    Changing {
        /// The region's file.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Another process is recovering the region.
    #[error("{}: is being recovered by somebody else", path.display())]
    Busy {
        /// The region's file.
        path: PathBuf,
    },
}
