//! Linux.

mod peer;
mod socket;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;

use hairline_shm::is_one_user;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::platform::facts::Link;
pub(crate) use crate::platform::folder::Folder;
pub(crate) use crate::platform::linux::peer::Trusted;
pub(crate) use crate::platform::linux::socket::{
    Socket, listening_processes, name_of, processes_named, user_of,
};
pub(crate) use crate::platform::posix::*;

/// Returns `CLOCK_BOOTTIME` in ns, the clock of the kernel's events.
pub(crate) fn boottime() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns the CPU time of the children that this process has waited for, and of those for which they have
/// waited, in ns. It has a resolution of 10 ms.
pub(crate) fn cpu_time_of_children() -> Option<u64> {
    const TICK: u64 = 10_000_000; // the kernel shows all users a hundred in a second
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3)?.parse::<u64>().ok();
    Some(field(16)?.saturating_add(field(17)?).saturating_mul(TICK))
}

/// Returns the bytes that this process may lock in memory.
pub(crate) fn lockable_bytes() -> u64 {
    getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX)
}

/// Reads the link at a path.
///
/// # Errors
/// If the link belongs to another user.
pub(crate) fn read_link(path: &Path) -> io::Result<Link> {
    // Owner and target are read from one descriptor, so no process can exchange the link in between.
    let link = match fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Link::None),
        link => link?,
    };
    let about = fs::fstat(&link)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::Symlink {
        return Ok(Link::None);
    }
    refuse_link_of(Some(about.st_uid).filter(|user| is_one_user(*user)))?;
    if fs::fstatfs(&link)?.f_type == fs::PROC_SUPER_MAGIC {
        return Ok(Link::OfKernel);
    }
    let target = fs::readlinkat(&link, "", Vec::new())?;
    Ok(Link::To(OsStr::from_bytes(target.as_bytes()).into()))
}

/// The command that opens a link in the user's browser, if there is a screen.
pub(crate) fn browser() -> Option<process::Command> {
    let variables = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"];
    let has_screen = variables.iter().any(|name| std::env::var_os(name).is_some());
    has_screen.then(|| process::Command::new("xdg-open"))
}
