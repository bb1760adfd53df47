//! Everything that a program does with signals, threads and processes, while its threads are sampled.
//!
//! `TORTURE_SECONDS` (default 2) is the time of each test.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code)] // signals, forks and jumps

use std::collections::HashSet;
use std::hint::black_box;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline_perf::Record;
use hairline_sampler::{Asked, Clock, Next, Sampler, Stacks, Taken, Undisturbed};

/// A process has one sampler at a time.
static ONE: Mutex<()> = Mutex::new(());

fn for_a_while() -> impl FnMut() -> bool {
    let seconds = std::env::var("TORTURE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    move || Instant::now() < until
}

fn start(taken: Taken) -> Sampler {
    Sampler::start(Clock::CpuTime, 10_000, taken).expect("the program leaves SIGPROF alone")
}

/// Samples by both ways, one after the other.
fn by_both(sampled: impl Fn(Taken)) {
    let _one = ONE.lock();
    [TOP, Taken::FramePointers].into_iter().for_each(sampled);
}

const TOP: Taken = Taken::Bytes(8192);

/// The samples of each thread.
#[derive(Default)]
struct Seen {
    samples: u64,
    threads: HashSet<u32>,
    /// Those without any of the stack.
    empty: u64,
}

impl Seen {
    fn read(&mut self, sampler: &mut Sampler) {
        sampler.read(|record, stamp, earlier| {
            let Record::Sample { stack, registers, call_chain, .. } = record else { panic!("a sample") };
            assert!(registers.len() >= 3 && stack.len() <= 8192 && stamp.time > 0);
            assert!(call_chain.is_empty() || call_chain.len() < 256 && stack.len() <= 512);
            let several = u64::from(1 + earlier.count);
            self.samples += several;
            self.empty += several * u64::from(stack.is_empty() && call_chain.is_empty());
            self.threads.insert(stamp.tid);
        });
    }
}

fn spin(mut go_on: impl FnMut() -> bool) {
    let mut word = 1_u64;
    while go_on() {
        (0..10_000).for_each(|_| word = black_box(word.wrapping_mul(6_364_136_223_846_793_005)));
    }
}

#[test]
fn threads_that_start_and_end_are_sampled_and_the_rest_is_counted() {
    by_both(|taken| {
        let mut sampler = start(taken);
        let (mut seen, mut go_on, mut lost) = (Seen::default(), for_a_while(), 0);
        let begun = Instant::now();
        // On a busy machine the threads have less of a processor in the same time.
        while go_on() || seen.samples <= 50 && begun.elapsed() < Duration::from_secs(60) {
            let mut life = Instant::now();
            let threads: Vec<_> = (0..2)
                .map(|_| std::thread::spawn(move || spin(|| life.elapsed() < Duration::from_millis(120))))
                .collect();
            while !threads.iter().all(std::thread::JoinHandle::is_finished) {
                std::thread::sleep(sampler.every());
                seen.read(&mut sampler);
                lost += sampler.newly_lost();
            }
            life = Instant::now();
            black_box(life);
        }
        sampler.stop();
        seen.read(&mut sampler);
        assert!(seen.samples > 50 && seen.threads.len() > 4, "{} of {}", seen.samples, seen.threads.len());
        assert_eq!((lost + sampler.newly_lost(), seen.empty), (0, 0));
    });
}

fn cpu_time() -> u64 {
    // SAFETY: numbers, for which zeros are valid; the call writes them.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[test]
fn a_thread_has_as_many_samples_as_its_cpu_time_says() {
    let _one = ONE.lock();
    let mut sampler = start(TOP);
    // SAFETY: the call has no arguments.
    let own = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let (mut seen, mut before) = (0_u64, cpu_time());
    let begin = before;
    for _ in 0..20 {
        spin(|| cpu_time() - before < 50_000_000);
        before = cpu_time();
        sampler.read(|_, stamp, earlier| seen += u64::from(stamp.tid == own) * u64::from(1 + earlier.count));
    }
    // On a busy machine it may be another thread that runs at each tick. The next signal has all that are
    // due.
    let until_now = seen;
    while seen == until_now {
        spin(|| cpu_time() - before < 5_000_000);
        before = cpu_time();
        sampler.read(|_, stamp, earlier| seen += u64::from(stamp.tid == own) * u64::from(1 + earlier.count));
    }
    let expected = (cpu_time() - begin) * sampler.frequency() / 1_000_000_000;
    assert!(seen.abs_diff(expected) <= expected / 20 + 2, "{seen} of {expected}");
    assert_eq!(sampler.newly_lost(), 0);
}

#[test]
fn a_full_ring_is_counted_and_no_thread_waits() {
    let _one = ONE.lock();
    let mut sampler = start(Taken::Bytes(512));
    // Nobody reads. A busy machine may give this thread little time.
    let mut lost = 0;
    for _ in 0..30 {
        spin(&mut for_a_while());
        lost += sampler.newly_lost();
        if lost > 0 {
            break;
        }
    }
    sampler.stop();
    let mut seen = Seen::default();
    seen.read(&mut sampler);
    assert!(seen.samples >= 64 && lost > 0, "{} and {lost}", seen.samples);
}

fn boottime() -> u64 {
    // SAFETY: numbers, for which zeros are valid; the call writes them.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time);
        time
    };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[test]
fn each_slow_slice_is_asked_at_most_once_beside_samples() {
    const LIMIT: u64 = 1_000_000;
    let _one = ONE.lock();
    let mut sampler = start(Taken::Bytes(512));
    let stacks: &'static Stacks = Box::leak(Box::new(Stacks::new(1024, 512).expect("memory")));
    let watch: &'static _ = Box::leak(Box::new(stacks.watch()));
    watch.install().expect("the program leaves SIGPROF alone");
    let (mut seen, mut go_on, done) = (Seen::default(), for_a_while(), &AtomicBool::new(false));
    let (slow, mut asked, mut position) = (&AtomicU64::new(0), HashSet::new(), 0);
    let mut read = |asked: &mut HashSet<[u64; 2]>| {
        position = stacks.read(position, |[time, tid, begun], sample| {
            assert!(time >= begun + LIMIT && !sample.stack.is_empty());
            assert!(asked.insert([tid, begun]), "twice");
        });
    };
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut signals = Asked::default();
            while !done.load(Ordering::Relaxed) {
                match watch.look(boottime(), &mut signals) {
                    Next::After(ns) => std::thread::park_timeout(Duration::from_nanos(ns)),
                    Next::WhenWoken => std::thread::park_timeout(Duration::from_millis(5)),
                }
            }
        });
        let _done = Done(done);
        let watcher = watcher.thread().clone();
        for worker in 0..4_u64 {
            let watcher = watcher.clone();
            scope.spawn(move || {
                // SAFETY: the call has no arguments.
                let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
                let mut n = worker;
                while !done.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let begun = boottime();
                    let (watched, wakes) = watch.begin(tid, begun, LIMIT, 0);
                    if wakes {
                        watcher.unpark();
                    }
                    let takes = n >> 33 & 0x1f_ffff; // up to 2 ms
                    if n >> 60 & 1 == 0 {
                        std::thread::sleep(Duration::from_nanos(takes));
                    } else {
                        spin(|| boottime() - begun < takes);
                    }
                    watch.end(watched, tid, begun);
                    slow.fetch_add(u64::from(boottime() - begun >= LIMIT), Ordering::Relaxed);
                }
            });
        }
        while go_on() {
            std::thread::sleep(Duration::from_millis(10));
            seen.read(&mut sampler);
            read(&mut asked);
        }
    });
    read(&mut asked);
    let (slow, asked) = (slow.load(Ordering::Relaxed), asked.len() as u64);
    assert!(asked > 0 && asked <= slow && stacks.lost() == 0, "{asked} of {slow}");
    assert!(seen.samples > 0);
}

