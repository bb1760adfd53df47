//! Futures on tokio.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hairline::{TraceFuture, trace, trace_scope};
use hairline_tests::recording::{FORMATS, record};
use tokio::runtime::{Builder, Runtime};

use crate::LIVES;

fn runtime(workers: usize) -> Runtime {
    let builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let mut builder = builder;
    if workers > 0 {
        builder.worker_threads(workers).thread_name("tokio worker");
    }
    builder.enable_time().build().unwrap()
}

/// Nothing on one track may overlap without nesting, and nothing may be open.
const WRONG: &str = "select count(*) from slice a join slice b on a.track_id = b.track_id and a.id < b.id \
     where a.dur < 0 or b.dur < 0 or (a.ts < b.ts and b.ts < a.ts + a.dur and a.ts + a.dur < b.ts + b.dur) \
     or (b.ts < a.ts and a.ts < b.ts + b.dur and b.ts + b.dur < a.ts + a.dur)";

#[trace("t", args(n))]
async fn task(n: u64) -> u64 {
    for _ in 0..5 {
        {
            trace_scope!("t", "work");
            std::hint::black_box(n);
        }
        let mut sleep = pin!(tokio::time::sleep(Duration::from_micros(50 + n % 7 * 30)));
        poll_fn(|context| {
            let poll = sleep.as_mut().poll(context);
            WAITS.fetch_add(u64::from(poll.is_pending()), Relaxed);
            poll
        })
        .await;
    }
    n
}

/// How often tasks were left waiting. A sleep may be over when it is asked first, where its thread stood
/// still for so long.
static WAITS: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_hundred_tasks_that_interleave_have_a_hundred_lives() {
    for workers in [0, 4] {
        for format in FORMATS {
            let trace = record(format, |_| {
                runtime(workers).block_on(async {
                    let all = futures::future::join_all((0..100).map(task)).traced("t", "join");
                    assert_eq!(all.await.iter().sum::<u64>(), 4950);
                    let spawned: Vec<_> = (0..100).map(|n| tokio::spawn(task(n))).collect();
                    for (n, task) in spawned.into_iter().enumerate() {
                        assert_eq!(task.await.unwrap(), n as u64);
                    }
                });
            });
            let name = format!("{format:?}, {workers} workers");
            let lives = trace.rows(LIVES);
            assert_eq!(lives.lines().filter(|l| **l == *"task\tjoin\t1").count(), 100, "{name}");
            assert_eq!(lives.lines().filter(|l| **l == *"task\t-\t1").count(), 100, "{name}");
            assert_eq!(trace.rows(WRONG), "0", "{name}");
            let polls =
                "select count(*) from slice s join thread_track t on s.track_id = t.id where s.name = 'task'";
            assert_eq!(
                trace.rows(polls),
                (WAITS.swap(0, Relaxed) + 200).to_string(),
                "{name}: a poll for each wait, and the last"
            );
            let work = "select count(*) from slice s join slice p on s.parent_id = p.id where s.name = 'work' and p.name = 'task'";
            assert_eq!(trace.rows(work), "1000", "{name}: work lies in the polls of its task");
            let flows = "select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
                 where a.name != b.name or a.ts > b.ts";
            assert_eq!(trace.rows(flows), "0", "{name}: a flow links polls of one task");
            let linked = "select (select count(*) from flow) = (select count(*) from slice s join thread_track t on s.track_id = t.id \
                 where s.name in ('task', 'join')) - 201";
            assert_eq!(trace.rows(linked), "1", "{name}: each poll but the first has an arrow");
        }
    }
}

#[test]
fn the_losers_of_a_select_end_when_they_are_dropped() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let long = tokio::time::sleep(Duration::from_secs(60)).traced("t", "loser");
                tokio::select! {
                    () = long => unreachable!(),
                    () = tokio::time::sleep(Duration::from_millis(2)).traced("t", "winner") => {}
                }
            });
        });
        let verdict = trace.ask(&["select name, dur < 60000000000 as short from slice where track_id not in (select id from thread_track) order by ts"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "loser\t1\nwinner\t1", "{format:?}");
        assert_eq!(trace.rows(WRONG), "0", "{format:?}");
    }
}

#[test]
fn a_life_has_the_true_duration_and_blocking_work_its_own_thread() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(2).block_on(async {
                // The sleep's deadline is counted from its making: that must not be before the life begins.
                async { tokio::time::sleep(Duration::from_millis(30)).await }.traced("t", "sleep").await;
                // Here too: the other thread may begin before this one goes on.
                let work = || {
                    trace_scope!("t", "blocking");
                    std::thread::sleep(Duration::from_millis(5));
                };
                async { tokio::task::spawn_blocking(work).await.unwrap() }.traced("t", "wait").await;
            });
        });
        let sleep = "select dur >= 30000000 from slice where name = 'sleep' and track_id not in (select id from thread_track)";
        assert_eq!(trace.rows(sleep), "1", "{format:?}");
        let polls = "select count(*) >= 2 from slice s join thread_track t on s.track_id = t.id where s.name = 'sleep'";
        assert_eq!(trace.rows(polls), "1", "{format:?}: it does not sleep on the thread");
        let inside = "select count(*) from slice b join slice w on b.ts >= w.ts and b.ts + b.dur <= w.ts + w.dur \
             where b.name = 'blocking' and w.name = 'wait' and w.track_id not in (select id from thread_track)";
        assert_eq!(trace.rows(inside), "1", "{format:?}");
    }
}

#[test]
fn a_panicking_task_ends() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(2).block_on(async {
                let outcome = tokio::spawn(
                    async {
                        trace_scope!("t", "inside");
                        let _unpolled = tokio::task::yield_now().traced("t", "yield");
                        assert!(std::hint::black_box(false), "on purpose");
                    }
                    .traced("t", "panics"),
                );
                assert!(outcome.await.is_err());
            });
        });
        assert_eq!(trace.rows(WRONG), "0", "{format:?}");
        assert_eq!(
            trace.rows("select count(*) from slice where name in ('panics', 'inside') and dur >= 0"),
            "3",
            "{format:?}"
        );
    }
}
