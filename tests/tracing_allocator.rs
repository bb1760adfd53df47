//! An allocator that records events: they come from inside of everything that allocates, this library too.
//! None may wait for a lock that its own thread holds, and none may be lost without a count.

#![allow(unsafe_code)] // a global allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use hairline::recovery::{self, RecoverOptions};
use hairline::{
    Flow, Overflow, Session, Track, bytes, interned, scope, trace_async, trace_begin, trace_counter,
    trace_end, trace_instant, trace_log, trace_scope,
};
use hairline_tests::children;
use hairline_tests::judge;
use hairline_tests::output::kept;
use hairline_tests::recording::{FORMATS, extension, record_with, turn};
use hairline_tests::regions::region_of;
use hairline_tests::unlocked;

struct Tracing;

static ON: AtomicBool = AtomicBool::new(false);
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// One test at a time: all of them count in `EVENTS`.
static ONE: Mutex<()> = Mutex::new(());

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static HERE: Cell<bool> = const { Cell::new(false) };
}

fn events() {
    unlocked::require("the program's allocator is called");
    if !ON.load(Ordering::Relaxed) || !HERE.get() || INSIDE.replace(true) {
        return;
    }
    EVENTS.fetch_add(4, Ordering::Relaxed);
    trace_instant!("a", "interned", text = interned("a text"));
    trace_counter!("a", "counter", 1, track: &Track::process());
    {
        let mut interval = trace_async!("a", "interval");
        interval.arg("n", 1);
        let track = Track::thread();
        trace_begin!("a", "begun", list = [1, 2], track: &track);
        trace_end!(&track);
    }
    INSIDE.set(false);
}

// SAFETY: every call goes to `System` with its arguments as they are.
unsafe impl GlobalAlloc for Tracing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        events();
        // SAFETY: the caller keeps the contract, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        events();
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Tracing = Tracing;

const ROUNDS: u64 = 100;

fn program(n: u64) {
    let flow = Flow::new();
    let track = Track::process().child("track");
    trace_scope!("t", "scope", n, text = interned("another text"), flow: &flow);
    trace_begin!("t", "slice", track: &track, end_flow: &flow);
    trace_end!(&track, n);
    let mut interval = trace_async!("t", "interval", blob = bytes(&[1]));
    interval.arg("list", vec![n, 2]);
    let mut late = scope!("t", "late", name: format!("late {n}"));
    late.arg("words", ["a", "b"]);
    trace_counter!("t", "counter", n, track: &track, unit: "things");
    trace_log!(hairline::Level::Info, "t", "round {n}");
}

#[test]
fn events_of_an_allocator_are_recorded_or_counted_and_wait_for_nothing() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: takes a number. The default action ends a process that waits for itself.
    unsafe { libc::alarm(60) };
    for format in FORMATS {
        EVENTS.store(0, Ordering::Relaxed);
        let trace = record_with(
            format,
            |b| b.buffer_size(64 << 20),
            |_| {
                ON.store(true, Ordering::Relaxed);
                let thread = std::thread::spawn(|| {
                    HERE.set(true);
                    (0..ROUNDS).for_each(program);
                    HERE.set(false);
                });
                thread.join().unwrap();
                ON.store(false, Ordering::Relaxed);
            },
        );
        let lost = trace.summary.lost;
        // What an event needs is from the kernel: at most a few of the allocator's events come inside of one.
        assert!(lost.total() == lost.reentrant, "{format:?}: {lost:?}");
        let events = EVENTS.load(Ordering::Relaxed) + 6 * ROUNDS;
        assert_shown(trace.path(), events - lost.total());
    }
}

/// The trace shows so many slices, instants and counter values, all of them ended.
fn assert_shown(path: &Path, shown: u64) {
    let verdict = judge::load(
        path,
        &[
            "select (select count(*) from slice where name != 'events lost' and name != 'lost in all') + (select count(*) from counter), \
           (select count(*) from slice where dur < 0)",
        ],
    );
    assert_eq!(verdict.results[0].text(), format!("{shown}\t0"), "{}", path.display());
}

#[test]
fn a_child_may_have_events_of_its_allocator_before_fork_returns() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for format in FORMATS {
        let _turn = turn();
        let directory = tempfile::tempdir().expect("a directory");
        let session = Session::builder()
            .output(directory.path().join(format!("t-%p.{}", extension(format))))
            .overflow(Overflow::Overwrite)
            // The child frees its parent's rules.
            .trigger_on_slow("net/request", Duration::from_secs(1))
            .start()
            .expect("a session");
        program(0);
        ON.store(true, Ordering::Relaxed);
        HERE.set(true);
        // SAFETY: the child allocates and records, which the C library and Hairline let it do, and ends.
        match unsafe { children::fork() } {
            0 => {
                program(1);
                children::exit_at_once(0)
            }
            pid => {
                HERE.set(false);
                children::expect_success(pid, Duration::from_secs(10));
                ON.store(false, Ordering::Relaxed);
                let path = directory.path().join(format!("t-{pid}.{}", extension(format)));
                recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("recovered");
                let verdict = judge::load(&path, &["select count(*) from slice where name = 'scope'"]);
                assert_eq!(verdict.results[0].single_i64(), 1, "{format:?}: what the child recorded alone");
            }
        }
        session.stop().expect("no error");
    }
}

// threads that outnumber the chunks: the writer thread, whose allocations are traced too, takes chunks from
// those that are idle
#[test]
fn events_of_the_writer_threads_own_allocations_do_not_wait_for_it() {
    const THREADS: u64 = 150;
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: as above.
    unsafe { libc::alarm(120) };
    for format in FORMATS {
        let _turn = turn();
        EVENTS.store(0, Ordering::Relaxed);
        let (output, bytes) = kept(|| HERE.set(true));
        let session = Session::builder()
            .output_writer(output)
            .format(format)
            .overflow(Overflow::Block(Duration::from_secs(60)))
            .buffer_size(512 << 10) // 128 chunks
            .chunk_size(4 << 10)
            .start()
            .expect("a session");
        ON.store(true, Ordering::Relaxed);
        let all = Barrier::new(THREADS as usize);
        std::thread::scope(|threads| {
            for n in 0..THREADS {
                let all = &all;
                threads.spawn(move || {
                    program(n);
                    all.wait();
                    program(n);
                });
            }
        });
        ON.store(false, Ordering::Relaxed);
        session.flush().expect("no error"); // the writer thread has ended what it had begun
        let summary = session.stop().expect("no error");
        let file = tempfile::NamedTempFile::with_suffix(format!(".{}", extension(format))).expect("a file");
        std::fs::write(file.path(), bytes.recv().expect("a trace")).expect("written");
        let lost = summary.lost;
        // The writer thread's events find the ring full, and do not wait for it.
        assert_eq!(lost.total(), lost.reentrant + lost.buffer_full, "{format:?}: {lost:?}");
        let events = EVENTS.load(Ordering::Relaxed) + 6 * 2 * THREADS;
        assert_shown(file.path(), events - lost.total());
    }
}
