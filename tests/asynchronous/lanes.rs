//! The lives of nested spans: slices below each other on one lane.

use std::time::Duration;

use hairline::{Mode, Overflow};
use hairline_tests::recording::{FORMATS, Trace, record, record_with};
use tracing::{Instrument, info_span};

use crate::spans::{LISTENERS, WRONG, each, listen};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Lifetimes];

fn run(program: impl Future) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(program);
}

/// Waits twice, so that its spans are entered often enough to have lives.
async fn wait() {
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_micros(50)).await;
    }
}

async fn request() {
    let query = || wait().instrument(info_span!("query"));
    let handler = async {
        query().await;
        query().await;
    };
    async {
        wait().await;
        handler.instrument(info_span!("handler")).await;
    }
    .instrument(info_span!("request"))
    .await;
}

/// Each life: name, depth, and the name of the slice above on its track.
const DEPTHS: &str = "select s.name, s.depth, ifnull(p.name, '-') from slice s left join slice p on s.parent_id = p.id \
     where s.track_id not in (select id from thread_track) order by s.ts, s.depth";

/// Lives that are not inside of the life above them.
const OUTSIDE: &str = "select count(*) from slice s join slice p on s.parent_id = p.id \
     where s.dur < 0 or p.dur < 0 or s.ts < p.ts or s.ts + s.dur > p.ts + p.dur";

fn lanes(trace: &Trace) -> String {
    trace.rows(
        "select count(distinct track_id) from slice where track_id not in (select id from thread_track)",
    )
}

// lane  [ request ................................... ]
//          [ handler .............................. ]
//            [ query .... ]   [ query .... ]
#[test]
fn spans_that_nest_are_slices_below_each_other_on_one_lane() {
    for mode in MODES {
        each(
            mode,
            || run(request()),
            |trace, name| {
                let expected = "request\t0\t-\nhandler\t1\trequest\nquery\t2\thandler\nquery\t2\thandler";
                assert_eq!(trace.rows(DEPTHS), expected, "{mode:?}, {name}");
                assert_eq!(lanes(trace), "1", "{mode:?}, {name}");
                assert_eq!(trace.rows(OUTSIDE), "0", "{mode:?}, {name}");
                assert_eq!(trace.rows(WRONG), "0", "{mode:?}, {name}");
                let track = "select distinct t.name from slice s join track t on s.track_id = t.id \
                     where s.name = 'query' and s.track_id not in (select id from thread_track)";
                assert_eq!(trace.rows(track), "request", "{mode:?}, {name}");
            },
        );
    }
}

// lane 0  [ request ............... ]
//            [ left .......... ]
//              [ query .... ]
// lane 1     [ right ......... ]
//              [ query .... ]
#[test]
fn a_span_that_overlaps_its_sibling_has_a_lane_of_its_own_with_its_children() {
    for mode in MODES {
        each(
            mode,
            || {
                let side = |span: tracing::Span| {
                    async {
                        wait().await;
                        wait().instrument(info_span!("query")).await;
                    }
                    .instrument(span)
                };
                run(async {
                    let both = async { tokio::join!(side(info_span!("left")), side(info_span!("right"))) };
                    both.instrument(info_span!("request")).await;
                });
            },
            |trace, name| {
                let depths = "select s.name, s.depth, count(*), count(distinct s.track_id) from slice s \
                     where s.track_id not in (select id from thread_track) group by 1, 2 order by 1, 2";
                let rows = trace.rows(depths);
                let one = |side: &str, depth: u32| format!("{side}\t{depth}\t1\t1\n");
                let queries = "query\t1\t1\t1\nquery\t2\t1\t1\nrequest\t0\t1\t1\n";
                let left_first = one("left", 1) + queries + &one("right", 0);
                let right_first = one("left", 0) + queries + &one("right", 1);
                let rows = rows + "\n";
                assert!(rows == left_first || rows == right_first, "{mode:?}, {name}\n{rows}");
                assert_eq!(lanes(trace), "2", "{mode:?}, {name}");
                assert_eq!(trace.rows(OUTSIDE), "0", "{mode:?}, {name}");
                assert_eq!(trace.rows(WRONG), "0", "{mode:?}, {name}");
            },
        );
    }
}

