//! An allocator that records events: they come from inside of everything that allocates, this library too. None may wait for a
//! lock that its own thread holds, and none may be lost without a count.

#![allow(unsafe_code)] // a global allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hairline::{
    Flow, Track, bytes, interned, scope, trace_async, trace_begin, trace_counter, trace_end, trace_instant,
    trace_log, trace_scope,
};
use hairline_tests::recording::{FORMATS, record_with};

struct Tracing;

static ON: AtomicBool = AtomicBool::new(false);
static EVENTS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static HERE: Cell<bool> = const { Cell::new(false) };
}

fn events() {
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
        let verdict = trace.ask(&[
            "select (select count(*) from slice where name != 'events lost' and name != 'lost in all') + (select count(*) from counter), \
             (select count(*) from slice where dur < 0)",
        ]);
        let row = verdict.results[0].text();
        let lost = trace.summary.lost;
        assert!(lost.reentrant > 0 && lost.total() == lost.reentrant, "{format:?}: {lost:?}");
        let shown = EVENTS.load(Ordering::Relaxed) + 6 * ROUNDS - lost.total();
        assert_eq!(row, format!("{shown}\t0"), "{format:?}");
    }
}
