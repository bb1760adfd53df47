//! Creates, opens and locks the output, without harm to the program or to another traced program.
//!
//! A link at its path must belong to the right user ([`links`]). A file that another process has locked stays
//! unchanged.

pub(crate) mod links;
pub(crate) mod unfinished;

#[cfg(feature = "recovery")]
use std::fs::{self, Metadata};
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{IoSlice, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::on::base::platform;
pub(crate) use crate::on::base::platform::{WriteSignalsBlocked, try_lock, unlock};

/// Tries to open the output. A try fails if a rotation or a recovery replaces the file at the path meanwhile.
const TRIES: u32 = 16;

/// How long a starting session waits for a recovery that completes the trace of an earlier run in the same
/// file. An event waits equally long for room with `HAIRLINE_OVERFLOW=block`.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(1);

/// Creates or truncates the output at `path`, and locks it. Returns whether it is a regular file. A FIFO
/// without a reader is an error; the call does not wait. A file that another process is writing a trace into
/// stays unchanged.
pub(crate) fn create(path: &Path) -> io::Result<(OutputFile, bool)> {
    for _ in 0..TRIES {
        // Not truncated yet: it may be another session's output.
        let file = links::open(path, OpenOptions::new().write(true).create(true).truncate(false))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok((OutputFile::new(file), false));
        }
        lock_or_explain(&file)?;
        // A session that rotates its output renames the file before it unlocks the file.
        if leads_to(path, &file) {
            file.set_len(0)?; // only once it is locked
            return Ok((OutputFile::new(file), true));
        }
        unlock(&file);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process replaces it again and again"))
}

/// Whether `path` leads to the file now.
pub(crate) fn leads_to(path: &Path, file: &File) -> bool {
    platform::identity_at(path).is_ok_and(|there| platform::identity(file).is_ok_and(|own| own == there))
}

/// Returns the path of the rotated file number `number`: `t.fxt` -> `t.1.fxt`.
pub(crate) fn numbered_path(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Locks the open file until it is dropped: against other processes, and against another copy of this crate
/// in this process. Both can have the same output, since a program inherits `HAIRLINE` from the traced
/// program that started it. A forked child shares the open file, and closes it.
fn lock_or_explain(file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        // Read before the lock: a recovery that ends in between leaves the file unlocked.
        let in_recovery = platform::has_recovery_mark(file);
        if try_lock(file) {
            return Ok(());
        }
        let message = if !in_recovery {
            "another process is writing a trace into it; with %p in the path each has its own"
        } else if began.elapsed() >= RECOVERY_PATIENCE {
            "`hairline recover` is completing the trace of an earlier run in it; start again when that is \
             done, or use %p in the path"
        } else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
    }
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
#[cfg(feature = "recovery")]
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
/// dropped. The file has a mark meanwhile: a session that finds the file locked checks for the mark. It waits
/// for a recovery, which ends soon, but not for another session.
#[cfg(feature = "recovery")]
#[derive(Debug)]
pub(crate) struct RecoveryLock(File);

#[cfg(feature = "recovery")]
impl RecoveryLock {
    /// Locks the file. `None` if another process has the file locked.
    pub(crate) fn try_new(file: &File) -> io::Result<Option<Self>> {
        let this = Self(file.try_clone()?);
        // The mark comes first, so a session that finds the lock also finds the mark. Without the mark (on a
        // file system that has no record locks) that session does not wait.
        platform::set_recovery_mark(&this.0, true);
        Ok(try_lock(file).then_some(this)) // else the drop removes the mark
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

/// The descriptor of the session's output; -1 without an output.
static OUTPUT: AtomicI32 = AtomicI32::new(-1);

/// The output of a session, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct OutputFile(File);

impl OutputFile {
    pub(crate) fn new(file: File) -> Self {
        OUTPUT.store(platform::number_of(&file), Ordering::Relaxed);
        Self(file)
    }
}

impl Deref for OutputFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.0
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // This comes before the close, after which another file may get the same descriptor. A session after
        // this one may have stored its own descriptor already.
        let _ =
            OUTPUT.compare_exchange(platform::number_of(&self.0), -1, Ordering::Relaxed, Ordering::Relaxed);
        // Closing the file is not enough: a child that another thread is just starting has it open too, until
        // its exec.
        unlock(&self.0);
    }
}

/// Closes the parent's output in a forked child. The child would otherwise keep the output locked, or the
/// reader of a pipe waiting, for its whole life.
pub(crate) fn close_in_child() {
    let output = OUTPUT.swap(-1, Ordering::Relaxed);
    if output >= 0 {
        platform::close(output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_output_is_unlocked_even_if_a_child_has_it_open() {
        let path = std::env::temp_dir().join(format!("hairline-output-{}", std::process::id()));
        let (output, is_file) = create(&path).expect("created");
        assert!(is_file && create(&path).is_err(), "in use");
        let childs_copy = output.try_clone().expect("the same open file");
        drop(output);
        create(&path).expect("free");
        drop(childs_copy);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_numbered_path_has_the_number_before_the_extension() {
        let of = |path: &str| numbered_path(Path::new(path), 12).to_string_lossy().into_owned();
        assert_eq!((of("/a.b/t.x.fxt"), of("trace")), ("/a.b/t.x.12.fxt".to_owned(), "trace.12".to_owned()));
    }
}
