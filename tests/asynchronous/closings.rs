//! The entry in which `tracing` drops a future is not in the trace.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverOptions};
use hairline::{Format, Mode, Overflow};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, Trace, extension, record, record_with};
use hairline_tests::regions::region_of;
use tracing::{Instrument, Span, info_span};

use crate::LIVES;
use crate::polls::{ARROWS, ENTRIES, block_on, waits};
use crate::spans::{LISTENERS, Listener, each_undisturbed, listen, undisturbed};

const MODES: [Mode; 3] = [Mode::Auto, Mode::Threads, Mode::Lifetimes];

/// Does something that takes longer than the drop of a future.
pub(crate) fn work() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(50) {}
}

fn arrows(of: &str, mode: Mode) -> String {
    if mode == Mode::Threads { String::new() } else { of.to_owned() }
}

#[test]
fn a_future_has_a_slice_for_each_poll_and_none_for_its_drop() {
    for mode in MODES {
        each_undisturbed(
            mode,
            || {
                block_on(async {
                    for _ in 0..20 {
                        waits(0).instrument(info_span!("a")).await;
                        waits(1).instrument(info_span!("b", n = 2)).await;
                        waits(2).instrument(info_span!("c", text = "t")).await;
                    }
                });
            },
            |trace, name| {
                assert_eq!(trace.rows(ENTRIES), "a\t20\nb\t40\nc\t60", "{mode:?}, {name}");
                assert_eq!(trace.rows(ARROWS), arrows("b\t20\nc\t40", mode), "{mode:?}, {name}");
                let lives = trace.rows(LIVES).lines().count();
                let of_all = if mode == Mode::Lifetimes { 60 } else { 40 };
                assert_eq!(lives, if mode == Mode::Threads { 0 } else { of_all }, "{mode:?}, {name}");
            },
        );
    }
}

#[test]
fn a_future_that_is_dropped_while_it_waits_has_no_slice_for_its_drop() {
    for mode in MODES {
        each_undisturbed(
            mode,
            || {
                block_on(async {
                    for polls in 1..=3 {
                        let mut future = Box::pin(waits(9).instrument(info_span!("cancelled")));
                        for _ in 0..polls {
                            let _ = poll_once(&mut future).await;
                        }
                    }
                });
            },
            |trace, name| {
                assert_eq!(trace.rows(ENTRIES), "cancelled\t6", "{mode:?}, {name}");
                assert_eq!(trace.rows(ARROWS), arrows("cancelled\t3", mode), "{mode:?}, {name}");
            },
        );
    }
}

/// Polls a future once.
async fn poll_once(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
    })
    .await
}

#[test]
fn futures_inside_of_each_other_have_no_slice_for_their_drops() {
    async fn inner(times: usize) {
        waits(times).instrument(info_span!("inner")).await;
        waits(times).instrument(info_span!("inner")).await;
    }
    each_undisturbed(
        Mode::Auto,
        || {
            block_on(async {
                for times in [0, 1, 2, 3] {
                    inner(times).instrument(info_span!("outer")).await;
                }
            });
        },
        // inner: 2 * (1 + 2 + 3 + 4); outer: 1 + 3 + 5 + 7
        |trace, name| assert_eq!(trace.rows(ENTRIES), "inner\t20\nouter\t16", "{name}"),
    );
}

#[test]
fn both_entries_of_a_span_that_is_no_future_are_recorded() {
    for mode in MODES {
        each_undisturbed(
            mode,
            || {
                for _ in 0..10 {
                    let span = info_span!("twice");
                    span.in_scope(|| ());
                    span.in_scope(work);
                }
                let span = info_span!("said");
                span.in_scope(|| ());
                span.in_scope(|| tracing::info!("inside"));
                drop(span);
                let span = info_span!("outer");
                span.in_scope(|| ());
                span.in_scope(|| info_span!("inner").in_scope(|| ()));
                drop(span);
                let span = info_span!("later");
                span.in_scope(|| ());
                span.in_scope(|| ());
                tracing::info!("in between");
            },
            |trace, name| {
                let entries =
                    trace.rows(&ENTRIES.replace("group by", "where s.name not like 'event%' group by"));
                assert_eq!(entries, "inner\t1\nlater\t2\nouter\t2\nsaid\t2\ntwice\t20", "{mode:?}, {name}");
            },
        );
    }
}

// The values that a span records in its second entry are on the end of that entry, so it is no drop.
#[test]
fn an_entry_whose_end_has_values_is_in_the_trace() {
    for mode in MODES {
        each_undisturbed(
            mode,
            || {
                for status in 0..10 {
                    let span = info_span!("answered", status = tracing::field::Empty);
                    span.in_scope(|| ());
                    span.in_scope(|| {
                        span.record("status", status);
                    });
                }
            },
            |trace, name| {
                let values = "select count(distinct a.display_value) from slice s join args a \
                              using (arg_set_id) where replace(a.key, 'debug.', '') = 'status'";
                assert_eq!(trace.rows(values), "10", "{mode:?}, {name}");
                // Where each span has a life, the end of the life has the values.
                if mode != Mode::Lifetimes {
                    assert_eq!(trace.rows(ENTRIES), "answered\t20", "{mode:?}, {name}");
                }
            },
        );
    }
}

