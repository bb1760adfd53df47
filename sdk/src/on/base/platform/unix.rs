//! macOS, the BSDs and Android.

#![allow(unsafe_code)] // calls the system

use std::ffi::CStr;
use std::fs;
use std::fs::File;
#[cfg(feature = "recovery")]
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use hairline_formats::track_event::fields::clock as id;

use crate::on::base::memory::SharedText;
use crate::on::base::platform::facts::Link;
pub(crate) use crate::on::base::platform::posix::*;
pub(crate) use crate::on::base::platform::unknown::*;

/// The clock that goes on while the machine is suspended, as far as the system has one.
#[cfg(target_vendor = "apple")]
const BOOTTIME: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
#[cfg(target_os = "android")]
const BOOTTIME: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_vendor = "apple", target_os = "android")))]
const BOOTTIME: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Returns the time since the start of the machine in ns.
#[inline(always)]
pub(crate) fn boottime() -> u64 {
    clock_time(BOOTTIME)
}

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 3] {
    [(id::BOOTTIME, BOOTTIME), (id::REALTIME, libc::CLOCK_REALTIME), (id::MONOTONIC, libc::CLOCK_MONOTONIC)]
        .map(|(id, clock)| (id, clock_time(clock)))
}

/// Whether the system trusts the processor's counter. macOS's own clock is this counter.
pub(crate) fn trusts_counter() -> bool {
    cfg!(target_vendor = "apple")
}

/// Returns a number for the calling thread that no other thread of the process has.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it fits
pub(crate) fn tid() -> u32 {
    system_tid() as u32
}

#[cfg(target_vendor = "apple")]
fn system_tid() -> u64 {
    let mut tid = 0;
    // SAFETY: writes the number; thread 0 stands for the calling one.
    unsafe { libc::pthread_threadid_np(0, &raw mut tid) };
    tid
}

#[cfg(target_os = "freebsd")]
fn system_tid() -> libc::c_int {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::pthread_getthreadid_np() }
}

/// The low bits tell the threads of a process apart.
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
fn system_tid() -> usize {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::pthread_self() as usize >> 4 }
}

/// Whether the calling thread is the first one of the process: the standard library calls it so.
pub(crate) fn is_first_thread(_tid: u32) -> bool {
    std::thread::current().name() == Some("main")
}

/// Returns the thread's name: the system's, which other libraries may have set, or else Rust's.
pub(crate) fn thread_name() -> SharedText {
    #[cfg(target_vendor = "apple")]
    {
        let mut name = [0; 64];
        // SAFETY: the pointer and the length describe `name`.
        unsafe { libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr(), name.len()) };
        if name[0] != 0 {
            let bytes = name.map(|c| c as u8);
            let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
            return (&*name.to_string_lossy()).into();
        }
    }
    std::thread::current().name().unwrap_or("thread").into()
}

/// Starts a thread, without the standard library. All signals are blocked in it from the start.
pub(crate) fn spawn(name: &'static CStr, body: Body) -> io::Result<Thread> {
    start(Box::new(move || {
        set_thread_name(name);
        body();
    }))
}

/// Sets the name of the calling thread, where the system lets a thread do so.
fn set_thread_name(name: &'static CStr) {
    #[cfg(target_vendor = "apple")]
    // SAFETY: the name is NUL-terminated.
    unsafe {
        libc::pthread_setname_np(name.as_ptr());
    }
    let _ = name;
}

/// Whether the process was started from a setuid or setgid file. Android starts no such programs.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the calls have no arguments and cannot fail.
    #[cfg(target_os = "android")]
    return unsafe { libc::geteuid() != libc::getuid() || libc::getegid() != libc::getgid() };
    // SAFETY: as above.
    #[cfg(not(target_os = "android"))]
    return unsafe { libc::issetugid() != 0 };
}

/// Fills `bytes` with random ones. Returns false if the system has none.
pub(crate) fn fill_randomly(bytes: &mut [u8]) -> bool {
    File::open("/dev/urandom").and_then(|mut file| io::Read::read_exact(&mut file, bytes)).is_ok()
}

