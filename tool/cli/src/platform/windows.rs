//! Windows.

#![allow(unsafe_code)] // calls the system

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::path::Path;
use std::process::{self, Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windows_sys::Win32::Foundation::{FALSE, TRUE};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_TYPE_DISK,
    GetFileInformationByHandle, GetFileType,
};
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::core::BOOL;

use crate::platform::facts::{Identity, Link, NotStarted};
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

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    let mut about = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: an open handle, and the call writes the struct.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut about) } == FALSE {
        return Err(io::Error::last_os_error());
    }
    let index = u64::from(about.nFileIndexHigh) << 32 | u64::from(about.nFileIndexLow);
    Ok((about.dwVolumeSerialNumber.into(), index))
}

/// Returns the identity of an open file if it is a regular one. A pipe and a console have none.
pub(crate) fn regular(file: &File) -> io::Result<Option<Identity>> {
    // SAFETY: an open handle.
    let kind = unsafe { GetFileType(file.as_raw_handle()) };
    if kind == FILE_TYPE_DISK { identity(file).map(Some) } else { Ok(None) }
}

/// Returns the identity of the file that a path leads to.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    identity(&OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?)
}

/// Returns the identity of the file at a path, which may be a link.
pub(crate) fn identity_of_name(path: &Path) -> io::Result<Identity> {
    let flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    identity(&OpenOptions::new().access_mode(0).custom_flags(flags).open(path)?)
}

/// Returns another handle of stdin.
pub(crate) fn stdin() -> io::Result<File> {
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// Returns another handle of stdout.
pub(crate) fn stdout() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Not known.
pub(crate) fn free_bytes(_path: &Path) -> Option<u64> {
    None
}

/// Returns false: a file gives no rights here.
pub(crate) fn gives_rights(_program: &File) -> bool {
    false
}

/// Opens a file for reading.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates a file. Its directory says who may read it.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).read(true).create_new(true).open(path)
}

/// A new folder, which is removed when it is dropped. Its directory says who may write it, and no other user
/// may rename it.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Creates a folder with a random name that begins with `prefix`.
    pub(crate) fn create(parent: &Path, prefix: &OsStr) -> io::Result<Self> {
        tempfile::Builder::new().prefix(prefix).tempdir_in(parent).map(Self)
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns true: the folder is found by its path.
    pub(crate) fn is_in_place(&self) -> bool {
        true
    }

    /// Returns the names of all files.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(self.path())?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Returns the length of a file. `None` if there is no regular file with this name.
    pub(crate) fn len_of(&self, name: &str) -> Option<u64> {
        let about = std::fs::symlink_metadata(self.path().join(name)).ok()?;
        about.is_file().then(|| about.len())
    }

    /// Creates a file for writing.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        File::create_new(self.path().join(name))
    }

    /// Opens a file for reading.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        File::open(self.path().join(name))
    }

    /// Opens a file to append to it.
    pub(crate) fn append_to_file(&self, name: &str) -> io::Result<File> {
        File::options().append(true).open(self.path().join(name))
    }

    /// Moves a file to a path.
    pub(crate) fn move_file(&self, name: &str, to: &Path) -> io::Result<()> {
        std::fs::rename(self.path().join(name), to)
    }

    /// Moves a file to a path that has no file.
    ///
    /// # Errors
    /// `AlreadyExists` if the path has one.
    pub(crate) fn move_file_if_free(&self, name: &str, to: &Path) -> io::Result<()> {
        std::fs::hard_link(self.path().join(name), to)?;
        std::fs::remove_file(self.path().join(name))
    }

    /// Has the effect that the folder stays.
    pub(crate) fn keep(self) {
        let _ = self.0.keep();
    }
}

/// Does nothing: the directory of a file says who may read it.
#[allow(clippy::unnecessary_wraps)] // on other systems it can fail
pub(crate) fn give_usual_mode(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a recorder that replaces the same trace at the same moment is not kept away.
#[allow(clippy::unnecessary_wraps)] // on other systems it can fail
pub(crate) fn lock(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Reads the link at a path. Only administrators and developers create links.
pub(crate) fn read_link(path: &Path) -> io::Result<Link> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => std::fs::read_link(path).map(Link::To),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(Link::None),
    }
}

