//! The name of the socket of a process that listens for commands (`listen/`).

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::base::platform::process;
use crate::on::lifecycle::place::LISTENER;
use crate::wire;

/// The random number in the name. It is no secret, and a thread that needs it has set it: relaxed.
static RANDOM: AtomicU64 = AtomicU64::new(0);

/// Sets the random number of a new socket, and returns its path.
pub(crate) fn new_path() -> PathBuf {
    RANDOM.store(u64::from_le_bytes(process::random()), Ordering::Relaxed);
    path()
}

/// Returns the path of the socket.
pub(crate) fn path() -> PathBuf {
    hairline_shm::folder().join(wire::name(process::id(), RANDOM.load(Ordering::Relaxed)))
}

/// Removes the socket's name.
pub(crate) fn remove() {
    if LISTENER.is_taken() {
        let _ = fs::remove_file(path());
    }
}

/// At the end of the process: nobody connects any more, and no command starts a session.
pub(crate) fn close() {
    LISTENER.set_ends();
    remove();
}
