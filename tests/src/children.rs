//! Every way in which a process makes a child, and the wait for the child's end.
//!
//! | way | `pthread_atfork` handlers |
//! |---|---|
//! | [`fork`] | run |
//! | [`bare_fork`] | do not run; glibc renews its own state |
//! | [`clone`] | do not run; glibc hears nothing of the child |
//! | [`spawn`] | do not run; the child is another program at once |
//!
//! Nothing here allocates or takes a lock, so a signal handler may call it, and a forked child too.

#![allow(unsafe_code)] // fork and its relatives, waitpid, kill

use std::ffi::{CStr, c_char};
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time between two looks at a child.
const LOOK: Duration = Duration::from_micros(300);

/// A way to make a child: returns 0 in the child, the child's pid in the parent, and a negative number where
/// there is no child.
pub type Way = unsafe fn() -> libc::pid_t;

/// A child of `fork()`.
///
/// # Safety
/// The child does only what a forked child of a process with threads may do. glibc lets it allocate, and
/// Hairline lets it record.
#[must_use]
pub unsafe fn fork() -> libc::pid_t {
    // SAFETY: by this function's own contract.
    unsafe { libc::fork() }
}

type BareFork = extern "C" fn() -> libc::pid_t;

/// `_Fork`, where the C library has it (glibc since 2.34).
fn find_bare_fork() -> Option<BareFork> {
    static BARE_FORK: OnceLock<Option<BareFork>> = OnceLock::new();
    *BARE_FORK.get_or_init(|| {
        // SAFETY: the name ends with NUL.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr()) };
        // SAFETY: the function of this name is `pid_t _Fork(void)`.
        (!at.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, BareFork>(at) })
    })
}

/// Whether [`bare_fork`] makes children here. The first call takes a lock of the loader: a program that calls
/// [`bare_fork`] in a signal handler asks before.
#[must_use]
pub fn has_bare_fork() -> bool {
    find_bare_fork().is_some()
}

/// A child of `_Fork()`; -1 where the C library does not have it.
///
/// # Safety
/// As [`fork`], and the child takes no lock that another thread may have held, the allocator's neither.
#[must_use]
pub unsafe fn bare_fork() -> libc::pid_t {
    find_bare_fork().map_or(-1, |bare_fork| bare_fork())
}

/// A child of the system call `clone`, with the flags of a fork.
///
/// # Safety
/// As [`bare_fork`].
#[must_use]
pub unsafe fn clone() -> libc::pid_t {
    // SAFETY: no flags and no stack, as fork has it; the rest is by this function's own contract.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    libc::pid_t::try_from(child).unwrap_or(-1)
}

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// A child of `posix_spawn` that runs `arguments[0]`, with this process's environment. -1 where there is
/// none.
#[must_use]
pub fn spawn(arguments: &Arguments) -> libc::pid_t {
    let mut child = -1;
    // SAFETY: pointers to strings and lists that end with null; neither actions nor attributes.
    let error = unsafe {
        let (actions, attributes) = (std::ptr::null(), std::ptr::null());
        let list = arguments.0.as_ptr().cast();
        libc::posix_spawn(&raw mut child, arguments.0[0], actions, attributes, list, environ)
    };
    if error == 0 { child } else { -1 }
}

/// In a child: becomes `arguments[0]`. Returns if that cannot be had.
pub fn exec(arguments: &Arguments) {
    // SAFETY: pointers to strings, and a null at the end.
    unsafe { libc::execv(arguments.0[0], arguments.0.as_ptr()) };
}

/// The path and one argument of a program, as the C library takes them.
#[derive(Debug)]
pub struct Arguments([*const c_char; 3]);

impl Arguments {
    /// Of strings that live as long as the process: nothing is copied, so nothing is allocated after a fork.
    #[must_use]
    pub fn new(program: &'static CStr, argument: &'static CStr) -> Self {
        Self([program.as_ptr(), argument.as_ptr(), std::ptr::null()])
    }
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ended with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// It stopped itself. It is still there.
    Stopped,
    /// It was still running when the patience was over. It is still there.
    Hangs,
    /// This process has no such child.
    Unknown,
}

/// Sleeps for a moment, or until a signal. The sleep of the standard library goes on after a signal, each
/// time later by the slack of the kernel's timers: it never ends if signals come faster than that.
fn pause() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    // SAFETY: the time is valid, and the rest is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Waits for a child to end or to stop.
#[must_use]
pub fn fate_of(child: libc::pid_t, patience: Duration) -> Fate {
    let began = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
            0 if began.elapsed() > patience => return Fate::Hangs,
            0 => pause(),
            found if found == child => break,
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Fate::Unknown,
        }
    }
    if libc::WIFSTOPPED(status) {
        Fate::Stopped
    } else if libc::WIFSIGNALED(status) {
        Fate::Signalled(libc::WTERMSIG(status))
    } else {
        Fate::Exited(libc::WEXITSTATUS(status))
    }
}

/// Whether a child has ended or stopped. It stays to be waited for, so that its pid stays its own.
#[must_use]
pub fn is_over(child: libc::pid_t) -> bool {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: an all-zero value is a valid one, which the call fills; a pid of 0 says that there is no news.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let error = libc::waitid(libc::P_PID, child.cast_unsigned(), &raw mut info, options);
        error != 0 || info.si_pid() != 0
    }
}

/// Waits until a child ends with 0.
///
/// # Panics
/// When there is no child, or it ends otherwise. One that hangs or has stopped is killed before.
pub fn expect_success(child: libc::pid_t, patience: Duration) {
    let fate = fate_of(child, patience);
    let mut about = String::new();
    if matches!(fate, Fate::Hangs | Fate::Stopped) {
        about = crate::forked::describe(child);
        kill(child);
    }
    assert_eq!(fate, Fate::Exited(0), "the child {child} {about}");
}

/// Kills a child of this process, and waits for its end.
pub fn kill(child: libc::pid_t) {
    assert!(child > 0, "a child's pid");
    // SAFETY: takes numbers; the pid is a child's that was not waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// Sends a signal to a process that this one has not waited for yet.
pub fn signal(pid: u32, number: libc::c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(pid.cast_signed(), number) };
}

/// Ends this process, without a handler at exit.
pub fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(status) }
}

/// Kills a process that leads a group of its own, and all its children.
pub fn kill_group(leader: u32) {
    // SAFETY: takes numbers; a group that the caller made.
    unsafe { libc::kill(-leader.cast_signed(), libc::SIGKILL) };
}
