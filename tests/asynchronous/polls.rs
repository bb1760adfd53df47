//! What a span of `tracing` shows of a future: its polls, and the arrows between them.

use std::cell::Cell;

use hairline::{Format, Mode};
use hairline_tests::recording::{FORMATS, record, record_with};
use tracing::{Instrument, Level, instrument};

use crate::LIVES;
use crate::spans::{LISTENERS, Listener, each, each_undisturbed, listen, undisturbed};

/// Entries, as slices on threads.
pub(crate) const ENTRIES: &str = "select s.name, count() from slice s join thread_track t on s.track_id = t.id group by s.name \
     order by s.name";

/// Arrows between entries, by the name of the span; -1 for an arrow that leads into the past.
pub(crate) const ARROWS: &str = "select b.name, sum(iif(a.ts < b.ts and a.name = b.name, 1, -1)) from flow f \
     join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by b.name order by b.name";

pub(crate) fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future);
}

/// Waits `times` times.
pub(crate) async fn waits(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

// a  [poll]>[poll]
#[test]
fn a_life_has_an_arrow_from_each_poll_to_the_next() {
    for mode in [Mode::Auto, Mode::Lifetimes] {
        each_undisturbed(
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
                assert_eq!(trace.rows(ENTRIES), "a\t2\nb\t3\nc\t4", "{mode:?}, {name}");
                assert_eq!(trace.rows(ARROWS), "a\t1\nb\t2\nc\t3", "{mode:?}, {name}");
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
    each_undisturbed(
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
            // 290 with one poll each, 10 with two.
            assert_eq!(trace.rows(ENTRIES), "lookup\t310", "{name}");
            assert_eq!(trace.rows(ARROWS), "lookup\t10", "{name}");
        },
    );
}

#[test]
fn the_first_life_after_32_spans_without_one_has_its_arrows_from_its_third_entry_on() {
    // A callsite for each recording: it remembers its spans.
    let spans: [fn() -> tracing::Span; 6] = [
        || tracing::info_span!("late"),
        || tracing::info_span!("late"),
        || tracing::info_span!("late"),
        || tracing::info_span!("late"),
        || tracing::info_span!("late"),
        || tracing::info_span!("late"),
    ];
    let next = Cell::new(0);
    for format in FORMATS {
        undisturbed(|| {
            let span = spans[next.replace(next.get() + 1)];
            let trace = record(format, |_| {
                listen(Listener::Subscriber, Mode::Auto, || {
                    block_on(async {
                        for _ in 0..40 {
                            waits(0).instrument(span()).await;
                        }
                        tracing::info!("all at once");
                        waits(3).instrument(span()).await;
                        tracing::info!("first life");
                        waits(2).instrument(span()).await;
                    });
                });
            });
            // Before the first event none; then one from the third poll to the fourth; then two, between the
            // three polls of the second life.
            let arrows = "select (select count() from slice e where e.name like 'event %' and e.ts < b.ts) as \
                phase, count() from flow f join slice b on f.slice_in = b.id group by phase order by phase";
            assert_eq!(trace.rows(arrows), "1\t1\n2\t2", "{format:?}");
            let entries = trace.rows(ENTRIES).lines().last().map(str::to_owned).expect("entries");
            let entries = entries.strip_prefix("late\t").and_then(|n| n.parse().ok()).expect("a number");
            // A few drops may be in the trace.
            assert!((47..50).contains(&entries), "{format:?}: {entries}");
            assert_eq!(trace.rows(LIVES).lines().count(), 2, "{format:?}");
        });
    }
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
    each_undisturbed(
        Mode::Auto,
        || {
            for n in 0..100 {
                tracing::info_span!("plain").in_scope(|| {});
                tracing::info_span!("fields", n).in_scope(|| {});
            }
        },
        |trace, name| {
            assert_eq!(trace.rows(ENTRIES), "fields\t100\nplain\t100", "{name}");
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

#[test]
fn events_of_the_drop_of_a_future_are_inside_of_its_last_entry() {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            tracing::info!("dropped");
        }
    }
    each(
        Mode::Auto,
        || {
            // Kept by the future, and so dropped with it.
            let guard = Guard;
            let ready = std::future::poll_fn(move |_| {
                let _ = &guard;
                std::task::Poll::Ready(())
            });
            block_on(ready.instrument(tracing::info_span!("held")));
        },
        |trace, name| {
            let inside =
                "select s.name like 'event %', p.name from slice s join slice p on s.parent_id = p.id";
            assert_eq!(trace.rows(inside), "1\theld", "{name}");
            assert_eq!(trace.rows("select count() from slice where name = 'held'"), "2", "{name}");
        },
    );
}

#[test]
fn short_polls_right_after_each_other_are_all_recorded() {
    each_undisturbed(
        Mode::Auto,
        || {
            let span = tracing::info_span!("again");
            (0..1000).for_each(|_| span.in_scope(|| {}));
            tracing::info_span!("other").in_scope(|| {});
        },
        |trace, name| {
            assert_eq!(trace.rows(ENTRIES), "again\t1000\nother\t1", "{name}");
            assert_eq!(trace.rows(LIVES), "again\t-\t1", "{name}");
        },
    );
}

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
fn of_a_value_that_is_recorded_at_each_step_of_a_loop_the_last_one_counts() {
    each(
        Mode::Auto,
        || {
            let span = tracing::info_span!("request", n = 1, step = tracing::field::Empty);
            span.in_scope(|| {});
            for step in 0..10_000 {
                span.record("step", step);
            }
            drop(span);
        },
        |trace, name| {
            assert_eq!(trace.summary.lost.total(), 0, "{name}: {:?}", trace.summary.lost);
            assert_eq!(trace.arguments(), "request: n = 1\nrequest: step = 9999", "{name}");
        },
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
            tracing::warn_span!("own", level = tracing::field::Empty).in_scope(|| ());
            tracing::warn!(level = tracing::field::Empty, n = 1);
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
