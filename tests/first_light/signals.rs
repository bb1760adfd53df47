//! Events that interrupt events.

#![allow(unsafe_code)] // sigaction and setitimer

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::{trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record_with};

/// The handler records while this is set. A signal is handled by any thread of the process, also by one that is then not
/// given a core for a while, so the test closes the door and waits until all who came in have left.
static OPEN: AtomicBool = AtomicBool::new(false);
static ENTERED: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    ENTERED.fetch_add(1, Ordering::SeqCst);
    if OPEN.load(Ordering::SeqCst) {
        trace_scope!("signal", "handler");
        trace_instant!("signal", "in the handler");
    } else {
        ENTERED.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    LEFT.fetch_add(1, Ordering::SeqCst);
}

fn close_the_door() {
    OPEN.store(false, Ordering::SeqCst);
    while ENTERED.load(Ordering::SeqCst) != LEFT.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

/// SIGALRM so often, of this process's time; 0 = never.
fn alarm_every(microseconds: libc::suseconds_t) {
    let value = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: value, it_value: value };
    // SAFETY: `handler` is what a signal handler may be: it touches an atomic and this library, which says that it may.
    // The structs are valid for the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

#[test]
fn a_signal_handler_that_records_breaks_nothing_and_is_recorded_or_counted() {
    for format in FORMATS {
        let mut worked = 0;
        let before = LEFT.load(Ordering::SeqCst);
        let trace = record_with(
            format,
            |b| b.buffer_size(64 << 20),
            |_| {
                OPEN.store(true, Ordering::SeqCst);
                handler(0); // its callsites and this thread are set up before the first signal
                alarm_every(100);
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(300) {
                    for _ in 0..100 {
                        trace_scope!("signal", "work", worked);
                        worked += 1;
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
                alarm_every(0);
                close_the_door();
            },
        );
        let handled = LEFT.load(Ordering::SeqCst) - before;
        let lost = trace.summary.lost;
        // A signal may also have found a thread of the test harness at its exit.
        assert_eq!(lost.total(), lost.reentrant + lost.thread_exit, "{format:?}");
        let count = |name: &str| format!("select count(*), sum(dur < 0) from slice where name = '{name}'");
        let verdict = trace.ask(&[&count("work"), &count("handler"), &count("in the handler")]);
        if lost.total() == 0 || format == hairline::Format::Fxt {
            verdict.require_clean();
        }
        let counts: Vec<i64> =
            verdict.results.iter().map(|r| r.iter().next().expect("a row").i64("count(*)")).collect();
        assert_eq!(counts[0] as u64, worked, "{format:?}: what was interrupted is whole");
        assert_eq!(counts[1] as u64 + counts[2] as u64 + lost.total(), 2 * handled, "{format:?}");
        let open = verdict.results.iter().map(|r| r.text()).filter(|t| !t.ends_with("\t0")).count();
        assert_eq!(open, 0, "{format:?}");
    }
}

/// Records while it is being formatted.
struct Chatty;

impl fmt::Display for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        trace_scope!("t", "formatting");
        f.write_str("chatty")
    }
}

#[test]
fn a_display_that_records_is_a_scope_before_the_event_it_is_for() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b,
            |_| {
                trace_scope!("t", "carrier", who = %Chatty);
            },
        );
        assert_eq!(
            trace.rows("select depth, name from slice order by ts"),
            "0\tformatting\n0\tcarrier",
            "{format:?}"
        );
        assert_eq!(trace.arguments(), "carrier: who = chatty", "{format:?}");
    }
}
