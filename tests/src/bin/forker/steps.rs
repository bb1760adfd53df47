//! What a process records, and its count of the scopes `step`.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use hairline::{trace_counter, trace_instant};
use hairline_tests::forked::MAGIC;
use hairline_tests::torture::Random;

thread_local! {
    /// This thread's number, in its steps.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    /// Its next step, in all sessions and processes.
    static NEXT: Cell<u64> = const { Cell::new(0) };
    /// Steps that it recorded, and the depth of the process in which it did. A handler may fork between a
    /// look at the number and the next one's store, which then belongs to the parent.
    static RECORDED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Counts the forks between the first process and this one.
static DEPTH: AtomicU32 = AtomicU32::new(0);

pub(crate) fn set_number(number: u64) {
    NUMBER.set(number);
}

pub(crate) fn number() -> u64 {
    NUMBER.get()
}

/// Whether this process is a child.
pub(crate) fn is_child() -> bool {
    DEPTH.load(SeqCst) > 0
}

/// In a child, at once.
pub(crate) fn begin_child() {
    DEPTH.fetch_add(1, SeqCst);
    RECORDED.set((u64::from(DEPTH.load(SeqCst)), 0));
}

/// Steps that this thread recorded in the process of this depth.
fn recorded_at(depth: u32) -> u64 {
    let (of, recorded) = RECORDED.get();
    if of == u64::from(depth) { recorded } else { 0 }
}

/// Steps that this thread recorded in this process.
pub(crate) fn recorded() -> u64 {
    recorded_at(DEPTH.load(SeqCst))
}

/// A scope `step`, counted if it was recorded.
pub(crate) fn step() {
    let (n, depth) = (NEXT.get(), DEPTH.load(SeqCst));
    let scope = hairline::scope!("forker", "step", n = n, thread = NUMBER.get(), magic = MAGIC);
    let is_recorded = scope.is_recorded();
    drop(scope);
    if is_recorded {
        NEXT.set(n + 1);
        // A handler may have forked meanwhile: then the begin was the parent's.
        RECORDED.set((u64::from(depth), recorded_at(depth) + u64::from(DEPTH.load(SeqCst) == depth)));
    }
}

/// What a signal handler may record.
pub(crate) fn record_bare() {
    step();
    trace_instant!("forker", "bare");
    trace_counter!("forker", "bare count", NEXT.get());
}

/// Whatever there is.
pub(crate) fn record(random: &Random) {
    step();
    match random.below(9) {
        0 => trace_instant!("forker", "instant", text = "some text", half = 0.5),
        1 => trace_instant!("forker", "formatted", value = ?Some(random.below(9))),
        2 => trace_counter!("forker", "count", random.below(1000)),
        3 => {
            let mut interval = hairline::trace_async!("forker", "interval");
            interval.arg("by", NUMBER.get());
        }
        4 => {
            let track = hairline::Track::process().child("a track");
            hairline::trace_begin!("forker", "on a track", track: &track);
            step();
            hairline::trace_end!(&track);
        }
        5 => {
            let span = tracing::info_span!("span", text = "of a field");
            span.in_scope(|| {
                tracing::info!("in the span");
                step();
            });
        }
        6 => log::info!("logged by {}", NUMBER.get()),
        7 => {
            let name = format!("dynamic {}", random.below(50));
            trace_instant!("forker", "named", name: &name);
        }
        _ => record_bare(),
    }
}
