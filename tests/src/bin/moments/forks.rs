//! Forks: unannounced ones, in signal handlers, and while nothing is traced or tracing begins.

#![allow(unsafe_code)] // children without handlers, waitpid

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::Session;
use hairline_tests::children::{self, Way};

use crate::common::{PATIENCE, StopOnDrop, builder, fork, handle, set_timer, stopped, wait_for, work};

/// Children that nobody announced, while the parent's threads record: each child records too.
pub(crate) fn unannounced(output: &str, child: Way) {
    let session = builder(output).start().expect("a session");
    let recorded = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let _stop = StopOnDrop;
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
            let later = builder("of-a-child.fxt");
            // SAFETY: the child takes no lock but Hairline's own. It allocates nothing: another thread of the
            // parent may hold the allocator's lock, which no handler has put in order.
            match unsafe { child() } {
                0 => {
                    drop(open);
                    work(1000);
                    let later = later.start();
                    work(10);
                    std::mem::forget(later);
                    children::exit_at_once(0)
                }
                // The parent goes on in the same chunk meanwhile.
                pid => {
                    drop(later);
                    work(n % 50);
                    recorded.fetch_add(u64::from(n % 50), Ordering::Relaxed);
                    wait_for(pid);
                }
            }
        }
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
        _ => _ = FORKED_IN_HANDLER.fetch_add(1, Ordering::Relaxed),
    }
}

/// Children of handlers that have ended, and the status of the last that ended otherwise than with 0.
#[derive(Default)]
struct Reaped {
    all: u64,
    bad_status: libc::c_int,
}

impl Reaped {
    /// Takes the ends of children that are over. Does not panic: a panic allocates, and the next handler
    /// forks.
    fn take(&mut self) {
        let mut status = 0;
        // SAFETY: `status` is valid.
        while unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } > 0 {
            self.all += 1;
            if status != 0 {
                self.bad_status = status;
            }
        }
    }
}

/// A timer's signal forks, wherever it interrupts the thread: in the midst of an event too. The child goes on
/// with what was interrupted.
pub(crate) fn fork_in_signal_handlers(output: &str) {
    let session = builder(output).start().expect("a session");
    work(10);
    handle(libc::SIGALRM, fork_in_handler);
    set_timer(1000);
    let (mut recorded, mut reaped) = (10, Reaped::default());
    while FORKED_IN_HANDLER.load(Ordering::Relaxed) < 150 && !IS_CHILD.load(Ordering::Relaxed) {
        work(100);
        recorded += 100;
        std::thread::sleep(Duration::from_micros(50));
        reaped.take();
    }
    set_timer(0);
    if IS_CHILD.load(Ordering::Relaxed) {
        work(1000);
        children::exit_at_once(0);
    }
    reap_all(reaped);
    let summary = session.stop().expect("no error");
    println!("{recorded} {}", summary.lost.total());
}

/// Waits until all children of handlers have ended well.
fn reap_all(mut reaped: Reaped) {
    let began = Instant::now();
    // A child may end before the handler has counted it.
    while reaped.all != FORKED_IN_HANDLER.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
        reaped.take();
    }
    let forked = FORKED_IN_HANDLER.load(Ordering::Relaxed);
    assert_eq!((reaped.all, reaped.bad_status), (forked, 0), "children that ended, and a bad status");
}

/// A slow output, for a small ring that is always full.
struct Slow;

impl std::io::Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_micros(300));
        Ok(bytes.len().min(16 << 10))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A timer's signal forks while its thread waits for room, as eight others do. In the child the wait ends.
