//! The symbolic links at the path of an output, and the users whose links are followed.
//!
//! A link at that path must belong to this user or to root. Otherwise anybody who may write the directory
//! could lead a program with more rights to any file. Links in the parent directories are followed without
//! this check.
//!
//! The command `hairline` applies the same rule to its outputs.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::on::base::platform;
use crate::on::base::platform::facts::Link;

/// Limit of links that are followed from one path, the same as the kernel's.
const MOST_LINKS: u32 = 40;

/// The end of the links at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Followed {
    /// This path, which is no link. There may be no file at it.
    Name(PathBuf),
    /// This link of `/proc`, as for `/dev/stdout`. Only the kernel can follow it: to an open file.
    OfProc(PathBuf),
}

/// Follows the symbolic links at `path`.
///
/// # Errors
/// If a link belongs to another user, or there are too many.
fn follow(path: &Path) -> io::Result<Followed> {
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

/// What is at the path of an output whose session has ended, or is another process's.
#[cfg(feature = "recovery")]
#[derive(Debug)]
pub(crate) enum Found {
    /// This regular file, open.
    File(File),
    /// Nothing.
    Nothing,
    /// Something else. It was not opened.
    Other,
    /// A link of another user. It was not followed.
    Refused,
}

/// Opens the file at `path` if it is a regular one. Follows the same links as [`open`].
///
/// # Errors
/// If the file cannot be opened, or there are too many links.
#[cfg(feature = "recovery")]
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<Found> {
    let found = match follow(path) {
        Ok(Followed::Name(name)) => platform::open_regular(&name, options),
        Ok(Followed::OfProc(_)) => Ok(None), // an open file of this process, not of the session's
        Err(e) if platform::is_refused_link(&e) => return Ok(Found::Refused),
        Err(e) => Err(e),
    };
    match found {
        Ok(file) => Ok(file.map_or(Found::Other, Found::File)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(e) => Err(e),
    }
}

/// Opens the file at `path` for writing. Later writes wait while a pipe is full.
///
/// # Errors
/// As [`follow`], and if the file cannot be opened. A FIFO without a reader is an error; the call does not
/// wait.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let mut tries = 0;
    loop {
        let opened = match follow(path)? {
            // Another process may replace the file by a link after the check.
            Followed::Name(name) => platform::open_output(&name, options),
            Followed::OfProc(link) => platform::open_through(&link, options),
        };
        tries += 1;
        match opened {
            Ok(file) => {
                platform::wait_for_room(&file);
                return Ok(file);
            }
            Err(e) if platform::is_link(&e) && tries < MOST_LINKS => {}
            Err(e) if platform::has_no_reader(&e) => {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "nobody reads this FIFO"));
            }
            Err(e) => return Err(e),
        }
    }
}
