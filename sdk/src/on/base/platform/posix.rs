//! The functions that `linux.rs` and `unix.rs` share.

#![allow(unsafe_code)] // calls the system

use std::ffi::{OsStr, OsString, c_void};
use std::fs;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use hairline_shm::is_one_user;

use crate::on::base::platform::facts::{Identity, Lock, Machine, Resources};

/// Whether sessions record on this platform.
pub(crate) const CAN_RECORD: bool = true;

/// The signals that end a process, and by default end it.
pub(crate) const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Returns the time of a system clock in ns; 0 if the system does not have the clock.
#[inline(always)]
#[allow(clippy::unnecessary_cast)] // 32 bits on some systems
pub(crate) fn clock_time(clock: libc::clockid_t) -> u64 {
    // SAFETY: integers, for which zeros are valid.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is a valid timespec. For an unknown clock the call fails and leaves it unchanged.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Returns the CPU time of this thread in ns.
pub(crate) fn thread_time() -> u64 {
    clock_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the minutes east of Greenwich.
#[allow(clippy::useless_conversion)] // 32 bits on some systems
pub(crate) fn timezone_off_mins() -> i32 {
    let now = libc::time_t::try_from(clock_time(libc::CLOCK_REALTIME) / 1_000_000_000).unwrap_or(0);
    // SAFETY: an all-zero tm is valid, and both pointers are to live locals.
    let offset = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut local);
        local.tm_gmtoff
    };
    i32::try_from(offset / 60).unwrap_or(0)
}

/// Returns a description of the machine.
pub(crate) fn machine() -> Machine {
    // SAFETY: an all-zero utsname is valid, and `uname` writes terminated text into it.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        name
    };
    let page_size = sysconf(libc::_SC_PAGESIZE);
    Machine {
        host: text(&name.nodename),
        sysname: text(&name.sysname),
        release: text(&name.release),
        version: text(&name.version),
        machine: text(&name.machine),
        page_size,
        processors: sysconf(libc::_SC_NPROCESSORS_ONLN),
        ram_bytes: sysconf(libc::_SC_PHYS_PAGES).saturating_mul(page_size),
    }
}

/// Returns the text of a fixed-size field, up to its first zero.
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a value of `sysconf`; 0 if the system does not know it.
pub(super) fn sysconf(name: libc::c_int) -> u64 {
    // SAFETY: argument and result are numbers.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
}

/// Returns what the process has used.
#[allow(clippy::useless_conversion)] // 32 bits on some systems
pub(crate) fn resources() -> Option<Resources> {
    // SAFETY: a struct of integers, for which 0 is a value.
    let mut all: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `rusage`.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut all) } != 0 {
        return None;
    }
    let number = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    let time = |t: libc::timeval| {
        u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_usec).unwrap_or(0) * 1000
    };
    Some(Resources {
        cpu: Some(time(all.ru_utime) + time(all.ru_stime)),
        faults: Some(number(all.ru_minflt) + number(all.ru_majflt)),
        major_faults: Some(number(all.ru_majflt)),
        waits: Some(number(all.ru_nvcsw)),
        preemptions: Some(number(all.ru_nivcsw)),
    })
}

/// Returns the user whose rights the process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Writes to stderr in one call, without the standard library: in a forked child a thread that does not exist
/// may hold the lock of its stderr. A closed stderr is no error.
pub(super) fn write_to(stderr: libc::c_int, text: &str) {
    // SAFETY: the pointer and the length describe `text`.
    unsafe { libc::write(stderr, text.as_ptr().cast(), text.len()) };
}

/// Calls `handler` when the process returns from `main` or calls `exit`, and when this library is unloaded.
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: a function of this library without arguments. The C library calls it before it unloads this
    // library.
    unsafe { libc::atexit(handler) };
}

