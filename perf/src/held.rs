//! An open file that the program does not know of.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::{self, Identity};

/// An open file of a library in a program that may close all of its descriptors, as daemons do. The number of
/// the descriptor may then be that of a file of the program. So each use checks that the descriptor still
/// leads to this file, and the drop closes no other one.
///
/// ```
/// use hairline_perf::Held;
///
/// let path = std::env::temp_dir().join(format!("held-{}", std::process::id()));
/// let held = Held::new(std::fs::File::create(&path)?);
/// assert!(held.get()?.metadata()?.is_file());
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Held {
    file: Arc<File>,
    identity: Option<Identity>,
    /// The thread that has the descriptor in a table of its own; 0: all threads.
    thread: AtomicU32,
}

impl Held {
    /// Takes an open file.
    #[must_use]
    pub fn new(file: File) -> Self {
        let identity = sys::identity(&file);
        Self { file: Arc::new(file), identity, thread: AtomicU32::new(0) }
    }

    /// Notes that the calling thread has a table of open files of its own, with a copy of this descriptor, and
    /// that the process closes the other copy. From now on only this thread can use it. The table closes it at
    /// the thread's end.
    pub fn moved_here(&self) {
        self.thread.store(sys::tid(), Ordering::Relaxed);
    }

    /// Returns the file.
    ///
    /// # Errors
    /// If the program has closed the descriptor, or another thread has it in a table of its own.
    pub fn get(&self) -> io::Result<&File> {
        if self.is_here() {
            return Ok(&self.file);
        }
        Err(io::Error::other("the program has closed the descriptor of the trace"))
    }

    /// Returns the file, whose descriptor the program may have closed.
    #[must_use]
    pub fn unchecked(&self) -> &File {
        &self.file
    }

    fn is_here(&self) -> bool {
        match self.thread.load(Ordering::Relaxed) {
            0 => self.identity.is_none() || sys::identity(&self.file) == self.identity,
            thread => thread == sys::tid(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_here() {
            std::mem::forget(Arc::clone(&self.file)); // never closed
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn another_threads_file_is_neither_used_nor_closed() {
        let held = Held::new(File::open("/proc/self/status").unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| held.moved_here()).join().unwrap();
        });
        let number = std::os::fd::AsRawFd::as_raw_fd(held.unchecked());
        assert!(held.get().is_err());
        drop(held);
        assert!(std::fs::exists(format!("/proc/self/fd/{number}")).unwrap());
    }
}
