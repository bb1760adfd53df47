//! The places of the two threads that wait until somebody wants a session: one listens for commands
//! (`listen/`), one is registered with the tracing service (`traced.rs`). A process has one of each.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::on::base::platform::process;
use crate::on::base::this_thread;

/// The place of the thread that listens.
pub(crate) static LISTENER: Place = Place::new();
/// The place of the thread that is registered.
pub(crate) static REGISTRATION: Place = Place::new();

/// The place of a thread.
#[derive(Debug)]
pub(crate) struct Place {
    /// The process whose thread has it; 0: none has. A thread that needs it has set it: relaxed.
    process: AtomicU32,
    /// Whether this process wants such a thread, or its parent did at the fork.
    is_wanted: AtomicBool,
    /// Whether the thread is to end.
    ends: AtomicBool,
}

impl Place {
    const fn new() -> Self {
        Self { process: AtomicU32::new(0), is_wanted: AtomicBool::new(false), ends: AtomicBool::new(false) }
    }

    /// Takes the place. Returns false if a thread of this process has it.
    pub(crate) fn reserve(&self) -> bool {
        let is_first = self.process.swap(process::id(), Ordering::Relaxed) != process::id();
        if is_first {
            self.ends.store(false, Ordering::Relaxed);
        }
        is_first
    }

    /// Gives the place back.
    pub(crate) fn free(&self) {
        self.process.store(0, Ordering::Relaxed);
    }

    /// Whether a thread of this process has the place.
    pub(crate) fn is_taken(&self) -> bool {
        self.process.load(Ordering::Relaxed) == process::id()
    }

    /// Says whether forked children have such a thread too.
    pub(crate) fn set_wanted(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Whether a forked child has such a thread too.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Makes the thread end when it looks.
    pub(crate) fn set_ends(&self) {
        self.ends.store(true, Ordering::Release); // pairs with the Acquire of `ends`
    }

    /// Whether the thread is to end. The caller sees what came before [`set_ends`](Self::set_ends).
    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }
}

/// In a forked child: the threads are the parent's. The child may have the parent's pid, in a pid
/// namespace of its own.
pub(crate) fn leave_in_child() {
    LISTENER.free();
    REGISTRATION.free();
}

/// What distinguishes this process from its parent, and from a forked child.
pub(crate) fn this_process() -> (u32, u32) {
    (process::id(), this_thread::forks())
}
