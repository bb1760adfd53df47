//! A thread that reads a flight recorder's samples while a snapshot is written, which may take as long as it
//! takes to read the debug information: the recorder thread may be the one that writes it.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::process;
use crate::on::base::this_thread;

/// The time between two reads. The threads do not wake this reader.
const EVERY: Duration = Duration::from_millis(5);

/// The thread. A drop ends it.
#[derive(Debug)]
pub(super) struct Reading {
    thread: Option<(SyncSender<()>, OwnThread)>,
    /// The process that has the thread.
    process: u32,
}

impl Reading {
    /// Starts the thread. Without one, samples may find no room, which is counted.
    pub(super) fn begin(read: impl Fn() + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel::<()>(0);
        let live = move || {
            let _busy = this_thread::busy(); // the profile does not have what this thread allocates
            while receiver.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                read();
            }
        };
        let thread = own_thread::spawn(c"hairline-heap", live).ok();
        Self { thread: thread.map(|thread| (sender, thread)), process: process::id() }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some((sender, thread)) = self.thread.take() else { return };
        if self.process != process::id() {
            // A signal handler has forked: the child has no such thread, which perhaps held the channel's lock.
            std::mem::forget((sender, thread));
            return;
        }
        drop(sender);
        thread.join();
    }
}
