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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use hairline_shm::Uncancelled;

use crate::error::Error;
use crate::on::base::platform::door::{self, Door};
use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::{self, process};
use crate::on::base::this_thread;
use crate::on::lifecycle::{connect, socket};
use crate::wire;

/// Whether the thread is to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// A process that listens for commands, until this value is dropped. See [`listen`].
#[derive(Debug)]
#[must_use = "dropping it ends the listening"]
pub struct Listening {
    /// The thread, if this value has started it.
    thread: Option<OwnThread>,
    process: u32,
}

/// Makes the process listen for commands of this user, and of root: `hairline record -p PID` then records a
/// trace of the running process, and `hairline filter PID` changes what is recorded. Linux 5.9 or later.
///
/// Until a command comes, a thread sleeps, and an event costs what it costs without a session. Only one
/// command records at a time, into an open file that it brings along: the process opens none and writes to
/// nothing else. The recording ends with the command. A forked child listens for itself, from its first
/// event on. The variable `HAIRLINE=listen` does the same from outside.
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
        let Some(thread) = self.thread.take().filter(|_| self.process == process::id()) else { return };
        socket::set_wanted(false);
        ENDS.store(true, Ordering::Release); // pairs with the Acquire of the thread's loop
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
    let process = process::id();
    if process::is_privileged() || this_thread::is_detached() {
        let why = "the process has more rights than its caller, or was forked without handlers";
        return Err(Error::Listen(io::Error::new(io::ErrorKind::PermissionDenied, why)));
    }
    if !socket::reserve() {
        return Ok(Listening { thread: None, process });
    }
    let thread = start_thread().inspect_err(|_| socket::free()).map_err(Error::Listen)?;
    socket::set_wanted(true);
    Ok(Listening { thread: Some(thread), process })
}

fn start_thread() -> io::Result<OwnThread> {
    let path = socket::new_path();
    ENDS.store(false, Ordering::Relaxed);
    let (sender, opened) = sync_channel(1);
    let serve = move || match open(&path) {
        Ok(door) => {
            let _ = sender.send(Ok(()));
            server::serve(&door, &ENDS);
            socket::remove();
            socket::free();
        }
        Err(e) => drop(sender.send(Err(e))),
    };
    let thread = own_thread::spawn(c"hairline-listen", serve)?;
    opened.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
    Ok(thread)
}

/// On the thread that serves it: makes the socket, and removes those of processes that no longer listen.
fn open(path: &Path) -> io::Result<Door> {
    if !platform::own_files(&[]) {
        let why = "the thread cannot have open files of its own (close_range, Linux 5.9)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let door = Door::open(path)?;
    door::remove_stale(&hairline_shm::folder(), |name| wire::pid_in(name).is_some());
    Ok(door)
}

/// In a forked child of a process that listened: listens again, at its first event.
pub(crate) fn go_on_in_child() -> Result<(), Error> {
    if socket::is_wanted() && !socket::is_here() {
        start()?.keep_on();
    }
    Ok(())
}
