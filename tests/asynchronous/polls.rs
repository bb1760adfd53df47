//! What a span of `tracing` shows of a future: its polls, the arrows between them, and no entry that is none.

use std::time::Duration;

use hairline::{Format, Mode};
use hairline_tests::recording::{FORMATS, Trace, record, record_with};
use tracing::{Instrument, Level, instrument};

use crate::LIVES;
use crate::spans::{LISTENERS, Listener, each, listen};

/// Polls, as slices on threads.
const POLLS: &str = "select s.name, count() from slice s join thread_track t on s.track_id = t.id group by s.name \
     order by s.name";

/// Arrows between polls, by the name of the span; -1 for an arrow that leads into the past.
const ARROWS: &str = "select b.name, sum(iif(a.ts < b.ts and a.name = b.name, 1, -1)) from flow f \
     join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by b.name order by b.name";

/// The second column.
fn counts(trace: &Trace, sql: &str) -> Vec<i64> {
    let rows = trace.rows(sql);
    rows.lines()
        .map(|line| line.split('\t').nth(1).expect("two columns").parse().expect("a number"))
        .collect()
}

/// Asserts that these are the counts, but for a few closing entries: one during which the thread is preempted
/// takes long, and stays.
fn assert_about(counts: &[i64], expected: &[i64], name: &str) {
    let is_about = |(count, expected): (&i64, &i64)| (0..=5).contains(&(count - expected));
    assert!(
        counts.len() == expected.len() && counts.iter().zip(expected).all(is_about),
        "{name}: {counts:?}, not {expected:?}"
    );
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future);
}

async fn wait() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Waits `times` times.
async fn waits(times: usize) {
    for _ in 0..times {
        wait().await;
    }
}

#[test]
fn a_future_of_n_polls_has_n_minus_1_arrows() {
    for mode in [Mode::Auto, Mode::Lifetimes] {
        each(
            mode,
            || {
                block_on(async {
                    waits(1).instrument(tracing::info_span!("a")).await;
                    waits(2).instrument(tracing::info_span!("b", n = 2)).await;
                    waits(3).instrument(tracing::info_span!("c", text = "t")).await;
                });
            },
            |trace, name| {
                assert_eq!(trace.rows(LIVES), "a\t-\t1\nb\t-\t1\nc\t-\t1", "{mode:?}, {name}");
                let (polls, arrows) = (counts(trace, POLLS), counts(trace, ARROWS));
                assert_about(&polls, &[2, 3, 4], name);
                assert_eq!(
                    arrows,
                    polls.iter().map(|polls| polls - 1).collect::<Vec<_>>(),
                    "{mode:?}, {name}"
                );
            },
        );
    }
}

#[test]
fn arrows_begin_with_the_first_poll_though_most_futures_of_the_callsite_are_ready_at_once() {
    #[instrument(target = "t")]
    async fn lookup(times: usize) {
        waits(times).await;
    }
    each(
        Mode::Auto,
        || {
            block_on(async {
                for n in 0..300 {
                    lookup(usize::from(n % 30 == 0)).await;
                }
            });
        },
        |trace, name| {
            assert_eq!(trace.rows(LIVES).lines().count(), 10, "{name}");
            assert_about(&counts(trace, POLLS), &[310], name);
            assert_about(&counts(trace, ARROWS), &[10], name);
        },
    );
}

#[test]
fn a_future_that_moves_between_threads_has_its_arrows() {
    for listener in LISTENERS {
        for format in FORMATS {
            let trace = record(format, |_| {
                listen(listener, Mode::Auto, || {
                    let dispatch = tracing::dispatcher::get_default(Clone::clone);
                    let span = tracing::info_span!("moves");
                    span.in_scope(|| {});
                    for _ in 0..2 {
                        let (dispatch, span) = (dispatch.clone(), span.clone());
                        let poll =
                            move || tracing::dispatcher::with_default(&dispatch, || span.in_scope(|| {}));
                        std::thread::spawn(poll).join().expect("no panic");
                    }
                });
            });
            assert_eq!(trace.rows(LIVES), "moves\t-\t1", "{listener:?}, {format:?}");
            assert_eq!(trace.rows(ARROWS), "moves\t2", "{listener:?}, {format:?}");
        }
    }
}

#[test]
fn spans_entered_once_have_no_arrow_and_no_life() {
    each(
        Mode::Auto,
        || {
            for n in 0..100 {
                tracing::info_span!("plain").in_scope(|| {});
                tracing::info_span!("fields", n).in_scope(|| {});
            }
        },
        |trace, name| {
            assert_eq!(trace.rows(POLLS), "fields\t100\nplain\t100", "{name}");
            assert_eq!(trace.rows("select count() from flow"), "0", "{name}");
            assert_eq!(trace.rows(LIVES), "", "{name}");
            assert_eq!(trace.arguments().lines().count(), 100, "{name}");
        },
    );
}

#[test]
fn an_arrow_to_the_first_entry_leaves_its_fields_in_place() {
    each(
        Mode::Auto,
        || {
            let first = tracing::info_span!("first");
            first.in_scope(|| {});
            let second = tracing::info_span!("second", n = 7);
            second.follows_from(first.id());
            second.in_scope(|| {});
        },
        |trace, name| assert_eq!(trace.arguments(), "second: n = 7", "{name}"),
    );
}

