//! A thread that looks up functions, for files of a rotated output that have ended: until it has read the
//! debug information, rings would have no reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use crate::on::base::platform::own_thread::{self, OwnThread};

/// The jobs that may wait. The first one takes the longest: later ones need few new functions.
const MOST_WAITING: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// The thread, from the first job on. It does one job after the other.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    thread: Option<(Sender<Job>, OwnThread)>,
    waiting: Arc<AtomicUsize>,
}

impl Naming {
    /// Whether there is a thread, and few jobs wait for it.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.thread.is_none() {
            let (sender, receiver) = channel::<Job>();
            let waiting = Arc::clone(&self.waiting);
            let live = move || {
                for job in receiver {
                    job();
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
            };
            self.thread = own_thread::spawn(c"hairline-names", live).ok().map(|thread| (sender, thread));
        }
        self.thread.is_some() && self.waiting.load(Ordering::Relaxed) < MOST_WAITING
    }

    /// Adds a job. Returns `false`, and drops it, if there is no [room](Self::has_room).
    pub(crate) fn add(&mut self, job: impl FnOnce() + Send + 'static) -> bool {
        if self.has_room()
            && let Some((sender, _)) = &self.thread
        {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            return sender.send(Box::new(job)).is_ok(); // the thread is there as long as the sender
        }
        false
    }

    /// Waits until all jobs are done.
    pub(crate) fn join(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            thread.join();
        }
    }
}
