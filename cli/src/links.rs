//! The symbolic links at the path of an output.
//!
//! The rule is that of the outputs of sessions: a link must belong to this user or to root. Otherwise anybody
//! who may write the directory could lead a command with more rights to any file. Links in the parent
//! directories are followed without this check.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

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
        // Owner and target are read from one descriptor, so no process can exchange the link in between.
        let link = match fs::open(&at, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Followed::Name(at)),
            link => link?,
        };
        let about = fs::fstat(&link)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::Symlink {
            return Ok(Followed::Name(at));
        }
        let owner = about.st_uid;
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            let what =
                format!("it is a symbolic link of user {owner}, and may lead anywhere; give another path");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        if fs::fstatfs(&link)?.f_type == fs::PROC_SUPER_MAGIC {
            return Ok(Followed::OfProc(at));
        }
        let target = fs::readlinkat(&link, "", Vec::new())?;
        at = at.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(target.as_bytes()));
    }
    Err(Errno::LOOP.into())
}

/// Opens a file that is written in place. Does not wait for the reader of a FIFO, but later writes wait while
/// a pipe is full.
///
/// # Errors
/// If the file cannot be opened, or a FIFO has no reader.
pub(crate) fn open(followed: &Followed) -> io::Result<File> {
    let (path, flags) = match followed {
        // Another process may replace the file by a link after the check.
        Followed::Name(path) => (path, OFlags::NOFOLLOW),
        Followed::OfProc(path) => (path, OFlags::empty()),
    };
    let flags = (flags | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).map_err(|e| {
        let is_unread = e.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if is_unread { io::Error::new(io::ErrorKind::NotConnected, "nobody reads this FIFO") } else { e }
    })?;
    fs::fcntl_setfl(&file, fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
