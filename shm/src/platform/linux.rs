//! Linux.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use super::posix::*;
use crate::platform::{Namespaces, Shown};

/// Returns the directory for the files of regions.
pub(crate) fn directory() -> PathBuf {
    "/dev/shm".into()
}

/// Returns a random number.
pub(crate) fn random() -> io::Result<u64> {
    let mut random = [0u8; 8];
    // SAFETY: the pointer and the length describe `random`.
    let n = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    if n == 8 { Ok(u64::from_le_bytes(random)) } else { Err(io::Error::last_os_error()) }
}

/// Creates a file without a name, in memory.
pub(crate) fn memory_file() -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a NUL-terminated literal.
    let fd = unsafe { libc::memfd_create(c"hairline".as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, and only this function has the descriptor.
    above_stderr(unsafe { File::from_raw_fd(fd) })
}

/// Fixes the length of a file of [`memory_file`], also for a process that opens it by `/proc`. A shorter file
/// would make a store of this process a SIGBUS.
pub(crate) fn seal_length(file: &File) {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: a call on an open descriptor.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
}

/// Allocates the pages of a part of a mapping, and makes them present.
///
/// # Errors
/// If the system has no more memory. The error is `InvalidInput` if the system cannot do this step by step
/// (kernels before 5.14): then [`reserve`] allocates the whole file.
pub(crate) fn populate(start: NonNull<u8>, len: usize) -> io::Result<()> {
    // SAFETY: populating changes no byte.
    let done = unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Allocates a part of a file.
pub(crate) fn reserve(file: &File, at: usize, len: usize) -> io::Result<()> {
    let of = |n: usize| libc::off_t::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    // SAFETY: a call on an open descriptor.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, of(at)?, of(len)?) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives whole pages of a mapping back to the system, and puts zeroed private memory in their place.
///
/// The pages are replaced before they are freed. If they were freed while mapped, a late store would need
/// a new page of the full file system.
///
/// # Safety
/// The range is whole pages of a mapping of the caller. The process has no reference to a byte in it that
/// must not become zero.
pub(crate) unsafe fn release(start: NonNull<u8>, len: usize) {
    // SAFETY: by the contract. `mremap` of 0 bytes makes a second mapping of the same pages, which only this
    // function knows, and which it unmaps again.
    unsafe {
        let alias = libc::mremap(start.as_ptr().cast(), 0, len, libc::MREMAP_MAYMOVE);
        let is_replaced = replace_by_private(start, len);
        if alias != libc::MAP_FAILED {
            if is_replaced {
                libc::madvise(alias, len, libc::MADV_REMOVE);
            }
            libc::munmap(alias, len);
        }
    }
}

/// Gives whole pages of private memory back to the system. They have zeros afterwards. Returns false if the
/// system refuses that.
///
/// # Safety
/// As [`release`], for memory that no file is behind.
pub(crate) unsafe fn release_private(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: by the contract.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_DONTNEED) == 0 }
}

/// Lets a fork wipe a whole mapping of [`map_private`], if the kernel can (from 4.14 on). Otherwise a child
/// relies on the fork handlers.
pub(crate) fn wipe_on_fork(mapping: NonNull<u8>, len: usize) {
    // SAFETY: the advice changes no byte in this process.
    unsafe { libc::madvise(mapping.as_ptr().cast(), len, libc::MADV_WIPEONFORK) };
}

/// Replaces a mapping by zeroed private memory, in one step for all threads. Returns whether the system did
/// so.
///
/// # Safety
/// As [`release`].
pub(crate) unsafe fn replace_by_private(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: by the contract.
    unsafe { replace(start, len, libc::MAP_NORESERVE) }
}

/// Makes all threads of this process pass a fence during the call. The kernel interrupts those that run.
///
/// Returns `false` if the system cannot do that (Linux before 4.14, a seccomp filter).
pub(crate) fn fence_all_threads() -> bool {
    // SAFETY: touches no memory of this process.
    let barrier = |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
    // The kernel refuses it until the process is registered. That takes milliseconds if the process has
    // threads, so it is done at the first use.
    barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || barrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

/// Returns the namespaces of this process. They are right also if `/proc` is that of another pid namespace:
/// the kernel itself resolves `self` and these links.
pub(crate) fn namespaces() -> Namespaces {
    let inode = |name: &str| std::fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |m| m.ino());
    Namespaces { pids: inode("pid"), time: inode("time") }
}

/// Whether the pids in `/proc` are those of this process's namespace. `unshare --pid` alone keeps the `/proc`
/// of the parent namespace, in which the same pid is another process.
pub(crate) fn shows_own_pids() -> bool {
    let own = std::process::id().to_string();
    let Ok(status) = std::fs::read("/proc/self/status") else { return false };
    // The pid of this process in the namespace of `/proc`, and in each namespace from there to its own. So a
    // single number is of its own namespace. If `/proc` is of another one, the first number can equal the
    // own pid by chance.
    let status = String::from_utf8_lossy(&status);
    match status.lines().find_map(|line| line.strip_prefix("NSpid:")) {
        Some(pids) => pids.trim() == own,
        // Linux before 4.1.
        None => std::fs::read_link("/proc/self").is_ok_and(|pid| pid.as_os_str() == &*own),
    }
}

/// Whether the file is known to belong to the user of this process. Only such files are trusted.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    super::posix::is_own(metadata) && is_one_user(metadata.uid())
}

