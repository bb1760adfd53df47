//! What the system says of this process and its threads.

#![allow(unsafe_code)] // gettid, prctl, getauxval and geteuid

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::base::{clock, uuid};

/// A thread, as a trace shows it.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// The kernel's id.
    pub(crate) tid: u32,
    /// Its Rust name, or the one the system knows. A clone allocates nothing.
    pub(crate) name: Arc<str>,
}

impl Thread {
    /// The thread that calls.
    pub(crate) fn current() -> Self {
        let tid = tid();
        let name = if tid == id() { "main".to_owned() } else { thread_name() };
        Self { tid, name: name.into() }
    }
}

/// The calling thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// The longest name that the kernel keeps of a thread.
const SYSTEM_NAME: usize = 15;

/// The thread's name: as the system knows it, and where that may be cut, as Rust does.
///
/// The system is asked first, for a reason: `thread::current` on a thread that the standard library is still
/// setting up makes its setting up abort the process, and a signal handler that records can bring us there. Such a
/// thread still has its parent's name, which is hardly ever of just this length.
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

/// The thread's name as the kernel has it: at most 15 bytes.
fn system_name() -> String {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, with a NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}

/// While it lives this thread gets no signal, and a thread that it starts none ever.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut before = no_signals();
        block_all(&mut before);
        Self(before)
    }

    /// Calls `f`, which may run code of the program, with the signals as they were before.
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
    // SAFETY: an all-zero set is a valid one.
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
    // SAFETY: the set is one that pthread_sigmask gave.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const *before, std::ptr::null_mut()) };
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        restore(&self.0);
    }
}

pub(crate) fn id() -> u32 {
    std::process::id()
}

/// Whether the process has rights that its caller has not: it was started by a setuid or setgid program or
/// one with file capabilities. Stays true when the process gives the rights up.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: takes a number. The kernel always passes AT_SECURE; 0 is also the answer where it does not.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The user whose rights the process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// A random number that is this process's own; never 0.
pub(crate) fn uuid() -> u64 {
    static UUID: AtomicU64 = AtomicU64::new(0);
    match UUID.load(Ordering::Relaxed) {
        0 => {
            // Without a lock, which a fork could lose and a signal handler's event would wait for: the first one counts.
            let fresh = u64::from_le_bytes(random()) | 1;
            UUID.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|uuid| uuid, |_| fresh)
        }
        uuid => uuid,
    }
}

/// The process's track.
pub(crate) fn track_uuid() -> u64 {
    uuid::uuid(uuid())
}

/// Random bytes; from the pid and the time where the system has none to give.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    // SAFETY: the pointer and the length describe `bytes`.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, libc::GRND_NONBLOCK) };
    if usize::try_from(n) != Ok(N) {
        let seed = clock::boottime() ^ u64::from(id()) << 40;
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = (uuid::uuid(seed.wrapping_add(i as u64)) >> 8) as u8;
        }
    }
    bytes
}

/// Writes to stderr, in one call, and not through the standard library: in a forked child a thread that does not exist may hold the
/// lock of its stderr. A closed stderr is no error.
pub(crate) fn write_to_stderr(text: &str) {
    // SAFETY: the pointer and the length describe `text`.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// The executable's file name.
pub(crate) fn name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// The command line.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_thread_has_its_name_and_an_unnamed_one_the_systems() {
        let named = std::thread::Builder::new().name("a name of more than fifteen bytes".into());
        let named = named.spawn(Thread::current).unwrap().join().unwrap();
        assert_eq!(&*named.name, "a name of more than fifteen bytes");
        let unnamed = std::thread::spawn(Thread::current).join().unwrap();
        assert!(!unnamed.name.is_empty());
        assert_ne!(named.tid, unnamed.tid);
    }
}