/// Returns `None`: not known.
pub(crate) fn rss() -> Option<u64> {
    None
}

/// Returns `None`: not known.
pub(crate) fn threads() -> Option<u64> {
    None
}

/// Returns the number of open files.
pub(crate) fn open_files() -> Option<u64> {
    // Without the one that lists them.
    fs::read_dir("/dev/fd").ok().map(|files| files.count().saturating_sub(1) as u64)
}

/// Returns `None`: not known.
pub(crate) fn disk_bytes() -> (Option<u64>, Option<u64>) {
    (None, None)
}

/// Takes those of the signals that are pending for this thread, which has blocked them.
fn consume(signals: &libc::sigset_t) {
    // SAFETY: sets of signals, for which zeros are valid, and a number that `sigwait` writes. It returns at
    // once: a signal of its set is pending.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            if libc::sigismember(&raw const *signals, signal) == 1
                && libc::sigismember(&raw const pending, signal) == 1
            {
                let (mut this, mut taken): (libc::sigset_t, _) = (std::mem::zeroed(), 0);
                libc::sigemptyset(&raw mut this);
                libc::sigaddset(&raw mut this, signal);
                libc::sigwait(&raw const this, &raw mut taken);
            }
        }
    }
}

impl WriteSignalsBlocked {
    pub(crate) fn new() -> Self {
        Self::consuming_by(consume)
    }
}

/// Lets a signal handler wake a thread, by a pipe: macOS has no semaphores that a handler may use.
pub(crate) struct Waker([AtomicI32; 2]);

impl Waker {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicI32::new(-1) }; 2])
    }

    /// Prepares the waker.
    ///
    /// # Safety
    /// Nothing uses it yet.
    pub(crate) unsafe fn start(&self) -> io::Result<()> {
        let mut ends = [-1; 2];
        // SAFETY: the call writes two numbers.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for (end, number) in self.0.iter().zip(ends) {
            // SAFETY: a call on an open descriptor.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
            end.store(number, Ordering::Release); // pairs with the Acquire in `wake` and `wait`
        }
        Ok(())
    }

    /// Wakes the thread. A signal handler may call this.
    ///
    /// # Safety
    /// [`start`](Self::start) has succeeded.
    pub(crate) unsafe fn wake(&self) {
        // SAFETY: writes one byte of a literal.
        unsafe { libc::write(self.0[1].load(Ordering::Acquire), b"!".as_ptr().cast(), 1) };
    }

    /// Waits for a call of [`wake`](Self::wake).
    ///
    /// # Safety
    /// [`start`](Self::start) has succeeded.
    pub(crate) unsafe fn wait(&self) {
        let mut byte = 0_u8;
        // SAFETY: reads one byte. An error is that of an interruption.
        while unsafe { libc::read(self.0[0].load(Ordering::Acquire), (&raw mut byte).cast(), 1) } < 0 {}
    }
}

/// Reads the link at `path`.
///
/// # Errors
/// If the link belongs to another user.
pub(crate) fn read_link(path: &Path) -> io::Result<Link> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Link::None),
        Err(e) => return Err(e),
    };
    if !metadata.is_symlink() {
        return Ok(Link::None);
    }
    match refuse_link(&metadata) {
        Some(refused) => Err(refused),
        None => fs::read_link(path).map(Link::To),
    }
}

/// Opens the file at `name` if it is a regular one. Returns `None` for any other, also for a link.
#[cfg(feature = "recovery")]
pub(crate) fn open_regular(name: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    // Looked at first: the open of a FIFO or of a device can have an effect.
    let seen = fs::symlink_metadata(name)?;
    if !seen.is_file() {
        return Ok(None);
    }
    let there = identity_of_name(name)?;
    let file = open_output(name, options)?;
    Ok((identity(&file)? == there && file.metadata()?.is_file()).then_some(file))
}

/// Does nothing: only the user can read the file. The system tells the umask only by changing it, for all
/// threads.
pub(crate) fn open_to_others(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Writes to stderr. See [`write_to`].
pub(crate) fn write_to_stderr(text: &str) {
    write_to(libc::STDERR_FILENO, text);
}
