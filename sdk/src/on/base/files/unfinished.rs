//! A file that gets its path once it is complete.
//!
//! The directory of the output may belong to another user, who can then put links, FIFOs and folders at any
//! name that can be guessed. So until the file is complete, it has a fresh random name, and only its own user
//! may read it.
//!
//! The `tempfile` crate would replace some sixty lines of this file, but each user of the SDK builds every
//! dependency.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hairline_perf::Held;

use crate::on::base::files;
#[cfg(feature = "recovery")]
use crate::on::base::files::Head;
use crate::on::base::platform;
#[cfg(feature = "recovery")]
use crate::on::base::platform::facts::Lock;
use crate::on::base::platform::process;

/// Separates the name of the target from the random number in the name of an unfinished file.
const MARK: &str = ".unfinished-";

/// Digits of the random number.
const DIGITS: usize = 16;

/// The longest name that a file may have on Linux's file systems.
const LONGEST_NAME: usize = 255;

/// Names that are tried. A name that is taken is a coincidence of 64 random bits, or the system has no
/// randomness yet.
const TRIES: u32 = 16;

/// An unfinished file. It is locked, so an unlocked one is left over from a dead process. It is removed when
/// dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: Held,
    path: PathBuf,
    has_target_name: bool,
    /// The process that has created it. A forked child leaves it to its parent.
    process: u32,
    /// Whether the lock now belongs to the file that [`replace_locked`](Self::replace_locked) returned.
    has_passed_on_lock: bool,
}