/// The error for a path with too many links.
pub(crate) fn too_many_links() -> io::Error {
    io::Error::other("too many symbolic links")
}

/// Opens a file that is written in place.
pub(crate) fn open_in_place(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// As [`open_in_place`].
pub(crate) fn open_through(link: &Path) -> io::Result<File> {
    open_in_place(link)
}

/// The command that opens a link in the user's browser. Other users cannot read its arguments.
pub(crate) fn browser() -> Option<process::Command> {
    let mut command = process::Command::new("rundll32");
    command.arg("url.dll,FileProtocolHandler");
    Some(command)
}

/// What [`before_end`] was given.
static LAST: OnceLock<fn(&dyn Fn())> = OnceLock::new();
/// The flag of [`ending`].
static ENDING: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Whether this process records a command, which gets the console's events too.
static RECORDS: AtomicBool = AtomicBool::new(false);
/// The end of the command.
static ENDED: OnceLock<Instant> = OnceLock::new();
/// Whether an event came after the end of the command.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// An event of the console this soon after the end of the command is the one that has ended it.
const SAME: Duration = Duration::from_secs(1);

/// Handles an event of the console (Ctrl-C, its end), on a thread of the system.
///
/// Returns whether the process goes on.
unsafe extern "system" fn console(_event: u32) -> BOOL {
    if let Some(flag) = ENDING.get() {
        flag.store(true, Ordering::Relaxed);
        return TRUE;
    }
    if RECORDS.load(Ordering::Relaxed) {
        if ENDED.get().is_some_and(|end| end.elapsed() >= SAME) {
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
        return TRUE;
    }
    if let Some(last) = LAST.get() {
        last(&|| ());
    }
    FALSE
}

/// Handles the console's events from now on.
fn heed_console() -> io::Result<()> {
    static HEEDS: AtomicBool = AtomicBool::new(false);
    if HEEDS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: a function of this crate, which needs nothing of its caller.
    match unsafe { SetConsoleCtrlHandler(Some(console), TRUE) } {
        FALSE => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Calls `last` if the user ends this process, on the system's thread, which ends the process then. Further
/// calls have no effect.
pub(crate) fn before_end(last: fn(&dyn Fn())) -> io::Result<()> {
    LAST.get_or_init(|| last);
    heed_console()
}

/// Returns a flag that the user sets by ending this process, which goes on.
pub(crate) fn ending() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::clone(ENDING.get_or_init(Arc::default));
    heed_console().map(|()| flag)
}

/// A running command. The console sends Ctrl-C to the command and to this process.
#[derive(Debug)]
pub(crate) struct Command {
    child: Child,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    status: Option<ExitStatus>,
}

impl Command {
    /// Starts the command. `before_exec` is called with its pid: at once, since it opens events that only
    /// Linux has.
    pub(crate) fn start(
        mut command: process::Command,
        before_exec: Option<&mut dyn FnMut(u32)>,
    ) -> Result<Self, NotStarted> {
        let program = command.get_program().to_owned();
        let failed = |e: io::Error| NotStarted::new(&program, &e);
        RECORDS.store(true, Ordering::Relaxed);
        heed_console().map_err(failed)?;
        let child = command.spawn().map_err(failed)?;
        if let Some(before_exec) = before_exec {
            before_exec(child.id());
        }
        Ok(Self { child })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the command.
    pub(crate) fn wait(mut self) -> Ended {
        let status = self.child.wait().ok();
        let _ = ENDED.set(Instant::now());
        Ended { status }
    }
}

impl Ended {
    /// The exit code; 255 for one that has more than a byte, as that of Ctrl-C.
    pub(crate) fn code(&self) -> u8 {
        let code = self.status.and_then(|status| status.code()).unwrap_or(1);
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// Whether the user pressed Ctrl-C after the end.
    pub(crate) fn is_interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}
