//! The types of the platforms' functions.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Identifies a file independent of its path: device and inode.
pub(crate) type Identity = (u64, u64);

/// A symbolic link at a path.
pub(crate) enum Link {
    /// The path is none. There may be no file at it.
    None,
    /// A link of `/proc`, as for `/dev/stdout`. Only the kernel can follow it: to an open file.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    OfKernel,
    /// A link with this target.
    To(PathBuf),
}

/// The client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) enum Client {
    Trusted,
    /// Another user, by number.
    Other(u32),
    /// Unknown, for example because the client closed the connection.
    Unknown,
}

/// Why a command did not start.
#[derive(Debug)]
pub(crate) enum NotStarted {
    NotFound(String),
    Other(String),
}

impl NotStarted {
    /// The system did not start the program, for this reason.
    pub(crate) fn new(program: &OsStr, error: &io::Error) -> Self {
        let why = format!("{}: {error}", program.display());
        if error.kind() == io::ErrorKind::NotFound { Self::NotFound(why) } else { Self::Other(why) }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(why) | Self::Other(why) => f.write_str(why),
        }
    }
}