/// Ends the work of other threads, also after a panic.
struct Done<'d>(&'d AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn forks_and_programs_that_are_started_are_left_alone() {
    by_both(|taken| {
        let mut sampler = start(taken);
        let (mut seen, mut go_on) = (Seen::default(), for_a_while());
        let done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(move || spin(|| !done.load(Ordering::Relaxed)));
            let _done = Done(done);
            while go_on() {
                // A signal that is under way would end this program: it has no handler.
                assert!(Command::new("true").status().expect("it runs").success());
                // SAFETY: the child calls only what a child of many threads may.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let until = Instant::now() + Duration::from_millis(20);
                    spin(|| Instant::now() < until);
                    // SAFETY: ends the child at once.
                    unsafe { libc::_exit(7) };
                }
                let mut status = 0;
                // SAFETY: writes the status of this process's child.
                while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {}
                assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
                seen.read(&mut sampler);
            }
        });
        assert!(seen.samples > 50, "{}", seen.samples);
    });
}

static JUMPS: AtomicU64 = AtomicU64::new(0);

#[repr(C, align(16))]
struct Place([u64; 64]);

unsafe extern "C" {
    #[cfg_attr(target_env = "gnu", link_name = "__sigsetjmp")]
    fn sigsetjmp(place: *mut Place, saves: i32) -> i32;
    fn siglongjmp(place: *mut Place, value: i32) -> !;
}

