//! Linux.

#![allow(unsafe_code)] // calls the system

use std::cell::UnsafeCell;
use std::ffi::{CStr, OsString};
use std::fs;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use hairline_formats::track_event::fields::clock as id;

use crate::on::base::platform::facts::Link;
pub(crate) use crate::on::base::platform::posix::*;

/// Returns `CLOCK_BOOTTIME` in ns.
#[inline(always)]
pub(crate) fn boottime() -> u64 {
    clock_time(libc::CLOCK_BOOTTIME)
}

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 6] {
    [
        (id::BOOTTIME, libc::CLOCK_BOOTTIME),
        (id::REALTIME, libc::CLOCK_REALTIME),
        (id::REALTIME_COARSE, libc::CLOCK_REALTIME_COARSE),
        (id::MONOTONIC, libc::CLOCK_MONOTONIC),
        (id::MONOTONIC_COARSE, libc::CLOCK_MONOTONIC_COARSE),
        (id::MONOTONIC_RAW, libc::CLOCK_MONOTONIC_RAW),
    ]
    .map(|(id, clock)| (id, clock_time(clock)))
}

/// Whether the kernel trusts the processor's counter. A kernel that finds the TSC unstable switches to
/// another clock source. The other sources in this list are derived from the counter.
pub(crate) fn trusts_counter() -> bool {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let trusted = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter"];
    source.map_or(true, |s| trusted.contains(&s.trim()))
}

/// Returns how many files this process may have open.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one `rlimit`. If the call fails, the limit stays 0.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    #[allow(clippy::useless_conversion)] // 32 bits on 32-bit systems
    limit.rlim_cur.into()
}

/// Returns the calling thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// Whether the calling thread is the first one of the process.
pub(crate) fn is_first_thread(tid: u32) -> bool {
    tid == std::process::id()
}

/// The longest thread name that the kernel keeps.
const SYSTEM_NAME: usize = 15;

