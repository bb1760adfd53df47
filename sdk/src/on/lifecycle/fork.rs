//! Fork handlers: the parent's other threads must neither block the child nor confuse it.
//!
//! The child is a copy of the parent with one thread. It has no drain thread, and the ring is its parent's.
//! So the child forgets the session and does not use the ring. If the output's path names the process (`%p`,
//! `%u`), the child starts its own session at its first event, with the parent's settings. Otherwise the
//! child records nothing.
//!
//! For its own session the child needs the tables below in a consistent state, with free locks, whatever the
//! parent's other threads did with them. So the thread that forks takes their locks before the fork, and
//! releases them after the fork, in both processes:
//!
//! ```text
//! prepare   locks once, in this order: the running session, the registry, lanes, the callsites of `log`,
//!           `metrics` and `tracing`
//! fork
//! parent    releases the locks
//! child     forgets the session, releases the locks, and only then has events again
//! ```
//!
//! * Threads hold each of these locks for some instructions only. A fork waits at most [`PATIENCE`]. If a
//!   lock is still held then, the fork continues without it, and the child records nothing for its whole
//!   life.
//! * A thread may fork during an event (in a signal handler, in an allocator), and may hold some of these
//!   locks itself. It takes the locks that become free within [`PATIENCE`], so that the event can continue in
//!   the child. The child records nothing.
//! * The order of the locks has no effect, since a wait with a limit cannot deadlock. It is always the same
//!   for whoever reads this file.
//! * The fork does not take the locks of a session (`Shared`), because the child does not use its parent's
//!   session.
//! * A lock of a track or a span that a thread of the parent held at the fork is lost in the child. The child
//!   does without what it guards: `lock/mod.rs`.
//! * The first thread that is about to take one of the locks registers the handlers: `exit.rs`.
//! * Fork handlers that the program registered earlier run while the locks are held. Such a handler deadlocks
//!   if it waits for a mutex of the program under which another thread makes a callsite's first hit. A
//!   program with such handlers starts its session before it registers them.
//!
//! # The ring
//!
//! Child and parent share the ring's memory. The fork wiped the leases of the child's threads
//! (`hairline_shm`'s pool), so no event of the child has a chunk. One other execution can be in the ring: if
//! a signal handler forked during an event, that event continues in both processes when the handler returns.
//! In the child it stores into private memory, which replaces the ring before `fork` returns to the signal
//! handler.
//!
//! # Without handlers
//!
//! `clone(2)` and `_Fork` run no handlers. Such a child detects at its first use of the cold path that its
//! lease was wiped, and records nothing for its whole life: [`in_unhandled_child`]. Until then each of its
//! events reads an epoch of 0, and has no chunk. Only an event that a signal handler interrupted for such a
//! fork, and that continues in the child, still reaches the ring. Its lease shows 0 committed bytes, so it
//! stores its record and its commit at the start of the chunk that the thread had at the fork, and never
//! beyond that chunk. The parent may lose the content of that chunk.
//!
//! `vfork`, `posix_spawn` and their `exec` call no handler and run nothing of this crate.

#![allow(unsafe_code)] // a region in a child, and a Box behind an atomic pointer

use std::cell::RefCell;
use std::time::{Duration, Instant};

use hairline_shm::Lease;

use crate::builder::Config;
use crate::filter::Filter;
use crate::on::base::files::output_file;
use crate::on::base::{heap, lock, platform, stacks, this_thread};
use crate::on::callsite::registry;
use crate::on::event::flow;
use crate::on::lifecycle::inherited;
use crate::on::lifecycle::place::{self, LISTENER, REGISTRATION};
use crate::on::session::{current, descriptors};
use crate::on::thread::{cold, lanes};

/// The longest wait of a fork for all locks of this crate together.
const PATIENCE: Duration = Duration::from_millis(200);

/// The state of a fork, from `prepare` to the handler after it.
struct Fork {
    /// The lease of the thread that forks.
    lease: &'static Lease,
    locks: Held,
    /// Whether the child may use the tables under the locks: all locks are held, and no event is in progress
    /// on this thread.
    is_consistent: bool,
}

/// The locks of this crate that the fork holds.
struct Held {
    current: Option<current::Held>,
    registry: Option<registry::Held>,
    lanes: Option<lanes::Held>,
    /// The tables of callsites that are created at run time.
    #[cfg(any(feature = "log", feature = "subscriber"))]
    messages: Option<crate::on::callsite::tables::messages::Held>,
    #[cfg(feature = "metrics")]
    metrics: Option<crate::on::callsite::tables::metrics::Held>,
    #[cfg(feature = "subscriber")]
    tracing: Option<crate::on::callsite::tables::tracing::Held>,
}

