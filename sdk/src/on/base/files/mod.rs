//! Creates, opens and locks the output, without harm to the program, to another traced program, or to a trace
//! that somebody wants.
//!
//! A link at its path must belong to the right user ([`links`]). A file that another process has locked stays
//! unchanged, and so does the trace of a session that has not ended ([`claim`]).

pub(crate) mod claim;
pub(crate) mod links;
pub(crate) mod output_file;
pub(crate) mod unfinished;

use std::fs::File;
#[cfg(feature = "recovery")]
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::on::base::platform;
#[cfg(feature = "recovery")]
use crate::on::base::platform::facts::Lock;
pub(crate) use crate::on::base::platform::{WriteSignalsBlocked, try_lock, unlock};

/// Whether `path` leads to the file now.
pub(crate) fn leads_to(path: &Path, file: &File) -> bool {
    platform::identity_at(path).is_ok_and(|there| platform::identity(file).is_ok_and(|own| own == there))
}

/// Returns the path of the rotated file number `number`: `t.fxt` -> `t.1.fxt`.
pub(crate) fn numbered_path(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &format!(".{number}"))
}

/// Returns the path with `suffix` at the end of its name, before the extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Opens a regular file of this user for reading. Returns `None` for any other file. It follows no link and
/// waits for no FIFO.
#[cfg(feature = "recovery")]
pub(crate) fn open_own(path: &Path) -> Option<File> {
    let is_own = |metadata: Metadata| metadata.is_file() && platform::is_own(&metadata);
    // Looked at before the open, which can have an effect on the other end of a FIFO.
    fs::symlink_metadata(path).is_ok_and(is_own).then_some(())?;
    let file = platform::open_to_read(path).ok()?;
    file.metadata().is_ok_and(is_own).then_some(file)
}

/// The bytes that all files of an output begin with.
#[cfg(feature = "recovery")]
#[derive(Clone, Debug)]
pub(crate) struct Head<'h> {
    pub(crate) bytes: &'h [u8],
    /// Those that are different in each file.
    pub(crate) own: std::ops::Range<usize>,
}

#[cfg(feature = "recovery")]
impl Head<'_> {
    /// Whether the file begins with it. False also if the file cannot be read.
    pub(crate) fn begins(&self, file: &File) -> bool {
        let mut found = vec![0; self.bytes.len()];
        if read_exact_at(file, &mut found, 0).is_err() {
            return false;
        }
        let (before, after) = (..self.own.start, self.own.end..);
        found[before] == self.bytes[before] && found[after.clone()] == self.bytes[after]
    }
}

/// Reads bytes at an offset.
///
/// # Errors
/// If the file ends before that, or cannot be read.
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match platform::read_at(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => (bytes, offset) = (&mut bytes[n..], offset + n as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A recovery's lock on the output of a session. It excludes other sessions and recoveries until it is
/// dropped. The file has a mark meanwhile: a session that finds the file locked checks for the mark. With it,
/// the file is the trace of a dead process, and the session takes another name.
#[cfg(feature = "recovery")]
#[derive(Debug)]
pub(crate) struct RecoveryLock(File);

#[cfg(feature = "recovery")]
impl RecoveryLock {
    /// Locks the file. `None` if another process has the file locked.
    pub(crate) fn try_new(file: &File) -> io::Result<Option<Self>> {
        let this = Self(file.try_clone()?);
        // The mark comes first, so a session that finds the lock also finds the mark. Without the mark (on a
        // file system that has no record locks) that session records nothing.
        platform::set_recovery_mark(&this.0, true);
        // A file system without locks has none against a session either. The region has a lock of its own.
        Ok((try_lock(file) != Lock::Taken).then_some(this)) // else the drop removes the mark
    }
}

#[cfg(feature = "recovery")]
impl Drop for RecoveryLock {
    /// Unlocks the file. Closing it is not enough, as for an [`OutputFile`].
    fn drop(&mut self) {
        unlock(&self.0); // without effect if the lock was not acquired
        platform::set_recovery_mark(&self.0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_path_has_the_number_before_the_extension() {
        let of = |path: &str| numbered_path(Path::new(path), 12).to_string_lossy().into_owned();
        assert_eq!((of("/a.b/t.x.fxt"), of("trace")), ("/a.b/t.x.12.fxt".to_owned(), "trace.12".to_owned()));
    }
}
