//! Spans and events of the `tracing` crate, through the subscriber and through the layer.

use std::time::Duration;

use hairline::{Category, Mode};
use hairline_tests::recording::{FORMATS, Trace, record, record_in_any_order, record_with};
use tracing::{Instrument, instrument};
use tracing_subscriber::prelude::*;

use crate::closings::work;
use crate::{LIVES, TEXT};

/// Both ways to listen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener {
    Subscriber,
    Layer,
}

pub(crate) const LISTENERS: [Listener; 2] = [Listener::Subscriber, Listener::Layer];

pub(crate) fn listen(listener: Listener, mode: Mode, f: impl FnOnce()) {
    match listener {
        Listener::Subscriber => tracing::subscriber::with_default(hairline::Subscriber::new().mode(mode), f),
        Listener::Layer => {
            let registry = tracing_subscriber::registry().with(hairline::layer().mode(mode));
            tracing::subscriber::with_default(registry, f);
        }
    }
}

/// Each way to listen, in each format.
pub(crate) fn each(mode: Mode, program: impl Fn(), check: impl Fn(&Trace, &str)) {
    for listener in LISTENERS {
        for format in FORMATS {
            let trace = record(format, |_| listen(listener, mode, &program));
            check(&trace, &format!("{listener:?}, {format:?}"));
        }
    }
}

/// Runs a check that counts the entries of spans, up to three times. On a busy machine the drop of a future
/// may take longer than what is taken back, or the drain may look at the chunk at that moment: then the drop
/// is in the trace.
pub(crate) fn undisturbed(check: impl Fn()) {
    let passes = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(&check)).is_ok();
    if !passes() && !passes() {
        check();
    }
}

/// As [`each`], for a check that counts the entries of spans.
pub(crate) fn each_undisturbed(mode: Mode, program: impl Fn(), check: impl Fn(&Trace, &str)) {
    for listener in LISTENERS {
        for format in FORMATS {
            undisturbed(|| {
                let trace = record(format, |_| listen(listener, mode, &program));
                check(&trace, &format!("{listener:?}, {format:?}"));
            });
        }
    }
}

// outer ─────────────────
//   inner ──── · event
#[test]
fn spans_are_slices_with_their_fields_and_events_are_instants_or_messages() {
    each(
        Mode::Auto,
        || {
            let outer = tracing::info_span!(target: "net", "outer", n = 7, text = "t", debug = ?[1], late = tracing::field::Empty);
            let _outer = outer.enter();
            tracing::debug_span!(target: "db", "inner").in_scope(|| {
                tracing::warn!(target: "db", rows = 3, half = 0.5, yes = true, "read {} rows", 3);
                tracing::event!(target: "db", tracing::Level::INFO, only = "fields");
            });
            outer.record("late", -5);
        },
        |trace, name| {
            assert_eq!(
                trace.rows(&format!(
                    "select depth, category, text, dur >= 0 from (select *, {TEXT} as text from slice s) \
                     where text not like 'event %' order by ts"
                )),
                "0\tnet\touter\t1\n1\tdb\tinner\t1\n2\tdb\tread 3 rows\t1",
                "{name}"
            );
            let arguments = trace.rows(
                "select replace(a.key, 'debug.', '') || ' = ' || a.display_value from slice s join args a using (arg_set_id) \
                 where replace(a.key, 'debug.', '') in ('n', 'text', 'debug', 'late', 'rows', 'half', 'yes', 'only') order by s.ts, a.id",
            );
            assert_eq!(
                arguments,
                "n = 7\ntext = t\ndebug = [1]\nlate = -5\nrows = 3\nhalf = 0.5\nyes = true\nonly = fields",
                "{name}"
            );
            let message = "select count(*) from slice s join args a using (arg_set_id) \
                 where a.key in ('message', 'track_event.log_message') and a.display_value = 'read 3 rows'";
            assert_eq!(trace.rows(message), "1", "{name}");
            assert_eq!(trace.rows(LIVES), "", "{name}: no span is async");
        },
    );
}

#[instrument(target = "t")]
async fn request(id: u64) -> u64 {
    query(id).await + lookup(id).await
}

#[instrument(target = "t", skip_all, fields(rows = tracing::field::Empty))]
async fn query(id: u64) -> u64 {
    tokio::time::sleep(Duration::from_micros(200 + id % 5 * 100)).await;
    tracing::Span::current().record("rows", id);
    tokio::task::yield_now().await;
    id
}

