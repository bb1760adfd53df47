//! Wakes the thread of a session from any thread of the program, until that session has ended.
//!
//! A waker enters (`inside`) before it loads the handle. Whoever drops a handle takes it out of its
//! place, and then looks for wakers. All four accesses are SeqCst: either the waker finds no handle, or
//! the other one waits for it. Signals are blocked meanwhile, so that every waker leaves again.

#![allow(unsafe_code)] // a handle behind an atomic pointer

use std::ptr::{from_ref, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hairline_sampler::Undisturbed;

use crate::on::base::platform::own_thread::Handle;
use crate::on::base::platform::process;

/// The longest time for which a waker may be interrupted by the system. After it the handle stays for good.
const PATIENCE: Duration = Duration::from_millis(100);

/// A place for the handle of the thread that is woken.
#[derive(Debug)]
pub(crate) struct Wakes {
    /// Null: there is no such thread.
    handle: AtomicPtr<Handle>,
    /// The threads that may have the handle.
    inside: AtomicU32,
}

/// The handle of a thread, in its place until this is dropped.
#[derive(Debug)]
pub(crate) struct Woken {
    wakes: &'static Wakes,
    handle: Option<Arc<Handle>>,
    /// The process whose thread it is.
    process: u32,
}

impl Wakes {
    pub(crate) const fn new() -> Self {
        Self { handle: AtomicPtr::new(null_mut()), inside: AtomicU32::new(0) }
    }

    /// Whether there is a thread to be woken.
    pub(crate) fn has_thread(&self) -> bool {
        !self.handle.load(Ordering::Relaxed).is_null()
    }

    /// Wakes the thread, if there is one. An event in a signal handler may call this.
    #[cold]
    pub(crate) fn wake(&self) {
        let _undisturbed = Undisturbed::new();
        self.inside.fetch_add(1, Ordering::SeqCst);
        // SAFETY: null, or the handle of a `Woken`, which frees it only after it has found nobody inside.
        if let Some(handle) = unsafe { self.handle.load(Ordering::SeqCst).as_ref() } {
            handle.unpark();
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Makes the thread of this handle the one that is woken.
    pub(crate) fn set(&'static self, handle: Arc<Handle>) -> Woken {
        self.handle.store(from_ref(&*handle).cast_mut(), Ordering::SeqCst);
        Woken { wakes: self, handle: Some(handle), process: process::id() }
    }

    /// In a forked child, which has neither the thread nor those that wake it.
    pub(crate) fn leave_in_child(&self) {
        self.handle.store(null_mut(), Ordering::SeqCst);
        self.inside.store(0, Ordering::SeqCst);
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        let forget = || std::mem::forget(Arc::clone(&handle)); // a waker may have it
        if self.process != process::id() {
            return forget();
        }
        // A later session may have put its own there.
        let (own, none) = (from_ref(&*handle).cast_mut(), null_mut());
        let _ = self.wakes.handle.compare_exchange(own, none, Ordering::SeqCst, Ordering::SeqCst);
        let until = Instant::now() + PATIENCE;
        while self.wakes.inside.load(Ordering::SeqCst) != 0 {
            if Instant::now() > until {
                return forget();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_freed_with_its_session_and_that_of_a_later_one_stays() {
        static WAKES: Wakes = Wakes::new();
        let (first, second) = (Arc::new(Handle::default()), Arc::new(Handle::default()));
        second.set_to_current();
        let (of_first, freed) = (WAKES.set(Arc::clone(&first)), Arc::downgrade(&first));
        drop(first);
        WAKES.wake();
        let of_second = WAKES.set(second);
        drop(of_first);
        assert!(freed.upgrade().is_none() && WAKES.has_thread());
        WAKES.wake();
        std::thread::park(); // was woken
        drop(of_second);
        assert!(!WAKES.has_thread());
    }

    #[test]
    fn a_handle_that_a_waker_may_have_stays() {
        static WAKES: Wakes = Wakes::new();
        WAKES.inside.store(1, Ordering::SeqCst); // in the midst of `wake`
        let handle = Arc::new(Handle::default());
        let stays = Arc::downgrade(&handle);
        drop(WAKES.set(handle));
        assert!(stays.upgrade().is_some() && !WAKES.has_thread());
    }
}
