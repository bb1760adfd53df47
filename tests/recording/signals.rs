//! Events that interrupt events.

#![allow(unsafe_code)] // a signal handler

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::{trace_instant, trace_scope};
use hairline_tests::outside::Alarm;
use hairline_tests::recording::{FORMATS, record, record_with};

static HANDLED: AtomicU64 = AtomicU64::new(0);

fn handle() {
    trace_scope!("signal", "handler");
    trace_instant!("signal", "in the handler");
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_signal_handler_that_records_breaks_nothing_and_is_recorded_or_counted() {
    for format in FORMATS {
        let mut worked = 0;
        let before = HANDLED.load(Ordering::SeqCst);
        let trace = record_with(
            format,
            |b| b.buffer_size(64 << 20),
            |_| {
                handle(); // its callsites and this thread are set up before the first signal
                // SAFETY: it touches an atomic and this library, which says that a signal handler may.
                let alarm = unsafe { Alarm::every(100, handle) };
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(300) {
                    for _ in 0..100 {
                        trace_scope!("signal", "work", worked);
                        worked += 1;
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
                drop(alarm);
            },
        );
        let handled = HANDLED.load(Ordering::SeqCst) - before;
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
        let trace = record(format, |_| {
            trace_scope!("t", "carrier", who = %Chatty);
        });
        assert_eq!(
            trace.rows("select depth, name from slice order by ts"),
            "0\tformatting\n0\tcarrier",
            "{format:?}"
        );
        assert_eq!(trace.arguments(), "carrier: who = chatty", "{format:?}");
    }
}
