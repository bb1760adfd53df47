//! The fields of spans: code of the program shows them.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairline::Mode;
use hairline_tests::recording::{Trace, record_in};
use tracing::field::Empty;
use tracing::{Dispatch, Span, Subscriber, dispatcher};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::{Contention, contend, each_format, program, watched};

/// A value that runs code when it is shown.
struct Shown<F>(F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Debug for Shown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}

/// A layer that changes what the registry keeps of a span, under the registry's lock of that span.
struct Writing;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Writing {
    fn on_record(&self, id: &tracing::Id, _: &tracing::span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(7_u8);
        }
    }
}

/// All ways to listen, with a name.
fn listeners(mode: Mode) -> [(&'static str, Dispatch); 3] {
    let registry = || tracing_subscriber::registry().with(hairline::layer().mode(mode));
    [
        ("subscriber", Dispatch::new(hairline::Subscriber::new().mode(mode))),
        ("layer", Dispatch::new(registry())),
        ("layer below another one", Dispatch::new(registry().with(Writing))),
    ]
}

/// Each way to listen, in each format.
fn each(mode: Mode, program: impl Fn(), check: impl Fn(&Trace, &str)) {
    each_format(|turn, format| {
        for (name, dispatch) in listeners(mode) {
            let run = |_: &_| dispatcher::with_default(&dispatch, &program);
            let trace = watched(|| record_in(turn, format, |b| b.buffer_size(64 << 20), run));
            assert_eq!(trace.summary.lost.total(), 0, "{name}, {format:?}: {:?}", trace.summary.lost);
            check(&trace, &format!("{name}, {format:?}"));
        }
    });
}

/// The arguments of the slices on threads with this name, by keys.
fn arguments(trace: &Trace, slice: &str) -> String {
    trace.rows(&format!(
        "select replace(a.key, 'debug.', '') as k, a.display_value \
         from slice s join args a using (arg_set_id) where s.name = '{slice}' and \
         (a.key like 'debug.%' or not exists (select 1 from args where key like 'debug.%')) \
         order by k, a.display_value"
    ))
}

/// Spans that are open at once, so that the layer has no room for the last of them in its own tables, and
/// asks the registry.
fn crowd() -> Vec<Span> {
    (0..300).map(|_| tracing::info_span!("one of many")).collect()
}

/// Takes longer than the drop of a future, which has no slice.
fn some_work() {
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_micros(50) {}
}

#[test]
fn a_value_may_record_on_the_span_that_it_is_recorded_on() {
    each(
        Mode::Auto,
        || {
            let crowd = crowd();
            let far = tracing::info_span!("span", outer = Empty, inner = Empty);
            drop(crowd);
            let near = tracing::info_span!("span", outer = Empty, inner = Empty);
            for span in [&far, &near] {
                let value = Shown(|f: &mut fmt::Formatter<'_>| {
                    span.record("inner", 1);
                    span.in_scope(|| {});
                    near.follows_from(&far);
                    f.write_str("shown")
                });
                span.record("outer", tracing::field::debug(&value));
                span.in_scope(|| {});
            }
        },
        |trace, name| {
            let shown = arguments(trace, "span");
            let lines = |wanted: &str| shown.lines().filter(|line| *line == wanted).count();
            assert!(lines("inner\t1") >= 2 && lines("outer\tshown") >= 2, "{name}:\n{shown}");
            assert_eq!(trace.rows("select count(*) from slice where dur < 0"), "0", "{name}");
        },
    );
}

#[test]
fn a_value_may_wait_for_a_thread_that_records_on_the_same_span() {
    each(
        Mode::Auto,
        || {
            let span = tracing::info_span!("span", waits = Empty, n = Empty);
            let is_over = AtomicBool::new(false);
            std::thread::scope(|threads| {
                let (of_thread, is_over) = (span.clone(), &is_over);
                threads.spawn(move || {
                    let mut n = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let _program = program();
                        of_thread.record("n", n);
                        n += 1;
                        std::thread::yield_now();
                    }
                });
                for _ in 0..200 {
                    let value = Shown(|f: &mut fmt::Formatter<'_>| {
                        drop(program());
                        f.write_str("shown")
                    });
                    span.record("waits", tracing::field::debug(value));
                }
                is_over.store(true, Ordering::Relaxed);
            });
        },
        |_, _| {},
    );
}

