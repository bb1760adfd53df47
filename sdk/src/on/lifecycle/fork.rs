//! Fork: what the parent's threads were doing must neither hang nor mislead the child.
//!
//! The child is a copy with one thread. It has no writer thread, and the ring is its parent's, so it forgets
//! the session without touching it. Where the output's path names the process (`%p`), it begins a trace of
//! its own at its first event, with the parent's settings; else it is silent.
//!
//! For that it needs these tables whole and their locks free, whatever other threads were doing with them. So
//! the thread that forks takes the locks before, and releases them after, in both processes:
//!
//! ```text
//! prepare   the running session, the registry, lanes, the callsites of `log` and `tracing`     each once, in this order
//! fork
//! parent    releases
//! child     forgets the session, releases
//! ```
//!
//! * Nobody holds one of these locks for more than some instructions. A fork waits [`PATIENCE`] at most; then
//!   it goes on without, and the child is silent for good.
//! * A thread that forks from inside of an event (a signal handler, an allocator) may hold some of them
//!   itself. It takes those that it can get, so that the event can go on in the child; and the child is
//!   silent.
//! * The order is only for the reader: a wait that ends cannot deadlock.
//! * The locks of a session (`Shared`) are not taken. The child never uses its parent's.
//! * Those of tracks and spans are given up where they are lost: `lock.rs`.
//! * The handlers are registered by the first thread that is about to take one of the locks: `process_wide.rs`.
//! * Handlers that the program has registered before that run while the locks are held. One that waits for a
//!   mutex of the program there, under which another thread comes to a callsite's first hit, waits for ever. A
//!   program with such handlers starts its session before it registers them.
//!
//! # The ring
//!
//! The child shares the ring's memory with its parent. Its threads' leases were wiped at the fork
//! (`hairline_shm`'s pool), so no event of the child finds a chunk. One more thread of execution can be in
//! the ring: where a signal handler forked in the midst of an event, that event goes on in both processes
//! when the handler returns. In the child its stores go into private memory, which takes the place of the
//! ring before the handler gets on.
//!
//! # Without handlers
//!
//! `clone(2)` and `_Fork` run no handler. Such a child finds out at its first contact with the cold path that
//! its lease was wiped, and is silent for good: [`in_unhandled_child`]. Until then each of its events finds
//! an epoch of 0, and no chunk. Only an event that a signal handler interrupted for such a fork, and that
//! goes on in the child, still reaches the ring. Its lease says 0 committed bytes, so it stores its record
//! and its commit at the start of the chunk that was the thread's at the fork, and never beyond that chunk.
//! The parent may lose what was in that chunk.
//!
//! `vfork`, `posix_spawn` and what follows by `exec` call no handler and run nothing of this.

#![allow(unsafe_code)] // pthread_atfork, and a Box behind an atomic pointer

use std::cell::RefCell;
use std::time::{Duration, Instant};

use hairline_shm::Lease;

use crate::on::base::{files, lock, this_thread};
use crate::on::callsite::registry;
use crate::on::event::flow;
use crate::on::lifecycle::inherited;
use crate::on::session::current;
use crate::on::thread::{cold, lanes};

/// The longest that a fork waits for this crate's locks, all together.
const PATIENCE: Duration = Duration::from_millis(200);

/// The same inside of an event: the locks that this thread holds itself cannot be had.
const PATIENCE_IN_EVENT: Duration = Duration::from_millis(5);

/// A fork that is under way.
struct Fork {
    /// The lease of the thread that forks.
    lease: &'static Lease,
    locks: Held,
    /// Whether the child may use what the locks guard: all of them are held, and no event is under way on
    /// this thread.
    is_whole: bool,
}

/// This crate's locks, held: those that could be had.
struct Held {
    current: Option<current::Held>,
    registry: Option<registry::Held>,
    lanes: Option<lanes::Held>,
    /// The tables of callsites that are made at run time.
    #[cfg(feature = "log")]
    log: Option<crate::on::callsite::tables::log::Held>,
    #[cfg(feature = "subscriber")]
    tracing: Option<crate::on::callsite::tables::tracing::Held>,
}

