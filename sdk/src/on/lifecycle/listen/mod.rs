//! A process that listens: commands start sessions in it, and change their filter.
//!
//! ```text
//! HAIRLINE=listen, listen() -> a thread that sleeps in `poll` -> server.rs: what commands ask for
//! ```
//!
//! The thread has a table of open files of its own, as a session's thread has (`own_files.rs`). Its socket is
//! in the folder of the regions, for this user alone, under a name with a random number. A forked child has
//! no such thread. It listens for itself from its first event on.

mod server;

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use hairline_shm::Uncancelled;

use crate::error::Error;
use crate::on::base::platform::door::{self, Door};
use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::{self, process};
use crate::on::base::{stderr, this_thread};
use crate::on::lifecycle::place::{LISTENER, this_process};
use crate::on::lifecycle::{connect, socket};
use crate::wire;

/// The longest wait for the thread. It may need a lock of the allocator that the waiting thread has.
const PATIENCE: Duration = Duration::from_secs(1);

/// A process that listens for commands, until this value is dropped. See [`listen`].
#[derive(Debug)]
#[must_use = "dropping it ends the listening"]
pub struct Listening {
    /// The thread, if this value has started it.
    thread: Option<OwnThread>,
    /// The process of this value: that of a forked child is a copy.
    process: (u32, u32),
}

/// Makes the process listen for commands of this user, and of root: `hairline record -p PID` then records a
/// trace of the running process, and `hairline filter PID` changes what is recorded. Linux 5.9 or later.
///
/// Until a command comes, a thread sleeps, and an event costs what it costs without a session. Only one
/// command records at a time, into an open file that it brings along: the process opens none and writes
/// to nothing else. The recording ends with the command. `hairline start` instead names a file that the
/// process opens, and the session ends with `hairline stop`, or with the returned value. A forked child
/// listens for itself, from its first event on. The variable `HAIRLINE=listen` does the same from
/// outside.
///
/// If the program starts a [`Session`](crate::Session) while a command records, the session is that of the
/// command: the program's settings have no effect, as with `HAIRLINE`. While a session of the program runs, a
/// command is refused.
///
/// ```no_run
/// let _listening = hairline::listen()?; // to the end of `main`
/// # Ok::<(), hairline::Error>(())
/// ```
///
/// # Errors
/// [`Error::Listen`] if the system cannot give a thread files of its own (before Linux 5.9, or in a sandbox
/// that forbids it), if `/dev/shm` cannot be written, or if the process has more rights than its caller
/// (setuid): the caller could read its trace.
pub fn listen() -> Result<Listening, Error> {
    start()
}

impl Listening {
    /// Listens for the rest of the process's life.
    pub fn keep_on(self) {
        std::mem::forget(self);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != this_process() {
            return std::mem::forget(thread); // it does not exist here
        }
        LISTENER.set_wanted(false);
        LISTENER.set_ends();
        let _uncancelled = Uncancelled::new();
        match door::knock(&socket::path()) {
            Ok(()) => thread.join(),
            Err(_) => drop(thread), // it ends when the next command comes
        }
    }
}

/// Starts the thread, unless it runs.
pub(crate) fn start() -> Result<Listening, Error> {
    let _uncancelled = Uncancelled::new();
    connect::connect();
    let process = this_process();
    if process::is_privileged() || this_thread::is_detached() {
        let why = "the process has more rights than its caller, or was forked without handlers";
        return Err(Error::Listen(io::Error::new(io::ErrorKind::PermissionDenied, why)));
    }
    if !LISTENER.reserve() {
        return Ok(Listening { thread: None, process });
    }
    let thread = start_thread().inspect_err(|_| LISTENER.free()).map_err(Error::Listen)?;
    LISTENER.set_wanted(true);
    Ok(Listening { thread: Some(thread), process })
}

fn start_thread() -> io::Result<OwnThread> {
    // A signal handler that forks would leave a child that waits for a thread which does not exist there.
    let _signals_blocked = process::SignalsBlocked::new();
    let path = socket::new_path();
    let (sender, opened) = sync_channel(1);
    let serve = move || match open(&path) {
        Ok(door) => {
            let _ = sender.send(Ok(()));
            door::remove_stale(&hairline_shm::folder(), wire::pid_in);
            server::serve(&door);
            socket::remove();
            LISTENER.free();
        }
        Err(e) => drop(sender.send(Err(e))),
    };
    let thread = own_thread::spawn(c"hairline-listen", serve)?;
    let opened = opened.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    opened.inspect_err(|_| LISTENER.set_ends())?;
    Ok(thread)
}

/// On the thread that serves it: makes the socket.
fn open(path: &Path) -> io::Result<Door> {
    if !platform::own_files(&[]) {
        let why = "the thread cannot have open files of its own (close_range, Linux 5.9)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Door::open(path)
}

/// In a forked child of a process that listened: listens again. A failure is reported.
pub(crate) fn go_on_in_child() {
    if LISTENER.is_wanted() && !LISTENER.is_taken() {
        match start() {
            Ok(listening) => listening.keep_on(),
            Err(e) => stderr::report_error(&e),
        }
    }
}
