//! What this SDK records as FXT, read and written again.

use std::collections::BTreeMap;

use hairline::{
    Flow, Format, Level, Ordering, Track, Unit, trace_async, trace_begin, trace_counter, trace_end,
    trace_instant, trace_log, trace_scope,
};
use hairline_convert::TraceFormat;
use hairline_tests::equal::Shown;
use hairline_tests::recording::{record, record_with};

use crate::{convert, read};

/// Requires that a recording shows the same after it was converted to FXT, and that nothing was left out.
#[track_caller]
fn stays_the_same(program: impl FnOnce()) {
    let trace = read(record(Format::Fxt, |_| program()).path());
    let (converted, report) = convert(&trace, TraceFormat::Fxt);
    assert!(report.is_empty(), "{report:?}");
    Shown::of_clean(&trace).require_equal(&Shown::of_clean(&converted));
}

#[test]
fn everything_stays_the_same() {
    stays_the_same(crate::track_event::everything);
}

#[test]
fn more_threads_than_fxt_has_numbers_for_stay_the_same() {
    stays_the_same(|| {
        for _ in 0..2 {
            std::thread::scope(|threads| {
                (0..300).for_each(|n| {
                    threads.spawn(move || {
                        trace_scope!("t", "work", n = n);
                    });
                });
            });
        }
    });
}

#[test]
fn slices_and_instants_stay_the_same() {
    stays_the_same(|| {
        for n in 0..100 {
            trace_scope!("net", "outer", n = n);
            trace_scope!("db", "inner");
            trace_instant!("net", "retry", attempt = n);
        }
        std::thread::Builder::new()
            .name("worker".into())
            .spawn(|| {
                trace_scope!("net", "work");
            })
            .unwrap()
            .join()
            .unwrap();
    });
}

#[test]
fn arguments_of_every_type_stay_the_same() {
    stays_the_same(|| {
        let pointer: *const u8 = 0x1234_5678_9abc as *const u8;
        let map = BTreeMap::from([("a", 1), ("b", 2)]);
        trace_instant!(
            "t",
            "numbers",
            small = -1,
            large = i64::MIN,
            unsigned = u32::MAX,
            huge = i64::MAX as u64
        );
        trace_instant!("t", "others", text = "é\"", empty = "", truth = true, half = 0.5, at = pointer);
        trace_instant!("t", "nested", map = map, list = [1, 2, 3]);
    });
}

#[test]
fn counters_stay_the_same() {
    stays_the_same(|| {
        for n in 0..10 {
            trace_counter!("t", "whole", n);
            trace_counter!("t", "half", f64::from(n) / 2.0);
        }
    });
}

#[test]
fn flows_stay_the_same() {
    stays_the_same(|| {
        let flow = Flow::new();
        {
            trace_scope!("t", "push", flow: &flow);
        }
        trace_instant!("t", "note", flow: &flow);
        let flow = std::thread::spawn(move || {
            trace_scope!("t", "work", flow: &flow);
            flow
        })
        .join()
        .unwrap();
        trace_scope!("t", "collect", end_flow: &flow);
    });
}

#[test]
fn async_intervals_stay_the_same() {
    stays_the_same(|| {
        let first = trace_async!("t", "request", n = 1);
        let second = trace_async!("t", "request", n = 2);
        drop(first);
        let third = trace_async!("t", "request", n = 3);
        std::thread::spawn(move || drop(second)).join().unwrap();
        drop(third);
    });
}

#[test]
fn messages_stay_the_same() {
    stays_the_same(|| {
        trace_log!(Level::Warn, "net", "no answer after {} attempts", 3);
        trace_log!(Level::Trace, "net", "plain");
    });
}

#[test]
fn what_stands_in_blobs_stays_the_same() {
    stays_the_same(|| {
        let requests = Track::new("requests").ordering(Ordering::Lexicographic);
        let one = requests.child("one");
        trace_begin!("t", "first", track: &one, n = 1);
        trace_counter!("t", "sent", 3, unit: Unit::Bytes);
        trace_instant!("t", "here", track: &requests);
        trace_end!(&one, n = 2);
    });
}

#[test]
fn a_loss_stays_visible() {
    let trace = record_with(
        Format::Fxt,
        |b| b.chunk_size(4096).buffer_size(16 << 10),
        |_| {
            for _ in 0..100_000 {
                trace_scope!("t", "much");
            }
        },
    );
    let trace = read(trace.path());
    let (converted, report) = convert(&trace, TraceFormat::Fxt);
    assert!(report.is_empty(), "{report:?}");
    Shown::of_clean(&trace).require_equal(&Shown::of_clean(&converted));
}
