//! Opening the output, so that neither the program nor another traced one is harmed by it.

#![allow(unsafe_code)] // fcntl, flock, close, sigtimedwait

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

/// Makes the output at `path` anew; whether it is a regular file. A FIFO that nobody reads is an error and not a wait; a file
/// that another process is writing a trace into stays as it is.
pub(crate) fn create(path: &Path) -> io::Result<(OutputFile, bool)> {
    let mut options = OpenOptions::new();
    // Not cut before it is ours.
    options.write(true).create(true).truncate(false).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ENXIO) => io::Error::new(io::ErrorKind::NotConnected, "nobody reads this FIFO"),
        _ => e,
    })?;
    let is_file = file.metadata()?.is_file();
    if is_file {
        claim(&file)?;
        file.set_len(0)?;
    }
    // Once open, a pipe that is full is waited for, by the writer thread.
    // SAFETY: a call on an open descriptor.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    }
    Ok((OutputFile::new(file), is_file))
}

/// Where the file stands that is to take the place of the output at `path`, until it does.
pub(crate) fn next_path(path: &Path, pid: u32) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".next-{pid}"));
    path.with_file_name(name)
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
    // SAFETY: a call on an open descriptor.
    let outcome = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if outcome != 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
        let what = "another process is writing a trace into it; with %p in the path each has its own";
        return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
    }
    Ok(()) // also where a file system knows no locks
}

/// The descriptor of the session's output; -1 while there is none.
static OUTPUT: AtomicI32 = AtomicI32::new(-1);

/// A session's output.
#[derive(Debug)]
pub(crate) struct OutputFile(File);

impl OutputFile {
    fn new(file: File) -> Self {
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
        // SAFETY: a call on an open descriptor.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// In a forked child: it has the parent's output open, and would keep it locked, or a pipe's reader waiting, for as long as it
/// lives.
pub(super) fn close_in_child() {
    let output = OUTPUT.swap(-1, Ordering::Relaxed);
    if output >= 0 {
        // SAFETY: the open file of an `OutputFile` that another thread of the parent has: nobody in this process uses or drops it.
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
