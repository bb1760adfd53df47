//! A program that forks, ends threads and is interrupted at the worst moments it can find.
//!
//! ```text
//! moments WAY [OUTPUT]
//! ```
//!
//! It prints what it did, and ends with 0 if nothing hung or crashed. A watchdog ends it after 30 s.

#![allow(unsafe_code)] // fork, signals, pthread keys

use std::os::unix::thread::JoinHandleExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hairline::{Overflow, Session, SessionBuilder, trace_instant, trace_scope};
use hairline_tests::children::{self, Way};

static STOP: AtomicBool = AtomicBool::new(false);

fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

fn watchdog() {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(30));
        eprintln!("moments: hangs");
        // SAFETY: takes a number.
        unsafe { libc::_exit(99) }
    });
}

/// Waits for room, so that no event is lost.
fn builder(output: &str) -> SessionBuilder {
    Session::builder().output(output).overflow(Overflow::Block(Duration::from_secs(10)))
}

/// The longest that a child may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn wait_for(child: libc::pid_t) {
    children::expect_success(child, PATIENCE);
}

fn fork() -> libc::pid_t {
    // SAFETY: the children here record and end; the C library lets them allocate.
    unsafe { children::fork() }
}

/// The key whose destructor records.
static KEY: AtomicU64 = AtomicU64::new(0);
/// In which of its rounds the destructor records; there are four, after which nobody is told that the thread ends.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

extern "C" fn record_in_destructor(round: *mut libc::c_void) {
    let round = round.addr() as u64;
    if round < ROUNDS.load(Ordering::Relaxed) {
        let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).expect("a key");
        // SAFETY: a key that was made, and a value that is never followed.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(round as usize + 1)) };
        return;
    }
    trace_scope!("moments", "the first event of a thread that ends", round);
    trace_instant!("moments", "the second");
}

extern "C" fn do_nothing(_: *mut libc::c_void) -> *mut libc::c_void {
    let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).expect("a key");
    // SAFETY: as above.
    unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    std::ptr::null_mut()
}

/// Threads of the C library whose first event comes from the destructor of a pthread key, in each of its rounds, while the ring is so
/// small that the chunks of idle threads are taken back.
fn end_of_threads(output: &str) {
    let session = builder(output).buffer_size(256 << 10).chunk_size(4096).start().expect("a session");
    let mut key = 0;
    // SAFETY: the destructor is a function of this program.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(record_in_destructor)) }, 0);
    KEY.store(u64::from(key), Ordering::Relaxed);
    let mut ended = 0;
    for round in 0..400 {
        ROUNDS.store(1 + round % 4, Ordering::Relaxed);
        let threads: Vec<libc::pthread_t> = (0..8)
            .map(|_| {
                let mut thread = 0;
                // SAFETY: the thread's function is of this program, and it is joined below.
                let made = unsafe {
                    libc::pthread_create(&raw mut thread, std::ptr::null(), do_nothing, std::ptr::null_mut())
                };
                assert_eq!(made, 0);
                thread
            })
            .collect();
        for thread in threads {
            // SAFETY: a thread that was made, joined once.
            unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
            ended += 1;
        }
        (0..20).for_each(|_| work(10));
    }
    let summary = session.stop().expect("no error");
    println!("{ended} {} {} {}", summary.records, summary.lost.thread_exit, summary.lost.total());
}

fn work(scopes: u32) {
    for n in 0..scopes {
        trace_scope!("moments", "work", n);
    }
}

/// Children that nobody announced, while the parent's threads record: each child records too.
fn unannounced(output: &str, child: Way) {
    let session = builder(output).start().expect("a session");
    let recorded = AtomicU64::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !stopped() {
                    work(100);
                    recorded.fetch_add(100, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
        }
        for n in 0..200 {
            let open = hairline::scope!("moments", "open at the fork");
            work(3);
            recorded.fetch_add(3, Ordering::Relaxed);
            // SAFETY: the child takes no lock but Hairline's own, and what it allocates is little.
            match unsafe { child() } {
                0 => {
                    drop(open);
                    work(1000);
                    let later = builder("of-a-child.fxt").start();
                    work(10);
                    drop(later);
                    drop(hairline::Track::process().child("of a child"));
                    children::exit_at_once(0)
                }
                // The parent goes on in the same chunk meanwhile.
                pid => {
                    work(n % 50);
                    recorded.fetch_add(u64::from(n % 50), Ordering::Relaxed);
                    wait_for(pid);
                }
            }
        }
        STOP.store(true, Ordering::Relaxed);
    });
    let summary = session.stop().expect("no error");
    println!("{} {}", recorded.load(Ordering::Relaxed), summary.lost.total());
}

