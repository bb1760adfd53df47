//! The functions of systems that have neither Unix's signals nor its fork: `windows.rs` and `other.rs`.

#![allow(unsafe_code)] // functions that other platforms have as unsafe ones

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
#[cfg(not(windows))]
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use crate::on::base::platform::facts::{Identity, Link};
pub(crate) use crate::on::base::platform::unknown::*;

/// Returns a number for the calling thread that no other thread of the process has.
#[cfg(not(windows))]
pub(crate) fn tid() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static TID: Cell<u32> = const { Cell::new(0) };
    }
    TID.with(|tid| {
        if tid.get() == 0 {
            tid.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        tid.get()
    })
}

/// Whether the calling thread is the first one of the process: the standard library calls it so.
pub(crate) fn is_first_thread(_tid: u32) -> bool {
    std::thread::current().name() == Some("main")
}

/// Returns false: the system has no such rights.
pub(crate) fn is_privileged() -> bool {
    false
}

/// Writes to stderr.
pub(crate) fn write_to_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Does nothing: there is no fork.
pub(crate) fn at_fork(_before: extern "C" fn(), _in_parent: extern "C" fn(), _in_child: extern "C" fn()) {}

/// What a key of this module calls at the end of a thread.
static DESTRUCTOR: OnceLock<extern "C" fn(*mut c_void)> = OnceLock::new();

/// The value of a thread. Its drop is the end of the thread.
struct Value(Cell<*const c_void>);

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(destructor) = DESTRUCTOR.get()
            && !self.0.get().is_null()
        {
            destructor(self.0.get().cast_mut());
        }
    }
}

thread_local! {
    static VALUE: Value = const { Value(Cell::new(std::ptr::null())) };
}

/// Creates the only key. Its `destructor` runs at the end of each thread that has a value for it.
#[allow(clippy::unnecessary_wraps)] // as on other platforms
pub(crate) fn create_key(destructor: extern "C" fn(*mut c_void)) -> Option<u32> {
    let _ = DESTRUCTOR.set(destructor);
    Some(0)
}

/// Sets this thread's value for the key. Returns whether that succeeded.
pub(crate) fn set_value(_key: u32, value: *const c_void) -> bool {
    VALUE.try_with(|own| own.0.set(value)).is_ok()
}

/// Does nothing: a key that two threads have created at the same time is one key.
pub(crate) fn delete_key(_key: u32) {}

/// A thread of the standard library.
#[derive(Debug)]
pub(crate) struct Thread(JoinHandle<()>);

type Body = Box<dyn FnOnce() + Send>;

/// Starts a thread.
pub(crate) fn spawn(name: &'static CStr, body: Body) -> io::Result<Thread> {
    let name = name.to_string_lossy().into_owned();
    std::thread::Builder::new().name(name).spawn(body).map(Thread)
}

impl Thread {
    /// Waits until the thread has ended.
    pub(crate) fn join(self) {
        let _ = self.0.join();
    }

    #[allow(clippy::unused_self)] // the drop detaches it
    pub(crate) fn detach(self) {}
}

/// Does nothing: there are no signals.
pub(crate) struct SignalsBlocked;

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Calls `f`.
    #[allow(clippy::unused_self)] // as on other platforms
    pub(crate) fn without<R>(&mut self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {}
}

/// The signals that end a process: one that stands for all requests to end it.
pub(crate) const ENDING: [c_int; 1] = [0];

/// What a handler would be told of a signal.
pub(crate) type SignalInfo = c_void;

/// A handler with three arguments.
pub(crate) type Handler = extern "C" fn(c_int, *mut SignalInfo, *mut c_void);

/// The action of a signal.
pub(crate) struct Action;

impl Action {
    /// Does nothing.
    #[allow(clippy::unused_self)] // as on other platforms
    pub(crate) fn call(&self, _signal: c_int, _info: *mut SignalInfo, _context: *mut c_void) {}

    /// Does nothing.
    #[allow(clippy::unused_self)] // as on other platforms
    pub(crate) fn pass_on(&self, _signal: c_int) {}
}

/// Handles no signal.
///
/// # Errors
/// Always: there are no signals.
pub(crate) fn handle(_signal: c_int, _handler: Handler, _keep: impl FnOnce(Action)) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lets a handler wake a thread.
pub(crate) struct Waker(Mutex<bool>, Condvar);

impl Waker {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }

    /// Prepares the waker.
    ///
    /// # Safety
    /// None needed.
    #[allow(clippy::unnecessary_wraps, clippy::unused_self)] // as on other platforms
    pub(crate) unsafe fn start(&self) -> io::Result<()> {
        Ok(())
    }

    /// Wakes the thread.
    ///
    /// # Safety
    /// None needed.
    pub(crate) unsafe fn wake(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }

    /// Waits for a call of [`wake`](Self::wake).
    ///
    /// # Safety
    /// None needed.
    pub(crate) unsafe fn wait(&self) {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.1.wait_while(guard, |is_awake| !*is_awake));
    }
}

/// Does nothing: there are no signals.
pub(crate) struct WriteSignalsBlocked;

impl WriteSignalsBlocked {
    pub(crate) fn new() -> Self {
        Self
    }
}

impl Drop for WriteSignalsBlocked {
    fn drop(&mut self) {}
}

/// Has no number for the open file: there is no fork.
pub(crate) fn number_of(_file: &File) -> i32 {
    -1
}

/// Does nothing: there is no fork.
pub(crate) fn close(_number: i32) {}

/// Returns `None`: as [`number_of`].
pub(crate) fn identity_of_number(_number: i32) -> Option<Identity> {
    None
}

/// Opens the file at `name` for writing.
pub(crate) fn open_output(name: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.open(name)
}

/// Opens the file at `link` for writing.
pub(crate) fn open_through(link: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.open(link)
}

/// Returns `None`: the system follows links itself.
#[allow(clippy::unnecessary_wraps)] // as on other platforms
pub(crate) fn read_link(_path: &Path) -> io::Result<Link> {
    Ok(Link::None)
}

/// Returns false: [`open_output`] follows links.
pub(crate) fn is_link(_e: &io::Error) -> bool {
    false
}

/// Returns false: there are no FIFOs.
pub(crate) fn has_no_reader(_e: &io::Error) -> bool {
    false
}

/// Returns the error for too many links.
pub(crate) fn too_many_links() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

/// Does nothing: writes wait.
pub(crate) fn wait_for_room(_file: &File) {}

/// Opens the file at `name`, through links, if it is a regular one.
#[cfg(feature = "recovery")]
pub(crate) fn open_regular(name: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let file = options.open(name)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns `false`: no link is refused.
#[cfg(feature = "recovery")]
pub(crate) fn is_refused_link(_e: &io::Error) -> bool {
    false
}

/// Opens no directory: the system syncs none.
#[cfg(feature = "recovery")]
pub(crate) fn open_directory(_path: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Creates a file. Its directory says who may access it.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Does nothing: the directory of a file says who may access it.
#[allow(clippy::unnecessary_wraps)] // as on other platforms
pub(crate) fn open_to_others(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Returns `true`: the directory of a file says who may have put it there.
#[cfg(feature = "recovery")]
pub(crate) fn is_own(_metadata: &std::fs::Metadata) -> bool {
    true
}

/// Returns the first characters of a name, at most `len` bytes.
pub(crate) fn shortened(name: &std::ffi::OsStr, len: usize) -> std::ffi::OsString {
    let name = name.to_string_lossy();
    let end = (0..=name.len().min(len)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name[..end].into()
}
