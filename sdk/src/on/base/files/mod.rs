//! Creates, opens and locks the output, without harm to the program or to another traced program.
//!
//! A link at its path must belong to the right user ([`links`]). A file that another process has locked stays
//! unchanged.

#![allow(unsafe_code)] // fcntl, flock, close, sigtimedwait

pub(crate) mod links;
pub(crate) mod unfinished;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{IoSlice, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
#[cfg(feature = "recovery")]
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

#[cfg(feature = "recovery")]
use crate::on::base::platform::process;

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
        if leads_to(path, &metadata) {
            file.set_len(0)?; // only once it is locked
            return Ok((OutputFile::new(file), true));
        }
        unlock(&file);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process replaces it again and again"))
}

/// Whether `path` leads to the file with this metadata now.
pub(crate) fn leads_to(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
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
        let in_recovery = has_recovery_mark(file);
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

/// Tries to lock the file. Returns false if another process has it locked; true also if the file system has
/// no locks.
pub(crate) fn try_lock(file: &File) -> bool {
    // SAFETY: a call on an open descriptor.
    let outcome = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    outcome == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Unlocks the file. Without effect if this process does not have it locked.
pub(crate) fn unlock(file: &File) {
    // SAFETY: a call on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// Opens a regular file of this user for reading. Returns `None` for any other file. It follows no link and
/// waits for no FIFO.
#[cfg(feature = "recovery")]
pub(crate) fn open_own(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).ok()?;
    let metadata = file.metadata().ok()?;
    (metadata.is_file() && metadata.uid() == process::effective_user()).then_some(file)
}

/// Whether the file begins with `head`. False also if the file cannot be read.
#[cfg(feature = "recovery")]
pub(crate) fn begins_with(file: &File, head: &[u8]) -> bool {
    let mut found = vec![0; head.len()];
    file.read_exact_at(&mut found, 0).is_ok_and(|()| found == head)
}

/// Returns the record lock by which a recovery marks the file that it has locked: on the first byte. A
/// session that finds the file locked checks for the mark: it waits for a recovery, which ends soon, but not
/// for another session.
fn mark(kind: libc::c_int) -> libc::flock {
    // SAFETY: an all-zero value is valid.
    let mut mark: libc::flock = unsafe { std::mem::zeroed() };
    mark.l_type = kind as libc::c_short;
    mark.l_whence = libc::SEEK_SET as libc::c_short;
    mark.l_len = 1;
    mark
}

fn has_recovery_mark(file: &File) -> bool {
    let mut found = mark(libc::F_WRLCK);
    // SAFETY: a call on an open descriptor, which writes `found`.
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut found) };
    outcome == 0 && libc::c_int::from(found.l_type) != libc::F_UNLCK
}

/// A recovery's lock on the output of a session. It excludes other sessions and recoveries until it is
/// dropped.
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
        this.set_mark(libc::F_RDLCK);
        Ok(try_lock(file).then_some(this)) // else the drop removes the mark
    }

    fn set_mark(&self, kind: libc::c_int) {
        let mark = mark(kind);
        // SAFETY: a call on an open descriptor, which reads `mark`.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &raw const mark) };
    }
}

#[cfg(feature = "recovery")]
impl Drop for RecoveryLock {
    /// Unlocks the file. Closing it is not enough, as for an [`OutputFile`].
    fn drop(&mut self) {
        unlock(&self.0); // without effect if the lock was not acquired
        self.set_mark(libc::F_UNLCK);
    }
}

/// The descriptor of the session's output; -1 without an output.
static OUTPUT: AtomicI32 = AtomicI32::new(-1);

/// The output of a session, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct OutputFile(File);

impl OutputFile {
    pub(crate) fn new(file: File) -> Self {
        OUTPUT.store(file.as_raw_fd(), Ordering::Relaxed);
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
        let _ = OUTPUT.compare_exchange(self.0.as_raw_fd(), -1, Ordering::Relaxed, Ordering::Relaxed);
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
        // SAFETY: the descriptor of an `OutputFile` that is open. The thread that owns it does not exist in
        // this process, so no code uses or drops it here.
        unsafe { libc::close(output) };
    }
}

/// Blocks SIGPIPE and SIGXFSZ for this thread until it is dropped. A write of this thread then fails instead
/// of ending the process.
pub(crate) struct WriteSignalsBlocked {
    before: libc::sigset_t,
    /// The blocked signals that were not pending before.
    ours: libc::sigset_t,
}

impl WriteSignalsBlocked {
    pub(crate) fn new() -> Self {
        // SAFETY: all sets are valid for the calls; an all-zero set is valid.
        unsafe {
            let (mut both, mut before, mut pending, mut ours): (libc::sigset_t, _, _, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut both);
            libc::sigemptyset(&raw mut ours);
            libc::sigpending(&raw mut pending);
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::sigaddset(&raw mut both, signal);
                if libc::sigismember(&raw const pending, signal) == 0 {
                    libc::sigaddset(&raw mut ours, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const both, &raw mut before);
            Self { before, ours }
        }
    }
}

impl Drop for WriteSignalsBlocked {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the sets come from `new`, the time is valid, and the null pointer asks for no details of
        // the signal.
        unsafe {
            while libc::sigtimedwait(&raw const self.ours, std::ptr::null_mut(), &raw const at_once) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
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