static mut PLACE: Place = Place([0; 64]);

/// Whether the function that has set the place has not returned yet.
static MAY_JUMP: AtomicBool = AtomicBool::new(false);

extern "C" fn jump(_: i32) {
    if MAY_JUMP.load(Ordering::Relaxed) {
        JUMPS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the alarm's only thread is in the function that has set the place.
        unsafe { siglongjmp(&raw mut PLACE, 1) };
    }
}

/// Ends with the time, and is left by a jump out of a signal handler again and again.
#[inline(never)]
fn jump_about(go_on: &mut dyn FnMut() -> bool) {
    // SAFETY: nothing between here and the jump has a destructor, and no local is used after it.
    unsafe { sigsetjmp(&raw mut PLACE, 1) };
    MAY_JUMP.store(true, Ordering::Relaxed);
    spin(go_on);
    MAY_JUMP.store(false, Ordering::Relaxed);
}

/// Jumps out of a handler on the calling thread, 10,000 times in a second.
fn jump_often() -> libc::timer_t {
    // SAFETY: a handler that the test is about. The timer's signal goes to this thread.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = jump as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as i32;
        let mut timer: libc::timer_t = std::mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
        let every = libc::timespec { tv_sec: 0, tv_nsec: 100_000 }; // 10,000 times in a second
        let times = libc::itimerspec { it_interval: every, it_value: every };
        libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
        timer
    }
}

#[test]
fn handlers_of_the_program_interrupt_and_jump_away() {
    by_both(|taken| {
        let mut sampler = start(taken);
        let (mut seen, mut go_on) = (Seen::default(), for_a_while());
        let timer = jump_often();
        jump_about(&mut go_on);
        // SAFETY: the timer from above.
        unsafe { libc::timer_delete(timer) };
        std::thread::sleep(sampler.every());
        seen.read(&mut sampler);
        let lost = sampler.newly_lost();
        assert!(JUMPS.load(Ordering::Relaxed) > 1_000);
        // A slot that a jump had left open would hold up all samples after it.
        assert!(
            seen.samples + lost > 50 && seen.samples >= 64.min(seen.samples + lost),
            "{} {lost}",
            seen.samples
        );
    });
}

/// Takes stacks of the thread until the time is over, and is left by jumps.
#[inline(never)]
fn take_about(stacks: &Stacks, taken: &AtomicU64, go_on: &mut dyn FnMut() -> bool) {
    // SAFETY: nothing that a jump passes over has a destructor: while there is one, no signal comes.
    unsafe { sigsetjmp(&raw mut PLACE, 1) };
    MAY_JUMP.store(true, Ordering::Relaxed);
    while go_on() {
        let undisturbed = Undisturbed::new();
        if let Some(here) = stacks.claim(&undisturbed) {
            taken.fetch_add(1, Ordering::Relaxed);
            here.sample([1, 2, 3]);
        }
    }
    MAY_JUMP.store(false, Ordering::Relaxed);
}

