//! `hairline explain` tells what a request waited for from what was open at the same time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use hairline::{TraceFuture, TraceStream, trace_scope};
use hairline_tokio::sync;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::awaited::{SHORT, ask, first_lines, require, work};

#[test]
fn many_short_polls_beside_an_open_interval_are_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let (done, all) = oneshot::channel();
            let count = async move {
                for _ in 0..work(number).as_millis() {
                    std::thread::sleep(SHORT);
                    tokio::task::yield_now().await;
                }
                let _ = done.send(());
            };
            let users = async { all.await.expect("an answer") };
            tokio::join!(users.traced("net", "users"), count);
        },
    );
    require(&first, &["In their polls, which take ", " polls in each):"], &["`users`"]);
}

#[test]
fn the_long_poll_among_many_short_ones_is_described() {
    let first = first_lines(
        || {},
        |number| async move {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            std::thread::sleep(work(number));
        },
    );
    require(&first, &["In their polls, which take ", "ms longer than a typical one"], &["us each"]);
}

#[test]
fn a_future_that_another_task_polls_and_nobody_awaits_is_not_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            drop(tokio::spawn(sleep(work(number) * 3 / 4).traced("app", "audit")));
            sleep(work(number)).await;
        },
    );
    require(&first, &["The runtime wakes them then"], &["audit"]);
}

#[test]
fn what_is_not_looked_at_yet_is_not_waited_for() {
    let first = first_lines(
        || {},
        |number| async move {
            let prefetch = pin!(sleep(SHORT).traced("net", "prefetch"));
            sleep(work(number)).traced("app", "parse").await;
            prefetch.await;
        },
    );
    require(&first, &["Cause: intervals inside of them, most of all `parse`"], &[]);
}

#[test]
fn of_two_that_are_open_at_once_both_are_named() {
    let first = first_lines(
        || {},
        |number| async move {
            let (done, mut is_done) = oneshot::channel();
            let query = async {
                sleep(work(number)).traced("db", "query").await;
                let _ = done.send(());
            };
            let renew = async { while timeout(2 * SHORT, &mut is_done).await.is_err() {} };
            tokio::join!(query, renew.traced("db", "renew"));
        },
    );
    require(&first, &["Cause: intervals inside of them, most of all `", "`query`", "`renew`"], &[]);
}

#[test]
fn of_two_branches_at_once_the_longer_one_is_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let cache = Arc::new(sync::Mutex::named("cache", ()));
            let held = Arc::clone(&cache).lock_owned().await;
            let refresh = async move {
                sleep(work(number) / 2).await;
                drop(held);
            };
            tokio::spawn(refresh.traced_task("db", "refresh"));
            let read = async { drop(cache.lock().await) };
            tokio::join!(read.traced("app", "read"), sleep(work(number)).traced("net", "ask"));
        },
    );
    require(&first, &["Cause: intervals inside of them, most of all `ask`."], &["`cache`"]);
}

#[test]
fn a_stream_whose_consumer_waits_for_something_else_is_not_the_cause() {
    let items = |pause: Duration| {
        futures::stream::unfold(0, move |number| async move {
            sleep(pause).await;
            (number < 3).then_some((number, number + 1))
        })
    };
    let first = first_lines(
        || {},
        |number| async move {
            let mut lines = pin!(TraceStream::traced(items(SHORT / 10), "io", "lines"));
            while lines.next().await.is_some() {
                sleep(work(number) / 3).await;
            }
        },
    );
    require(&first, &["The runtime wakes them then"], &["`lines`"]);
    let first = first_lines(
        || {},
        |number| async move {
            let mut lines = pin!(TraceStream::traced(items(work(number) / 3), "io", "lines"));
            while lines.next().await.is_some() {
                sleep(SHORT / 10).await;
            }
        },
    );
    require(&first, &["Cause: intervals inside of them, most of all `lines`."], &[]);
}

#[test]
fn what_is_begun_again_and_again_and_dropped_at_last_is_not_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let mut answer = ask(number);
            loop {
                tokio::select! {
                    _ = &mut answer => break,
                    () = sleep(5 * SHORT).traced("app", "progress") => {}
                }
            }
        },
    );
    require(&first, &["Cause: what woke them inside `answer`, before `progress` was ready."], &[]);
}

#[test]
fn what_was_not_looked_at_before_is_not_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let mut prefetch = pin!(sleep(SHORT).traced("net", "prefetch"));
            sleep(work(number)).await;
            (&mut prefetch).await;
        },
    );
    require(&first, &["Cause: not known"], &["inside `prefetch`", "most of all `prefetch`"]);
    let item = || async { sleep(SHORT).await }.traced("app", "item");
    let first = first_lines(
        || {},
        |number| async move {
            let items = futures::stream::iter(0..8).map(|_| item()).buffered(3).enumerate();
            items.for_each(|(index, ())| sleep(if index == 4 { work(number) } else { Duration::ZERO })).await;
        },
    );
    let doubt = "or what is not recorded and kept them from looking at it";
    for first in first() {
        assert!(!first.contains("`item`") || first.contains(doubt), "{first}");
    }
}