impl Unfinished {
    /// Creates the file, readable and writable, in the directory of `target`. So it can be renamed to
    /// `target` in one step.
    ///
    /// # Errors
    /// If no file can be created in the directory, or `target` exists and is not a regular file.
    pub(crate) fn beside(target: &Path) -> io::Result<Self> {
        match fs::metadata(target) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::other("it exists and is not a regular file; give another path"));
            }
            _ => {}
        }
        Self::beside_unchecked(target)
    }

    /// Creates the file like [`beside`](Self::beside), without a check of `target`: the file may get another
    /// name in the end.
    pub(crate) fn beside_unchecked(target: &Path) -> io::Result<Self> {
        let prefix = prefix(target);
        let mut tries = 0;
        loop {
            let mut name = prefix.clone();
            name.push(format!("{:016x}", u64::from_le_bytes(process::random())));
            let path = target.with_file_name(name);
            tries += 1;
            match platform::create_private(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {}
                other => {
                    let file = Held::new(other?);
                    files::try_lock(file.unchecked());
                    let (has_target_name, has_passed_on_lock) = (false, false);
                    return Ok(Self {
                        file,
                        path,
                        has_target_name,
                        process: process::id(),
                        has_passed_on_lock,
                    });
                }
            }
        }
    }

    /// Returns the open file.
    ///
    /// # Errors
    /// If the program has closed its descriptor.
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.file.get()
    }

    /// Renames the complete file to `target`, in place of any file there. It gets the mode of any new file.
    pub(crate) fn replace(mut self, target: &Path) -> io::Result<()> {
        if process::id() != self.process {
            return Err(io::Error::other("it is the file of another process"));
        }
        platform::open_to_others(self.file()?)?;
        fs::rename(&self.path, target)?;
        self.has_target_name = true;
        Ok(())
    }

    /// Renames the file like [`replace`](Self::replace). Returns the file, which stays locked.
    pub(crate) fn replace_locked(mut self, target: &Path) -> io::Result<File> {
        let file = self.file()?.try_clone()?;
        self.has_passed_on_lock = true;
        self.replace(target)?;
        Ok(file)
    }

    /// Gives the complete file the name `target` if that is free. Otherwise returns the unfinished file, with
    /// the error `AlreadyExists`.
    pub(crate) fn name_if_free(self, target: &Path) -> Result<(), (Self, io::Error)> {
        if let Err(e) = self.file().and_then(platform::open_to_others) {
            return Err((self, e));
        }
        match fs::hard_link(&self.path, target) {
            Ok(()) => Ok(()), // dropping `self` removes the random name
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err((self, e)),
            // The file system has no hard links.
            Err(_) if fs::symlink_metadata(target).is_ok() => {
                Err((self, io::ErrorKind::AlreadyExists.into()))
            }
            Err(_) => {
                let mut this = self;
                match fs::rename(&this.path, target) {
                    Ok(()) => {
                        this.has_target_name = true;
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
        if process::id() != self.process {
            return; // the lock is the parent's too
        }
        if !self.has_target_name {
            let _ = fs::remove_file(&self.path);
        }
        if !self.has_passed_on_lock
            && let Ok(file) = self.file()
        {
            files::unlock(file); // closing is not enough, as for an `OutputFile`
        }
    }
}

/// Returns the prefix that the names of all unfinished files for `target` have.
fn prefix(target: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    let mut name = platform::shortened(&name, LONGEST_NAME - MARK.len() - DIGITS);
    name.push(MARK);
    name
}

/// Limit of directory entries that [`remove_left_over`] reads, so that a huge directory of another user does
/// not delay it for long.
#[cfg(feature = "recovery")]
const MOST_ENTRIES: usize = 1 << 20;

/// Removes the unfinished files for `target` that killed processes left, if they begin with `head`.
#[cfg(feature = "recovery")]
pub(crate) fn remove_left_over(target: &Path, head: &Head<'_>) {
    let prefix = prefix(target);
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_unfinished = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes())
            .is_some_and(|random| random.len() == DIGITS)
    };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.take(MOST_ENTRIES).flatten().filter(is_unfinished) {
        let is_left_over = |file: &File| head.begins(file) && files::try_lock(file) == Lock::Got;
        if files::open_own(&entry.path()).is_some_and(|file| is_left_over(&file)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    #[cfg(feature = "recovery")]
    use std::{io::Write, os::unix::fs::MetadataExt};

    fn directory() -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("hairline-{:016x}", u64::from_le_bytes(process::random())));
        fs::create_dir(&path).expect("a directory");
        path
    }

    #[cfg(feature = "recovery")]
    #[test]
    fn an_unfinished_file_is_private_and_removed_unless_it_is_completed() {
        let directory = directory();
        let target = directory.join("t.fxt");
        let names = || fs::read_dir(&directory).expect("a directory").count();
        let unfinished = Unfinished::beside(&target).expect("a file");
        assert_eq!(unfinished.file().and_then(File::metadata).expect("its facts").mode() & 0o7777, 0o600);
        unfinished.file().expect("open").write_all(b"head, and more").expect("written");
        let head = |bytes: &'static [u8]| Head { bytes, own: 1..2 };
        remove_left_over(&target, &head(b"head"));
        assert_eq!(names(), 1, "it is locked, so not left over");
        files::unlock(unfinished.file().expect("open"));
        remove_left_over(&target, &head(b"heat"));
        assert_eq!(names(), 1);
        remove_left_over(&target, &head(b"h?ad"));
        assert_eq!(names(), 0);
        let unfinished = Unfinished::beside(&target).expect("a file");
        drop(unfinished);
        assert_eq!(names(), 0);
        Unfinished::beside(&target).expect("a file").replace(&target).expect("named");
        File::create(directory.join("plain")).expect("a file");
        let mode = |name: &str| fs::metadata(directory.join(name)).expect("there").mode();
        assert_eq!(mode("t.fxt"), mode("plain"));
        let (_, e) = Unfinished::beside(&target).expect("a file").name_if_free(&target).expect_err("taken");
        assert_eq!(e.kind(), io::ErrorKind::AlreadyExists);
        Unfinished::beside(&target).expect("a file").name_if_free(&directory.join("free")).expect("named");
        assert_eq!((mode("free"), names()), (mode("plain"), 3));
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn a_target_name_of_any_length_has_an_unfinished_name() {
        let directory = directory();
        for len in [1, 200, 255] {
            let target = directory.join("n".repeat(len));
            Unfinished::beside(&target).expect("a file").replace(&target).expect("named");
        }
        fs::remove_dir_all(directory).expect("removed");
    }
}