/// Returns the thread's name: the kernel's, or Rust's if the kernel's may be cut off.
///
/// The kernel is asked first. `thread::current` makes the start of a thread abort the process if the standard
/// library is still setting that thread up, and a signal handler that records can call this function then.
/// Such a thread still has its parent's name, which hardly ever has exactly this length.
pub(crate) fn thread_name() -> String {
    let system = system_name();
    if system.len() < SYSTEM_NAME
        || fs::read_to_string("/proc/self/comm").is_ok_and(|c| c.trim_end() == system)
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

/// Starts a thread, without the standard library. All signals are blocked in it from the start.
pub(crate) fn spawn(name: &'static CStr, body: Body) -> io::Result<Thread> {
    start(Box::new(move || {
        set_thread_name(name);
        body();
    }))
}

/// Sets the name of the calling thread.
fn set_thread_name(name: &'static CStr) {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Whether the process has rights that its caller does not have: it was started from a setuid or setgid file,
/// or from a file with capabilities. Stays true if the process drops the rights.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the argument is a number. The kernel always passes AT_SECURE; the call returns 0 if it does
    // not.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Fills `bytes` with random ones. Returns false if the system has no randomness yet.
pub(crate) fn fill_randomly(bytes: &mut [u8]) -> bool {
    // SAFETY: the pointer and the length describe `bytes`.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    usize::try_from(n) == Ok(bytes.len())
}

/// Returns the bytes of memory in use.
pub(crate) fn rss() -> Option<u64> {
    // The files of the calling thread: those of the process are empty once its first thread has ended.
    let pages = |text: &str| text.split(' ').nth(1)?.parse::<u64>().ok();
    number_in("/proc/thread-self/statm", pages).map(|pages| pages * page_size())
}

/// Returns the number of threads.
pub(crate) fn threads() -> Option<u64> {
    // The program's name is in parentheses, and may contain some. `num_threads` is field 20.
    let threads = |text: &str| text.rsplit(") ").next()?.split(' ').nth(17)?.parse().ok();
    number_in("/proc/thread-self/stat", threads)
}

/// Returns the number of open files.
pub(crate) fn open_files() -> Option<u64> {
    // Without the one that lists them.
    let files = fs::read_dir("/proc/thread-self/fd").ok();
    files.map(|files| files.count().saturating_sub(1) as u64)
}

/// Returns the bytes read from disks and those written to disks.
pub(crate) fn disk_bytes() -> (Option<u64>, Option<u64>) {
    let of = |name: &'static str| {
        let number = move |text: &str| text.lines().find_map(|line| line.strip_prefix(name))?.parse().ok();
        number_in("/proc/self/io", number)
    };
    (of("read_bytes: "), of("write_bytes: "))
}

/// Returns the number that `find` finds in a file.
fn number_in(path: &str, find: impl FnOnce(&str) -> Option<u64>) -> Option<u64> {
    find(&fs::read_to_string(path).ok()?)
}

fn page_size() -> u64 {
    // SAFETY: takes a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// Takes those of the signals that are pending for this thread, which has blocked them.
fn consume(signals: &libc::sigset_t) {
    // SAFETY: the time is valid, and the null pointer asks for no details of the signal.
    unsafe {
        let at_once: libc::timespec = std::mem::zeroed();
        while libc::sigtimedwait(&raw const *signals, std::ptr::null_mut(), &raw const at_once) > 0 {}
    }
}

impl WriteSignalsBlocked {
    pub(crate) fn new() -> Self {
        Self::consuming_by(consume)
    }
}

/// Lets a signal handler wake a thread.
pub(crate) struct Waker(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: several threads may use a semaphore at the same time.
unsafe impl Sync for Waker {}

impl Waker {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Prepares the waker.
    ///
    /// # Safety
    /// Nothing uses it yet.
    pub(crate) unsafe fn start(&self) -> io::Result<()> {
        // SAFETY: by the contract.
        match unsafe { libc::sem_init(self.0.get().cast(), 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Wakes the thread. A signal handler may call this.
    ///
    /// # Safety
    /// [`start`](Self::start) has succeeded.
    pub(crate) unsafe fn wake(&self) {
        // SAFETY: by the contract.
        unsafe { libc::sem_post(self.0.get().cast()) };
    }

    /// Waits for a call of [`wake`](Self::wake).
    ///
    /// # Safety
    /// [`start`](Self::start) has succeeded.
    pub(crate) unsafe fn wait(&self) {
        // SAFETY: by the contract.
        while unsafe { libc::sem_wait(self.0.get().cast()) } != 0 {} // was interrupted
    }
}

/// Reads the link at `path`.
///
/// # Errors
/// If the link belongs to another user. Owner and target are read from one open descriptor, so no other
/// process can exchange the link in between.
pub(crate) fn read_link(path: &Path) -> io::Result<Link> {
    let mut options = OpenOptions::new();
    let link = match options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path) {
        Ok(link) => link,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Link::None),
        Err(e) => return Err(e),
    };
    let metadata = link.metadata()?;
    if !metadata.is_symlink() {
        return Ok(Link::None);
    }
    if let Some(refused) = refuse_link(&metadata) {
        return Err(refused);
    }
    // SAFETY: an all-zero value is valid, and the call writes it.
    let is_kernels = unsafe {
        let mut filesystem: libc::statfs = std::mem::zeroed();
        libc::fstatfs(link.as_raw_fd(), &raw mut filesystem) == 0
            && filesystem.f_type == libc::PROC_SUPER_MAGIC
    };
    if is_kernels {
        return Ok(Link::OfKernel);
    }
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the empty path names the open descriptor; pointer and length describe `target`.
    let len =
        unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    target.truncate(len);
    Ok(Link::To(OsString::from_vec(target).into()))
}

/// Opens the file at `name` if it is a regular one. Returns `None` for any other, also for a link, and does
/// not open it: the open of a FIFO or of a device can have an effect.
#[cfg(feature = "recovery")]
pub(crate) fn open_regular(name: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let seen = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(name)?;
    if !seen.metadata()?.is_file() {
        return Ok(None);
    }
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    // By its descriptor: another process may have put something else at the name meanwhile.
    match options.open(format!("/proc/self/fd/{}", seen.as_raw_fd())) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            // There is no `/proc`.
            let file = open_output(name, options)?;
            Ok((identity(&file)? == identity(&seen)?).then_some(file))
        }
        opened => opened.and_then(above_stderr).map(Some),
    }
}

/// Gives a complete file the mode that `open` gives a new file.
///
/// # Errors
/// If the mode cannot be changed.
pub(crate) fn open_to_others(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o666 & !umask()))
}

/// Returns the umask of the process. It comes from `/proc`, since umask(2) returns the mask only by changing
/// it, for all threads. Without `/proc` only the user can read the file.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// Returns the record lock by which a recovery marks the file that it has locked: on the first byte.
fn mark(kind: libc::c_int) -> libc::flock {
    // SAFETY: an all-zero value is valid.
    let mut mark: libc::flock = unsafe { std::mem::zeroed() };
    mark.l_type = kind as libc::c_short;
    mark.l_whence = libc::SEEK_SET as libc::c_short;
    mark.l_len = 1;
    mark
}

/// Whether a recovery has marked the file.
pub(crate) fn has_recovery_mark(file: &File) -> bool {
    let mut found = mark(libc::F_WRLCK);
    // SAFETY: a call on an open descriptor, which writes `found`.
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut found) };
    outcome == 0 && libc::c_int::from(found.l_type) != libc::F_UNLCK
}

/// Marks the file for a recovery, or removes the mark.
#[cfg(feature = "recovery")]
pub(crate) fn set_recovery_mark(file: &File, is_marked: bool) {
    let mark = mark(if is_marked { libc::F_RDLCK } else { libc::F_UNLCK });
    // SAFETY: a call on an open descriptor, which reads `mark`.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const mark) };
}