// one thread enters the span a second time, another one closes it
#[test]
fn a_span_that_another_thread_closes_keeps_its_entries() {
    each_undisturbed(
        Mode::Auto,
        || {
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let span = info_span!("shared");
            span.in_scope(|| ());
            span.in_scope(|| ());
            let close = move || tracing::dispatcher::with_default(&dispatch, || drop(span));
            std::thread::spawn(close).join().expect("no panic");
        },
        |trace, name| assert_eq!(trace.rows(ENTRIES), "shared\t2", "{name}"),
    );
}

// this thread enters a span twice, another one closes it, makes the next span, and this one closes that
#[test]
fn the_close_of_a_span_takes_no_slice_of_the_span_before_it_in_the_same_place() {
    each_undisturbed(
        Mode::Auto,
        || {
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let first = info_span!("first");
            first.in_scope(|| ());
            first.in_scope(|| ());
            let elsewhere = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    drop(first);
                    let second = info_span!("second");
                    second.in_scope(|| ());
                    second.in_scope(work);
                    second
                })
            };
            drop(std::thread::spawn(elsewhere).join().expect("no panic"));
        },
        |trace, name| assert_eq!(trace.rows(ENTRIES), "first\t2\nsecond\t2", "{name}"),
    );
}

#[test]
fn a_span_that_is_closed_while_it_is_entered_keeps_its_slices() {
    each_undisturbed(
        Mode::Auto,
        || {
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let span = info_span!("left open");
            span.in_scope(|| ());
            let id = span.id().expect("enabled");
            dispatch.enter(&id);
            tracing::info!("inside");
            drop(span);
            dispatch.exit(&id);
        },
        |trace, name| {
            let of_span = trace.rows("select count() from slice where name = 'left open'");
            assert_eq!(of_span, "2", "{name}");
        },
    );
}

#[test]
fn the_open_poll_of_a_killed_process_is_in_its_trace() {
    for listener in ["subscriber", "layer"] {
        for format in FORMATS {
            for overflow in ["drop", "overwrite"] {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join(format!("killed.{}", extension(format)));
                let mut program = Command::new(env!("CARGO_BIN_EXE_spans_victim"));
                program.args([listener, "hang"]).env("HAIRLINE", &path).env("HAIRLINE_OVERFLOW", overflow);
                let mut victim = program.stdout(Stdio::piped()).spawn().expect("the program");
                let mut line = String::new();
                let out = victim.stdout.take().expect("a pipe");
                BufReader::new(out).read_line(&mut line).expect("a line");
                assert_eq!(line, "hangs\n");
                victim.kill().expect("killed");
                victim.wait().expect("dead");
                recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("recovered");
                let polls = "select count(), sum(s.dur = -1) from slice s join thread_track t on s.track_id = t.id \
                     where s.name = 'polled'";
                let verdict = judge::load(&path, &[polls]);
                verdict.require_clean();
                // A few drops may be in the trace: `undisturbed`.
                let shown = verdict.results[0].text();
                let is_right = ["22\t1", "23\t1", "24\t1"].contains(&shown.as_str());
                assert!(is_right, "{listener}, {format:?}, {overflow}: {shown}");
            }
        }
    }
}

#[test]
fn a_snapshot_has_no_slice_for_a_drop() {
    for listener in LISTENERS {
        for format in FORMATS {
            undisturbed(|| {
                let trace = record_with(
                    format,
                    |b| b.overflow(Overflow::Overwrite),
                    |_| {
                        listen(listener, Mode::Auto, || {
                            block_on(async {
                                for _ in 0..100 {
                                    waits(1).instrument(info_span!("kept", n = 1)).await;
                                }
                            });
                        });
                    },
                );
                assert_eq!(trace.rows(ENTRIES), "kept\t200", "{listener:?}, {format:?}");
            });
        }
    }
}

#[test]
fn what_follows_a_drop_has_the_right_times() {
    each_undisturbed(
        Mode::Auto,
        || {
            block_on(async {
                for n in 0..3 {
                    info_span!("before", n).in_scope(work);
                    waits(1).instrument(info_span!("future")).await;
                    info_span!("after", n).in_scope(work);
                }
            });
        },
        |trace, name| {
            let order = trace.rows(
                "select group_concat(name, ' ') from (select s.name from slice s \
                 join thread_track t on s.track_id = t.id order by s.ts)",
            );
            let round = "before future future after";
            assert_eq!(order, [round; 3].join(" "), "{name}");
            let short = "select count() from slice where name in ('before', 'after') and dur not between 50000 and 5e7";
            assert_eq!(trace.rows(short), "0", "{name}");
        },
    );
}