static FORKED_IN_HANDLER: AtomicU64 = AtomicU64::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn fork_in_handler(_: libc::c_int) {
    if IS_CHILD.load(Ordering::Relaxed) {
        return;
    }
    match fork() {
        0 => IS_CHILD.store(true, Ordering::Relaxed), // and goes on with what was interrupted
        pid => {
            FORKED_IN_HANDLER.fetch_add(1, Ordering::Relaxed);
            let _ = pid;
        }
    }
}

/// A timer's signal forks, wherever it interrupts the thread: in the midst of an event too. The child goes on with what was interrupted.
fn fork_in_signal_handlers(output: &str) {
    let session = builder(output).start().expect("a session");
    work(10);
    // SAFETY: the handler forks, and counts.
    unsafe { libc::signal(libc::SIGALRM, fork_in_handler as *const () as libc::sighandler_t) };
    let interval = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the timer's value is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    let mut recorded = 10;
    while FORKED_IN_HANDLER.load(Ordering::Relaxed) < 150 && !IS_CHILD.load(Ordering::Relaxed) {
        work(100);
        recorded += 100;
        std::thread::sleep(Duration::from_micros(50));
        // SAFETY: takes nothing but numbers.
        unsafe { while libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {} }
    }
    if IS_CHILD.load(Ordering::Relaxed) {
        work(1000);
        children::exit_at_once(0);
    }
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let off = libc::itimerval { it_interval: none, it_value: none };
    // SAFETY: as above.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const off, std::ptr::null_mut()) };
    let summary = session.stop().expect("no error");
    println!("{recorded} {}", summary.lost.total());
}

/// No session: threads make callsites, futures, tracks and intervals while another one forks. The children do the same.
fn fork_without_a_session() {
    use hairline::TraceFuture;
    fn all(n: u32) {
        let future = async {}.traced("moments", "a future");
        drop(future);
        drop(hairline::trace_async!("moments", "interval", n));
        let track = hairline::Track::process().child("track");
        hairline::trace_begin!("moments", "on a track", track: &track);
        hairline::trace_end!(&track);
        log::info!("message {n}");
        tracing::info_span!("span", n).in_scope(|| tracing::info!("event"));
    }
    use tracing_subscriber::layer::SubscriberExt;
    hairline::Logger::new().install().expect("the logger");
    let layers = tracing_subscriber::registry().with(hairline::layer());
    tracing::subscriber::set_global_default(layers).expect("the subscriber");
    let go = Barrier::new(3);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                go.wait();
                (0..).take_while(|_| !stopped()).for_each(all);
            });
        }
        go.wait();
        for _ in 0..300 {
            match fork() {
                0 => {
                    all(0);
                    let session = Session::builder().output_writer(std::io::sink()).start();
                    all(1);
                    drop(session);
                    children::exit_at_once(0)
                }
                pid => wait_for(pid),
            }
        }
        STOP.store(true, Ordering::Relaxed);
    });
}

/// Forks while another thread's first event starts the environment's session, so many microseconds after it began.
fn fork_during_the_start(after: u64) {
    let go = Barrier::new(2);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            go.wait();
            work(10);
        });
        go.wait();
        std::thread::sleep(Duration::from_micros(after));
        match fork() {
            0 => {
                work(10);
                // SAFETY: takes a number.
                unsafe { libc::exit(0) }
            }
            pid => wait_for(pid),
        }
    });
    work(10);
}

/// A flight recorder's child asks the handle that it has from its parent for a snapshot.
fn snapshot_in_child(output: &str) {
    let session = builder(output).overflow(Overflow::Overwrite).start().expect("a session");
    work(10);
    // A snapshot of the parent's is always under way.
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stopped() {
                session.snapshot("of-the-parent.fxt").expect("a snapshot");
            }
        });
        for n in 0..20 {
            std::thread::sleep(Duration::from_micros(500 + 137 * n));
            match fork() {
                0 => {
                    trace_scope!("moments", "of the child");
                    work(1);
                    let taken = session.snapshot(format!("of-child-{n}.fxt"));
                    children::exit_at_once(i32::from(taken.is_err()));
                }
                pid => wait_for(pid),
            }
        }
        STOP.store(true, Ordering::Relaxed);
    });
}

extern "C" fn trigger_in_handler(_: libc::c_int) {
    hairline::trigger!();
}