thread_local! {
    /// From `prepare` to `parent` or `child`, which the same thread runs.
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

/// Registers the handlers, once in a process. Forked children inherit them.
pub(crate) fn install() {
    platform::at_fork(prepare, in_parent, in_child);
}

impl Held {
    /// Takes each lock, within [`PATIENCE`] in total. A lock stays `None` if this thread holds it itself, in an
    /// event that a signal handler has interrupted for the fork. That event continues in the child, and
    /// releases the lock there.
    fn new() -> Self {
        let until = Instant::now() + PATIENCE;
        Self {
            current: current::hold(until),
            registry: registry::hold(until),
            lanes: lanes::hold(until),
            #[cfg(any(feature = "log", feature = "subscriber"))]
            messages: crate::on::callsite::tables::messages::hold(until),
            #[cfg(feature = "metrics")]
            metrics: crate::on::callsite::tables::metrics::hold(until),
            #[cfg(feature = "subscriber")]
            tracing: crate::on::callsite::tables::tracing::hold(until),
        }
    }

    fn has_all(&self) -> bool {
        let has_all = self.current.is_some() && self.registry.is_some() && self.lanes.is_some();
        #[cfg(any(feature = "log", feature = "subscriber"))]
        let has_all = has_all && self.messages.is_some();
        #[cfg(feature = "metrics")]
        let has_all = has_all && self.metrics.is_some();
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
            let lease = cold::begin_fork(); // so that no event of a signal handler waits for the locks
            let locks = Held::new();
            *fork = Some(Fork { lease, is_consistent: !is_barred && locks.has_all(), locks });
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
    heap::leave_in_child();
    stacks::leave_in_child();
    output_file::close_in_child();
    descriptors::close_in_child();
    flow::detach_after_fork();
    this_thread::set_forked();
    place::leave_in_child();
    let Some(Fork { lease, mut locks, is_consistent }) = take_fork() else { return forget_all() };
    cold::leave_in_child(lease);
    let unused = leave_session(&mut locks, is_consistent);
    drop(locks);
    drop(unused);
    // Not earlier: an event of a signal handler, or of the allocator that frees this, waits for no lock above.
    cold::start_in_child();
}

/// What the child has no use for. It is freed without the locks: the program's allocator may record events.
#[derive(Default)]
struct Unused {
    _session: Option<registry::ActiveSession>,
    _filter: Option<Filter>,
    _config: Option<Box<Config>>,
}

/// Forgets the parent's session. The child's own session inherits its settings, if it has one.
fn leave_session(locks: &mut Held, is_consistent: bool) -> Unused {
    let session = locks.current.as_mut().and_then(|current| current.take_in_child());
    if let Some(session) = &session {
        // SAFETY: the drain thread does not exist in this process, unless the output's own code forks.
        unsafe { session.region().leave_in_child() };
    }
    let Some(registry) = locks.registry.as_mut().filter(|_| is_consistent) else {
        std::mem::forget(session); // the region is the parent's
        forget_all();
        return Unused::default();
    };
    let mut unused = Unused::default();
    let config = session.as_ref().and_then(|session| session.take_child_config());
    let is_pending = config.is_some() || LISTENER.is_wanted() || REGISTRATION.is_wanted();
    if let Some(mut config) = config {
        let mut of_parent = registry.take_session();
        let filter = of_parent.as_mut().map(|of| std::mem::take(&mut of.filter)).unwrap_or_default();
        let filter = std::mem::replace(&mut config.filter, filter);
        unused = Unused { _session: of_parent, _filter: Some(filter), _config: inherited::set(Some(config)) };
        registry.expect_first_events();
    } else if is_pending {
        unused._session = registry.take_session();
        registry.expect_first_events();
    } else if session.is_some() {
        registry::detach_after_fork();
    } // otherwise the parent had no session, and the child starts as any process
    inherited::reset_in_child(is_pending);
    std::mem::forget(session); // the region is the parent's
    unused
}

/// Makes the child record nothing for its whole life.
fn forget_all() {
    registry::detach_after_fork();
    std::mem::forget(inherited::set(None)); // not freed, because this thread may hold locks
}

/// Makes a forked child in which no handler ran record nothing for its whole life. The output stays open,
/// because the child may share its parent's table of open files.
pub(crate) fn in_unhandled_child() {
    lock::set_forked();
    heap::leave_in_child();
    flow::detach_after_fork();
    forget_all();
    cold::forget_parent();
}