pub(crate) fn fork_while_waiting_for_room() {
    let session = builder("t.fxt")
        .output_writer(Slow)
        .format(hairline::Format::Fxt)
        .buffer_size(64 << 10)
        .chunk_size(4096)
        .start()
        .expect("a session");
    let end_in_child = || {
        if IS_CHILD.load(Ordering::Relaxed) {
            children::exit_at_once(0);
        }
    };
    std::thread::scope(|threads| {
        let _stop = StopOnDrop;
        for _ in 0..8 {
            threads.spawn(|| {
                while !stopped() {
                    work(1);
                    end_in_child();
                }
            });
        }
        handle(libc::SIGALRM, fork_in_handler);
        set_timer(1500);
        let mut reaped = Reaped::default();
        while FORKED_IN_HANDLER.load(Ordering::Relaxed) < 150 {
            work(1);
            end_in_child();
            reaped.take();
        }
        set_timer(0);
        end_in_child();
        reap_all(reaped);
    });
    session.stop().expect("no error");
}

/// An output whose first write after `SEND` is set interrupts the main thread by a signal.
struct Interrupting(libc::pthread_t);

static SEND: AtomicBool = AtomicBool::new(false);

impl std::io::Write for Interrupting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if SEND.swap(false, Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20)); // the main thread waits by now
            // SAFETY: the main thread exists as long as its process.
            unsafe { libc::pthread_kill(self.0, libc::SIGALRM) };
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A signal handler forks while its thread waits in `flush`, and then in `stop`. In the child the call
/// returns.
pub(crate) fn fork_in_flush_and_stop() {
    handle(libc::SIGALRM, fork_in_handler);
    // SAFETY: names this thread.
    let main = unsafe { libc::pthread_self() };
    let start = || {
        let output = Interrupting(main);
        builder("t.fxt").output_writer(output).format(hairline::Format::Fxt).start().expect("a session")
    };
    let end_of_child = || {
        if IS_CHILD.load(Ordering::Relaxed) {
            work(10);
            children::exit_at_once(0);
        }
    };
    let session = start();
    for _ in 0..5 {
        work(10);
        SEND.store(true, Ordering::Relaxed);
        session.flush().expect("no error");
        end_of_child();
    }
    work(10);
    SEND.store(true, Ordering::Relaxed);
    let summary = session.stop().expect("no error");
    end_of_child();
    assert_eq!(summary.records, 60 * 2);
    assert_eq!(FORKED_IN_HANDLER.load(Ordering::Relaxed), 6);
    reap_all(Reaped::default());
}

extern "C" fn record_in_handler(_: libc::c_int) {
    hairline::trace_instant!("moments", "in a handler");
}

/// Signals whose handler records come at every moment of a fork, in the child too, before `fork` returns:
/// another process sends them to the group of this one.
pub(crate) fn fork_under_signals(output: &str) {
    // SAFETY: numbers only.
    unsafe { libc::setpgid(0, 0) };
    handle(libc::SIGUSR1, record_in_handler);
    let session = builder(output).start().expect("a session");
    record_in_handler(0); // the first event of a callsite is not for handlers
    let parent = std::process::id().cast_signed();
    let sender = match fork() {
        0 => {
            // SAFETY: numbers only.
            unsafe {
                libc::signal(libc::SIGUSR1, libc::SIG_IGN);
                while libc::getppid() == parent {
                    libc::kill(0, libc::SIGUSR1);
                    (0..2000).for_each(|_| std::hint::spin_loop());
                }
            }
            children::exit_at_once(0)
        }
        pid => pid,
    };
    for _ in 0..600 {
        match fork() {
            0 => children::exit_at_once(0),
            pid => wait_for(pid),
        }
    }
    // SAFETY: a child of this process that was not waited for.
    unsafe {
        libc::kill(sender, libc::SIGKILL);
        libc::waitpid(sender, std::ptr::null_mut(), 0);
    }
    session.stop().expect("no error");
}

/// No session: threads make callsites, futures, tracks and intervals while another one forks. The children do
/// the same.
pub(crate) fn fork_without_a_session() {
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
        let _stop = StopOnDrop;
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
    });
}

/// Forks while another thread's first event starts the environment's session, so many microseconds after it
/// began.
pub(crate) fn fork_during_the_start(after: u64) {
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