/// Signals that trigger a snapshot, on threads that do nothing but allocate, and have never recorded.
fn trigger_in_signal_handlers(output: &str) {
    let session = builder(output)
        .overflow(Overflow::Overwrite)
        .trigger_interval(Duration::from_millis(1))
        .start()
        .expect("a session");
    work(10);
    // SAFETY: the handler triggers, which a handler may.
    unsafe { libc::signal(libc::SIGUSR1, trigger_in_handler as *const () as libc::sighandler_t) };
    for _ in 0..50 {
        let allocating = std::thread::spawn(|| {
            let mut kept = Vec::new();
            for n in 0..20_000_usize {
                kept.push(vec![0_u8; n % 5000]);
                if kept.len() > 50 {
                    kept.clear();
                }
            }
        });
        while !allocating.is_finished() {
            // SAFETY: the thread is not joined yet.
            unsafe { libc::pthread_kill(allocating.as_pthread_t(), libc::SIGUSR1) };
            std::thread::sleep(Duration::from_micros(100));
        }
        allocating.join().expect("joined");
    }
    drop(session);
}

/// Bytes that the regions have which this process has mapped, those without a name too. Only root may follow these links.
fn bytes_of_regions() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let is_region = |path: &std::path::Path| {
        std::fs::read_link(path).is_ok_and(|of| of.to_string_lossy().starts_with("/dev/shm/hairline-"))
    };
    let links = std::fs::read_dir("/proc/self/map_files").into_iter().flatten().flatten().map(|e| e.path());
    let files = links.filter(|path| is_region(path)).filter_map(|path| std::fs::metadata(path).ok());
    let by_inode: std::collections::HashMap<_, _> =
        files.map(|file| (file.ino(), file.blocks() * 512)).collect();
    by_inode.values().sum()
}

extern "C" fn pass_by(_: libc::c_int) {}

/// Starts a session with a large ring while a timer interrupts the thread again and again.
fn start_under_a_timer(output: &str) {
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGALRM, pass_by as *const () as libc::sighandler_t) };
    let interval = libc::timeval { tv_sec: 0, tv_usec: 100 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the timer's value is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    let session = builder(output).buffer_size(1 << 30).start().expect("a session");
    work(10);
    let summary = session.stop().expect("no error");
    println!("{} {}", summary.records, summary.lost.total());
}

/// Sessions one after the other, each with a thread that then does nothing. Bytes that their regions have at the end.
fn sessions_with_idle_threads() {
    let idle = std::sync::Arc::new(Barrier::new(21));
    for n in 0..20 {
        let session = builder(&format!("{n}.fxt")).buffer_size(16 << 20).start().expect("a session");
        let has_recorded = std::sync::Arc::new(Barrier::new(2));
        let (told, idle) = (has_recorded.clone(), idle.clone());
        std::thread::spawn(move || {
            let open = hairline::scope!("moments", "open to the end");
            work(10);
            told.wait();
            idle.wait();
            drop(open);
            work(10);
        });
        has_recorded.wait();
        std::thread::sleep(Duration::from_millis(20)); // more of the ring is made present
        session.stop().expect("no error");
    }
    println!("{}", bytes_of_regions());
    idle.wait();
    std::thread::sleep(Duration::from_millis(50)); // they end what they began
}

/// Scopes that are forgotten, on a thread of its own, beside one that goes on.
fn forget_scopes(output: &str) {
    let session = builder(output).overflow(Overflow::Drop).buffer_size(1 << 20).start().expect("a session");
    let forgetful = std::thread::spawn(|| {
        for n in 0..200_000 {
            std::mem::forget(hairline::scope!("moments", "forgotten", n));
        }
        std::thread::park_timeout(Duration::from_millis(500));
    });
    std::thread::sleep(Duration::from_millis(300));
    work(100);
    forgetful.join().expect("joined");
    let summary = session.stop().expect("no error");
    println!("{} {}", summary.lost.buffer_full, summary.notes.join("; "));
}

fn main() {
    watchdog();
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().unwrap_or_default();
    let output = arguments.next().unwrap_or_default();
    match way.as_str() {
        "end-of-threads" => end_of_threads(&output),
        "clone" => unannounced(&output, children::clone),
        "bare-fork" => unannounced(&output, children::bare_fork),
        "fork-in-handler" => fork_in_signal_handlers(&output),
        "fork-without-session" => fork_without_a_session(),
        "fork-during-start" => fork_during_the_start(output.parse().expect("microseconds")),
        "snapshot-in-child" => snapshot_in_child(&output),
        "trigger-in-handler" => trigger_in_signal_handlers(&output),
        "idle-threads" => sessions_with_idle_threads(),
        "forget" => forget_scopes(&output),
        "timer" => start_under_a_timer(&output),
        _ => panic!("unknown way: {way}"),
    }
}