#[test]
fn a_jump_out_of_a_handler_leaves_no_stack_of_an_event_half_done() {
    let _one = ONE.lock();
    let stacks = Stacks::new(16, 32 << 10).expect("a ring");
    let (taken, ends, before) = (AtomicU64::new(0), AtomicBool::new(false), JUMPS.load(Ordering::Relaxed));
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut read, mut position) = (0, 0);
            loop {
                let is_last = ends.load(Ordering::Acquire);
                position = stacks.read(position, |_, sample| read += u64::from(!sample.stack.is_empty()));
                if is_last {
                    return read;
                }
                std::thread::yield_now();
            }
        });
        let timer = jump_often();
        take_about(&stacks, &taken, &mut for_a_while());
        // SAFETY: the timer from above.
        unsafe { libc::timer_delete(timer) };
        ends.store(true, Ordering::Release);
        reader.join().expect("it reads")
    });
    assert!(JUMPS.load(Ordering::Relaxed) - before > 1_000);
    // A slot that a jump had left open would hold up all stacks after it.
    assert_eq!(read, taken.load(Ordering::Relaxed), "{} without a slot", stacks.lost());
    assert!(read > 1_000, "{read}");
}

#[test]
fn a_thread_that_waits_for_all_signals_gets_none() {
    let _one = ONE.lock();
    let mut sampler;
    let (told, hears) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || {
        // SAFETY: a set of all signals, and no waiting: the call returns at once.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
            told.send(()).expect("it listens");
            wait.recv().expect("it tells");
            let until = Instant::now() + Duration::from_millis(300);
            spin(|| Instant::now() < until);
            let at_once: libc::timespec = std::mem::zeroed();
            libc::sigtimedwait(&raw const all, std::ptr::null_mut(), &raw const at_once)
        }
    });
    hears.recv().expect("it tells");
    sampler = start(TOP);
    assert!(sampler.blocking() >= 1);
    go.send(()).expect("it listens");
    assert_eq!(waiting.join().expect("it ends"), -1, "no signal is pending");
    sampler.stop();
}

#[test]
fn a_thread_that_blocks_the_signal_for_the_start_is_sampled_soon_after_it() {
    let _one = ONE.lock();
    // SAFETY: sets of signals, for this thread alone.
    let mut sampler = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let sampler = start(TOP);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        sampler
    };
    // SAFETY: the call has no arguments.
    let own = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let (mut seen, begin) = (0, cpu_time());
    while seen == 0 {
        let before = cpu_time();
        spin(|| cpu_time() - before < 5_000_000);
        sampler.read(|_, stamp, earlier| seen += u64::from(stamp.tid == own) * u64::from(1 + earlier.count));
        assert!(cpu_time() - begin < 500_000_000, "no sample in half a second of CPU time");
    }
}

/// Spins with this number in the register that may have a frame pointer.
#[inline(never)]
fn spin_with(fp: u64, rounds: u64) {
    // SAFETY: the register has its value again at the end; the others are the block's.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "push rbp", "mov rbp, {fp}", "2: dec {rounds}", "jnz 2b", "pop rbp",
            fp = in(reg) fp, rounds = inout(reg) rounds => _,
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "mov {kept}, x29", "mov x29, {fp}", "2: subs {rounds}, {rounds}, #1", "b.ne 2b", "mov x29, {kept}",
            kept = out(reg) _, fp = in(reg) fp, rounds = inout(reg) rounds => _,
        );
    }
}

/// Calls `f` on a stack of its own: the upper half of this memory.
fn on_a_stack_of_its_own(memory: &mut [u64], f: extern "C" fn()) {
    let top = memory.as_mut_ptr_range().end.addr() as u64 & !15;
    // SAFETY: the memory is large enough for `f`, which returns here.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "mov r12, rsp", "mov rsp, {top}", "call {f}", "mov rsp, r12",
            top = in(reg) top, f = in(reg) f, out("r12") _, clobber_abi("C"),
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "mov x20, sp", "mov sp, {top}", "blr {f}", "mov sp, x20",
            top = in(reg) top, f = in(reg) f, out("x20") _, clobber_abi("C"),
        );
    }
}

