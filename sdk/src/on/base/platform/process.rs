//! Facts that the system knows of this process and its threads.

#![allow(unsafe_code)] // gettid, prctl, getauxval and geteuid

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_formats::track_event::TrackUuid;

use crate::on::base::{clock, uuid};

/// The id and the name of a thread, as a trace shows them.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// The kernel's id.
    pub(crate) tid: u32,
    /// Its name. A clone allocates nothing.
    pub(crate) name: Arc<str>,
}

impl Thread {
    /// Returns the calling thread.
    pub(crate) fn current() -> Self {
        let tid = tid();
        let name = if tid == id() { "main".to_owned() } else { thread_name() };
        Self { tid, name: name.into() }
    }
}

/// Returns the calling thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// The longest thread name that the kernel keeps.
const SYSTEM_NAME: usize = 15;

/// Returns the thread's name: the kernel's, or Rust's if the kernel's may be cut off.
///
/// The kernel is asked first. `thread::current` makes the start of a thread abort the process if the standard
/// library is still setting that thread up, and a signal handler that records can call this function then.
/// Such a thread still has its parent's name, which hardly ever has exactly this length.
fn thread_name() -> String {
    let system = system_name();
    if system.len() < SYSTEM_NAME
        || std::fs::read_to_string("/proc/self/comm").is_ok_and(|c| c.trim_end() == system)
    {
        return system;
    }
    let current = std::thread::current();
    current.name().filter(|name| name.starts_with(&system)).map_or(system, str::to_owned)
}

/// Returns the kernel's name of the thread: at most 15 bytes.
fn system_name() -> String {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, with a NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}

/// Blocks all signals for this thread until it is dropped. A thread that is started meanwhile never gets a
/// signal.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut before = no_signals();
        block_all(&mut before);
        Self(before)
    }

    /// Calls `f`, which may run code of the program, with the signals unblocked as before.
    pub(crate) fn without<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct Blocked<'b>(&'b mut libc::sigset_t);
        impl Drop for Blocked<'_> {
            fn drop(&mut self) {
                block_all(self.0);
            }
        }
        restore(&self.0);
        let _blocked = Blocked(&mut self.0);
        f()
    }
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid.
    unsafe { std::mem::zeroed() }
}

fn block_all(before: &mut libc::sigset_t) {
    let mut all = no_signals();
    // SAFETY: both sets are valid for the calls.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut *before);
    }
}

fn restore(before: &libc::sigset_t) {
    // SAFETY: the set comes from pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const *before, std::ptr::null_mut()) };
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        restore(&self.0);
    }
}

/// Returns how many files this process may have open.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one `rlimit`. If the call fails, the limit stays 0.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// Returns the id of this process.
pub(crate) fn id() -> u32 {
    std::process::id()
}

/// Whether the process has rights that its caller does not have: it was started from a setuid or setgid file,
/// or from a file with capabilities. Stays true if the process drops the rights.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the argument is a number. The kernel always passes AT_SECURE; the call returns 0 if it does
    // not.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the user whose rights the process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Returns a random number of this process, the same at each call; never 0.
pub(crate) fn random_id() -> u64 {
    static RANDOM_ID: AtomicU64 = AtomicU64::new(0);
    match RANDOM_ID.load(Ordering::Relaxed) {
        0 => {
            // No lock, which a fork could lose and an event in a signal handler would wait for. If several
            // threads get here at once, the first number stored counts.
            let fresh = u64::from_le_bytes(random()) | 1;
            RANDOM_ID
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|first| first, |_| fresh)
        }
        id => id,
    }
}

/// Returns the uuid of the process's track.
pub(crate) fn track_uuid() -> TrackUuid {
    uuid::track_uuid(random_id())
}

/// Returns random bytes. They derive from pid and time if the system has no randomness yet.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    // SAFETY: the pointer and the length describe `bytes`.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, libc::GRND_NONBLOCK) };
    if usize::try_from(n) != Ok(N) {
        let seed = clock::boottime() ^ u64::from(id()) << 40;
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = (uuid::track_uuid(seed.wrapping_add(i as u64)).0 >> 8) as u8;
        }
    }
    bytes
}

/// Writes to stderr in one call, without the standard library: in a forked child a thread that does not exist
/// may hold the lock of its stderr. A closed stderr is no error.
pub(crate) fn write_to_stderr(text: &str) {
    // SAFETY: the pointer and the length describe `text`.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Returns the file name of the executable.
pub(crate) fn name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the command line.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_rust_name_or_else_its_kernel_name() {
        let named = std::thread::Builder::new().name("a name of more than fifteen bytes".into());
        let named = named.spawn(Thread::current).unwrap().join().unwrap();
        assert_eq!(&*named.name, "a name of more than fifteen bytes");
        let unnamed = std::thread::spawn(Thread::current).join().unwrap();
        assert!(!unnamed.name.is_empty());
        assert_ne!(named.tid, unnamed.tid);
    }
}