/// Calls these handlers at each fork: before it, in the parent, in the child.
pub(crate) fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: functions of this library without arguments. They stay loaded as long as it does.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Creates a key whose `destructor` runs at the end of each thread that has a value for it.
pub(crate) fn create_key(destructor: extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    // SAFETY: the call writes the key. The destructor is a function of this library, which deletes the key
    // before it is unloaded.
    let outcome = unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) };
    #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)] // its type differs
    let key = u32::try_from(key).ok()?;
    (outcome == 0).then_some(key)
}

/// Sets this thread's value for the key. Returns whether that succeeded.
pub(crate) fn set_value(key: u32, value: *const c_void) -> bool {
    // SAFETY: the caller has created the key. Only its destructor dereferences the value, on this thread.
    unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, value) == 0 }
}

/// Deletes a key. Its destructor is not called any more.
pub(crate) fn delete_key(key: u32) {
    // SAFETY: the caller has created the key.
    unsafe { libc::pthread_key_delete(key as libc::pthread_key_t) };
}

/// A thread of the C library.
#[derive(Debug)]
pub(crate) struct Thread(libc::pthread_t);

pub(super) type Body = Box<dyn FnOnce() + Send>;

/// Starts a thread, without the standard library. All signals are blocked in it from the start.
pub(super) fn start(body: Body) -> io::Result<Thread> {
    let argument = Box::into_raw(Box::new(body));
    // SAFETY: an integer or a pointer, for which zeros are valid.
    let mut thread: libc::pthread_t = unsafe { std::mem::zeroed() };
    let outcome = {
        let _blocked = SignalsBlocked::new();
        // SAFETY: the call writes `thread`; `run` takes ownership of the box if the thread starts.
        unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), run, argument.cast()) }
    };
    if outcome != 0 {
        // SAFETY: no thread was started, so this call still owns the box.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(outcome));
    }
    Ok(Thread(thread))
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `spawn` has passed to this thread alone.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    // A panic may not leave an extern "C" function. Each body also catches its own panics.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(*body));
    std::ptr::null_mut()
}

impl Thread {
    /// Waits until the thread has ended.
    pub(crate) fn join(self) {
        // SAFETY: a thread that was neither joined nor detached.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }

    pub(crate) fn detach(self) {
        // SAFETY: as in `join`.
        unsafe { libc::pthread_detach(self.0) };
    }
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

/// Blocks SIGPIPE and SIGXFSZ for this thread until it is dropped. A write of this thread then fails instead
/// of ending the process.
pub(crate) struct WriteSignalsBlocked {
    before: libc::sigset_t,
    /// The blocked signals that were not pending before.
    ours: libc::sigset_t,
    /// Takes those of the signals that are pending for this thread.
    consume: fn(&libc::sigset_t),
}

impl WriteSignalsBlocked {
    pub(super) fn consuming_by(consume: fn(&libc::sigset_t)) -> Self {
        let (mut both, mut before, mut pending, mut ours) =
            (no_signals(), no_signals(), no_signals(), no_signals());
        // SAFETY: all sets are valid for the calls.
        unsafe {
            libc::sigemptyset(&raw mut both);
            libc::sigemptyset(&raw mut ours);
            libc::sigpending(&raw mut pending);
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::sigaddset(&raw mut both, signal);
                if libc::sigismember(&raw const pending, signal) == 0 {
                    libc::sigaddset(&raw mut ours, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const both, &raw mut before);
        }
        Self { before, ours, consume }
    }
}

impl Drop for WriteSignalsBlocked {
    fn drop(&mut self) {
        (self.consume)(&self.ours);
        restore(&self.before);
    }
}

/// The signals that [`handle_ending`] blocks while its handler runs. They have no meaning but that another
/// copy of this crate knows the handler by them.
const MARK: [libc::c_int; 6] = [37, 41, 43, 47, 53, 59];

/// Installs `handler` for a signal that ends the process, if the program does not handle it, or if another
/// copy of this crate does: calls `keep` with the action of that copy, before the handler can run. A second
/// signal ends the process at once.
pub(crate) fn handle_ending(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    keep: impl FnOnce(Action),
) -> io::Result<()> {
    let (before, own) = (action_of(signal)?, handler as *const () as usize);
    let is_marked = (1..=64).all(|n| {
        // SAFETY: the set comes from `sigaction`.
        let is_blocked = unsafe { libc::sigismember(&raw const before.sa_mask, n) == 1 };
        is_blocked == MARK.contains(&n)
    });
    match before.sa_sigaction {
        libc::SIG_DFL => {}
        handler if is_marked && handler != own => keep(Action(before)),
        _ => return Ok(()),
    }
    set_action(signal, own, libc::SA_RESTART | libc::SA_RESETHAND, &MARK)
}

/// Ends the process by the signal's default action.
pub(crate) fn die_of(signal: libc::c_int) {
    // SAFETY: the arguments are numbers and a set on this stack. The signal is delivered when this thread
    // unblocks it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        let mut this = no_signals();
        libc::sigemptyset(&raw mut this);
        libc::sigaddset(&raw mut this, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const this, std::ptr::null_mut());
    }
}

pub(crate) use libc::siginfo_t as SignalInfo;

/// A handler with three arguments.
pub(crate) type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);

/// The action of a signal.
pub(crate) struct Action(libc::sigaction);

impl Action {
    /// Calls the handler of the action, if it has one.
    pub(crate) fn call(&self, signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        match self.0.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {}
            handler if self.0.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: `sigaction` returned it as a handler with three arguments.
                let handler: Handler = unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            }
            handler => {
                // SAFETY: `sigaction` returned it as a handler with one argument.
                let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }

    /// Makes this the action of the signal again, and sends the signal to this process.
    pub(crate) fn pass_on(&self, signal: libc::c_int) {
        // SAFETY: the action comes from `sigaction`, and the other arguments are numbers.
        unsafe {
            libc::sigaction(signal, &raw const self.0, std::ptr::null_mut());
            libc::kill(libc::getpid(), signal);
        }
    }
}

/// Installs `handler` for a signal. Calls `keep` with the action that was there, before the handler can run;
/// not if the handler is installed already.
///
/// # Errors
/// If a program may not handle the signal, or could not return from its handler.
pub(crate) fn handle(signal: libc::c_int, handler: Handler, keep: impl FnOnce(Action)) -> io::Result<()> {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
    let own = handler as *const () as usize;
    let before = action_of(signal)?;
    if faults.contains(&signal) {
        // The return from the handler would raise the signal again.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if before.sa_sigaction != own {
        keep(Action(before));
        set_action(signal, own, libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK, &[])?;
    }
    Ok(())
}

fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: an all-zero sigaction is valid, and the call overwrites it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        match libc::sigaction(signal, std::ptr::null(), &raw mut action) {
            0 => Ok(action),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_action(
    signal: libc::c_int,
    handler: usize,
    flags: libc::c_int,
    blocked: &[libc::c_int],
) -> io::Result<()> {
    // SAFETY: the sigaction is valid. Its handler is a function of this library with the arguments that
    // `flags` states.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        for other in blocked {
            libc::sigaddset(&raw mut action.sa_mask, *other);
        }
        match libc::sigaction(signal, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Tries to lock the file.
pub(crate) fn try_lock(file: &File) -> Lock {
    // SAFETY: a call on an open descriptor.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Lock::Got,
        _ if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => Lock::Taken,
        _ => Lock::Impossible,
    }
}

/// Unlocks the file. Without effect if this process does not have it locked.
pub(crate) fn unlock(file: &File) {
    // SAFETY: a call on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// Returns the number of the open file in this process.
pub(crate) fn number_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// Closes an open file of the parent, in a forked child.
pub(crate) fn close(number: i32) {
    // SAFETY: the parent opened it: `number_of`, or an event of the kernel. Its owner does not exist in this
    // process, so no code uses or drops it here.
    unsafe { libc::close(number) };
}

/// Returns the file with a descriptor above those of stdin, stdout and stderr. A program may have closed
/// these. Then the lowest free descriptor is one of them, and what the program prints would get into the
/// file.
pub(super) fn above_stderr(file: File) -> io::Result<File> {
    // The standard library copies a descriptor to one above these three.
    if file.as_raw_fd() > libc::STDERR_FILENO { Ok(file) } else { file.try_clone() }
}

/// Opens the file at `name` for writing. Follows no link, and does not wait for the reader of a FIFO.
pub(crate) fn open_output(name: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    options.custom_flags(flags).open(name).and_then(above_stderr)
}

/// Opens the file that the link leads to for writing. Does not wait for the reader of a FIFO.
pub(crate) fn open_through(link: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(link).and_then(above_stderr)
}

/// Whether the error is that of [`refuse_link`].
#[cfg(feature = "recovery")]
pub(crate) fn is_refused_link(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::PermissionDenied && e.raw_os_error().is_none()
}

/// Whether [`open_output`] has found a link.
pub(crate) fn is_link(e: &io::Error) -> bool {
    e.raw_os_error() == Some(libc::ELOOP)
}

/// Whether [`open_output`] has found a FIFO without a reader.
pub(crate) fn has_no_reader(e: &io::Error) -> bool {
    e.raw_os_error() == Some(libc::ENXIO)
}

/// Returns the error for too many links.
pub(crate) fn too_many_links() -> io::Error {
    io::Error::from_raw_os_error(libc::ELOOP)
}

/// Makes writes wait while a pipe is full: the drain thread may wait, the open may not.
pub(crate) fn wait_for_room(file: &File) {
    // SAFETY: a call on an open descriptor.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    }
}

/// Opens a file for reading. Follows no link and waits for no FIFO.
#[cfg(feature = "recovery")]
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path).and_then(above_stderr)
}

/// Opens a directory, to sync it.
#[cfg(feature = "recovery")]
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// Creates a file that only this user may access.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // `create_new` is O_EXCL: the kernel does not follow a link at this name either. The standard library
    // adds O_CLOEXEC.
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).and_then(above_stderr)
}

