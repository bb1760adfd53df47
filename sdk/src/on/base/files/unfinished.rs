//! A file that takes its name when it is complete.
//!
//! The output's directory may be another user's, who can then put links, FIFOs and folders at any name that
//! can be guessed. So until it is complete the file has a random name that nothing had before, and only its
//! own user may read it.
//!
//! Own code, and not the `tempfile` crate: some sixty lines, where every dependency is built by each user of
//! the SDK.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::on::base::files;
use crate::on::base::platform::process;

/// Before the random number in the name of an unfinished file.
const MARK: &str = ".unfinished-";

/// Digits of the random number.
const DIGITS: usize = 16;

/// The longest name that a file may have on Linux's file systems.
const LONGEST_NAME: usize = 255;

/// Names that are tried. One that is taken is a coincidence of 64 random bits, or a system without randomness
/// at its start.
const TRIES: u32 = 16;

/// A file without its name, locked: one that nobody has locked is left over. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: File,
    path: PathBuf,
    is_named: bool,
    /// Whether the lock is another owner's by now.
    is_kept: bool,
}

impl Unfinished {
    /// Creates the file in the directory of `target`, so that it can take that name in one step. It may be
    /// read and written.
    ///
    /// # Errors
    /// When the directory takes no file, or something other than a regular file is at `target`.
    pub(crate) fn beside(target: &Path) -> io::Result<Self> {
        match fs::metadata(target) {
            Ok(there) if !there.is_file() => {
                return Err(io::Error::other("is there, and is no regular file"));
            }
            _ => {}
        }
        Self::beside_any(target)
    }

    /// The same, whatever is at `target`: the file may get another name in the end.
    pub(crate) fn beside_any(target: &Path) -> io::Result<Self> {
        let prefix = prefix(target);
        let mut tries = 0;
        loop {
            let mut name = prefix.clone();
            name.push(format!("{:016x}", u64::from_le_bytes(process::random())));
            let path = target.with_file_name(name);
            let mut options = OpenOptions::new();
            // `create_new` is O_EXCL: the kernel follows no link there either. The standard library adds
            // O_CLOEXEC.
            options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            tries += 1;
            match options.open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {}
                other => {
                    let file = other?;
                    files::lock(&file);
                    return Ok(Self { file, path, is_named: false, is_kept: false });
                }
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Puts the complete file at `target`, in place of a file that is there, with the mode that any new file
    /// gets.
    pub(crate) fn replace(mut self, target: &Path) -> io::Result<()> {
        open_to_others(&self.file)?;
        fs::rename(&self.path, target)?;
        self.is_named = true;
        Ok(())
    }

    /// The same. Returns the file, which stays locked.
    pub(crate) fn replace_locked(mut self, target: &Path) -> io::Result<File> {
        let file = self.file.try_clone()?;
        self.is_kept = true;
        self.replace(target)?;
        Ok(file)
    }

    /// Puts the complete file at `target` if nothing is there. Else gives it back with the error
    /// `AlreadyExists`.
    pub(crate) fn take_free(self, target: &Path) -> Result<(), (Self, io::Error)> {
        if let Err(e) = open_to_others(&self.file) {
            return Err((self, e));
        }
        match fs::hard_link(&self.path, target) {
            Ok(()) => Ok(()), // the random name goes with `self`
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err((self, e)),
            // A file system on which a file has one name only.
            Err(_) if fs::symlink_metadata(target).is_ok() => {
                Err((self, io::ErrorKind::AlreadyExists.into()))
            }
            Err(_) => {
                let mut this = self;
                match fs::rename(&this.path, target) {
                    Ok(()) => {
                        this.is_named = true;
                        Ok(())
                    }
                    Err(e) => Err((this, e)),
                }
            }
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = fs::remove_file(&self.path);
        }
        if !self.is_kept {
            files::unlock(&self.file); // to close it is not enough, as for an `OutputFile`
        }
    }
}

/// What the names of unfinished files for `target` begin with.
fn prefix(target: &Path) -> OsString {
    let mut name = b".".to_vec();
    name.extend_from_slice(target.file_name().unwrap_or_default().as_bytes());
    name.truncate(LONGEST_NAME - MARK.len() - DIGITS);
    name.extend_from_slice(MARK.as_bytes());
    OsString::from_vec(name)
}

/// Directory entries that [`remove_left_over`] looks at, so that a directory of another user cannot keep it
/// for long.
const MOST_ENTRIES: usize = 1 << 20;

/// Removes the unfinished files for `target` that killed processes left, of those that begin with `head`.
pub(crate) fn remove_left_over(target: &Path, head: &[u8]) {
    let prefix = prefix(target);
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_unfinished = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(|random| random.len() == DIGITS)
    };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.take(MOST_ENTRIES).flatten().filter(is_unfinished) {
        let is_left_over = |file: &File| files::begins_with(file, head) && files::lock(file);
        if files::open_own(&entry.path()).is_some_and(|file| is_left_over(&file)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Gives a complete file the mode that `open` would have given it.
///
/// # Errors
/// When the mode cannot be changed.
pub fn open_to_others(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o666 & !umask()))
}

/// The process's umask. From `/proc`, since umask(2) can only be asked by changing it, for all threads.
/// Without `/proc` files stay their user's own.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    fn directory() -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("hairline-{:016x}", u64::from_le_bytes(process::random())));
        fs::create_dir(&path).expect("a directory");
        path
    }

    #[test]
    fn a_file_is_its_users_own_until_it_is_complete_and_gone_if_it_never_is() {
        let directory = directory();
        let target = directory.join("t.fxt");
        let names = || fs::read_dir(&directory).expect("a directory").count();
        let unfinished = Unfinished::beside(&target).expect("a file");
        assert_eq!(unfinished.file().metadata().expect("its facts").mode() & 0o7777, 0o600);
        (&unfinished.file).write_all(b"head, and more").expect("written");
        remove_left_over(&target, b"head");
        assert_eq!(names(), 1, "it is not left over: its owner lives");
        files::unlock(&unfinished.file);
        remove_left_over(&target, b"heat");
        assert_eq!(names(), 1);
        remove_left_over(&target, b"head");
        assert_eq!(names(), 0);
        let unfinished = Unfinished::beside(&target).expect("a file");
        drop(unfinished);
        assert_eq!(names(), 0);
        Unfinished::beside(&target).expect("a file").replace(&target).expect("named");
        File::create(directory.join("plain")).expect("a file");
        let mode = |name: &str| fs::metadata(directory.join(name)).expect("there").mode();
        assert_eq!(mode("t.fxt"), mode("plain"));
        let (_, e) = Unfinished::beside(&target).expect("a file").take_free(&target).expect_err("taken");
        assert_eq!(e.kind(), io::ErrorKind::AlreadyExists);
        Unfinished::beside(&target).expect("a file").take_free(&directory.join("free")).expect("named");
        assert_eq!((mode("free"), names()), (mode("plain"), 3));
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn a_name_of_any_length_has_an_unfinished_one() {
        let directory = directory();
        for len in [1, 200, 255] {
            let target = directory.join("n".repeat(len));
            Unfinished::beside(&target).expect("a file").replace(&target).expect("named");
        }
        fs::remove_dir_all(directory).expect("removed");
    }
}