thread_local! {
    /// From `prepare` to `parent` or `child`, which the same thread runs.
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

/// Registers the handlers. Once a process: what a child inherits has them too.
pub(crate) fn install() {
    // SAFETY: the handlers are functions of this library that take nothing; they stay loaded as long as it
    // is.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

impl Held {
    /// Takes each lock. One that this thread holds itself, in an event that a signal handler has interrupted
    /// for the fork, is waited for in vain; that event goes on in the child and releases it there.
    fn new(patience: Duration) -> Self {
        let until = Instant::now() + patience;
        Self {
            current: current::hold(until),
            registry: registry::hold(until),
            lanes: lanes::hold(until),
            #[cfg(feature = "log")]
            log: crate::on::callsite::tables::log::hold(until),
            #[cfg(feature = "subscriber")]
            tracing: crate::on::callsite::tables::tracing::hold(until),
        }
    }

    fn has_all(&self) -> bool {
        let has_all = self.current.is_some() && self.registry.is_some() && self.lanes.is_some();
        #[cfg(feature = "log")]
        let has_all = has_all && self.log.is_some();
        #[cfg(feature = "subscriber")]
        let has_all = has_all && self.tracing.is_some();
        has_all
    }
}

extern "C" fn prepare() {
    let _ = FORK.try_with(|fork| {
        if let Ok(mut fork) = fork.try_borrow_mut()
            && fork.is_none()
        {
            let is_barred = this_thread::is_barred();
            let lease = cold::begin_fork(); // no event of a signal handler may wait for the locks
            let locks = Held::new(if is_barred { PATIENCE_IN_EVENT } else { PATIENCE });
            *fork = Some(Fork { lease, is_whole: !is_barred && locks.has_all(), locks });
        }
    });
}

fn take_fork() -> Option<Fork> {
    FORK.try_with(|fork| fork.try_borrow_mut().ok()?.take()).ok().flatten()
}

extern "C" fn in_parent() {
    if let Some(Fork { lease, locks, .. }) = take_fork() {
        drop(locks);
        cold::end_fork(lease);
    }
}

extern "C" fn in_child() {
    lock::set_forked();
    files::close_in_child();
    flow::detach_after_fork();
    let Some(Fork { lease, mut locks, is_whole }) = take_fork() else { return forget_all() };
    cold::leave_in_child(lease);
    let session = locks.current.as_mut().and_then(|current| current.take_in_child());
    if let Some(session) = &session {
        // SAFETY: the drain's thread does not exist in this process. Only where an output forks in its own
        // code it does.
        unsafe { session.region().leave_in_child() };
    }
    let Some(registry) = locks.registry.as_mut().filter(|_| is_whole) else {
        std::mem::forget(session); // the region is the parent's
        return forget_all();
    };
    let config = session.as_ref().and_then(|session| session.config_of_a_child());
    let is_pending = config.is_some();
    if let Some(mut config) = config {
        config.filter = registry.take_filter().unwrap_or_default();
        inherited::set(Some(config));
        registry.expect_first_events();
    } else if session.is_some() {
        registry::detach_after_fork();
    } // else there was no session, or it is still to begin: as in any process
    inherited::heed_in_child(is_pending);
    std::mem::forget(session); // the region is the parent's
}

/// The child is silent, for good.
fn forget_all() {
    registry::detach_after_fork();
    std::mem::forget(inherited::set(None)); // locks may be held, under which nothing is freed
}

/// This process is a forked child, and no handler ran. It is silent, for good. The output stays open here: a
/// child may share its parent's table of open files.
pub(crate) fn in_unhandled_child() {
    lock::set_forked();
    flow::detach_after_fork();
    forget_all();
    cold::forget_parent();
}
