//! A thread that reads what a flight recorder keeps while a snapshot is written. That may take as long as it
//! takes to read debug information, and the recorder thread may be the one that writes it: rings would have
//! no reader.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::process;
use crate::on::session::shared::Shared;

/// The time between two reads. Threads do not wake this reader.
const EVERY: Duration = Duration::from_millis(5);

/// The thread. A drop ends it.
#[derive(Debug)]
pub(crate) struct Reading {
    thread: Option<(SyncSender<()>, OwnThread)>,
    /// The process that has the thread.
    process: u32,
}

impl Reading {
    /// Starts the thread, if there is anything to be read. Without one, what finds no room is counted as
    /// lost.
    pub(crate) fn begin(shared: &Arc<Shared>) -> Self {
        let process = process::id();
        if !shared.keeps() {
            return Self { thread: None, process };
        }
        let (sender, receiver) = sync_channel::<()>(0);
        let shared = Arc::clone(shared);
        let live = move || {
            while receiver.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                shared.keep(false);
            }
        };
        let thread = own_thread::spawn(c"hairline-reader", live).ok();
        Self { thread: thread.map(|thread| (sender, thread)), process }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some((sender, thread)) = self.thread.take() else { return };
        if self.process != process::id() {
            // A signal handler has forked: the child has no such thread, which perhaps held the channel's
            // lock.
            std::mem::forget((sender, thread));
            return;
        }
        drop(sender);
        thread.join();
    }
}
