//! A thread that reads a flight recorder's samples while a snapshot is written, which may take as long as it
//! takes to read the debug information: the recorder thread may be the one that writes it.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::this_thread;

/// The time between two reads. The threads do not wake this reader.
const EVERY: Duration = Duration::from_millis(5);

/// The thread. A drop ends it.
#[derive(Debug)]
pub(super) struct Reading(Option<(SyncSender<()>, OwnThread)>);

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
        Self(own_thread::spawn(c"hairline-heap", live).ok().map(|thread| (sender, thread)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            thread.join();
        }
    }
}
