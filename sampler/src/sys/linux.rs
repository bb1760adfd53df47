//! Linux: `timer_create` and `sigaction`.

#![allow(unsafe_code)] // system calls, a signal handler, and memory that threads share

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::chain::Frame;
use crate::ring::{Claimed, Head, MOST_REGISTERS, Note, Ring};
use crate::sys::found::Found;
use crate::sys::stack::{Copied, copy};
use crate::watch::Watch;

const SIGNAL: libc::c_int = libc::SIGPROF;

/// What the value of a timer's signal has besides the thread's id.
const TAG: u64 = 0x4861_6972 << 32;

/// The value of the signal that [`ask`] sends.
const ASKED: u64 = 0x4861_6973 << 32;

/// The ring that the handler writes to; null: none.
static RING: AtomicPtr<Ring> = AtomicPtr::new(null_mut());

/// The threads that are in the handler.
///
/// A handler enters here before it loads `RING`, and `Handler::drop` clears `RING` before it looks here. All
/// four are SeqCst: either the handler finds no ring, or the drop finds the handler and waits for it.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// The slices that are watched; null: none. It is never freed.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

/// The process that the two are of: a forked child has its parent's, and neither its threads nor its timers.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The handler of the signal with its ring. It stays installed for good, without a ring in the end: a signal
/// that is under way would end the process.
#[derive(Debug)]
pub(crate) struct Handler {
    ring: NonNull<Ring>,
}

// SAFETY: a `Ring` may be sent and shared, and this is a box of one.
unsafe impl Send for Handler {}
// SAFETY: as above.
unsafe impl Sync for Handler {}

/// The longest time for which a handler may be interrupted by the system. After it the ring stays for good.
const PATIENCE: Duration = Duration::from_millis(100);