#[test]
fn a_drop_to_which_an_arrow_leads_is_in_the_trace() {
    each_undisturbed(
        Mode::Auto,
        || {
            let cause = info_span!("cause");
            let span = info_span!("effect");
            span.in_scope(|| ());
            span.follows_from(cause.id());
            span.in_scope(|| ());
        },
        |trace, name| {
            // Two entries, and the instant at which the arrow begins.
            assert_eq!(trace.rows(ENTRIES), "effect\t3", "{name}");
        },
    );
}

/// Runs futures on all threads of a runtime: `count` with `polls` polls each.
fn crowd(listener: Listener, count: usize, waiting: usize) {
    listen_everywhere(listener, |dispatch| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
        runtime.block_on(async {
            let tasks: Vec<_> = (0..count)
                .map(|_| {
                    let span = tracing::dispatcher::with_default(&dispatch, || info_span!("task"));
                    tokio::spawn(in_dispatch(dispatch.clone(), waits(waiting).instrument(span)))
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        });
    });
}

fn listen_everywhere(listener: Listener, f: impl FnOnce(tracing::Dispatch)) {
    listen(listener, Mode::Auto, || f(tracing::dispatcher::get_default(Clone::clone)));
}

/// Polls and drops the future with this subscriber.
fn in_dispatch<F: Future<Output = ()> + Send + 'static>(
    dispatch: tracing::Dispatch,
    future: F,
) -> impl Future<Output = ()> + Send {
    use tracing::instrument::WithSubscriber;
    let mut future = Some(Box::pin(future));
    std::future::poll_fn(move |context| {
        let Some(inner) = &mut future else { return std::task::Poll::Ready(()) };
        let poll = inner.as_mut().poll(context);
        if poll.is_ready() {
            future = None; // dropped here, as by the runtime
        }
        poll
    })
    .with_subscriber(dispatch)
}

/// Polls of 3,000 futures, and the slices that there are.
#[test]
fn thousands_of_futures_on_several_threads_have_a_slice_for_each_poll() {
    for listener in LISTENERS {
        for format in FORMATS {
            let trace = record(format, |_| crowd(listener, 3_000, 2));
            assert_eq!(
                trace.rows("select count() from stats where severity = 'data_loss' and value > 0"),
                "0"
            );
            let slices = count(&trace);
            println!("{listener:?}, {format:?}: {slices} slices of 9000 polls");
            // A thread may be interrupted in a drop, or the drain may take its slice in that very moment.
            assert!((9_000..9_020).contains(&slices), "{listener:?}, {format:?}: {slices}");
        }
    }
}

fn count(trace: &Trace) -> u64 {
    let entries = trace.rows(ENTRIES);
    let count = entries.strip_prefix("task\t").unwrap_or_else(|| panic!("{entries}"));
    count.parse().expect("a number")
}

#[test]
fn sessions_with_the_threads_cpu_time_have_no_slice_for_a_drop() {
    for listener in LISTENERS {
        for format in FORMATS {
            let futures = || {
                block_on(async {
                    for _ in 0..10 {
                        waits(1).instrument(info_span!("timed", n = 1)).await;
                    }
                });
            };
            let trace =
                record_with(format, |b| b.thread_time(true), |_| listen(listener, Mode::Auto, futures));
            let slices: u32 = trace.rows(ENTRIES)["timed\t".len()..].parse().expect("a number");
            // A thread may be interrupted in a drop: that one is worth to be seen.
            assert!((20..30).contains(&slices), "{listener:?}, {format:?}: {slices}");
        }
    }
}

#[test]
fn the_summary_counts_the_records_that_are_in_the_trace() {
    for format in FORMATS {
        let trace = record(format, |_| {
            listen(Listener::Subscriber, Mode::Threads, || {
                block_on(async {
                    for _ in 0..1000 {
                        waits(1).instrument(info_span!("counted")).await;
                    }
                });
            });
        });
        let slices: u64 = trace.rows("select count() from slice").parse().expect("a number");
        assert_eq!(trace.summary.records, 2 * slices, "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn the_drop_of_a_future_that_records_something_is_in_the_trace() {
    struct Said(Span);
    impl Drop for Said {
        fn drop(&mut self) {
            self.0.in_scope(|| ());
        }
    }
    let trace = record(Format::TrackEvent, |_| {
        listen(Listener::Subscriber, Mode::Threads, || {
            let said = Said(info_span!("said"));
            let ready = std::future::poll_fn(move |_| {
                let _ = &said;
                std::task::Poll::Ready(())
            });
            block_on(ready.instrument(info_span!("held")));
        });
    });
    assert_eq!(trace.rows(ENTRIES), "held\t2\nsaid\t1");
}