#[test]
fn what_ticks_beside_it_in_a_set_and_is_dropped_is_not_the_cause() {
    let ticks = async || {
        loop {
            sleep(SHORT).await;
        }
    };
    let first = first_lines(
        || {},
        |number| async move {
            let mut set = futures::stream::FuturesUnordered::new();
            set.push(ticks().traced("app", "ticks").boxed());
            set.push(sleep(work(number)).traced("app", "part").boxed());
            set.next().await;
        },
    );
    require(&first, &["Cause: intervals inside of them, most of all `part`"], &["`ticks`"]);
}

#[test]
fn what_is_tried_again_and_again_is_the_cause() {
    let first = first_lines(
        || {},
        |number| async move {
            let (send, mut receive) = tokio::sync::mpsc::channel(1);
            std::thread::spawn(move || {
                std::thread::sleep(work(number));
                let _ = send.blocking_send(());
            });
            while timeout(4 * SHORT, receive.recv().traced("app", "receive")).await.is_err() {}
        },
    );
    require(
        &first,
        &["Cause: `receive`, which was given up ", " times in each and tried again."],
        &["Cause: a timer"],
    );
}

#[test]
fn a_poll_that_blocks_beside_an_open_interval_is_the_cause() {
    // Its lock is one of threads, and another life of the request is open meanwhile.
    let first = first_lines(
        || {},
        |number| async move {
            let users = async {
                sleep(SHORT).await;
                sleep(SHORT).await;
            };
            let count = async move {
                sleep(SHORT).await;
                trace_scope!("app", "count");
                std::thread::sleep(work(number));
            };
            tokio::join!(users.traced("net", "users"), count);
        },
    );
    require(&first, &["In their polls, which take ", "inside `count`."], &["users"]);
}

#[test]
fn what_the_holder_of_a_lock_computes_in_is_named() {
    let first = first_lines(
        || {},
        |number| async move {
            let cache = Arc::new(sync::Mutex::named("cache", ()));
            let held = Arc::clone(&cache);
            let refresh = async move {
                let _held = held.lock().await;
                trace_scope!("db", "rebuild");
                std::thread::sleep(work(number));
            };
            tokio::spawn(refresh.traced_task("db", "refresh"));
            sleep(SHORT / 4).await;
            drop(cache.lock().await);
        },
    );
    require(&first, &["Cause: waiting for the lock `cache`.", " refresh", ", inside `rebuild`"], &[]);
}

type Lock = Arc<sync::Mutex<()>>;

/// A request that waits for the lock `index`, which the task `mover` has taken when it says so. The lock
/// `disk` is held for a time by another task.
async fn behind_mover<M>(held: Duration, moves: impl FnOnce(Lock, Lock, oneshot::Sender<()>) -> M)
where
    M: Future<Output = ()> + Send + 'static,
{
    let [index, disk] = ["index", "disk"].map(|name| Arc::new(sync::Mutex::named(name, ())));
    let vacuumed = Arc::clone(&disk).lock_owned().await;
    let vacuum = async move {
        sleep(held).await;
        drop(vacuumed);
    };
    let (has_taken_it, is_taken) = oneshot::channel();
    tokio::spawn(vacuum.traced_task("db", "vacuum"));
    tokio::spawn(moves(Arc::clone(&index), disk, has_taken_it).traced_task("db", "mover"));
    is_taken.await.expect("it has the lock");
    drop(index.lock().await);
}

#[test]
fn what_the_holder_of_a_lock_waits_for_is_named() {
    let moves = |index: Lock, disk: Lock, has_taken_it: oneshot::Sender<()>| async move {
        let _moved = index.lock().await;
        let _ = has_taken_it.send(());
        drop(disk.lock().await);
    };
    let first = first_lines(|| {}, |number| behind_mover(work(number), moves));
    let words = [
        "Cause: waiting for the lock `index`.",
        ", which waits for `disk`, ",
        "explain TRACE 'wait: disk'`.",
    ];
    require(&first, &words, &[]);
}

#[test]
fn what_is_not_recorded_and_keeps_a_task_from_what_is_ready_is_not_passed_over() {
    let words = ["most of all `part`, or what is not recorded and kept them from looking at it."];
    let first = first_lines(
        || {},
        |number| async move {
            let two = [1, 4].map(|time| sleep(time * SHORT).traced("app", "part"));
            let mut parts = futures::stream::FuturesUnordered::from_iter(two);
            parts.next().await;
            sleep(work(number) + 4 * SHORT).await;
            parts.next().await;
        },
    );
    require(&first, &words, &[]);
    let first = first_lines(
        || {},
        |number| async move {
            let mut part = pin!(sleep(4 * SHORT).traced("app", "part"));
            if timeout(SHORT, &mut part).await.is_err() {
                sleep(work(number) + 4 * SHORT).await;
                part.await;
            }
        },
    );
    require(&first, &words, &[]);
}

#[test]
fn a_wait_in_another_branch_is_not_what_a_lock_is_held_for() {
    let first = first_lines(
        || {},
        |number| {
            behind_mover(work(number) + 40 * SHORT, move |index, disk, has_taken_it| async move {
                let moving = async {
                    sleep(SHORT).await;
                    let _moved = index.lock().await;
                    let _ = has_taken_it.send(());
                    sleep(work(number)).await;
                };
                tokio::join!(async { drop(disk.lock().await) }, moving);
            })
        },
    );
    require(&first, &["Cause: waiting for the lock `index`.", " mover"], &["disk"]);
}
