//! Once a thread and its callsites are set up, a span does not touch the heap, but for what the registry
//! does.

use hairline_tests::alloc::allocations_during;
use hairline_tests::recording::{FORMATS, record};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::prelude::*;

/// Wants every span, and does nothing with it.
struct Nothing;

impl<S: Subscriber> Layer<S> for Nothing {}

/// Allocations of each kind of pass while the subscriber listens, in a thread that has made some such passes
/// before.
fn counted<S: Subscriber + Send + Sync>(subscriber: S) -> Vec<(&'static str, u64)> {
    let count = || {
        let living = tracing::info_span!("living");
        let mut passes: [(&'static str, &mut dyn FnMut()); 4] = [
            ("made, entered, left, closed", &mut || drop(tracing::info_span!("span").entered())),
            ("entered again", &mut || drop(living.enter())),
            ("with fields", &mut || {
                let span =
                    tracing::info_span!("fields", n = 7, text = "a text", late = tracing::field::Empty);
                let _entered = span.enter();
                span.record("late", 3);
            }),
            ("nested, with an event", &mut || {
                let _outer = tracing::info_span!("outer").entered();
                let _inner = tracing::info_span!("inner", n = 7).entered();
                tracing::info!(n = 7, "a message");
            }),
        ];
        let counts = passes.iter_mut().map(|(what, pass)| {
            (0..100).for_each(|_| pass());
            (*what, allocations_during(|| (0..5_000).for_each(|_| pass())).1)
        });
        counts.collect()
    };
    std::thread::scope(|threads| {
        threads.spawn(|| tracing::subscriber::with_default(subscriber, count)).join().unwrap()
    })
}

#[test]
fn a_span_does_not_allocate_with_the_subscriber() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for (what, allocations) in counted(hairline::Subscriber::new()) {
                assert_eq!(allocations, 0, "{format:?}: {what}");
            }
        });
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn with_the_layer_it_allocates_what_the_registry_does_with_one_that_does_nothing() {
    let registry = counted(tracing_subscriber::registry().with(Nothing));
    for format in FORMATS {
        let trace = record(format, |_| {
            assert_eq!(
                counted(tracing_subscriber::registry().with(hairline::layer())),
                registry,
                "{format:?}"
            );
        });
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}