// ────[poll][poll]x   the drop of the future enters the span once more: no slice
#[test]
fn the_entry_that_drops_a_finished_future_is_not_recorded() {
    #[instrument(target = "t")]
    async fn ready() {}
    #[instrument(target = "t")]
    async fn outer() {
        ready().await;
        wait().await;
    }
    for mode in [Mode::Auto, Mode::Threads, Mode::Lifetimes] {
        each(
            mode,
            || {
                block_on(async {
                    for _ in 0..50 {
                        outer().await;
                    }
                });
            },
            |trace, name| assert_about(&counts(trace, POLLS), &[100, 50], name),
        );
    }
}

#[test]
fn a_closing_entry_in_which_something_is_recorded_or_that_takes_long_stays() {
    struct Guard(Option<Duration>);
    impl Drop for Guard {
        fn drop(&mut self) {
            match self.0 {
                None => tracing::info!("dropped"),
                Some(time) => {
                    let begin = std::time::Instant::now();
                    while begin.elapsed() < time {}
                }
            }
        }
    }
    each(
        Mode::Auto,
        || {
            for time in [None, Some(Duration::from_micros(50))] {
                // Kept by the future, and so dropped with it.
                let guard = Guard(time);
                let ready = std::future::poll_fn(move |_| {
                    let _ = &guard;
                    std::task::Poll::Ready(())
                });
                block_on(ready.instrument(tracing::info_span!("held")));
            }
        },
        |trace, name| {
            let inside =
                "select s.name like 'event %', p.name from slice s join slice p on s.parent_id = p.id";
            assert_eq!(trace.rows(inside), "1\theld", "{name}");
            assert_eq!(trace.rows("select count() from slice where name = 'held'"), "4", "{name}");
        },
    );
}

#[test]
fn short_polls_right_after_each_other_are_all_recorded() {
    each(
        Mode::Auto,
        || {
            let span = tracing::info_span!("again");
            (0..1000).for_each(|_| span.in_scope(|| {}));
            tracing::info_span!("other").in_scope(|| {});
        },
        |trace, name| {
            assert_eq!(trace.rows(POLLS), "again\t1000\nother\t1", "{name}");
            assert_eq!(trace.rows(LIVES), "again\t-\t1", "{name}");
        },
    );
}

#[test]
fn an_entry_that_may_be_a_closing_one_is_recorded_though_nothing_follows() {
    for format in FORMATS {
        let (entered, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let trace = std::thread::scope(|scope| {
            record(format, |_| {
                scope.spawn(|| {
                    listen(Listener::Subscriber, Mode::Auto, || {
                        let span = tracing::info_span!("left");
                        (0..2).for_each(|_| span.in_scope(|| {}));
                        entered.wait();
                        go_on.wait(); // the session is over
                    });
                });
                entered.wait();
            })
            .also(|| {
                go_on.wait();
            })
        });
        assert_eq!(trace.rows(POLLS), "left\t2", "{format:?}");
    }
}

trait Also: Sized {
    fn also(self, f: impl FnOnce()) -> Self {
        f();
        self
    }
}

impl Also for Trace {}

#[test]
fn values_that_come_after_the_last_exit_are_recorded() {
    each(
        Mode::Auto,
        || {
            let span = tracing::info_span!("request", n = 1, status = tracing::field::Empty);
            span.in_scope(|| {});
            span.record("status", 200);
            drop(span);
        },
        |trace, name| assert_eq!(trace.arguments(), "request: n = 1\nrequest: status = 200", "{name}"),
    );
}

#[test]
fn a_level_other_than_info_is_an_argument() {
    each(
        Mode::Auto,
        || {
            tracing::debug_span!("debug").in_scope(|| tracing::warn!("said"));
            tracing::info_span!("info").in_scope(|| tracing::event!(Level::ERROR, n = 1));
            tracing::trace_span!("trace", level = 7).in_scope(|| tracing::info!("said"));
        },
        |trace, name| {
            let levels = "select iif(s.name like 'event %', 'event', s.name), a.display_value from slice s \
                 join args a using (arg_set_id) where replace(a.key, 'debug.', '') = 'level' order by s.ts";
            assert_eq!(trace.rows(levels), "debug\tdebug\nevent\twarn\nevent\terror\ntrace\t7", "{name}");
        },
    );
}

#[test]
fn an_event_is_named_by_its_place_and_its_message_is_an_argument() {
    each(
        Mode::Auto,
        || (0..3).for_each(|n| tracing::info!("read {n} rows")),
        |trace, name| {
            let events =
                "select count(), count(distinct s.name), min(s.name) like 'event %polls.rs:%' from slice s";
            assert_eq!(trace.rows(events), "3\t1\t1", "{name}");
            let messages = "select a.display_value from slice s join args a using (arg_set_id) \
                 where a.key in ('message', 'track_event.log_message') order by s.ts";
            assert_eq!(trace.rows(messages), "read 0 rows\nread 1 rows\nread 2 rows", "{name}");
        },
    );
}

#[test]
fn the_log_has_the_target_as_tag() {
    for located in [false, true] {
        let mut line = 0;
        let trace = record_with(
            Format::TrackEvent,
            |b| b.source_locations(located),
            |_| {
                listen(Listener::Subscriber, Mode::Auto, || {
                    line = line!() + 1;
                    tracing::warn!(target: "net", "no answer");
                });
            },
        );
        let log = trace.rows("select prio, tag, msg from android_logs");
        assert_eq!(log, format!("5\tnet:{line}\tno answer"), "{located}");
    }
}