#[test]
fn an_allocator_may_record_on_the_span_that_a_value_is_recorded_on() {
    const ROUNDS: u64 = 30;
    for mode in [Mode::Auto, Mode::Lifetimes] {
        each_format(|turn, format| {
            // The other layer allocates under the registry's lock.
            for (name, dispatch) in listeners(mode).into_iter().take(2) {
                let of_both = dispatch.clone();
                let trace = contend(turn, format, || {
                    let make = || {
                        let shared = tracing::info_span!("shared", late = Empty);
                        let other = tracing::info_span!("other", n = 1, text = "a text");
                        (shared, other)
                    };
                    let spans = Arc::new(dispatcher::with_default(&of_both, make));
                    let of_allocator = Arc::clone(&spans);
                    Contention {
                        record: Box::new(move || {
                            let (shared, other) = &*of_allocator;
                            shared.record("late", 1);
                            other.follows_from(shared.id());
                            // The registry cannot be entered from its own allocations.
                            if name == "subscriber" {
                                other.in_scope(|| {});
                            }
                        }),
                        work: move |n| {
                            let (shared, other) = &*spans;
                            shared.record("late", tracing::field::debug("a text that needs memory"));
                            other.in_scope(|| {});
                            shared.follows_from(other.id());
                            dispatcher::with_default(&of_both, || {
                                let span = tracing::info_span!(parent: other, "own", n, late = Empty);
                                span.record("late", "a text");
                                span.in_scope(|| {});
                                span.in_scope(some_work);
                            });
                        },
                        rounds: ROUNDS,
                    }
                });
                let own = "select count(*), sum(dur < 0) from slice where name = 'own' \
                     and track_id in (select id from thread_track)";
                let shown = trace.ask(&[own]).results[0].text();
                assert_eq!(shown, format!("{}\t0", 2 * ROUNDS), "{name}, {mode:?}, {format:?}");
            }
        });
    }
}

#[test]
fn values_that_two_threads_record_at_once_are_all_there() {
    const SPANS: usize = 200;
    for mode in [Mode::Threads, Mode::Lifetimes] {
        each(
            mode,
            || {
                for _ in 0..SPANS {
                    let (a, b, c, d) = (Empty, Empty, Empty, Empty);
                    let span = tracing::info_span!("span", a, b, c, d);
                    std::thread::scope(|threads| {
                        for keys in [["a", "b"], ["c", "d"]] {
                            let span = &span;
                            threads.spawn(move || {
                                for key in keys {
                                    span.record(key, 1);
                                }
                            });
                        }
                    });
                    span.in_scope(|| {});
                }
            },
            |trace, name| {
                let shown = arguments(trace, "span");
                assert_eq!(shown.lines().count(), 4 * SPANS, "{name}, {mode:?}:\n{shown}");
            },
        );
    }
}

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

fn panics() -> impl fmt::Debug {
    Shown(|f: &mut fmt::Formatter<'_>| {
        assert!(!PANICS.get(), "in a value's Debug");
        f.write_str("shown")
    })
}

#[test]
fn a_value_that_panics_leaves_its_span_as_it_was() {
    each(
        Mode::Auto,
        || {
            let span = tracing::info_span!("span", early = ?panics(), late = Empty, more = Empty);
            PANICS.set(true);
            for _ in 0..100 {
                let recorded = catch_unwind(AssertUnwindSafe(|| {
                    span.record("late", tracing::field::debug(panics()));
                }));
                let made = catch_unwind(|| tracing::info_span!("never made", early = ?panics()));
                assert!(recorded.is_err() && made.is_err());
            }
            PANICS.set(false);
            span.record("late", 1);
            let other = span.clone();
            let dispatch = dispatcher::get_default(Clone::clone);
            let record = move || {
                other.record("more", 2);
            };
            std::thread::spawn(move || dispatcher::with_default(&dispatch, record)).join().unwrap();
            span.in_scope(|| tracing::info_span!("inner", early = ?panics()).in_scope(|| {}));
        },
        |trace, name| {
            let slices = trace.rows("select depth, name, dur >= 0 from slice order by ts");
            assert_eq!(slices, "0\tspan\t1\n1\tinner\t1", "{name}");
            assert_eq!(arguments(trace, "span"), "early\tshown\nlate\t1\nmore\t2", "{name}");
            assert_eq!(arguments(trace, "inner"), "early\tshown", "{name}");
        },
    );
}

#[test]
fn a_value_that_panics_costs_the_subscriber_no_slot() {
    each_format(|turn, format| {
        record_in(
            turn,
            format,
            |b| b,
            |_| {
                dispatcher::with_default(&listeners(Mode::Auto)[0].1, || {
                    let slot = || tracing::info_span!("span").id().expect("an id").into_u64() as u32;
                    let before = slot();
                    PANICS.set(true);
                    let make = || tracing::info_span!("never made", early = ?panics());
                    assert!((0..100).all(|_| catch_unwind(make).is_err()));
                    PANICS.set(false);
                    assert_eq!(slot(), before);
                });
            },
        );
    });
}

#[test]
fn late_values_of_a_closed_span_are_not_those_of_the_next_span() {
    each(
        Mode::Auto,
        || {
            let first = tracing::info_span!("first", late = Empty);
            first.in_scope(|| {});
            first.record("late", "of the first");
            drop(first);
            let second = tracing::info_span!("second"); // in the first one's place
            (0..3).for_each(|_| second.in_scope(some_work)); // which has an interval
        },
        |trace, name| {
            let lives = "select count(*) from slice where name = 'second'";
            assert_eq!(trace.rows(lives), "4", "{name}");
            let shown = arguments(trace, "second");
            assert!(!shown.contains("of the first"), "{name}: {shown}");
        },
    );
}