#[instrument(target = "t", skip_all)]
async fn lookup(id: u64) -> u64 {
    id // never waits: no more than a slice
}

pub(crate) const WRONG: &str = "select count(*) from slice a join slice b on a.track_id = b.track_id and a.id < b.id \
     where a.dur < 0 or b.dur < 0 or (a.ts < b.ts and b.ts < a.ts + a.dur and a.ts + a.dur < b.ts + b.dur) \
     or (b.ts < a.ts and a.ts < b.ts + b.dur and b.ts + b.dur < a.ts + a.dur)";

#[test]
fn async_spans_have_one_life_each_however_they_interleave() {
    each(
        Mode::Auto,
        || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let all = futures::future::join_all((0..100).map(request));
                assert_eq!(all.await.iter().sum::<u64>(), 2 * 4950);
            });
        },
        |trace, name| {
            let lives = trace.rows(LIVES);
            assert_eq!(lives.lines().filter(|l| **l == *"request\t-\t1").count(), 100, "{name}\n{lives}");
            assert_eq!(lives.lines().filter(|l| **l == *"query\trequest\t1").count(), 100, "{name}");
            assert_eq!(lives.lines().count(), 200, "{name}: a span that never waits has no life of its own");
            assert_eq!(trace.rows(WRONG), "0", "{name}");
            let ids = "select count(distinct a.display_value) from slice s join args a using (arg_set_id) \
                 where s.name = 'request' and a.key in ('id', 'debug.id') and s.track_id not in (select id from thread_track)";
            assert_eq!(trace.rows(ids), "100", "{name}");
            let late = "select count(*) from slice s join args a using (arg_set_id) \
                 where s.name = 'query' and a.key in ('rows', 'debug.rows') and s.track_id not in (select id from thread_track)";
            assert_eq!(trace.rows(late), "100", "{name}");
            let true_times = "select count(*) from slice s where s.name = 'query' and s.dur >= 200000 \
                 and s.track_id not in (select id from thread_track)";
            assert_eq!(trace.rows(true_times), "100", "{name}");
            assert_eq!(trace.rows("select count(*) > 0 from flow"), "1", "{name}");
        },
    );
}

#[test]
fn modes_show_lives_of_all_spans_or_of_none() {
    for (mode, lives) in [(Mode::Threads, ""), (Mode::Lifetimes, "a\t-\t1\nb\ta\t1")] {
        each(
            mode,
            || {
                let a = tracing::info_span!("a");
                for _ in 0..2 {
                    let _a = a.enter();
                    tracing::info_span!("b").in_scope(|| {});
                }
            },
            |trace, name| {
                let shown = trace.rows(LIVES);
                let expected = if lives.is_empty() { String::new() } else { format!("{lives}\nb\ta\t1") };
                assert_eq!(shown, expected, "{name}");
                let slices = "select count(*) from slice where track_id in (select id from thread_track)";
                assert_eq!(trace.rows(slices), "4", "{name}");
                assert_eq!(trace.rows(WRONG), "0", "{name}");
            },
        );
    }
}

// a  [ ....... ]         left while b is on top: b ends with it, and goes on
// b      [ ....][ ... ]
#[test]
fn spans_left_in_another_order_than_they_were_entered_still_nest_and_are_counted() {
    for listener in LISTENERS {
        for format in FORMATS {
            let trace = record_in_any_order(
                format,
                |b| b,
                |_| {
                    listen(listener, Mode::Auto, || {
                        let (a, b) = (tracing::info_span!("a"), tracing::info_span!("b"));
                        let in_a = a.enter();
                        let in_b = b.enter();
                        drop(in_a);
                        drop(in_b);
                    });
                },
            );
            assert_eq!(
                trace.rows("select depth, name, dur >= 0 from slice order by ts"),
                "0\ta\t1\n1\tb\t1\n0\tb\t1",
                "{listener:?}, {format:?}"
            );
            assert_eq!(trace.summary.out_of_order, 1, "{listener:?}, {format:?}");
        }
    }
}

