//! The flight recorder of a session that overwrites: the window of its ring, and the slices that are open on
//! tracks.

#![allow(unsafe_code)] // closes the region

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{Region, Window};

use crate::on::base::lock::{Condvar, Mutex};
use crate::on::base::platform::process;
use crate::on::session::open_slices::OpenSlices;

/// The flight recorder of a session that overwrites.
#[derive(Debug)]
pub(crate) struct FlightRecorder {
    /// The process of the session.
    process: u32,
    /// `None` while a snapshot is written. One snapshot is written at a time.
    window: Mutex<Option<Window>>,
    is_returned: Condvar,
    pub(crate) open: OpenSlices,
    /// Bytes that all snapshots have written so far.
    written: AtomicU64,
}

/// The window, taken by one snapshot. The snapshot holds no lock, because it writes to a disk. The drop
/// returns the window.
pub(crate) struct TakenWindow<'r> {
    recorder: &'r FlightRecorder,
    pub(crate) window: Option<Window>,
}

impl Drop for TakenWindow<'_> {
    fn drop(&mut self) {
        let Some(mut window) = self.recorder.window.lock_in(self.recorder.process) else { return };
        *window = self.window.take(); // replaces `None`: nothing is freed under the lock
        drop(window);
        self.recorder.is_returned.notify_all();
    }
}

impl FlightRecorder {
    pub(crate) fn new(region: &Arc<Region>) -> Self {
        Self {
            process: process::id(),
            window: Mutex::new(Some(Window::new(Arc::clone(region)))),
            is_returned: Condvar::new(),
            open: OpenSlices::default(),
            written: AtomicU64::new(0),
        }
    }

    /// Returns the slices that are open on tracks.
    pub(crate) fn open(&self) -> &OpenSlices {
        &self.open
    }

    /// Returns the bytes that all snapshots have written so far. A thread that waits for the last snapshot
    /// checks with it that the output is not stuck.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn add_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Takes the window. Waits while another snapshot has it. `None` in a child that a signal handler has
    /// forked meanwhile.
    pub(crate) fn take_window(&self) -> Option<TakenWindow<'_>> {
        let mut window =
            self.is_returned.lock_unless(&self.window, self.process, None, |window| window.is_none())?;
        Some(TakenWindow { recorder: self, window: window.take() })
    }

    /// Releases the region's memory at the session's end. Waits while a snapshot is written.
    pub(crate) fn close(&self, region: &Region) {
        let _taken = self.take_window();
        // SAFETY: a region that overwrites has no drain, and no snapshot reads it: this thread has the
        // window.
        unsafe { region.close() };
    }
}
