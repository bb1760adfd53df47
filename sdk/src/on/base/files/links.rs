//! The symbolic links at the name of an output: whose they must be to be followed.
//!
//! A link at that name must belong to this user or to root: whoever may write the directory could lead a
//! program with more rights to any file otherwise. Links in the directories on the way are followed.
//!
//! `hairline` follows the same rule for the outputs of its commands.

#![allow(unsafe_code)] // readlinkat, fstatfs, fcntl

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::on::base::platform::process;

/// Links that are followed from one name, as many as the kernel follows.
const MOST_LINKS: u32 = 40;

/// Where the links at a name lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// To this name, which is no link. Nothing may be there.
    Name(PathBuf),
    /// To this link of `/proc`, as `/dev/stdout` does. Only the kernel can follow it: to an open file.
    OfProc(PathBuf),
}

/// Follows the links at `path`.
///
/// # Errors
/// When a link belongs to another user, or there are too many.
pub fn follow(path: &Path) -> io::Result<Followed> {
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

/// Opens what is at `path` for writing. Later writes wait for room in a full pipe.
///
/// # Errors
/// As [`follow`], and when it cannot be opened. A FIFO that nobody reads is an error and not a wait.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut tries = 0;
    loop {
        let opened = match follow(path)? {
            // What became a link meanwhile is not followed.
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

/// What a name is.
enum Target {
    /// No link.
    None,
    /// A link of `/proc`.
    OfProc,
    /// A link to this name, from its own directory.
    Name(PathBuf),
}

/// The target of the link at `path`.
///
/// # Errors
/// When the link belongs to another user. That is read from the link that is opened here, so nobody can put
/// another in its place.
fn target_of_link(path: &Path) -> io::Result<Target> {
    let mut options = OpenOptions::new();
    let link = match options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path) {
        Ok(link) => link,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Target::None),
        Err(e) => return Err(e),
    };
    let about = link.metadata()?;
    if !about.is_symlink() {
        return Ok(Target::None);
    }
    let owner = about.uid();
    if owner != 0 && owner != process::effective_user() {
        let what = format!("it is a symbolic link of user {owner}, and may lead anywhere; give another path");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    // SAFETY: an all-zero value is a valid one, and the call writes it.
    let kind = unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(link.as_raw_fd(), &raw mut about) == 0 { about.f_type } else { 0 }
    };
    if kind == libc::PROC_SUPER_MAGIC {
        return Ok(Target::OfProc);
    }
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the empty path is that of the descriptor, which is open; pointer and length describe `target`.
    let len =
        unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    target.truncate(len);
    Ok(Target::Name(OsString::from_vec(target).into()))
}

/// From here on a write waits for room in a pipe that is full: the drain thread may wait, the open may not.
fn wait_for_room(file: &File) {
    // SAFETY: a call on an open descriptor.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    }
}
