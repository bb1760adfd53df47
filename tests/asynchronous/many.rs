//! More spans and threads than what is kept at hand for them.

use std::process::Command;
use std::sync::Barrier;

use hairline_tests::recording::{FORMATS, record};
use tracing_subscriber::prelude::*;

use crate::closings::work;

/// The slices that the program's spans become, by name, with the subscriber and with the layer: the same.
fn both(program: impl Fn(), expected: &str) {
    let sql = "select name, count(*), min(dur) >= 0 from slice group by name order by name";
    for format in FORMATS {
        let trace = record(format, |_| {
            tracing::subscriber::with_default(hairline::Subscriber::new(), &program);
        });
        assert_eq!(trace.rows(sql), expected, "Subscriber, {format:?}");
        let trace = record(format, |_| {
            tracing::subscriber::with_default(
                tracing_subscriber::registry().with(hairline::layer()),
                &program,
            );
        });
        assert_eq!(trace.rows(sql), expected, "Layer, {format:?}");
    }
}

/// Enters a span for longer than the drop of a future takes, and closes it.
fn enter_and_close(span: tracing::Span) {
    let _entered = span.entered();
    work();
}

// More than a thread has places for: the layer keeps the others in the registry.
#[test]
fn many_spans_at_a_time_are_all_recorded() {
    let program = || {
        for _ in 0..2 {
            let spans: Vec<_> = (0..300).map(|n| tracing::info_span!("span", n)).collect();
            spans.iter().for_each(|span| drop(span.enter()));
            let half = spans.into_iter().step_by(2);
            std::thread::scope(|threads| {
                threads.spawn(move || half.for_each(enter_and_close));
            });
        }
    };
    // A round: 300 on this thread, 150 on another, where these have a life besides.
    both(program, "span\t1200\t1");
}

// More than there are tables: the layer keeps their spans in the registry. Each is entered by its neighbour
// too.
#[test]
fn spans_of_many_threads_at_a_time_are_all_recorded() {
    const THREADS: usize = 100;
    let program = || {
        let barrier = Barrier::new(THREADS);
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let (send, receive): (Vec<_>, Vec<_>) =
            (0..THREADS).map(|_| std::sync::mpsc::channel::<tracing::Span>()).unzip();
        std::thread::scope(|threads| {
            for (n, receive) in receive.into_iter().enumerate() {
                let (barrier, dispatch, next) = (&barrier, &dispatch, send[(n + 1) % THREADS].clone());
                threads.spawn(move || {
                    let _default = tracing::dispatcher::set_default(dispatch);
                    let span = tracing::info_span!("span", n);
                    drop(span.enter());
                    barrier.wait();
                    next.send(span).unwrap();
                    enter_and_close(receive.recv().unwrap());
                    barrier.wait();
                });
            }
        });
    };
    both(program, "span\t300\t1");
}

/// The bytes that a span of a burst takes, and that it leaves.
fn burst(of: &str) -> [u64; 2] {
    let run = Command::new(env!("CARGO_BIN_EXE_burst"))
        .args([of, "300000"])
        .env_remove("HAIRLINE")
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{of}: {run:?}");
    let said = String::from_utf8(run.stdout).expect("text");
    let numbers: Vec<u64> = said.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    numbers.try_into().expect("two numbers")
}

// A server under load has a span for each request that waits. The registry's own memory is not counted.
#[test]
fn a_span_takes_two_hundred_bytes_and_a_burst_of_spans_returns_them() {
    let [registry, kept] = burst("none");
    for (of, without, kept) in [("subscriber", 0, 0), ("layer", registry, kept)] {
        let [live, after] = burst(of);
        println!("{of}: {live} bytes a span, {after} after the burst; {without} and {kept} without");
        assert!(live <= without + 210, "{of}: {live} bytes a span, of which {without} are the registry's");
        assert!(
            after <= kept + 20,
            "{of}: {after} bytes a span are left, of which {kept} are the registry's"
        );
    }
}
