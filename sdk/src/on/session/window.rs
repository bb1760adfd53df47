//! The window of a flight recorder: what its ring holds, for one snapshot at a time.

#![allow(unsafe_code)] // closes the region

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{Region, Window};

use crate::on::base::lock::{Condvar, Mutex};
use crate::on::session::open_slices::OpenSlices;

/// What a session has that overwrites.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// `None` while a snapshot is being written: one at a time.
    window: Mutex<Option<Window>>,
    is_back: Condvar,
    pub(crate) open: OpenSlices,
    /// Bytes that all snapshots have written so far.
    written: AtomicU64,
}

/// The window, for one snapshot. No lock is held meanwhile: the snapshot is written to a disk.
pub(crate) struct TakenWindow<'r> {
    recorder: &'r Recorder,
    pub(crate) window: Option<Window>,
}

impl Drop for TakenWindow<'_> {
    fn drop(&mut self) {
        *self.recorder.window.lock() = self.window.take(); // in the place of `None`
        self.recorder.is_back.notify_all();
    }
}

impl Recorder {
    pub(crate) fn new(region: &Arc<Region>) -> Self {
        let window = Mutex::new(Some(Window::new(Arc::clone(region))));
        Self { window, is_back: Condvar::new(), open: OpenSlices::default(), written: AtomicU64::new(0) }
    }

    /// The slices on tracks that are open.
    pub(crate) fn open(&self) -> &OpenSlices {
        &self.open
    }

    /// Bytes that all snapshots have written so far. Whoever waits for the last one sees by it that the output
    /// moves.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn add_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until no other snapshot is being written.
    pub(crate) fn take_window(&self) -> TakenWindow<'_> {
        let mut window = self.is_back.wait_while(self.window.lock(), |window| window.is_none());
        TakenWindow { recorder: self, window: window.take() }
    }

    /// The session ends: its memory is given back once no snapshot is being written.
    pub(crate) fn close(&self, region: &Region) {
        let _taken = self.take_window();
        // SAFETY: a region that overwrites has no drain.
        unsafe { region.close() };
    }
}
