//! A library with the macros in it, to be loaded into a program that has them too: each has a copy of
//! Hairline, and a session.

#![allow(unsafe_code)] // called from outside

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use hairline::{Session, trace_scope};

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Starts this copy's session, into the file at `path`. Whether it did.
///
/// # Safety
/// `path` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plugin_start(path: *const c_char) -> bool {
    // SAFETY: by this function's contract.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()).to_owned();
    let started = Session::builder().output(path).start().ok();
    let mut session = SESSION.lock().expect("not poisoned");
    *session = started;
    session.is_some()
}

/// Records ten scopes `of the plugin`.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_work() {
    for n in 0..10 {
        trace_scope!("plugin", "of the plugin", n);
    }
}

/// Stops the session.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_stop() {
    drop(SESSION.lock().expect("not poisoned").take());
}
