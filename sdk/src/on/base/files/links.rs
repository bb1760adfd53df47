//! The symbolic links at the path of an output, and the users whose links are followed.
//!
//! A link at that path must belong to this user or to root. Otherwise anybody who may write the directory
//! could lead a program with more rights to any file. Links in the parent directories are followed without
//! this check.
//!
//! The command `hairline` applies the same rule to its outputs.

#![allow(unsafe_code)] // readlinkat, fstatfs, fcntl

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::on::base::platform::process;

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
        match target_of_link(&at)? {
            Target::None => return Ok(Followed::Name(at)),
            Target::OfProc => return Ok(Followed::OfProc(at)),
            Target::Name(target) => at = at.parent().unwrap_or(Path::new("")).join(target),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Opens the file at `path` for writing. Later writes wait while a pipe is full.
///
/// # Errors
/// As [`follow`], and if the file cannot be opened. A FIFO without a reader is an error; the call does not
/// wait.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut tries = 0;
    loop {
        let opened = match follow(path)? {
            // Another process may replace the file by a link after the check.
            Followed::Name(name) => options.custom_flags(flags | libc::O_NOFOLLOW).open(name),
            Followed::OfProc(link) => options.custom_flags(flags).open(link),
        };
        tries += 1;
        match opened.map_err(|e| (e.raw_os_error(), e)) {
            Ok(file) => {
                wait_for_room(&file);
                return Ok(file);
            }
            Err((Some(libc::ELOOP), _)) if tries < MOST_LINKS => {}
            Err((Some(libc::ENXIO), _)) => {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "nobody reads this FIFO"));
            }
            Err((_, e)) => return Err(e),
        }
    }
}

/// The kind of file at a path.
enum Target {
    /// No link, or no file.
    None,
    /// A link of `/proc`.
    OfProc,
    /// A link to this path, relative to its own directory.
    Name(PathBuf),
}

/// Reads the target of the link at `path`.
///
/// # Errors
/// If the link belongs to another user. Owner and target are read from one open descriptor, so no other
/// process can exchange the link in between.
fn target_of_link(path: &Path) -> io::Result<Target> {
    let mut options = OpenOptions::new();
    let link = match options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path) {
        Ok(link) => link,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Target::None),
        Err(e) => return Err(e),
    };
    let metadata = link.metadata()?;
    if !metadata.is_symlink() {
        return Ok(Target::None);
    }
    let owner = metadata.uid();
    if owner != 0 && owner != process::effective_user() {
        let message =
            format!("it is a symbolic link of user {owner}, and may lead anywhere; give another path");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    // SAFETY: an all-zero value is valid, and the call writes it.
    let filesystem_type = unsafe {
        let mut filesystem: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(link.as_raw_fd(), &raw mut filesystem) == 0 { filesystem.f_type } else { 0 }
    };
    if filesystem_type == libc::PROC_SUPER_MAGIC {
        return Ok(Target::OfProc);
    }
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the empty path names the open descriptor; pointer and length describe `target`.
    let len =
        unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    target.truncate(len);
    Ok(Target::Name(OsString::from_vec(target).into()))
}

/// Makes writes wait while a pipe is full: the drain thread may wait, the open may not.
fn wait_for_room(file: &File) {
    // SAFETY: a call on an open descriptor.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    }
}