impl Handler {
    /// Installs the handler, unless the program handles or ignores the signal itself, or has a handler here
    /// already.
    pub(crate) fn install(ring: Box<Ring>) -> io::Result<Self> {
        if is_foreign(current()?) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let pid = std::process::id();
        if PROCESS.swap(pid, Ordering::Relaxed) != pid {
            RING.store(null_mut(), Ordering::SeqCst);
            INSIDE.store(0, Ordering::SeqCst);
        }
        let ring = NonNull::from(Box::leak(ring));
        if RING.compare_exchange(null_mut(), ring.as_ptr(), Ordering::SeqCst, Ordering::SeqCst).is_err() {
            // SAFETY: the box from above, which nobody else has.
            drop(unsafe { Box::from_raw(ring.as_ptr()) });
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let handler = Self { ring }; // from here on its drop clears the place
        set_own()?;
        Ok(handler)
    }

    pub(crate) fn ring(&self) -> &Ring {
        // SAFETY: the ring is freed by the drop of `self` alone.
        unsafe { self.ring.as_ref() }
    }

    /// Whether the signal is still this handler's: the program may have installed its own meanwhile.
    pub(crate) fn is_installed(&self) -> bool {
        is_own()
    }
}

/// Installs the handler for the slices of `watch`, unless the program handles or ignores the signal itself.
pub(crate) fn install_watch(watch: &'static Watch) -> io::Result<()> {
    if is_foreign(current()?) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    WATCH.store(std::ptr::from_ref(watch).cast_mut(), Ordering::Release); // pairs with the Acquire in `on_signal`
    set_own()
}

/// Asks a thread of this process to take the samples of its slices that are due, by the signal of a timer
/// that expires at once. `None`: it gets none, because the program has a handler of its own now, or the
/// thread blocks the signal or has ended, or the user has too many timers.
pub(crate) fn ask(tid: u32) -> Option<Timer> {
    if !is_own() || blocks(tid) != Some(false) {
        return None;
    }
    let timer = Timer::create(libc::CLOCK_MONOTONIC, tid, ASKED).ok()?;
    timer.set(libc::timespec { tv_sec: 0, tv_nsec: 0 }, libc::timespec { tv_sec: 0, tv_nsec: 1 });
    Some(timer)
}

/// Whether a thread of this process is there.
pub(crate) fn is_there(tid: u32) -> bool {
    // SAFETY: numbers; signal 0 is none.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, 0) == 0 }
}

/// Whether the signal is handled here.
fn is_own() -> bool {
    current().is_ok_and(|handler| handler == on_signal as *const () as usize)
}

/// Installs the handler.
fn set_own() -> io::Result<()> {
    let before = set(on_signal as *const () as usize)?;
    if is_foreign(before.sa_sigaction) {
        // SAFETY: the program's own, which it has set since the caller looked.
        unsafe { libc::sigaction(SIGNAL, &raw const before, null_mut()) };
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    Ok(())
}

impl Drop for Handler {
    fn drop(&mut self) {
        RING.store(null_mut(), Ordering::SeqCst);
        let until = Instant::now() + PATIENCE;
        while INSIDE.load(Ordering::SeqCst) != 0 {
            if Instant::now() > until {
                return; // a fork may have left the count of a thread that is not in this process
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        // SAFETY: the box of `install`. No handler has it, and none finds it any more.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}

/// Whether a disposition is the program's own.
fn is_foreign(handler: usize) -> bool {
    handler != libc::SIG_DFL && handler != on_signal as *const () as usize
}

/// Returns the present disposition of the signal.
fn current() -> io::Result<usize> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call writes a `sigaction`, for which zeros are valid too.
    let (outcome, now) = unsafe {
        let outcome = libc::sigaction(SIGNAL, std::ptr::null(), now.as_mut_ptr());
        (outcome, now.assume_init())
    };
    if outcome == 0 { Ok(now.sa_sigaction) } else { Err(io::Error::last_os_error()) }
}

/// Sets the handler. Returns what was set before.
fn set(handler: usize) -> io::Result<libc::sigaction> {
    // SAFETY: numbers, for which zeros are valid.
    let (mut new, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: any bits are a set of signals. All are blocked in the handler, also those that `sigfillset`
    // leaves out: a handler of the program that leaves by `siglongjmp`, or a thread that is cancelled, would
    // leave a slot that is never complete.
    unsafe { (&raw mut new.sa_mask).cast::<u8>().write_bytes(0xff, size_of::<libc::sigset_t>()) };
    // SAFETY: the handler has the signature that `SA_SIGINFO` asks for, and keeps to what a handler may do.
    match unsafe { libc::sigaction(SIGNAL, &raw const new, &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `siginfo_t` of a timer's signal, on 64-bit systems.
#[repr(C)]
struct Info {
    numbers: [libc::c_int; 2],
    code: libc::c_int,
    padding: libc::c_int,
    timer: libc::c_int,
    overrun: libc::c_int,
    value: u64,
}

const _: () = assert!(offset_of!(Info, code) == offset_of!(libc::siginfo_t, si_code));
const _: () = assert!(offset_of!(Info, overrun) == 20 && offset_of!(Info, value) == 24);

/// Takes a sample of the interrupted thread.
extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a `siginfo_t`, and for these signals its fields are those of `Info`.
    let info = unsafe { &*info.cast::<Info>() };
    let is_timer = info.code == libc::SI_TIMER && info.value & !u64::from(u32::MAX) == TAG;
    let is_asked = info.code == libc::SI_TIMER && info.value == ASKED;
    if !is_timer && !is_asked {
        // SAFETY: both may be called in a handler. The signal is blocked in it, so it comes after the return.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    // SAFETY: the address of this thread's own number.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: with `SA_SIGINFO` the kernel passes a `ucontext_t`.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    INSIDE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: `Handler::drop` frees the ring only when no thread is inside.
    if let Some(ring) = unsafe { RING.load(Ordering::SeqCst).as_ref() }
        && is_timer
    {
        let missed = u32::try_from(info.overrun).unwrap_or(0);
        sample(ring, info.value as u32, missed, Note::default(), context);
    }
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    // Of two signals that wait at a time the thread gets one: so any may be the one that asks.
    // SAFETY: null, or from a `&'static`.
    if let Some(watch) = unsafe { WATCH.load(Ordering::Acquire).as_ref() } {
        // SAFETY: a number of the kernel.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        watch.take(tid, boottime(), |ring, note| sample(ring, tid, 0, note, context));
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

fn sample(ring: &Ring, tid: u32, missed: u32, note: Note, context: &libc::ucontext_t) {
    let Some(mut claimed) = ring.claim() else { return };
    let time = boottime();
    let of_thread = registers(context);
    let copied = copy(&mut claimed, frame(of_thread), || tid);
    let registers = copied.registers(of_thread);
    // SAFETY: reads the number of the processor, without a lock.
    let cpu = u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0);
    let Copied { passed, bytes: copied, .. } = copied;
    claimed.publish(Head { time, registers, note, tid, cpu, passed, copied, missed, reserved: 0 });
}

impl Copied {
    /// Returns the registers with which the stack begins that was copied: those of the thread, or what is known
    /// of them in a frame further out.
    fn registers(&self, of_thread: [u64; MOST_REGISTERS]) -> [u64; MOST_REGISTERS] {
        if self.passed == 0 { of_thread } else { ordered(self.from) }
    }
}

/// Returns the registers in the order of `Attributes::user_stack`.
#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> [u64; MOST_REGISTERS] {
    let all = &context.uc_mcontext.gregs;
    let [bp, sp, ip] = [libc::REG_RBP, libc::REG_RSP, libc::REG_RIP].map(|n| all[n as usize].cast_unsigned());
    [bp, sp, ip, 0]
}

/// Returns the instruction, the stack pointer and the frame pointer of [`registers`].
#[cfg(target_arch = "x86_64")]
fn frame([bp, sp, ip, _]: [u64; MOST_REGISTERS]) -> Frame {
    [ip, sp, bp]
}

/// The number of registers of a sample.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: usize = 3;

/// Returns the registers in the order of `Attributes::user_stack`.
#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> [u64; MOST_REGISTERS] {
    let all = &context.uc_mcontext;
    [all.regs[29], all.regs[30], all.sp, all.pc]
}

/// Returns the instruction, the stack pointer and the frame pointer of [`registers`].
#[cfg(target_arch = "aarch64")]
fn frame([fp, _, sp, pc]: [u64; MOST_REGISTERS]) -> Frame {
    [pc, sp, fp]
}

/// The number of registers of a sample.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: usize = 4;

/// Returns the instruction, the stack pointer and the frame pointer here: in the function that calls this.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) fn here() -> Frame {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!(
            "lea {ip}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
            ip = out(reg) ip, sp = out(reg) sp, bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    [ip, sp, bp]
}

/// Returns the instruction, the stack pointer and the frame pointer here: in the function that calls this.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) fn here() -> Frame {
    let (pc, sp, fp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!(
            "adr {pc}, .", "mov {sp}, sp", "mov {fp}, x29",
            pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    [pc, sp, fp]
}

/// Does nothing, after a call that must not become a jump: the frame that it is made in stays.
#[inline(always)]
pub(crate) fn stay() {
    // SAFETY: no instruction.
    unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// Returns the registers of [`here`] in the order of [`registers`].
#[cfg(target_arch = "x86_64")]
fn ordered([ip, sp, bp]: Frame) -> [u64; MOST_REGISTERS] {
    [bp, sp, ip, 0]
}

/// Returns the registers of [`here`] in the order of [`registers`], without the link register: a function
/// that calls another one has saved it, and the unwinder finds it there.
#[cfg(target_arch = "aarch64")]
fn ordered([pc, sp, fp]: Frame) -> [u64; MOST_REGISTERS] {
    [fp, 0, sp, pc]
}

/// A set of signals, as the kernel has it: a bit for each.
pub(crate) type SignalMask = u64;

/// Blocks all signals of the calling thread, also those of the C library, which a `sigfillset` leaves
/// out: one of them cancels threads. Returns what was blocked before.
pub(crate) fn block_signals() -> SignalMask {
    set_signals(SignalMask::MAX)
}

/// Sets the signals that the calling thread blocks.
pub(crate) fn restore_signals(before: SignalMask) {
    set_signals(before);
}

fn set_signals(new: SignalMask) -> SignalMask {
    let mut before: SignalMask = 0;
    // SAFETY: the kernel reads a set of this size, and writes one. With these arguments the call cannot fail,
    // so it leaves `errno` as it is.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const new,
            &raw mut before,
            size_of::<SignalMask>(),
        )
    };
    before
}

/// Takes a sample of the calling thread: at `at`, the registers of a function that is still running. Takes no
/// lock, allocates nothing, and calls nothing but the kernel.
#[inline(never)]
pub(crate) fn sample_at(mut claimed: Claimed<'_>, at: Frame, note: Note) {
    // SAFETY: the address of this thread's own number.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: a number of the kernel.
    let copied = copy(&mut claimed, at, || unsafe { libc::syscall(libc::SYS_gettid) } as u32);
    let registers = ordered(copied.from);
    let Copied { passed, bytes: copied, .. } = copied;
    claimed.publish(Head { registers, note, passed, copied, ..Head::default() });
    // SAFETY: as above.
    unsafe { *errno = before };
}

fn boottime() -> u64 {
    clock(libc::CLOCK_BOOTTIME, false)
}

/// Returns the length of the kernel's tick, in ns: timers of CPU time expire at ticks.
pub(crate) fn tick() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE, true).clamp(1, 100_000_000)
}

fn clock(id: libc::clockid_t, resolution: bool) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both write one `timespec`.
    unsafe {
        if resolution {
            libc::clock_getres(id, &raw mut time)
        } else {
            libc::clock_gettime(id, &raw mut time)
        };
    }
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// The clock of real time.
pub(crate) const CLOCK_MONOTONIC: i32 = libc::CLOCK_MONOTONIC;

/// A timer whose signal goes to one thread.
#[derive(Debug)]
pub(crate) struct Timer {
    id: libc::c_int,
    /// The process that has made it.
    pid: u32,
}

impl Timer {
    /// Starts a timer for this thread of the process, which expires each `interval` ns of this clock, or of
    /// the thread's CPU time.
    pub(crate) fn of_thread(tid: u32, clock: Option<i32>, interval: u64) -> io::Result<Found<Self>> {
        match blocks(tid) {
            None => return Ok(Found::Ended),
            Some(true) => return Ok(Found::Blocks),
            Some(false) => {}
        }
        // `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED` below the complement of the thread's id.
        let clock = clock.unwrap_or(!tid.cast_signed() << 3 | 4 | 2);
        let timer = match Self::create(clock, tid, TAG | u64::from(tid)) {
            Ok(timer) => timer,
            Err(e) => {
                let has_ended =
                    matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ESRCH)) && blocks(tid).is_none();
                return if has_ended { Ok(Found::Ended) } else { Err(e) };
            }
        };
        let every = libc::timespec {
            tv_sec: (interval / 1_000_000_000).cast_signed(),
            tv_nsec: (interval % 1_000_000_000).cast_signed(),
        };
        // Threads that were found at a time do not expire at a time.
        let first = interval / 2 + u64::from(tid).wrapping_mul(0x9e37_79b9) % interval.max(1);
        let first = libc::timespec {
            tv_sec: (first / 1_000_000_000).cast_signed(),
            tv_nsec: (first % 1_000_000_000).cast_signed(),
        };
        if timer.set(every, first) { Ok(Found::Timer(timer)) } else { Ok(Found::Ended) }
    }

    /// Creates a timer of a clock, whose signal goes to this thread with this value.
    fn create(clock: libc::clockid_t, tid: u32, value: u64) -> io::Result<Self> {
        // SAFETY: numbers and pointers, for which zeros are valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = tid.cast_signed();
        event.sigev_value.sival_ptr = value as *mut libc::c_void;
        let mut id: libc::c_int = 0;
        // SAFETY: the kernel reads a `sigevent` and writes an `int`.
        let made = unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut id) };
        if made == 0 { Ok(Self { id, pid: std::process::id() }) } else { Err(io::Error::last_os_error()) }
    }

    /// Sets the time until it expires, and then each time until it expires again; 0: it does not. Returns
    /// false if its thread has ended.
    fn set(&self, every: libc::timespec, first: libc::timespec) -> bool {
        let times = libc::itimerspec { it_interval: every, it_value: first };
        let before = null_mut::<libc::itimerspec>();
        // SAFETY: the kernel reads an `itimerspec`; null: it does not return the one before.
        unsafe { libc::syscall(libc::SYS_timer_settime, self.id, 0, &raw const times, before) == 0 }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // A forked child has no timer of its parent, and may have one of this number.
        if self.pid == std::process::id() {
            // SAFETY: a number.
            unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        }
    }
}

/// Returns the ids of this process's threads, in their order.
pub(crate) fn threads() -> Option<Vec<u32>> {
    let entries = std::fs::read_dir("/proc/self/task").ok()?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    Some(ids)
}

/// Returns whether a thread blocks the signal; `None` if it has ended.
fn blocks(tid: u32) -> Option<bool> {
    let status = std::fs::read(format!("/proc/self/task/{tid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    let blocked = u64::from_str_radix(blocked.trim(), 16).ok()?;
    Some(blocked >> (SIGNAL - 1) & 1 != 0)
}