/// Whether `number` stands for one user: not for all those without a number in this user namespace.
pub(crate) fn is_one_user(number: u32) -> bool {
    number != overflow_user() || knows_all_users()
}

/// Returns the number that stands for all users without one. It is read once: it is asked for with each file,
/// and on threads that open as few files as they can.
fn overflow_user() -> u32 {
    const DEFAULT: u32 = 65534;
    /// No lock, which a fork could lose. 0 before the first read.
    static READ: AtomicU32 = AtomicU32::new(0);
    match READ.load(Ordering::Relaxed) {
        0 => {
            let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
            let overflow = text.ok().and_then(|number| number.trim().parse().ok()).unwrap_or(DEFAULT);
            READ.store(overflow, Ordering::Relaxed);
            overflow
        }
        known => known,
    }
}

/// Whether each user of the machine has a number in this process's user namespace.
fn knows_all_users() -> bool {
    match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) => {
            // A line has the first number here, the first one outside, and the length of the range. The kernel
            // refuses ranges that overlap.
            let users =
                map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
            users.sum::<u64>() >= u64::from(u32::MAX) // the last number is no user
        }
        // A kernel without user namespaces has no such file.
        Err(e) => e.kind() == io::ErrorKind::NotFound && std::fs::exists("/proc/self/stat").unwrap_or(false),
    }
}

/// Returns how `/proc` shows this process. The start is field 22 of `/proc/self/stat`, in clock ticks since
/// boot. The kernel adds the offset of the reader's time namespace.
pub(crate) fn shown_self() -> Option<Shown> {
    shown_as("self")
}

/// Returns how `/proc` shows a process. `None` proves nothing: with `hidepid=2`, `/proc` hides the processes
/// of other users, and those that are not dumpable.
pub(crate) fn shown(pid: u32) -> Option<Shown> {
    shown_as(&pid.to_string())
}

fn shown_as(pid: &str) -> Option<Shown> {
    // The name of the command can have any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // It can have spaces and parentheses too, so count from the last ')'. Field 3 follows it.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(22 - 4)?.parse().ok()?;
    // A zombie has ended, unless only its first thread has.
    let has_ended = matches!(state, "Z" | "X") && threads(pid).is_some_and(|threads| threads <= 1);
    Some(Shown { has_ended, start })
}

fn threads(pid: &str) -> Option<usize> {
    std::fs::read_dir(format!("/proc/{pid}/task")).map(Iterator::count).ok()
}

/// Sleeps while the word has this value, for `longest` at most. A signal may end the sleep.
pub(crate) fn sleep_while(word: &AtomicU32, value: u32, longest: Duration) {
    #[allow(clippy::cast_possible_wrap, clippy::cast_lossless)] // some milliseconds; of other types elsewhere
    let longest = libc::timespec { tv_sec: longest.as_secs() as _, tv_nsec: longest.subsec_nanos() as _ };
    // SAFETY: the word and the time live during the call, and a futex of 32 bits is aligned like the atomic.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            &raw const longest,
        )
    };
}

/// Wakes all threads that sleep at the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word lives during the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            libc::c_int::MAX,
        )
    };
}

/// glibc and musl have it; `libc` does not declare it.
const PTHREAD_CANCEL_DISABLE: libc::c_int = 1;

// SAFETY: the declaration is that of POSIX.
unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Defers a `pthread_cancel` of the calling thread. Returns the state before.
pub(crate) fn defer_cancel() -> i32 {
    let mut before = PTHREAD_CANCEL_DISABLE;
    // SAFETY: the call writes `before`.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    before
}

/// Restores the state that [`defer_cancel`] has returned.
pub(crate) fn restore_cancel(before: i32) {
    let mut deferred = 0;
    // SAFETY: the call writes `deferred`. It is no cancellation point.
    unsafe { pthread_setcancelstate(before, &raw mut deferred) };
}
