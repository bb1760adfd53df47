//! Opening the output, so that neither the program nor another traced one is harmed by it.
//!
//! A link at its name must be of the right user ([`links`]), and a file that another process has locked stays
//! as it is.

#![allow(unsafe_code)] // fcntl, flock, close, sigtimedwait

pub(crate) mod links;
pub(crate) mod unfinished;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{IoSlice, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::on::base::platform::process;

/// How often the output is opened again because its name leads to another file by then: a rotation or a
/// recovery has ended meanwhile.
const TRIES: u32 = 16;

/// How long a session waits at its start for a recovery that completes the trace of an earlier run in the
/// same file. As long as an event waits for room with `HAIRLINE_OVERFLOW=block`.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(1);

/// Makes the output at `path` anew; whether it is a regular file. A FIFO that nobody reads is an error and not a wait; a file
/// that another process is writing a trace into stays as it is.
pub(crate) fn create(path: &Path) -> io::Result<(OutputFile, bool)> {
    for _ in 0..TRIES {
        // It is not cut yet: it may be another session's.
        let file = links::open(path, OpenOptions::new().write(true).create(true).truncate(false))?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Ok((OutputFile::new(file), false));
        }
        claim(&file)?;
        // A session that rotates its output gives the file another name before it lets go of it.
        if leads_to(path, &about) {
            file.set_len(0)?; // not before it is ours
            return Ok((OutputFile::new(file), true));
        }
        unlock(&file);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process replaces it again and again"))
}

/// Whether `path` leads to this file now.
pub(crate) fn leads_to(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
}

/// Where the file is that was the output at `path` before, as the how manieth: `t.fxt` -> `t.1.fxt`.
pub(crate) fn numbered_path(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Locks the open file against others that do the same, of other processes or of another copy of this crate in this one, until
/// it is dropped: a program inherits `HAIRLINE` from the traced one that started it. A forked child shares the open file, and closes it.
fn claim(file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        // Before the lock: a recovery that ends in between leaves it free.
        let is_recovered = is_marked(file);
        if lock(file) {
            return Ok(());
        }
        let what = if !is_recovered {
            "another process is writing a trace into it; with %p in the path each has its own"
        } else if began.elapsed() >= RECOVERY_PATIENCE {
            "`hairline recover` is completing the trace of an earlier run in it; start again when that is \
             done, or use %p in the path"
        } else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
    }
}

/// False when another process has it locked. True also where a file system knows no locks.
pub(crate) fn lock(file: &File) -> bool {
    // SAFETY: a call on an open descriptor.
    let outcome = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    outcome == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

pub(crate) fn unlock(file: &File) {
    // SAFETY: a call on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// A regular file of this user's, to read. No link is followed, and no FIFO waited for.
pub(crate) fn open_own(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).ok()?;
    let about = file.metadata().ok()?;
    (about.is_file() && about.uid() == process::effective_user()).then_some(file)
}

/// False also where it cannot be read.
pub(crate) fn begins_with(file: &File, head: &[u8]) -> bool {
    let mut found = vec![0; head.len()];
    file.read_exact_at(&mut found, 0).is_ok_and(|()| found == head)
}

/// A recovery marks the file that it locks, by a record lock on its first byte. So a session that finds the
/// file locked knows whether to wait: a recovery ends soon, another session does not.
fn mark(kind: libc::c_int) -> libc::flock {
    // SAFETY: an all-zero value is a valid one.
    let mut mark: libc::flock = unsafe { std::mem::zeroed() };
    mark.l_type = kind as libc::c_short;
    mark.l_whence = libc::SEEK_SET as libc::c_short;
    mark.l_len = 1;
    mark
}

fn is_marked(file: &File) -> bool {
    let mut found = mark(libc::F_WRLCK);
    // SAFETY: a call on an open descriptor, which writes `found`.
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut found) };
    outcome == 0 && libc::c_int::from(found.l_type) != libc::F_UNLCK
}

/// A recovery's lock on a session's output: the same as a session's, until it is dropped.
#[derive(Debug)]
pub(crate) struct RecoveryClaim(File);

impl RecoveryClaim {
    /// `None` when another process has the file locked.
    pub(crate) fn new(file: &File) -> io::Result<Option<Self>> {
        let this = Self(file.try_clone()?);
        // The mark first: a session that finds the lock finds the mark too. Where it cannot be had, that
        // session does not wait.
        this.set_mark(libc::F_RDLCK);
        Ok(lock(file).then_some(this)) // else the drop takes the mark back
    }

    fn set_mark(&self, kind: libc::c_int) {
        let mark = mark(kind);
        // SAFETY: a call on an open descriptor, which reads `mark`.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &raw const mark) };
    }
}

impl Drop for RecoveryClaim {
    /// To close the file is not enough, as for an [`OutputFile`].
    fn drop(&mut self) {
        unlock(&self.0); // of a lock that was not had, it is none
        self.set_mark(libc::F_UNLCK);
    }
}

/// The descriptor of the session's output; -1 while there is none.
static OUTPUT: AtomicI32 = AtomicI32::new(-1);

/// A session's output.
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
        // Before the descriptor is another file's. A session after this one may have stored its own.
        let _ = OUTPUT.compare_exchange(self.0.as_raw_fd(), -1, Ordering::Relaxed, Ordering::Relaxed);
        // To close it is not enough: a child that another thread starts just now has it open too until it is another program.
        unlock(&self.0);
    }
}

/// In a forked child: it has the parent's output open, and would keep it locked, or a pipe's reader waiting, for as long as it
/// lives.
pub(crate) fn close_in_child() {
    let output = OUTPUT.swap(-1, Ordering::Relaxed);
    if output >= 0 {
        // SAFETY: the open file of an `OutputFile`. The thread that owns it does not exist in this process,
        // so nobody uses or drops it here.
        unsafe { libc::close(output) };
    }
}

/// While it lives, what this thread writes cannot end the process by SIGPIPE or SIGXFSZ: the call fails, and that is all.
pub(crate) struct WriteSignalsBlocked {
    before: libc::sigset_t,
    /// Those that were not already pending.
    ours: libc::sigset_t,
}

impl WriteSignalsBlocked {
    pub(crate) fn new() -> Self {
        // SAFETY: all sets are valid for the calls; an all-zero set is a valid one.
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
        // SAFETY: the sets are those of `new`, the time is valid, and nothing is asked of the signal but its number.
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
    fn an_output_that_was_dropped_is_free_whoever_else_has_the_file_open() {
        let path = std::env::temp_dir().join(format!("hairline-output-{}", std::process::id()));
        let (output, is_file) = create(&path).expect("created");
        assert!(is_file && create(&path).is_err(), "in use");
        let of_a_child = output.try_clone().expect("the same open file");
        drop(output);
        create(&path).expect("free");
        drop(of_a_child);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn the_number_of_a_file_stands_before_its_extension() {
        let of = |path: &str| numbered_path(Path::new(path), 12).to_string_lossy().into_owned();
        assert_eq!((of("/a.b/t.x.fxt"), of("trace")), ("/a.b/t.x.12.fxt".to_owned(), "trace.12".to_owned()));
    }
}
