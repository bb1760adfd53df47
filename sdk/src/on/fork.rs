//! Fork: what the parent's threads were doing must neither hang nor mislead the child.
//!
//! The child is a copy with one thread. It has no writer thread, and the ring is its parent's, so it forgets the session
//! without touching it. Where the output's path names the process (`%p`), it begins a trace of its own at its first event, with
//! the parent's settings; else it is silent.
//!
//! For that it needs the process-wide tables whole and their locks free, whatever other threads were doing with them. So the
//! thread that forks takes these locks before, and lets go of them after, in both processes:
//!
//! ```text
//! prepare   env's start, CURRENT, REGISTRY, lanes, the callsites of `log` and `tracing`     each once, in this order
//! fork
//! parent    lets go
//! child     forgets the session, lets go
//! ```
//!
//! * Nobody holds one of these locks for long but a session's start (some 10 ms). A fork waits [`PATIENCE`] at most; then it goes
//!   on without, and the child is silent for good and takes none of them.
//! * A thread that forks from inside of an event (a signal handler, an allocator) may hold some of them itself: the same.
//! * The order is only for the reader: a wait that ends cannot deadlock.
//! * The locks of a session (`Shared`) are not taken. The child never uses its parent's.
//! * Those of tracks and spans are given up where they are lost: `lock.rs`.
//!
//! `vfork`, `posix_spawn` and what follows by `exec` call no handler and run nothing of this.

#![allow(unsafe_code)] // pthread_atfork

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::lock::{self, Mutex, MutexGuard};
use super::session::Shared;
use super::{env, files, flow, lanes, registry, session, thread};
use crate::builder::Config;

/// The longest that a fork waits for this crate's locks, all together.
const PATIENCE: Duration = Duration::from_millis(200);

/// In a forked child that is to begin a trace of its own: what from.
static INHERITED: Mutex<Option<Inherited>> = Mutex::new(None);

/// Whether there is something inherited.
static IS_PENDING: AtomicBool = AtomicBool::new(false);

struct Inherited {
    /// The parent's session: its region is the parent's and its output too, so it is never dropped.
    session: Arc<Shared>,
    config: Config,
}

/// This crate's locks, held.
struct Held {
    current: MutexGuard<'static, Option<Arc<Shared>>>,
    registry: registry::Held,
    _rest: (MutexGuard<'static, bool>, lanes::Held, Sites),
    /// No event of a signal handler may wait for them.
    _busy: thread::Busy<'static>,
}

/// Callsites that are made at run time.
struct Sites {
    #[cfg(feature = "log")]
    _log: super::messages::Held,
    #[cfg(feature = "subscriber")]
    _tracing: super::tracing::Held,
}

thread_local! {
    /// From `prepare` to `parent` or `child`, which the same thread runs.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Registers the handlers. Once a process: what a child inherits has them too.
pub(super) fn install() {
    // SAFETY: the handlers are functions of this library that take nothing; they stay loaded as long as it is.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
}

fn hold() -> Option<Held> {
    if thread::is_barred() {
        return None;
    }
    let busy = thread::busy();
    let until = Instant::now() + PATIENCE;
    let start = env::hold(until)?;
    let current = session::hold(until)?;
    let registry = registry::hold(until)?;
    let lanes = lanes::hold(until)?;
    let sites = hold_sites(until)?;
    Some(Held { current, registry, _rest: (start, lanes, sites), _busy: busy })
}

#[allow(clippy::unnecessary_wraps)] // without those features
fn hold_sites(_until: Instant) -> Option<Sites> {
    Some(Sites {
        #[cfg(feature = "log")]
        _log: super::messages::hold(_until)?,
        #[cfg(feature = "subscriber")]
        _tracing: super::tracing::hold(_until)?,
    })
}

extern "C" fn prepare() {
    let _ = HELD.try_with(|held| {
        if let Ok(mut held) = held.try_borrow_mut() {
            *held = hold();
        }
    });
}

fn take_held() -> Option<Held> {
    HELD.try_with(|held| held.try_borrow_mut().ok()?.take()).ok().flatten()
}

extern "C" fn in_parent() {
    drop(take_held());
}

extern "C" fn in_child() {
    lock::set_forked();
    files::close_in_child();
    flow::detach_after_fork();
    let held = take_held();
    thread::detach_after_fork();
    if let Some(mut held) = held {
        let session = held.current.take();
        let config = session.as_ref().and_then(|session| session.config_of_a_child());
        if let (Some(session), Some(config)) = (&session, config) {
            let config = Config { filter: held.registry.take_filter().unwrap_or_default(), ..config };
            *INHERITED.lock() = Some(Inherited { session: Arc::clone(session), config });
            IS_PENDING.store(true, Ordering::Release);
            held.registry.expect_first_events();
        } else if session.is_some() {
            registry::detach_after_fork();
        } // else there was no session, or it is still to begin: as in any process
        std::mem::forget(session); // the region is the parent's
    } else {
        registry::detach_after_fork();
        IS_PENDING.store(false, Ordering::Relaxed);
    }
}

/// Whether this is a forked child that begins a trace of its own at its first event.
#[inline]
pub(crate) fn is_pending() -> bool {
    IS_PENDING.load(Ordering::Acquire)
}

/// What a forked child's own session is started from, once.
pub(crate) fn inherited() -> Option<Config> {
    let Inherited { session, config } = INHERITED.lock().take()?;
    std::mem::forget(session);
    IS_PENDING.store(false, Ordering::Release);
    Some(config)
}
