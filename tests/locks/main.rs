//! No code of the program, no allocation and no release of memory happens under a lock of ours: the program
//! may have an allocator that takes a mutex of its own and records events while it holds that mutex, and
//! values whose `Debug` does.
//!
//! In builds with debug assertions the recorder counts the locks that each thread holds. The allocator here,
//! and what takes the program's mutex, end the process where that is not none: so every lock is checked that
//! any of these tests comes to.
//!
//! In most tests one thread does what once allocated, or ran the program's code, under one of our locks.
//! Another thread records under the program's mutex what needs that lock. With an allocation under the lock
//! they wait for each other for ever; a watchdog ends the process then.

#![allow(unsafe_code)] // a global allocator

mod containers;
mod session;
mod values;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hairline::Format;
use hairline_tests::recording::{FORMATS, Trace, record_in, turn};
use hairline_tests::unlocked;

/// What the program's allocator records at every call.
type Record = Box<dyn Fn() + Send>;

/// The program's mutex.
static PROGRAM: Mutex<Option<Record>> = Mutex::new(None);

/// Whether a thread is inside of the allocator, and waits until the other thread has recorded under the
/// mutex.
static WAITS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the program's allocator records on this thread.
    static RECORDS: Cell<bool> = const { Cell::new(false) };
}

/// The program's allocator.
struct Recording;

impl Recording {
    fn record() {
        unlocked::require("the program's allocator is called");
        if RECORDS.replace(false) {
            // A mutex that is fair: it is the other thread's turn, at each allocation.
            WAITS.store(true, Ordering::Relaxed);
            while WAITS.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let program = program();
            if let Some(record) = &*program {
                record();
            }
            drop(program);
            RECORDS.set(true);
        }
    }
}

/// The program's mutex, as its allocator and its values take it.
fn program() -> MutexGuard<'static, Option<Record>> {
    unlocked::require("a mutex of the program is waited for");
    PROGRAM.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: every call goes to `System` with its arguments as they are.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::record();
        // SAFETY: the caller keeps the contract, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::record();
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Recording = Recording;

/// The longest that a recording takes whose threads do not wait for each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the recording of a test, and ends the process where the recording does not come back.
fn watched<R>(f: impl FnOnce() -> R) -> R {
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let (done, end) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name}: threads wait for each other");
            std::process::abort();
        }
    });
    let result = f();
    drop(done);
    watchdog.join().expect("no panic");
    result
}

/// Each test in each format, one after the other: there is one allocator.
fn each_format(test: impl Fn(&MutexGuard<'static, ()>, Format)) {
    let turn = turn();
    for format in FORMATS {
        test(&turn, format);
    }
}

/// What the two threads do.
struct Contention<W> {
    /// What is recorded under the program's mutex: by the one thread in every allocation, and before that by
    /// the other one, while the first waits for its turn.
    record: Record,
    /// The part of the one thread, `rounds` times.
    work: W,
    rounds: u64,
}

/// Ends the other thread's part, also when this one panics.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Records what two threads do with an allocator that records. Nothing is lost but what the allocator
/// recorded from inside of an event.
fn contend<W: Fn(u64) + Sync>(
    turn: &MutexGuard<'static, ()>,
    format: Format,
    contention: impl FnOnce() -> Contention<W>,
) -> Trace {
    let trace =
        watched(|| record_in(turn, format, |b| b.buffer_size(256 << 20), |_| contend_now(contention())));
    let lost = trace.summary.lost;
    assert_eq!(lost.total(), lost.reentrant, "{format:?}: {lost:?}");
    trace
}

/// The same in a session that runs.
fn contend_now<W: Fn(u64) + Sync>(contention: Contention<W>) {
    let Contention { record, work, rounds } = contention;
    // Callsites are known, and each thread has its chunk: their locks are others' tests.
    record();
    work(0);
    *program() = Some(record);
    let (ready, is_over) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            program().as_ref().expect("a record")();
            ready.wait();
            while !is_over.load(Ordering::Relaxed) {
                if WAITS.load(Ordering::Relaxed) {
                    program().as_ref().expect("a record")();
                    WAITS.store(false, Ordering::Relaxed);
                }
                std::thread::yield_now();
            }
        });
        threads.spawn(|| {
            work(1);
            ready.wait();
            let _over = Over(&is_over);
            RECORDS.set(true);
            (2..rounds).for_each(&work);
            RECORDS.set(false);
        });
    });
    let record = program().take();
    drop(record);
}
