//! The handle of a session's drain thread: its start, wake-up, passes and end.
//!
//! A flight recorder has no drain thread. There this is the handle of the recorder thread.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::error::Error;
use crate::on::base::lock::Mutex;
use crate::on::base::platform::own_thread::OwnThread;
use crate::on::base::platform::{own_thread, process};

/// The handle of a session's drain thread.
#[derive(Debug, Default)]
pub(crate) struct DrainHandle {
    /// The thread, until a caller joins it.
    thread: Mutex<Option<OwnThread>>,
    unparker: own_thread::Handle,
    /// The kernel's id of the thread; 0 before the thread runs.
    tid: AtomicU32,
    is_wake_sent: AtomicBool,
    /// Completed passes.
    passes: AtomicU64,
}

/// What a session's own thread does. It sends whether it has taken the session's files, and lives.
pub(crate) type Life = Box<dyn FnOnce(&SyncSender<bool>) + Send>;

/// A session's own thread, which has started and waits for its [`Life`]. A drop ends it.
#[derive(Debug)]
pub(crate) struct Waiting {
    life: SyncSender<Life>,
    has_files: Receiver<bool>,
}

impl Waiting {
    /// Lets the thread live. Returns whether it has taken the session's files.
    pub(crate) fn begin(self, life: Life) -> bool {
        self.life.send(life).is_ok() && self.has_files.recv().unwrap_or(false)
    }
}

impl DrainHandle {
    /// Starts the thread. It calls `begin`, which calls [`set_to_current`](Self::set_to_current), and waits for
    /// its life: a session whose thread cannot start has not changed its output.
    pub(crate) fn spawn(&self, begin: impl FnOnce() + Send + 'static) -> Result<Waiting, Error> {
        let (life, lives) = sync_channel::<Life>(1);
        let (sender, has_files) = sync_channel(1);
        let body = move || {
            begin();
            if let Ok(life) = lives.recv() {
                life(&sender);
            }
        };
        let thread = own_thread::spawn(c"hairline-writer", body).map_err(Error::Thread)?;
        *self.thread.lock() = Some(thread); // replaces `None`: nothing is freed under the lock
        Ok(Waiting { life, has_files })
    }

    /// Makes the calling thread the one that this handle wakes.
    pub(crate) fn set_to_current(&self) {
        self.tid.store(process::tid(), Ordering::Relaxed);
        self.unparker.set_to_current();
    }

    /// Waits until the thread has ended. Returns at once if another caller joins it.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            thread.join();
        }
    }

    /// Ends the thread's sleep, or prevents its next one.
    #[inline]
    pub(crate) fn unpark(&self) {
        self.unparker.unpark();
    }

    /// Wakes the thread, at most once until the thread calls [`clear_wake`](Self::clear_wake). Does not wait.
    #[inline]
    pub(crate) fn wake(&self) {
        // Release pairs with the Acquire of `clear_wake`, after which the thread sees that the caller waits.
        if !self.is_wake_sent.swap(true, Ordering::Release) {
            self.unparker.unpark();
        }
    }

    /// As [`wake`](Self::wake), but may do nothing if a wake was sent shortly before. For a caller that will
    /// call it again: thousands of lost events write nothing that other threads read.
    #[inline]
    pub(crate) fn wake_unless_sent(&self) {
        if !self.is_wake_sent.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Lets [`wake`](Self::wake) wake the thread again. The thread calls it before each pass, so that a wake
    /// during the pass is not lost.
    pub(crate) fn clear_wake(&self) {
        // Acquire pairs with the Release of `wake`.
        self.is_wake_sent.swap(false, Ordering::Acquire);
    }

    /// Returns the number of completed passes.
    #[inline]
    pub(crate) fn passes(&self) -> u64 {
        // Acquire pairs with the Release of `add_pass`: the caller's next chunk comes after all that the pass
        // has read.
        self.passes.load(Ordering::Acquire)
    }

    /// Counts a completed pass.
    pub(crate) fn add_pass(&self) {
        self.passes.fetch_add(1, Ordering::Release); // pairs with the Acquire of `passes`
    }

    /// Returns whether the calling thread is this one.
    pub(crate) fn is_current(&self) -> bool {
        self.unparker.is_current()
    }

    /// Like [`is_current`](Self::is_current), by the kernel's thread ids.
    #[inline]
    pub(crate) fn is_current_tid(&self) -> bool {
        self.tid.load(Ordering::Relaxed) == process::tid()
    }
}
