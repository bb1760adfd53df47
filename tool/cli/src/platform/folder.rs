//! A folder of Unix whose files are created, opened and removed below its descriptor.
//!
//! Another user may own the directory around it, and so can give its name to a folder of their own, with
//! links in it. The descriptor still leads to the folder that was created, and nobody else may write that
//! one.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A new folder, which only this user may read and write.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    held: OwnedFd,
    is_kept: bool,
}

impl Folder {
    /// Creates a folder with a random name that begins with `prefix`. Dropping it removes it, unless it is
    /// [kept](Self::keep).
    pub(crate) fn create(parent: &Path, prefix: &OsStr) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let path = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(parent)?.keep();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = fs::open(&path, flags, Mode::empty())?;
        let mut folder = Self { path, held, is_kept: true };
        // Between the two calls, another folder may have got the name. One of this user without files does no
        // harm.
        let about = fs::fstat(&folder.held)?;
        let is_private = !Mode::from_raw_mode(about.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        let is_ours = about.st_uid == rustix::process::geteuid().as_raw();
        if !is_private || !is_ours || !folder.names()?.is_empty() {
            return Err(io::Error::other("another folder has the name of the new one"));
        }
        folder.is_kept = false;
        Ok(folder)
    }

    /// Returns the path that the folder was created at.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is still at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        let of = |about: fs::Stat| (about.st_dev, about.st_ino);
        let [held, there] = [fs::fstat(&self.held), fs::lstat(&self.path)].map(|about| about.map(of));
        matches!((held, there), (Ok(held), Ok(there)) if held == there)
    }

    /// Returns the names of all files. Those that are not UTF-8 name no file then.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.held)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns the length of a file. `None` if there is no regular file with this name: a link is none.
    pub(crate) fn len_of(&self, name: &str) -> Option<u64> {
        let about = fs::statat(&self.held, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        is_file.then(|| about.st_size.unsigned_abs())
    }

    /// Creates a file for writing.
    ///
    /// # Errors
    /// Fails if there is anything with this name, a link too.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.held, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Fails at once if there is no regular file with this name. Follows no link, and waits for no FIFO.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.held, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
    }

    /// Opens a file to append to it.
    pub(crate) fn append_to_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.held, name, flags, Mode::empty())?.into())
    }

    /// Moves a file to a path.
    pub(crate) fn move_file(&self, name: &str, to: &Path) -> io::Result<()> {
        Ok(fs::renameat(&self.held, name, CWD, to)?)
    }

    /// Moves a file to a path that has no file.
    ///
    /// # Errors
    /// `AlreadyExists` if the path has one.
    pub(crate) fn move_file_if_free(&self, name: &str, to: &Path) -> io::Result<()> {
        match fs::linkat(&self.held, name, CWD, to, AtFlags::empty()) {
            Ok(()) => Ok(fs::unlinkat(&self.held, name, AtFlags::empty())?),
            Err(Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
            // The file system has no hard links.
            Err(_) if std::fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => self.move_file(name, to),
        }
    }

    /// Has the effect that the folder stays.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Ok(entries) = Dir::read_from(&self.held) {
            for entry in entries.flatten() {
                let _ = fs::unlinkat(&self.held, entry.file_name(), AtFlags::empty());
            }
        }
        // Of another folder with this name, nothing may be removed. An empty one could be, in a race.
        if self.is_in_place() {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
