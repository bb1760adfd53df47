//! Scopes that end out of order: counted, marked in the trace, and found there by `hairline validate`.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use hairline::{Format, Overflow, Scope, SessionBuilder, scope, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, Trace, record_in_any_order, record_with};

use crate::{hairline, run};

/// The exit code and the report of `validate`.
fn validated(trace: &Trace, ignored: &str) -> (Option<i32>, String) {
    let folder = trace.path().parent().expect("a folder");
    let output = run(hairline(folder).arg("validate").arg(trace.path()).args(["--ignore", ignored]));
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

/// How many ends `validate` finds to be out of order, by the trace alone.
fn found(trace: &Trace) -> u64 {
    let (_, report) = validated(trace, "nesting");
    let line = report.lines().find(|line| line.contains("ended while a later one"));
    let count = line.and_then(|line| line.split(' ').next());
    count.map_or(0, |count| count.replace(',', "").parse().expect("a count"))
}

fn require(trace: &Trace, out_of_order: u64, case: &str) {
    let summary = &trace.summary;
    assert_eq!((summary.out_of_order, summary.lost.total()), (out_of_order, 0), "{case}: {summary:?}");
    assert_eq!(found(trace), out_of_order, "{case}");
    let noted = summary.notes.iter().any(|note| note.contains("a later scope"));
    assert_eq!(noted, out_of_order > 0, "{case}: {:?}", summary.notes);
}

const PLAIN: fn(SessionBuilder) -> SessionBuilder = |builder| builder;
const TINY: fn(SessionBuilder) -> SessionBuilder = |builder| builder.chunk_size(4096).buffer_size(1 << 20);
const RECORDER: fn(SessionBuilder) -> SessionBuilder =
    |builder| builder.overflow(Overflow::Overwrite).chunk_size(4096).buffer_size(1 << 20);
const DETAILED: fn(SessionBuilder) -> SessionBuilder = |builder| builder.thread_time(true);

#[test]
fn two_scopes_that_end_each_other_are_counted_and_named() {
    for format in FORMATS {
        for (case, configure) in [("plain", PLAIN), ("recorder", RECORDER), ("CPU time", DETAILED)] {
            let trace = record_in_any_order(format, configure, |_| {
                let mut first = scope!("t", "first");
                let second = scope!("t", "second");
                first.arg("bytes", 3);
                drop(first);
                drop(second);
                trace_scope!("t", "in order");
            });
            require(&trace, 2, &format!("{format:?}, {case}"));
            let (code, report) = validated(&trace, "flow");
            assert_eq!(code, Some(1), "{report}");
            assert!(report.contains("\"first\", on ") && report.contains("\"second\", on "), "{report}");
            // In FXT the end of `first` closes `second` too, whose own end is left over.
            assert_eq!(validated(&trace, "nesting,no-begin").0, Some(0), "{report}");
            if format == Format::TrackEvent {
                let marks = "select s.name, a.display_value from slice s join args a using (arg_set_id) \
                     where a.key like '%hairline_out_of_order' order by s.ts";
                assert_eq!(trace.rows(marks), "first\tsecond\nsecond\tfirst", "who ended whom");
            }
        }
    }
}

/// Scopes inside of each other, with `inside` in the innermost.
fn nested(depth: u32, inside: &dyn Fn()) {
    if depth == 0 {
        return inside();
    }
    trace_scope!("t", "nested");
    nested(depth - 1, inside);
}

fn swapped(fill: u32) {
    let first = scope!("t", "first");
    (0..fill).for_each(|_| trace_instant!("t", "filler"));
    let second = scope!("t", "second", n = 1);
    (0..fill).for_each(|_| trace_instant!("t", "filler"));
    drop(first);
    (0..fill).for_each(|_| trace_instant!("t", "filler"));
    drop(second);
}

#[test]
fn scopes_in_order_are_not_counted_at_any_depth_and_those_among_them_are() {
    for format in FORMATS {
        for (case, configure, depth) in
            [("plain", PLAIN, 1000), ("tiny", TINY, 1000), ("recorder", RECORDER, 40), ("CPU", DETAILED, 100)]
        {
            for fill in [0, 1000] {
                let case = format!("{format:?}, {case}, {fill}");
                let fills = || (0..fill).for_each(|_| trace_instant!("t", "filler"));
                let trace = record_with(format, configure, |_| {
                    (0..3).for_each(|_| nested(depth, &fills));
                });
                require(&trace, 0, &case);
                let trace = record_in_any_order(format, configure, |_| {
                    nested(depth, &|| swapped(fill));
                    swapped(fill);
                    nested(depth, &fills);
                });
                require(&trace, 4, &case);
            }
        }
    }
}

#[test]
fn a_list_of_scopes_that_is_dropped_from_its_front_is_out_of_order() {
    for format in FORMATS {
        for (case, configure) in [("plain", PLAIN), ("tiny", TINY)] {
            let scopes = |count| -> Vec<Scope> { (0..count).map(|_| scope!("t", "one of many")).collect() };
            let trace = record_in_any_order(format, configure, |_| {
                let backward = scopes(1000);
                backward.into_iter().rev().for_each(drop);
                drop(scopes(999));
            });
            // The one in the middle ends as the innermost but one: only its place is its own.
            require(&trace, 998, &format!("{format:?}, {case}"));
        }
    }
}

async fn turn() {
    let waited = Cell::new(false);
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if waited.replace(true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn scopes_held_across_an_await_on_one_thread_are_counted() {
    const ROUNDS: u64 = 200;
    for format in FORMATS {
        let trace = record_in_any_order(format, PLAIN, |_| {
            let task = || async {
                for _ in 0..ROUNDS {
                    #[allow(clippy::await_holding_invalid_type)] // what is tried here
                    let _scope = scope!("t", "across");
                    turn().await;
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                futures::future::join(task(), task()).await;
            });
        });
        require(&trace, 2 * ROUNDS, &format!("{format:?}"));
    }
}
