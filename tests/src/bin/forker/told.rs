//! What a process says: its line in the file `told`, and its failures on stdout. Without a lock, and the
//! lines of `told` without an allocation, so that a child may do it after any kind of fork.

#![allow(unsafe_code)] // write

use std::io::Write;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

/// Where every process tells what it recorded.
static TOLD: AtomicI32 = AtomicI32::new(-1);
static FAILURES: AtomicU32 = AtomicU32::new(0);

pub(crate) fn process() -> libc::pid_t {
    // SAFETY: takes nothing. Not `std`'s, nor glibc's older ones, which remember it.
    unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t }
}

pub(crate) fn open() {
    let told = std::fs::File::options().append(true).create(true).open("told").expect("a file");
    TOLD.store(told.into_raw_fd(), SeqCst);
}

/// One write, which is whole and alone in a file that was opened to append.
fn write_line(to: libc::c_int, line: &[u8]) {
    // SAFETY: the bytes are there.
    unsafe { libc::write(to, line.as_ptr().cast(), line.len()) };
}

/// Appends this process's line.
pub(crate) fn tell(parent: libc::pid_t, kind: &str, end: &str, steps: &[(u64, u64)]) {
    let mut line = [0_u8; 256];
    let mut rest = &mut line[..];
    let _ = write!(rest, "{} {parent} {kind} {end}", process());
    for (thread, recorded) in steps {
        let _ = write!(rest, " {thread}:{recorded}");
    }
    let _ = rest.write_all(b"\n");
    let len = 256 - rest.len();
    write_line(TOLD.load(SeqCst), &line[..len]);
}

pub(crate) fn fail(what: &str) {
    FAILURES.fetch_add(1, SeqCst);
    // Not `println`, whose lock a fork may have left held.
    write_line(libc::STDOUT_FILENO, format!("failure: {}\n", what.replace('\n', "\n    ")).as_bytes());
}

pub(crate) fn failures() -> u32 {
    FAILURES.load(SeqCst)
}
