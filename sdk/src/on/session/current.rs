//! The running session of the process. A process has one at a time.
//!
//! The start of a session may wait for a disk. So the lock is not held during the start:
//! the start reserves the place, and fills it when the session runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::base::memory::List;
use crate::on::base::this_thread;
use crate::on::callsite::{Epoch, registry};
use crate::on::session::shared::Shared;

static CURRENT: Mutex<Current> = Mutex::new(Current::Free);

/// The longest wait of [`running`] for the lock. Threads hold the lock for some instructions, so only a
/// thread that no longer exists can make another one wait this long.
const PATIENCE: Duration = Duration::from_secs(1);

/// The place of the running session.
#[derive(Debug, Default)]
pub(crate) enum Current {
    #[default]
    Free,
    /// A thread is starting a session.
    Starting,
    Running(Arc<Shared>),
}

impl Current {
    fn running(&self) -> Option<&Arc<Shared>> {
        match self {
            Self::Running(shared) => Some(shared),
            Self::Free | Self::Starting => None,
        }
    }

    /// In a forked child: frees the place and returns the parent's session. The parent's session does not run
    /// here, and a thread that was starting a session does not exist.
    pub(crate) fn take_in_child(&mut self) -> Option<Arc<Shared>> {
        match std::mem::take(self) {
            Self::Running(shared) => Some(shared),
            Self::Free | Self::Starting => None,
        }
    }
}

/// The locked place, during a fork.
pub(crate) type Held = MutexGuard<'static, Current>;

/// Locks the place for a fork. Returns `None` when the lock is not free before `until`.
pub(crate) fn hold(until: Instant) -> Option<Held> {
    CURRENT.try_lock_until(until)
}

/// The place, reserved by the thread that starts a session. Its drop frees the place.
pub(crate) struct Reserved(());

impl Reserved {
    /// Reserves the place.
    ///
    /// # Errors
    /// When a session runs or starts.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut current = CURRENT.lock();
        match *current {
            Current::Free => {
                *current = Current::Starting;
                Ok(Self(()))
            }
            Current::Starting | Current::Running(_) => Err(Error::AlreadyRunning),
        }
    }

    /// Puts the session into the place.
    pub(crate) fn fill(self, shared: Arc<Shared>) {
        *CURRENT.lock() = Current::Running(shared); // replaces `Starting`: nothing is freed under the lock
        std::mem::forget(self);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *CURRENT.lock() = Current::Free; // replaces `Starting`
    }
}

/// Returns the running session if its epoch is `epoch`. Returns `None` in a forked child: the session is the
/// parent's.
pub(crate) fn current(epoch: Epoch) -> Option<Arc<Shared>> {
    if this_thread::is_detached() {
        return None;
    }
    CURRENT.lock().running().filter(|shared| shared.epoch() == epoch).cloned()
}

/// Returns the running session. Returns `None` in a forked child without a session of its own, and when the
/// lock is not free within [`PATIENCE`].
pub(crate) fn running() -> Option<Arc<Shared>> {
    let until = Instant::now() + PATIENCE;
    let _busy = this_thread::busy(); // a forked child that no handler announced detects the fork here
    if this_thread::is_detached() {
        return None;
    }
    CURRENT.try_lock_until(until)?.running().cloned()
}

/// Returns the running session, once none is starting: its callsites are on. Waits for that at most
/// [`PATIENCE`].
pub(crate) fn started() -> Option<Arc<Shared>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let session = running();
        let is_ready = match &session {
            Some(session) => registry::active_epoch() == Some(session.epoch()),
            None => !is_starting(),
        };
        if is_ready || Instant::now() >= until {
            return session;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_starting() -> bool {
    let _busy = this_thread::busy();
    !this_thread::is_detached() && matches!(*CURRENT.lock(), Current::Starting)
}

/// Sessions that have ended, and that a thread left for another one.
static RETIRED: Mutex<List<Arc<Shared>>> = Mutex::new(List::new());

/// Leaves it to [`free_retired`] to drop a session: an event must not free its memory, which a signal handler
/// may record.
pub(crate) fn retire(shared: Arc<Shared>) {
    let mut shared = Some(shared);
    if let Some(mut retired) = RETIRED.lock_unless_lost_with_room(|retired| (retired, 1)) {
        retired.extend(shared.take());
    }
    std::mem::forget(shared); // a forked child has lost the lock
}

/// Frees the sessions that threads have left. A session's own thread calls this.
pub(crate) fn free_retired() {
    let retired = RETIRED.lock_unless_lost().map(|mut retired| std::mem::take(&mut *retired));
    drop(retired); // outside of the lock
}

/// Frees the place if the session with this epoch has it. Returns whether it had.
pub(crate) fn forget(epoch: Epoch) -> bool {
    let mut current = CURRENT.lock();
    let has_place = current.running().is_some_and(|shared| shared.epoch() == epoch);
    let before = if has_place { std::mem::take(&mut *current) } else { Current::Free };
    drop(current);
    drop(before); // may be the last reference: freed outside of the lock
    has_place
}
