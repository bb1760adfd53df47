//! Hairline's own threads, on Unix started by the C library.
//!
//! The standard library takes a lock of its own at the start of each thread. In a forked child, a thread that
//! does not exist may hold that lock for ever, and the standard library can start no thread. So these threads
//! are started without it.
//!
//! All signals are blocked in them from the start: the application's handlers belong on the application's
//! threads.

use std::cell::Cell;
use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;
use std::thread::Thread;

use crate::on::base::platform;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is one of Hairline's own. What it allocates is not the program's.
pub(crate) fn is_own() -> bool {
    IS_OWN.get()
}

/// A thread that is running, or has ended and can be joined. A drop detaches the thread.
#[derive(Debug)]
pub(crate) struct OwnThread(Option<platform::Thread>);

/// Starts a thread. `name` has at most 15 bytes, the limit of the kernel.
pub(crate) fn spawn(name: &'static CStr, body: impl FnOnce() + Send + 'static) -> io::Result<OwnThread> {
    let body = move || {
        IS_OWN.set(true);
        body();
    };
    platform::spawn(name, Box::new(body)).map(|thread| OwnThread(Some(thread)))
}

impl OwnThread {
    /// Waits until the thread has ended.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.0.take() {
            thread.join();
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            thread.detach();
        }
    }
}

/// The handle for unparking a thread, set by the thread itself when it begins. A request that comes before
/// that needs no unpark: the thread finds it when it first checks.
#[derive(Debug, Default)]
pub(crate) struct Handle(OnceLock<Thread>);

impl Handle {
    /// Sets the handle to the calling thread.
    pub(crate) fn set_to_current(&self) {
        let _ = self.0.set(std::thread::current());
    }

    /// Unparks the thread, if it has begun.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// Whether the handle is that of the calling thread.
    pub(crate) fn is_current(&self) -> bool {
        self.0.get().is_some_and(|thread| thread.id() == std::thread::current().id())
    }
}
