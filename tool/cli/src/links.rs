//! The symbolic links at the path of an output.
//!
//! The rule is that of the outputs of sessions: a link must belong to this user or to root. Otherwise anybody
//! who may write the directory could lead a command with more rights to any file. Links in the parent
//! directories are followed without this check.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::platform;
use crate::platform::facts::Link;

/// The limit of links that are followed from one path, the same as the kernel's.
const MOST_LINKS: u32 = 40;

/// The end of the links at a path.
pub(crate) enum Followed {
    /// This path, which is no link. There may be no file at it.
    Name(PathBuf),
    /// This link of `/proc`, as for `/dev/stdout`. Only the kernel can follow it: to an open file.
    OfProc(PathBuf),
}

/// Follows the symbolic links at `path`.
///
/// # Errors
/// If a link belongs to another user, or there are too many.
pub(crate) fn follow(path: &Path) -> io::Result<Followed> {
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        match platform::read_link(&at)? {
            Link::None => return Ok(Followed::Name(at)),
            Link::OfKernel => return Ok(Followed::OfProc(at)),
            Link::To(target) => at = at.parent().unwrap_or(Path::new("")).join(target),
        }
    }
    Err(platform::too_many_links())
}

/// Opens a file that is written in place. Does not wait for the reader of a FIFO, but later writes wait while
/// a pipe is full.
///
/// # Errors
/// If the file cannot be opened, or a FIFO has no reader.
pub(crate) fn open(followed: &Followed) -> io::Result<File> {
    match followed {
        // Another process may replace the file by a link after the check.
        Followed::Name(path) => platform::open_in_place(path),
        Followed::OfProc(path) => platform::open_through(path),
    }
}
