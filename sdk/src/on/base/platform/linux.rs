//! Linux.

#![allow(unsafe_code)] // calls the system

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, CString, OsString, c_void};
use std::fs;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hairline_formats::track_event::fields::clock as id;
use hairline_shm::Uncancelled;

use crate::on::base::buffer::SpillingText;
use crate::on::base::memory::SharedText;
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

thread_local! {
    /// Whether this thread has a table of open files of its own.
    static HAS_OWN_FILES: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling thread a table of open files of its own, with only these. stdin, stdout and stderr are
/// `/dev/null` there. Returns false if the system refuses that (before Linux 5.9).
pub(crate) fn own_files(numbers: &[i32]) -> bool {
    let mut kept: Vec<u32> = numbers.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
    kept.sort_unstable();
    kept.dedup();
    let close = |from: u32, to: u32, flags: libc::c_uint| {
        // SAFETY: takes numbers. What they lead to is closed in the new table of this thread alone.
        unsafe { libc::syscall(libc::SYS_close_range, from, to, flags) == 0 }
    };
    // The first call makes the table, without the files of its range. No other thread sees what it closes.
    if !close(kept.last().map_or(0, |last| last + 1), u32::MAX, libc::CLOSE_RANGE_UNSHARE) {
        return false;
    }
    let mut from = 0;
    for number in kept {
        if from < number {
            close(from, number - 1, 0);
        }
        from = number + 1;
    }
    for _ in 0..=libc::STDERR_FILENO {
        // SAFETY: a literal. The numbers are the lowest ones, which are free.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    }
    HAS_OWN_FILES.set(true);
    true
}

/// Whether the calling thread has a table of open files of its own.
pub(crate) fn has_own_files() -> bool {
    HAS_OWN_FILES.get()
}

/// Writes to the stderr of the process. See [`write_to`].
pub(crate) fn write_to_stderr(text: &str) {
    let _uncancelled = Uncancelled::new();
    if !has_own_files() {
        return write_to(libc::STDERR_FILENO, text);
    }
    let stderr = stderr_of_process();
    if stderr >= 0 {
        write_to(stderr, text);
        close(stderr);
    }
}

/// Returns a copy of the process's stderr for a thread with a table of its own; negative if there is none.
fn stderr_of_process() -> libc::c_int {
    // SAFETY: takes numbers and a literal.
    unsafe {
        // A filter of a service may end the process at a call of debuggers, which the second one is.
        let process = if has_filter() { -1 } else { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
        let process = process as libc::c_int;
        if process >= 0 {
            let copy = libc::syscall(libc::SYS_pidfd_getfd, process, libc::STDERR_FILENO, 0);
            close(process);
            if copy >= 0 {
                return copy as libc::c_int;
            }
        }
        // As in a container, where the first way needs a right. The path is that of the first thread's file, and
        // cannot lead to a socket.
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        libc::open(c"/proc/self/fd/2".as_ptr(), flags)
    }
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
pub(crate) fn thread_name() -> SharedText {
    let name = own_name();
    let system = &name[..len_of(&name)];
    if system.len() == SYSTEM_NAME && !is_name_of_process(system) {
        let current = std::thread::current();
        if let Some(name) = current.name().filter(|name| name.as_bytes().starts_with(system)) {
            return name.into();
        }
    }
    lossy(system)
}

/// Returns the text of a name, with a mark where it is no UTF-8.
fn lossy(name: &[u8]) -> SharedText {
    let mut text = SpillingText::<48>::new(); // a mark has three bytes
    for chunk in name.utf8_chunks() {
        text.push(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push("\u{fffd}");
        }
    }
    text.as_str().into()
}

/// Returns the kernel's name of the calling thread, with a NUL behind it.
fn own_name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, with a NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

fn len_of(name: &[u8]) -> usize {
    name.iter().position(|byte| *byte == 0).unwrap_or(name.len())
}

/// Returns the kernel's name of the calling thread.
pub(crate) fn system_name() -> Option<SharedText> {
    let name = own_name();
    Some(lossy(&name[..len_of(&name)]))
}

/// Returns the kernel's name of a thread of this process; `None` if there is no such thread.
pub(crate) fn system_name_of(tid: u32) -> Option<SharedText> {
    let path = CString::new(format!("/proc/self/task/{tid}/comm")).ok()?;
    let (name, len) = read_name(&path)?;
    Some(lossy(&name[..len]))
}

/// Reads a name from a file, which ends it with a newline. Returns the length too.
fn read_name(path: &CStr) -> Option<([u8; 32], usize)> {
    let mut name = [0; 32];
    let _uncancelled = Uncancelled::new();
    // SAFETY: a terminated path, and a buffer of that length.
    let len = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let len = libc::read(file, name.as_mut_ptr().cast(), name.len());
        libc::close(file);
        len
    };
    let len = usize::try_from(len).ok()?;
    Some((name, name[..len].strip_suffix(b"\n").map_or(len, <[u8]>::len)))
}

/// Whether this is the name of the process's first thread, which others inherit.
fn is_name_of_process(name: &[u8]) -> bool {
    read_name(c"/proc/self/comm").is_some_and(|(of_process, len)| of_process[..len] == *name)
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
    let _uncancelled = Uncancelled::new();
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
    let count = |path: PathBuf| fs::read_dir(path.join("fd")).ok().map(|files| files.count() as u64);
    if !has_own_files() {
        // Without the one that lists them.
        return count("/proc/thread-self".into()).map(|count| count.saturating_sub(1));
    }
    // Of the first thread, or of another one if that has ended.
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|thread| thread.path());
    let own = format!("/proc/self/task/{}", tid());
    let others = threads.filter(|thread| *thread != Path::new(&own));
    std::iter::once("/proc/self".into())
        .chain(others)
        .find_map(|thread| count(thread).filter(|count| *count > 0))
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
    status("Umask:").and_then(|mask| u32::from_str_radix(&mask, 8).ok()).unwrap_or(0o077)
}

/// Whether a filter of system calls may end the process. `prctl` could say so too, but a filter may end the
/// process for that.
fn has_filter() -> bool {
    status("Seccomp:").is_none_or(|mode| mode != "0")
}

/// Returns what the kernel says of the calling thread.
fn status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
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

/// Whether this process has a lock on the file, by another open file than this one.
pub(crate) fn has_locked(file: &File) -> bool {
    // A line: `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`. The device is not always that of `stat`.
    let Ok(inode) = identity(file).map(|identity| identity.inode.to_string()) else { return false };
    let pid = std::process::id().to_string();
    let is_own = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(1) == Some("FLOCK")
            && fields.nth(2) == Some(&pid)
            && fields.next().and_then(|file| file.rsplit(':').next()) == Some(&inode)
    };
    fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.lines().any(is_own))
}