/// Lets this memory be used, or not.
fn protect(at: u64, bytes: usize, protection: i32) {
    // SAFETY: memory of the test's own, which nobody uses.
    assert_eq!(unsafe { libc::mprotect(at as *mut libc::c_void, bytes, protection) }, 0);
}

static ABOVE: AtomicU64 = AtomicU64::new(0);

extern "C" fn follows_wrong_numbers() {
    let (here, above) = (black_box(&0_u64), ABOVE.load(Ordering::Relaxed));
    let here = std::ptr::from_ref(here).addr() as u64 & !7;
    let near = [here, here + 8, here - 64, here + 4096, here + 65_536, above, above + 16, above + 4088];
    for fp in near.into_iter().chain([0, 1, 8, u64::MAX - 7]) {
        spin_with(fp, 500_000);
    }
}

#[test]
fn numbers_that_are_no_frame_pointers_never_lead_to_a_fault() {
    const BYTES: usize = 64 << 10;
    let _one = ONE.lock();
    let mut sampler = start(Taken::FramePointers);
    let done = AtomicBool::new(false);
    // Above the stack of this test is memory that comes and goes, and a chain leads there.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory.
    let memory = unsafe {
        libc::mmap(std::ptr::null_mut(), 2 * BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    let above = memory.addr() as u64 + BYTES as u64;
    ABOVE.store(above, Ordering::Relaxed);
    let (mut seen, mut go_on) = (Seen::default(), for_a_while());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                protect(above, BYTES, libc::PROT_READ | libc::PROT_WRITE);
                std::thread::yield_now();
                protect(above, BYTES, libc::PROT_NONE);
            }
        });
        let _done = Done(&done);
        while go_on() {
            follows_wrong_numbers();
            // SAFETY: the part of the memory that stays, and that nobody else has.
            let own = unsafe { std::slice::from_raw_parts_mut(memory.cast::<u64>(), BYTES / 8) };
            on_a_stack_of_its_own(own, follows_wrong_numbers);
            seen.read(&mut sampler);
        }
    });
    sampler.stop();
    seen.read(&mut sampler);
    assert!(seen.samples > 50, "{}", seen.samples);
}

extern "C" fn nothing(_: i32) {}

/// What a process of its own does, of which the variable has the name: the signal stays with its handler.
const WAY: &str = "HAIRLINE_SAMPLER_WAY";

fn handles_the_signal_itself() {
    let handle = |handler| {
        // SAFETY: a handler that does nothing, or none.
        unsafe { libc::signal(libc::SIGPROF, handler) };
    };
    handle(nothing as *const () as usize);
    let refused = Sampler::start(Clock::CpuTime, 100, TOP).expect_err("the program uses the signal");
    assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
    handle(libc::SIG_DFL);
    let mut sampler = Sampler::start(Clock::CpuTime, 100, TOP).expect("it does not any more");
    assert!(Sampler::start(Clock::CpuTime, 100, TOP).is_err(), "there is one at a time");
    handle(nothing as *const () as usize);
    sampler.read(|_, _, _| {});
    assert!(sampler.is_stopped(), "the program has it again");
}

fn gets_the_signal_from_elsewhere() {
    let _sampler = Sampler::start(Clock::CpuTime, 100, TOP).expect("it starts");
    // SAFETY: a signal to this process.
    unsafe { libc::raise(libc::SIGPROF) };
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn the_programs_own_use_of_the_signal_stays_as_it_is() {
    use std::os::unix::process::ExitStatusExt;
    match std::env::var(WAY).as_deref() {
        Ok("handler") => return handles_the_signal_itself(),
        Ok("raise") => return gets_the_signal_from_elsewhere(),
        _ => {}
    }
    let run = |way: &str| {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        let test = "the_programs_own_use_of_the_signal_stays_as_it_is";
        command.args(["--exact", test, "--test-threads=1"]).env(WAY, way);
        command.output().expect("it runs").status
    };
    assert!(run("handler").success());
    assert_eq!(run("raise").signal(), Some(libc::SIGPROF));
}
