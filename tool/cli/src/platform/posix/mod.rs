//! What Linux and the other Unixes share.

mod command;
mod senders;
mod signals;
mod start;

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_getfl, fcntl_setfl, flock, statvfs};
use rustix::io::Errno;
use rustix::process::umask;

use crate::platform::facts::Identity;
pub(crate) use crate::platform::posix::command::Command;
pub(crate) use crate::platform::posix::signals::{before_end, ending};

/// Locks a file. Waits until no other process has it locked. The lock ends when the file is closed.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::LockExclusive)?)
}

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    file.metadata().map(|about| identity_in(&about))
}

/// Returns the identity of an open file if it is a regular one.
pub(crate) fn regular(file: &File) -> io::Result<Option<Identity>> {
    let about = file.metadata()?;
    Ok(about.is_file().then(|| identity_in(&about)))
}

/// Returns the identity of the file that a path leads to. Opens nothing.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|about| identity_in(&about))
}

/// Returns the identity of the file at a path, which may be a link.
pub(crate) fn identity_of_name(path: &Path) -> io::Result<Identity> {
    std::fs::symlink_metadata(path).map(|about| identity_in(&about))
}

fn identity_in(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}

/// Returns another handle of stdin.
pub(crate) fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns another handle of stdout.
pub(crate) fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns the free bytes of the file system at a path, if the system says it.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let about = statvfs(path).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// Whether a process of this program would have more rights than this one: it then reads no variable.
pub(crate) fn gives_rights(program: &File) -> bool {
    let Ok(about) = program.metadata() else { return false };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    about.mode() & 0o4000 != 0 && about.uid() != user || about.mode() & 0o2000 != 0 && about.gid() != group
}

/// Opens a file for reading. Does not wait for the writer of a FIFO.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Creates a file that only this user may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).read(true).create_new(true).mode(0o600).open(path)
}

/// Gives a file the mode that a new file has. Reading the mask means setting it for a moment.
pub(crate) fn give_usual_mode(file: &File) -> io::Result<()> {
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask);
    #[allow(clippy::useless_conversion)] // the mask has 16 bits on some systems
    let mask: u32 = mask.as_raw_mode().into();
    file.set_permissions(Permissions::from_mode(0o666 & !mask))
}

/// Refuses to follow a link of another user, or of one who is not known.
pub(super) fn refuse_link_of(owner: Option<u32>) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let user = match owner {
        Some(owner) if owner == 0 || owner == own => return Ok(()),
        Some(owner) => format!("user {owner}"),
        None => "a user who has no number here".to_owned(),
    };
    let what = format!("it is a symbolic link of {user}, and may lead anywhere; give another path");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// The error for a path with too many links.
pub(crate) fn too_many_links() -> io::Error {
    Errno::LOOP.into()
}

/// Opens a file that is written in place. Follows no link. Does not wait for the reader of a FIFO, but later
/// writes wait while a pipe is full.
///
/// # Errors
/// If the file cannot be opened, or a FIFO has no reader.
pub(crate) fn open_in_place(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::NOFOLLOW)
}

/// As [`open_in_place`], but lets the kernel follow the link.
pub(crate) fn open_through(link: &Path) -> io::Result<File> {
    open_with(link, OFlags::empty())
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = (flags | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).map_err(|e| {
        let is_unread = e.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if is_unread { io::Error::new(io::ErrorKind::NotConnected, "nobody reads this FIFO") } else { e }
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