/// Returns the time at which this process was started, on the clock of [`boottime`], or up to 10 ms earlier.
pub(crate) fn process_start() -> Option<u64> {
    // The program's name is in parentheses, and may contain some. `starttime` is field 22.
    let ticks = |text: &str| text.rsplit(") ").next()?.split(' ').nth(19)?.parse::<u64>().ok();
    let per_second = sysconf(libc::_SC_CLK_TCK).max(1);
    Some(number_in("/proc/self/stat", ticks)?.saturating_mul(1_000_000_000 / per_second))
}

/// Marks the file for a recovery, or removes the mark.
#[cfg(feature = "recovery")]
pub(crate) fn set_recovery_mark(file: &File, is_marked: bool) {
    let mark = mark(if is_marked { libc::F_RDLCK } else { libc::F_UNLCK });
    // SAFETY: a call on an open descriptor, which reads `mark`.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const mark) };
}

/// The code that is loaded. None is unloaded as long as this exists.
///
/// In a forked child it is only what memory can be read: a thread that does not exist there may hold the C
/// library's lock. So a child notices what was unloaded before, not what another thread unloads meanwhile.
pub(crate) struct Modules {
    /// How often code was unloaded; `None` in a forked child.
    unloads: Option<u64>,
    /// The segment or page that was found last: nearly always it has the next address too.
    last: Cell<(usize, usize)>,
}

