//! Opening the output, so that neither the program nor another traced one is harmed by it.

#![allow(unsafe_code)] // fcntl, sigtimedwait

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes the output at `path` anew; whether it is a regular file. A FIFO that nobody reads is an error and not a wait; a file
/// that another process is writing a trace into stays as it is.
pub(crate) fn create(path: &Path) -> io::Result<(File, bool)> {
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
    Ok((file, is_file))
}

/// Locks the file against other processes that do the same, until this one closes it: a program inherits `HAIRLINE` from the
/// traced one that started it. Of the system's locks this is the one that a forked child does not share.
fn claim(file: &File) -> io::Result<()> {
    // SAFETY: all-zero is a valid flock: from the start, to the end whatever it will be.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    // SAFETY: a call on an open descriptor with a valid struct.
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) };
    let e = io::Error::last_os_error();
    if outcome != 0 && matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) {
        let what = "another process is writing a trace into it; with %p in the path each has its own";
        return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
    }
    Ok(()) // also where a file system knows no locks
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
