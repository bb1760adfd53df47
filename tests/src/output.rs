//! Outputs that a test has in hand: they keep what a session writes, and what is done before each write may
//! take a while. The bytes come when the session lets go of its output.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// What comes out of an output in the end.
pub type Bytes = mpsc::Receiver<Vec<u8>>;

/// An output that does something before each write.
#[derive(Debug)]
pub struct Kept<F> {
    before: F,
    bytes: Vec<u8>,
    whole: mpsc::Sender<Vec<u8>>,
}

/// An output that does `before` before each write.
pub fn kept<F: FnMut()>(before: F) -> (Kept<F>, Bytes) {
    let (whole, bytes) = mpsc::channel();
    (Kept { before, bytes: Vec::new(), whole }, bytes)
}

/// An output that takes its time for everything, so that a small ring behind it is full most of the time.
#[must_use]
pub fn slow(pause: Duration) -> (Kept<impl FnMut() + Send + 'static>, Bytes) {
    kept(move || std::thread::sleep(pause))
}

/// An output that waits, where it is told to, until it is let go.
#[must_use]
pub fn gated() -> (Kept<impl FnMut() + Send + 'static>, Gate) {
    let (told, waiting) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let shut = Arc::new(AtomicBool::new(false));
    let is_shut = Arc::clone(&shut);
    let (output, bytes) = kept(move || {
        if is_shut.swap(false, SeqCst) {
            let _ = told.send(());
            let _ = gone.recv();
        }
    });
    (output, Gate { shut, waiting, go, bytes })
}

/// See [`gated`].
#[derive(Debug)]
pub struct Gate {
    shut: Arc<AtomicBool>,
    waiting: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
    bytes: Bytes,
}

impl Gate {
    /// The next write waits.
    pub fn shut(&self) {
        self.shut.store(true, SeqCst);
    }

    /// Comes back when a write waits.
    ///
    /// # Panics
    /// When the output is gone.
    pub fn wait(&self) {
        self.waiting.recv().expect("an output");
    }

    /// Lets it go, for good.
    pub fn open(self) -> Bytes {
        drop(self.go);
        self.bytes
    }
}

impl<F: FnMut()> Write for Kept<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.before)();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F> Drop for Kept<F> {
    fn drop(&mut self) {
        let _ = self.whole.send(std::mem::take(&mut self.bytes));
    }
}
