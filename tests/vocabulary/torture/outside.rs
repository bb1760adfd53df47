//! What signals record, in whichever thread they find, and what forked children do.

#![allow(unsafe_code)] // both may do little

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use hairline::{scope, trace_async, trace_counter, trace_instant};
use hairline_tests::outside::{self, Alarm};

thread_local! {
    /// The state of the world in which the thread has recorded, and may be made to by a signal.
    pub(super) static READY: Cell<u64> = const { Cell::new(0) };
}

/// The state of the world, for the handler.
pub(super) static NOW: AtomicU64 = AtomicU64::new(0);
/// Attempts, and those of them that guards called recorded.
pub(super) static HANDLED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn record_where_ready() {
    if READY.get() == NOW.load(SeqCst) && READY.get() % 4 == 2 {
        record();
    }
}

/// The callsites are set up, and this thread's lists, before a signal uses them.
pub(super) fn record() {
    let scope = scope!("a", "handler scope");
    trace_instant!("a", "handler instant");
    let interval = trace_async!("a", "handler interval");
    trace_counter!("a", "handler counter", 1);
    HANDLED[0].fetch_add(4, SeqCst);
    HANDLED[1].fetch_add(u64::from(scope.is_recorded()) + u64::from(interval.is_recorded()), SeqCst);
    drop(interval);
    drop(scope);
}

/// Has signals record every so many microseconds, until the result is dropped.
pub(super) fn alarm_every(microseconds: libc::suseconds_t) -> Alarm {
    HANDLED.iter().for_each(|n| n.store(0, SeqCst));
    // SAFETY: it touches atomics and this library, which says that a signal handler may.
    unsafe { Alarm::every(microseconds, record_where_ready) }
}

/// Records in a forked child, which must come to its end.
pub(super) fn in_a_child(child: impl FnOnce()) {
    // SAFETY: the workers' children only record, which this library says that they may.
    unsafe { outside::in_a_child(child) }.unwrap();
}
