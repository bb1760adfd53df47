//! A part of a session that its own thread and snapshots use by turns, such as the reader of the kernel's
//! rings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::on::base::lock::Mutex;

/// The longest wait for another thread that uses the part: it may look at a large program for the first time,
/// on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a session keeps a part, while no thread uses it. Nobody holds a lock meanwhile.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    part: Mutex<Option<Box<T>>>,
    /// Whether the session has the part, and no thread has taken it for good.
    is_open: AtomicBool,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { part: Mutex::default(), is_open: AtomicBool::new(false) }
    }
}

impl<T> Slot<T> {
    /// Gives the session its part.
    pub(crate) fn fill(&self, part: T) {
        self.is_open.store(true, Ordering::Relaxed);
        self.put(Box::new(part));
    }

    /// Whether the session has the part, and no thread has taken it for good.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Takes the part for good: nobody waits for it any more.
    pub(crate) fn close(&self) -> Option<Box<T>> {
        self.is_open.store(false, Ordering::Relaxed);
        self.take()
    }

    /// Calls `f` with the part. `None`: there is none, or another thread uses it.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.take().map(|part| self.use_and_put(part, f))
    }

    /// As [`with`](Self::with), but waits while another thread uses the part.
    pub(crate) fn when_there<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let until = Instant::now() + PATIENCE;
        let mut part = self.take();
        while part.is_none() && self.is_open() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
            part = self.take();
        }
        part.map(|part| self.use_and_put(part, f))
    }

    fn use_and_put<R>(&self, mut part: Box<T>, f: impl FnOnce(&mut T) -> R) -> R {
        let result = f(&mut part);
        self.put(part);
        result
    }

    fn take(&self) -> Option<Box<T>> {
        self.part.lock_unless_lost()?.take()
    }

    fn put(&self, part: Box<T>) {
        let mut part = Some(part);
        if let Some(mut slot) = self.part.lock_unless_lost() {
            std::mem::swap(&mut *slot, &mut part); // nothing is freed under the lock
        }
    }
}
