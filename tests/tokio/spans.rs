//! Waits below spans of `tracing`, and spans and recorded futures inside of each other.

use std::sync::Arc;
use std::time::Duration;

use hairline::{Mode, TraceFuture};
use hairline_tests::recording::{FORMATS, Trace, record};
use hairline_tokio::sync::{Mutex, Notify, RwLock, Semaphore, mpsc};
use tokio::time::sleep;
use tracing::instrument::WithSubscriber;
use tracing::{Instrument, info_span, instrument};
use tracing_subscriber::prelude::*;

use crate::runtime;

/// Records a program on one thread: through the subscriber and through the layer, in each format and mode.
fn each(modes: &[Mode], program: impl AsyncFn(), check: impl Fn(&Trace, &str)) {
    for (is_layer, format) in [false, true].into_iter().flat_map(|one| FORMATS.map(|format| (one, format))) {
        for mode in modes {
            let trace = record(format, |_| {
                let run = || runtime(0).block_on(program());
                if is_layer {
                    let layer = hairline::layer().mode(*mode);
                    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), run);
                } else {
                    tracing::subscriber::with_default(hairline::Subscriber::new().mode(*mode), run);
                }
            });
            check(&trace, &format!("layer: {is_layer}, {format:?}, {mode:?}"));
        }
    }
}

const WITH_LIVES: &[Mode] = &[Mode::Auto, Mode::Lifetimes];

/// The intervals on async tracks in the order of their names, each with all that it is inside of: the slices
/// around it on its track, then those at its begin on the tracks above.
fn paths(trace: &Trace) -> String {
    trace.rows(
        "with recursive \
         life as (select s.* from slice s where s.track_id not in (select id from thread_track)), \
         up as (select id, name as path, track_id, ts, parent_id from life union all \
           select up.id, above.name || ' > ' || up.path, above.track_id, up.ts, above.parent_id from up \
           join life above on above.id = ifnull(up.parent_id, (select l.id from life l \
             join track t on t.id = up.track_id where l.track_id = t.parent_id and l.ts <= up.ts \
             and up.ts < l.ts + l.dur order by l.depth desc limit 1))) \
         select path || case when count(*) > 1 then ' x ' || count(*) else '' end from \
         (select id, path, max(length(path)) from up group by id) group by path order by path",
    )
}

#[instrument(skip_all)]
async fn get(pool: &Semaphore) {
    let _permit = pool.acquire().await.expect("open");
    sleep(Duration::from_millis(2)).await;
}

#[instrument(skip_all)]
async fn user(pool: Arc<Semaphore>) {
    get(&pool).await;
}

// user ───────────────
//   get ────────────
//     wait: db pool ─
#[test]
fn a_wait_is_below_the_span_that_waits() {
    each(
        WITH_LIVES,
        async || {
            let pool = Arc::new(Semaphore::named("db pool", 1));
            let all: Vec<_> =
                (0..3).map(|_| tokio::spawn(user(Arc::clone(&pool)).with_current_subscriber())).collect();
            for one in all {
                one.await.expect("no panic");
            }
        },
        |trace, name| {
            let expected = "user x 3\nuser > get x 3\nuser > get > wait: db pool x 2";
            assert_eq!(paths(trace), expected, "{name}");
        },
    );
}

#[test]
fn every_kind_of_wait_is_below_its_span() {
    each(
        WITH_LIVES,
        async || {
            let (mutex, lock) = (Mutex::named("mutex", ()), RwLock::named("lock", ()));
            let (semaphore, notify) = (Semaphore::named("semaphore", 1), Notify::named("notify"));
            let (send, mut receive) = mpsc::channel_named("channel", 1);
            send.send(1).await.expect("open");
            let held = (mutex.lock().await, lock.read().await, semaphore.acquire().await);
            let frees = async {
                sleep(Duration::from_millis(1)).await;
                drop(held);
                notify.notify_one();
                receive.recv().await;
            };
            tokio::join!(
                async { drop(mutex.lock().await) }.instrument(info_span!("locks")),
                async { drop(lock.write().await) }.instrument(info_span!("writes")),
                async { drop(semaphore.acquire().await) }.instrument(info_span!("acquires")),
                async { send.send(2).await.expect("open") }.instrument(info_span!("sends")),
                notify.notified().instrument(info_span!("is notified")),
                frees,
            );
        },
        |trace, name| {
            let expected = "acquires\nacquires > wait: semaphore\nis notified\nis notified > wait: notify\n\
                            locks\nlocks > wait: mutex\nsends\nsends > wait: channel\nwrites\nwrites > wait: lock";
            assert_eq!(paths(trace), expected, "{name}");
        },
    );
}

#[instrument(skip_all)]
async fn row(rows: &Notify) {
    rows.notified().await;
}

#[instrument(skip_all)]
async fn request(rows: Arc<Notify>) {
    row(&rows).traced("db", "query").await;
}

/// Runs a request as a task, which waits for the rows.
async fn run_request() {
    let rows = Arc::new(Notify::named("rows"));
    let request = request(Arc::clone(&rows)).with_current_subscriber();
    let task = tokio::spawn(request.traced_task("web", "task"));
    sleep(Duration::from_millis(1)).await;
    rows.notify_one();
    task.await.expect("no panic");
}

/// Without the times in the queue, which depend on the machine.
fn paths_of_work(trace: &Trace) -> String {
    let paths = paths(trace);
    paths.lines().filter(|path| !path.contains("queued")).collect::<Vec<_>>().join("\n")
}

// task ────────────────────────
//   request ───────────────────
//     query ────────────────
//       row ─────────────
//         wait: rows ─
#[test]
fn spans_and_recorded_futures_inside_of_each_other_are_one_tree() {
    each(WITH_LIVES, run_request, |trace, name| {
        let expected = "task\ntask > request\ntask > request > query\ntask > request > query > row\n\
                            task > request > query > row > wait: rows";
        assert_eq!(paths_of_work(trace), expected, "{name}");
    });
}

#[test]
fn a_wait_in_a_recorded_future_inside_of_a_span_is_below_the_future() {
    each(
        WITH_LIVES,
        async || {
            let rows = Notify::named("rows");
            let query = async { rows.notified().await };
            let request = async { query.traced("db", "query").await }.instrument(info_span!("request"));
            let notifies = async {
                sleep(Duration::from_millis(1)).await;
                rows.notify_one();
            };
            tokio::join!(request, notifies);
        },
        |trace, name| {
            let expected = "request\nrequest > query\nrequest > query > wait: rows";
            assert_eq!(paths(trace), expected, "{name}");
        },
    );
}

#[test]
fn a_wait_in_a_span_without_a_life_is_below_the_future_around_it() {
    each(&[Mode::Threads], run_request, |trace, name| {
        let expected = "task\ntask > query\ntask > query > wait: rows";
        assert_eq!(paths_of_work(trace), expected, "{name}");
    });
}

#[test]
fn a_span_that_waits_for_nothing_still_has_no_life() {
    each(
        &[Mode::Auto],
        async || {
            let pool = Semaphore::named("db pool", 1);
            let get = async { drop(pool.acquire().await) };
            get.instrument(info_span!("get")).instrument(info_span!("user")).await;
        },
        |trace, name| assert_eq!(paths(trace), "", "{name}"),
    );
}
