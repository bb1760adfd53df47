//! The state of a process that listens for commands (`listen/`): whether it does, and the name of its socket.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::on::base::platform::process;
use crate::wire;

/// Whether this process listens, or its parent did at the fork.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// The process whose thread serves the socket, and the random number in its name. Neither is a secret, and a
/// thread that needs both has set them: all accesses are relaxed.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(0);
/// Whether the thread that serves the socket is to end.
static ENDS: AtomicBool = AtomicBool::new(false);
/// The number of forks that have led to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Takes the place of the one socket of this process. Returns false if it has one.
pub(crate) fn reserve() -> bool {
    PROCESS.swap(process::id(), Ordering::Relaxed) != process::id()
}

/// Gives the place back: nothing serves the socket.
pub(crate) fn free() {
    PROCESS.store(0, Ordering::Relaxed);
}

/// Whether this process has a socket.
pub(crate) fn is_here() -> bool {
    PROCESS.load(Ordering::Relaxed) == process::id()
}

/// Sets the random number of a new socket, and returns its path.
pub(crate) fn new_path() -> PathBuf {
    RANDOM.store(u64::from_le_bytes(process::random()), Ordering::Relaxed);
    ENDS.store(false, Ordering::Relaxed);
    path()
}

/// Returns the path of the socket.
pub(crate) fn path() -> PathBuf {
    hairline_shm::folder().join(wire::name(process::id(), RANDOM.load(Ordering::Relaxed)))
}

/// Says whether forked children listen for themselves.
pub(crate) fn set_wanted(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// Whether a forked child listens for itself.
pub(crate) fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// Makes the thread end when something wakes it.
pub(crate) fn set_ends() {
    ENDS.store(true, Ordering::Release); // pairs with the Acquire of `ends`
}

/// Whether the thread is to end. The caller sees what came before [`set_ends`].
pub(crate) fn ends() -> bool {
    ENDS.load(Ordering::Acquire)
}

/// Removes the socket's name.
pub(crate) fn remove() {
    if is_here() {
        let _ = fs::remove_file(path());
    }
}

/// At the end of the process: nobody connects any more, and no command starts a session.
pub(crate) fn close() {
    set_ends();
    remove();
}

/// In a forked child: the socket and its thread are the parent's. The child may have the parent's pid, in a
/// pid namespace of its own.
pub(crate) fn leave_in_child() {
    free();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Distinguishes a forked child from its parent.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