/// Bytes of the smallest pages that this system has.
const PAGE: usize = 4096;

impl Modules {
    fn with_unloads(unloads: Option<u64>) -> Self {
        Self { unloads, last: Cell::new((0, 0)) }
    }

    /// Returns the code that is loaded in a forked child.
    pub(crate) fn in_child() -> Self {
        Self::with_unloads(None)
    }

    /// Returns how often code was unloaded, where that is known.
    pub(crate) fn unloads(&self) -> Option<u64> {
        self.unloads
    }

    /// Whether a part of a module is at the address, of so many bytes.
    pub(crate) fn contain(&self, address: usize, bytes: usize) -> bool {
        let is_in = |(from, len): (usize, usize)| {
            address.checked_sub(from).is_some_and(|at| at < len && bytes <= len - at)
        };
        if is_in(self.last.get()) {
            return true;
        }
        if self.unloads.is_none() {
            let Some(end) = address.checked_add(bytes) else { return false };
            let from = address & !(PAGE - 1);
            let is_loaded = (from..end).step_by(PAGE).all(is_readable);
            self.last.set(if is_loaded { (from, end.next_multiple_of(PAGE) - from) } else { (0, 0) });
            return is_loaded;
        }
        // The lock is held by this thread already, which may take it again.
        iterate(&mut |module, _| {
            let found = segments(module).find(|segment| is_in(*segment));
            found.inspect(|found| self.last.set(*found)).is_some()
        });
        is_in(self.last.get())
    }
}

/// Whether the memory at an address, a multiple of 8, can be read.
fn is_readable(address: usize) -> bool {
    // The kernel reads the set of signals before it finds that there is no such operation.
    const NO_OPERATION: libc::c_int = !0;
    let nowhere = std::ptr::null_mut::<c_void>();
    // SAFETY: the kernel writes nowhere, and fails where it cannot read. No signal is blocked or unblocked.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_OPERATION, address, nowhere, size_of::<u64>()) };
    io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Calls `f` once, while no code is unloaded. `f` does not panic.
pub(crate) fn with_modules(f: &mut dyn FnMut(&Modules)) {
    let mut is_done = false;
    iterate(&mut |module, size| {
        // Older systems have no such field.
        let has_unloads = size >= std::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) + size_of::<u64>();
        f(&Modules::with_unloads(Some(if has_unloads { module.dlpi_subs } else { 0 })));
        is_done = true;
        true
    });
    if !is_done {
        f(&Modules { unloads: Some(0), last: Cell::new((0, usize::MAX)) }); // the C library knows no module
    }
}

/// Calls `f` for each loaded module, until it returns true, under the lock that the C library takes to unload
/// one. The second argument is the size of the first.
fn iterate(f: &mut dyn FnMut(&libc::dl_phdr_info, usize) -> bool) {
    type Visitor<'f> = &'f mut dyn FnMut(&libc::dl_phdr_info, usize) -> bool;
    unsafe extern "C" fn visit(
        module: *mut libc::dl_phdr_info,
        size: libc::size_t,
        visitor: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: both are valid during the call: the C library's, and the visitor below.
        let (module, visitor) = unsafe { (&*module, &mut *visitor.cast::<Visitor<'_>>()) };
        libc::c_int::from(visitor(module, size))
    }
    let mut visitor: Visitor<'_> = f;
    // SAFETY: `visit` gets the visitor that it expects, during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut visitor).cast()) };
}

/// The segments of a module: their addresses and lengths.
fn segments(module: &libc::dl_phdr_info) -> impl Iterator<Item = (usize, usize)> {
    // SAFETY: the C library's list of that length.
    let headers = unsafe { std::slice::from_raw_parts(module.dlpi_phdr, usize::from(module.dlpi_phnum)) };
    let base = module.dlpi_addr as usize;
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    loaded.map(move |header| (base.wrapping_add(header.p_vaddr as usize), header.p_memsz as usize))
}
