//! Hairline's own threads, started by the C library.
//!
//! The standard library takes a lock of its own at the start of each thread. In a forked child, a thread that
//! does not exist may hold that lock for ever, and the standard library can start no thread. So these threads
//! are started without it.
//!
//! All signals are blocked in them from the start: the application's handlers belong on the application's
//! threads.

#![allow(unsafe_code)] // pthread_create

use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;
use std::thread::Thread;

use crate::on::base::platform::process;

/// A thread that is running, or has ended and can be joined. A drop detaches the thread.
#[derive(Debug)]
pub(crate) struct OwnThread(Option<libc::pthread_t>);

type Body = Box<dyn FnOnce() + Send>;

/// Starts a thread. `name` has at most 15 bytes, the limit of the kernel.
pub(crate) fn spawn(name: &'static CStr, body: impl FnOnce() + Send + 'static) -> io::Result<OwnThread> {
    let body: Body = Box::new(move || {
        // SAFETY: the name is NUL-terminated.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        body();
    });
    let argument = Box::into_raw(Box::new(body));
    let mut thread = 0;
    let outcome = {
        let _blocked = process::SignalsBlocked::new();
        // SAFETY: the call writes `thread`; `run` takes ownership of the box if the thread starts.
        unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), run, argument.cast()) }
    };
    if outcome != 0 {
        // SAFETY: no thread was started, so this call still owns the box.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(outcome));
    }
    Ok(OwnThread(Some(thread)))
}

extern "C" fn run(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the box that `spawn` has passed to this thread alone.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    // A panic may not leave an extern "C" function. Each body also catches its own panics.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(*body));
    std::ptr::null_mut()
}

impl OwnThread {
    /// Waits until the thread has ended.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.0.take() {
            // SAFETY: a thread that was neither joined nor detached.
            unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // SAFETY: as in `join`.
            unsafe { libc::pthread_detach(thread) };
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
