//! The state of a process that is registered with the tracing service (`traced.rs`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::on::base::platform::process;

/// The process whose thread is registered; 0: none is.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether a forked child registers itself.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// Whether the thread is to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Takes the place of the one registration of this process. Returns false if it has one.
pub(crate) fn reserve() -> bool {
    let is_first = PROCESS.swap(process::id(), Ordering::Relaxed) != process::id();
    if is_first {
        ENDS.store(false, Ordering::Relaxed);
    }
    is_first
}

/// Gives the place back: no thread is registered.
pub(crate) fn free() {
    PROCESS.store(0, Ordering::Relaxed);
}

/// Whether this process is registered.
pub(crate) fn is_here() -> bool {
    PROCESS.load(Ordering::Relaxed) == process::id()
}

/// Says whether forked children register themselves.
pub(crate) fn set_wanted(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// Whether a forked child registers itself.
pub(crate) fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// Whether the thread is to end. The caller sees what came before [`close`].
pub(crate) fn ends() -> bool {
    ENDS.load(Ordering::Acquire)
}

/// At the end of the process, or of the registration: the service starts no session any more.
pub(crate) fn close() {
    ENDS.store(true, Ordering::Release); // pairs with the Acquire of `ends`
}

/// In a forked child: the thread is the parent's. The child may have the parent's pid, in a pid namespace of
/// its own.
pub(crate) fn leave_in_child() {
    free();
}
