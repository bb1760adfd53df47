//! macOS, the BSDs, Android.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;

use crate::platform::facts::Link;
pub(crate) use crate::platform::folder::Folder;
pub(crate) use crate::platform::posix::*;
pub(crate) use crate::platform::unnamed::{
    Socket, Trusted, listening_processes, name_of, processes_named, user_of,
};

/// Returns 0: only events of Linux's kernel are compared with this clock.
pub(crate) fn boottime() -> u64 {
    0
}

/// Returns `None`: only states that Linux's kernel reports are compared with it.
pub(crate) fn cpu_time_of_children() -> Option<u64> {
    None
}

/// Returns 0: only rings of Linux's kernel are locked.
pub(crate) fn lockable_bytes() -> u64 {
    0
}

/// Reads the link at a path.
///
/// # Errors
/// If the link belongs to another user.
pub(crate) fn read_link(path: &Path) -> io::Result<Link> {
    let about = match std::fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Link::None),
        Err(e) => return Err(e),
    };
    if !about.is_symlink() {
        return Ok(Link::None);
    }
    refuse_link_of(Some(about.uid()))?;
    std::fs::read_link(path).map(Link::To)
}

/// Returns `None`: every user of the machine could read the link in the browser's arguments, and the system
/// does not say who connects.
pub(crate) fn browser() -> Option<process::Command> {
    None
}