/// Whether the file is known to belong to this user.
#[cfg(feature = "recovery")]
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == effective_user() && is_one_user(metadata.uid())
}

/// Returns the error for a link that is not followed. `None`: its owner may lead this process anywhere.
pub(super) fn refuse_link(metadata: &Metadata) -> Option<io::Error> {
    let owner = metadata.uid();
    let is_one = is_one_user(owner);
    if is_one && (owner == 0 || owner == effective_user()) {
        return None;
    }
    let user = if is_one { format!("user {owner}") } else { "a user who has no number here".to_owned() };
    let message = format!("it is a symbolic link of {user}, and may lead anywhere; give another path");
    Some(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Reads bytes at an offset, at most as many as there are.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    file.metadata().map(|metadata| of(&metadata))
}

/// Returns the identity of the open file with this number. A forked child may call this.
pub(crate) fn identity_of_number(number: i32) -> Option<Identity> {
    // SAFETY: an all-zero value is valid, and the call writes it.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        let is_open = libc::fstat(number, &raw mut about) == 0;
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // its types differ
        is_open.then_some(Identity { device: about.st_dev as u64, inode: about.st_ino as u64 })
    }
}

/// Returns the identity of the file that a path leads to.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|metadata| of(&metadata))
}

/// Returns the identity of the file at a path, which may be a link.
#[cfg(feature = "recovery")]
pub(crate) fn identity_of_name(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|metadata| of(&metadata))
}

fn of(metadata: &Metadata) -> Identity {
    Identity { device: metadata.dev(), inode: metadata.ino() }
}

/// Returns the first `len` bytes of a name.
pub(crate) fn shortened(name: &OsStr, len: usize) -> OsString {
    let bytes = name.as_bytes();
    OsString::from_vec(bytes[..bytes.len().min(len)].to_vec())
}
