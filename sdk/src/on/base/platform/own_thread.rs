//! Hairline's own threads, made by the C library.
//!
//! The standard library takes a lock of its own at the start of each thread. In a forked child a thread that
//! does not exist may hold that lock for ever, and no thread of the standard library ever starts. So these
//! threads are not its.
//!
//! They are born with all signals blocked: the application's handlers belong on the application's threads.

#![allow(unsafe_code)] // pthread_create

use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;
use std::thread::Thread;

use crate::on::base::platform::process;

/// A thread that runs, or has ended and is to be joined. Dropped, the thread goes on by itself.
#[derive(Debug)]
pub(crate) struct OwnThread(Option<libc::pthread_t>);

type Life = Box<dyn FnOnce() + Send>;

/// Starts a thread. `name` has at most 15 bytes, as the system keeps them.
pub(crate) fn spawn(name: &'static CStr, life: impl FnOnce() + Send + 'static) -> io::Result<OwnThread> {
    let life: Life = Box::new(move || {
        // SAFETY: the name is NUL-terminated.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        life();
    });
    let argument = Box::into_raw(Box::new(life));
    let mut thread = 0;
    let made = {
        let _blocked = process::SignalsBlocked::new();
        // SAFETY: `thread` is for the call to write; `run` takes the box over if the thread is made.
        unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), run, argument.cast()) }
    };
    if made != 0 {
        // SAFETY: no thread was made that could have taken it.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(made));
    }
    Ok(OwnThread(Some(thread)))
}

extern "C" fn run(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the box that `spawn` has handed over, to this thread alone.
    let life = unsafe { Box::from_raw(argument.cast::<Life>()) };
    // A panic may not leave an extern "C" function. Each life catches its own.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(*life));
    std::ptr::null_mut()
}

impl OwnThread {
    /// Waits for its end.
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

/// The handle by which a thread is unparked: set by the thread itself when it begins. What is to be done
/// before that, it finds when it looks first.
#[derive(Debug, Default)]
pub(crate) struct Handle(OnceLock<Thread>);

impl Handle {
    /// This is the thread.
    pub(crate) fn set_to_current(&self) {
        let _ = self.0.set(std::thread::current());
    }

    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// Whether the calling thread is the one.
    pub(crate) fn is_current(&self) -> bool {
        self.0.get().is_some_and(|thread| thread.id() == std::thread::current().id())
    }
}
