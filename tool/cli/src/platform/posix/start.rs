//! Starts a command that waits before it executes its program, so that events can be opened for it.
//!
//! ```text
//! this process                                    the child
//!   spawn, on a thread of its own  ------------>    writes its pid, waits for a byte
//!   reads the pid, opens events
//!   writes a byte                  ------------>    exec: the events begin to count
//! ```
//!
//! [`std::process::Command::spawn`] returns after the exec, hence the thread.

// Code between fork and exec can only be added by an unsafe function.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};

/// The longest wait of the child. The program runs then even if this process has died meanwhile.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Starts the command. `before_exec` is called with its pid, before it executes its program.
pub(super) fn spawn(mut command: Command, before_exec: impl FnOnce(u32)) -> io::Result<Child> {
    let (pid_read, pid_write) = io::pipe()?;
    let (go_read, go_write) = io::pipe()?;
    let report = pid_write.try_clone()?;
    let wait = move || {
        announce(report.as_fd())?;
        wait_for_go(go_read.as_fd())
    };
    // SAFETY: the closure makes the system calls getpid, write, poll and read, and allocates nothing, which
    // is async-signal-safe.
    unsafe { command.pre_exec(wait) };
    std::thread::scope(|scope| {
        let spawned = scope.spawn(move || {
            let child = command.spawn();
            // Both copies of the writing end are closed now: a reader whose child never ran sees the end.
            drop((command, pid_write));
            child
        });
        let mut pid = [0; 4];
        // The pipe is empty if the fork has failed.
        if retry_on_intr(|| read(&pid_read, &mut pid)) == Ok(pid.len()) {
            before_exec(u32::from_ne_bytes(pid));
        }
        let _ = retry_on_intr(|| write(&go_write, &[1]));
        spawned.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

fn announce(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let pid = rustix::process::getpid().as_raw_pid().to_ne_bytes();
    retry_on_intr(|| write(pipe, &pid)).map(drop).map_err(io::Error::from)
}

fn wait_for_go(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let mut polled = [PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut polled, Some(&PATIENCE))) {
        Ok(_) | Err(Errno::NOMEM) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