#[test]
fn a_span_that_follows_another_one_has_an_arrow_from_it() {
    each(
        Mode::Lifetimes,
        || {
            let first = tracing::info_span!("first");
            first.in_scope(|| {});
            let second = tracing::info_span!("second");
            second.follows_from(first.id());
            second.in_scope(|| {});
        },
        |trace, name| {
            let arrows = "select si.name from flow f join slice si on f.slice_in = si.id where si.name = 'second' \
                 and si.track_id in (select id from thread_track)";
            assert_eq!(trace.rows(arrows).lines().next(), Some("second"), "{name}");
        },
    );
}

#[test]
fn only_targets_that_the_filter_takes_are_recorded_as_it_changes() {
    for listener in LISTENERS {
        for format in FORMATS {
            let events = || {
                tracing::info!(target: "net", "net");
                tracing::info!(target: "db.read", "db");
                tracing::info_span!(target: "db.read", "span").in_scope(|| {});
            };
            let mut evaluated = 0;
            let trace = record_with(
                format,
                |b| b.categories("net"),
                |session| {
                    listen(listener, Mode::Auto, || {
                        events();
                        session.set_categories("db.*").unwrap();
                        events();
                        tracing::info!(target: "net", n = { evaluated += 1; 1 }, "off");
                        assert!(!tracing::enabled!(target: "net", tracing::Level::INFO));
                        assert!(tracing::enabled!(target: "db.x", tracing::Level::INFO));
                    });
                },
            );
            assert_eq!(
                trace.rows(&format!("select {TEXT} from slice s order by ts")),
                "net\ndb\nspan",
                "{listener:?}, {format:?}"
            );
            assert_eq!(evaluated, 0, "{listener:?}, {format:?}");
        }
    }
}

#[test]
fn the_category_is_the_level_where_the_program_says_so_and_the_filter_goes_by_it() {
    for listener in LISTENERS {
        for format in FORMATS {
            let program = || {
                tracing::warn_span!("span").in_scope(|| tracing::error!(n = 1));
                tracing::info!("left out");
                assert!(tracing::enabled!(tracing::Level::WARN) && !tracing::enabled!(tracing::Level::INFO));
            };
            let trace = record_with(
                format,
                |b| b.categories("warn,error"),
                |_| match listener {
                    Listener::Subscriber => {
                        let subscriber = hairline::Subscriber::new().category(Category::Level);
                        tracing::subscriber::with_default(subscriber, program);
                    }
                    Listener::Layer => {
                        let layer = hairline::layer().category(Category::Level);
                        tracing::subscriber::with_default(
                            tracing_subscriber::registry().with(layer),
                            program,
                        );
                    }
                },
            );
            let slices = trace.rows("select category, name not like 'event %', depth from slice order by ts");
            assert_eq!(slices, "warn\t1\t0\nerror\t0\t1", "{listener:?}, {format:?}");
        }
    }
}

#[test]
fn a_span_may_outlive_sessions_and_go_between_threads() {
    for listener in LISTENERS {
        for format in FORMATS {
            listen(listener, Mode::Auto, || {
                let mut kept = None;
                let first = record(format, |_| {
                    let span = tracing::info_span!("kept");
                    span.in_scope(|| {});
                    kept = Some(span);
                });
                assert_eq!(
                    first.rows("select name, dur >= 0 from slice"),
                    "kept\t1",
                    "{listener:?}, {format:?}"
                );
                let second = record(format, |_| {
                    let span = kept.take().unwrap();
                    let dispatch = tracing::dispatcher::get_default(Clone::clone);
                    std::thread::spawn(move || {
                        tracing::dispatcher::with_default(&dispatch, || {
                            let _entered = span.entered();
                            work(); // so that it is no drop of a future
                        });
                    })
                    .join()
                    .unwrap();
                });
                assert_eq!(
                    second.rows("select count(*), sum(dur < 0) from slice where name = 'kept'"),
                    "2\t0",
                    "{listener:?}, {format:?}"
                );
            });
        }
    }
}

#[test]
fn instrumented_futures_that_are_dropped_end() {
    each(
        Mode::Auto,
        || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let slow = async {
                    for _ in 0..1000 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                let limited = tokio::time::timeout(
                    Duration::from_millis(10),
                    slow.instrument(tracing::info_span!("slow")),
                );
                assert!(limited.await.is_err());
            });
        },
        |trace, name| {
            assert_eq!(trace.rows(LIVES), "slow\t-\t1", "{name}");
            assert_eq!(trace.rows(WRONG), "0", "{name}");
        },
    );
}