#[test]
fn many_requests_on_many_threads_have_as_many_lanes_as_requests_at_the_same_time() {
    for mode in MODES {
        for listener in LISTENERS {
            for format in FORMATS {
                let trace = record(format, |_| {
                    listen(listener, mode, || {
                        let dispatch = tracing::dispatcher::get_default(Clone::clone);
                        let set = move || std::mem::forget(tracing::dispatcher::set_default(&dispatch));
                        let runtime = tokio::runtime::Builder::new_multi_thread()
                            .worker_threads(3)
                            .enable_time()
                            .on_thread_start(set)
                            .build()
                            .unwrap();
                        runtime.block_on(async {
                            let clients = (0..8).map(|_| {
                                tokio::spawn(async {
                                    for _ in 0..25 {
                                        request().await;
                                    }
                                })
                            });
                            futures::future::join_all(clients).await;
                        });
                    });
                });
                let name = format!("{mode:?}, {listener:?}, {format:?}");
                let lives = "select s.name, s.depth, count(*) from slice s \
                     where s.track_id not in (select id from thread_track) group by 1, 2 order by 2";
                assert_eq!(trace.rows(lives), "request\t0\t200\nhandler\t1\t200\nquery\t2\t400", "{name}");
                let lanes: u32 = lanes(&trace).parse().unwrap();
                assert!(lanes <= 10, "{name}: {lanes} lanes");
                assert_eq!(trace.rows(OUTSIDE), "0", "{name}");
                assert_eq!(trace.rows(WRONG), "0", "{name}");
            }
        }
    }
}

// lane   [ handler ........ ]
//          [ load ......... ]
// blocking   [ load ..... ]
#[test]
fn a_span_that_is_entered_on_another_thread_is_inside_of_the_life_of_its_parent_there_or_not() {
    let load = || async {
        let (span, dispatch) = (tracing::Span::current(), tracing::dispatcher::get_default(Clone::clone));
        let work = move || {
            tracing::dispatcher::with_default(&dispatch, || {
                let _entered = span.entered();
                std::thread::sleep(Duration::from_millis(2));
            });
        };
        tokio::task::spawn_blocking(work).await.unwrap();
    };
    let handler = || async { load().instrument(info_span!("load")).await }.instrument(info_span!("handler"));
    each(
        Mode::Auto,
        || run(async { handler().await }),
        |trace, name| {
            assert_eq!(trace.rows(DEPTHS), "handler\t0\t-\nload\t1\thandler", "{name}");
            assert_eq!(trace.rows(OUTSIDE), "0", "{name}");
        },
    );
    // A parent that is entered on this thread needs no life.
    each(
        Mode::Auto,
        || {
            let _main = info_span!("main").entered();
            let job = info_span!("job");
            (0..3).for_each(|_| job.in_scope(|| ()));
        },
        |trace, name| assert_eq!(trace.rows(DEPTHS), "job\t0\t-", "{name}"),
    );
}

// A span's life contains the lives of its children, as in the registry of tracing-subscriber: the task goes
// on after the handle of its parent is gone.
#[test]
fn a_span_that_outlives_the_handle_of_its_parent_is_inside_of_its_life() {
    each(
        Mode::Lifetimes,
        || {
            let request = info_span!("request");
            let task = info_span!(parent: &request, "task");
            drop(request);
            // The registry closes the parent through the dispatcher of the thread that closes the child.
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let close = move || tracing::dispatcher::with_default(&dispatch, || drop(task));
            std::thread::spawn(close).join().unwrap();
        },
        |trace, name| {
            assert_eq!(trace.rows(DEPTHS), "request\t0\t-\ntask\t1\trequest", "{name}");
            assert_eq!(trace.rows(OUTSIDE), "0", "{name}");
        },
    );
}

#[test]
fn the_window_of_a_flight_recorder_has_nested_lives() {
    for listener in LISTENERS {
        for format in FORMATS {
            let builder = |b: hairline::SessionBuilder| b.overflow(Overflow::Overwrite);
            let trace =
                record_with(format, builder, |_| listen(listener, Mode::Lifetimes, || run(request())));
            let expected = "request\t0\t-\nhandler\t1\trequest\nquery\t2\thandler\nquery\t2\thandler";
            assert_eq!(trace.rows(DEPTHS), expected, "{listener:?}, {format:?}");
            assert_eq!(trace.rows(OUTSIDE), "0", "{listener:?}, {format:?}");
        }
    }
}
