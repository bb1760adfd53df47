//! The running session of the process: one at a time.
//!
//! A start takes some 10 ms, and waits for disks. So it does not happen under the lock: it reserves the
//! place, and fills it when the session is there.

use std::sync::Arc;
use std::time::Instant;

use crate::error::Error;
use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::base::this_thread;
use crate::on::session::shared::Shared;

static CURRENT: Mutex<Current> = Mutex::new(Current::None);

/// What runs.
#[derive(Debug, Default)]
pub(crate) enum Current {
    #[default]
    None,
    /// A thread is starting a session.
    Starting,
    Running(Arc<Shared>),
}

impl Current {
    fn running(&self) -> Option<&Arc<Shared>> {
        match self {
            Self::Running(shared) => Some(shared),
            Self::None | Self::Starting => None,
        }
    }

    /// In a forked child: the parent's session does not run here, and the thread that was starting one does
    /// not exist.
    pub(crate) fn take_in_child(&mut self) -> Option<Arc<Shared>> {
        match std::mem::take(self) {
            Self::Running(shared) => Some(shared),
            Self::None | Self::Starting => None,
        }
    }
}

/// What runs, held for a fork.
pub(crate) type Held = MutexGuard<'static, Current>;

pub(crate) fn hold(until: Instant) -> Option<Held> {
    CURRENT.try_lock_until(until)
}

/// The place of the running session, reserved by the thread that starts one. Dropped, it is free again.
pub(crate) struct Reserved(());

impl Reserved {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut current = CURRENT.lock();
        match *current {
            Current::None => {
                *current = Current::Starting;
                Ok(Self(()))
            }
            Current::Starting | Current::Running(_) => Err(Error::AlreadyRunning),
        }
    }

    /// The session runs.
    pub(crate) fn fill(self, shared: Arc<Shared>) {
        *CURRENT.lock() = Current::Running(shared); // in the place of `Starting`, which drops nothing
        std::mem::forget(self);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *CURRENT.lock() = Current::None; // in the place of `Starting`
    }
}

/// The running session, if it has this epoch. `None` in a forked child: it is the parent's.
pub(crate) fn current(epoch: u32) -> Option<Arc<Shared>> {
    if this_thread::is_detached() {
        return None;
    }
    CURRENT.lock().running().filter(|shared| shared.epoch() == epoch).cloned()
}

/// The running session. `None` in a forked child that has none of its own; and where the lock cannot be had
/// until then.
pub(crate) fn running_until(until: Instant) -> Option<Arc<Shared>> {
    let _busy = this_thread::busy(); // the first that a child may do: it finds out there that it is one
    if this_thread::is_detached() {
        return None;
    }
    CURRENT.try_lock_until(until)?.running().cloned()
}

/// Frees the place of the running session, if the session with this epoch has it. Returns whether it had.
pub(crate) fn forget(epoch: u32) -> bool {
    let mut current = CURRENT.lock();
    let is_it = current.running().is_some_and(|shared| shared.epoch() == epoch);
    let before = if is_it { std::mem::take(&mut *current) } else { Current::None };
    drop(current);
    drop(before); // which may be the last that has it
    is_it
}
