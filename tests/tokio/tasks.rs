//! Lives, polls, wakes and queues of tasks.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use hairline::{TraceFuture, trace_scope};
use hairline_tests::recording::{FORMATS, Trace, record, record_with};
use hairline_tokio::TraceRuntime;
use tokio::task::yield_now;

use crate::{runtime, with_marks};

/// The slices on async tracks with what is above them, in the order of their begins.
const LIVES: &str = "select s.name, coalesce(ps.name, p.name, '-'), s.dur >= 0 from slice s \
     join track t on s.track_id = t.id left join track p on t.parent_id = p.id \
     left join slice ps on s.parent_id = ps.id \
     where s.track_id not in (select id from thread_track) order by s.ts, s.id";

/// The events of threads, in the order of time, without those of the test's own category.
const EVENTS: &str = "select s.name from slice s join thread_track t on s.track_id = t.id \
     where s.category != 'test' order by s.ts, s.id";

/// The arrows, from event to event, in the order of time.
const ARROWS: &str = "select a.name || ' -> ' || b.name from flow f join slice a on f.slice_out = a.id \
     join slice b on f.slice_in = b.id order by a.ts, b.ts";

fn marked(trace: &Trace, sql: &str) -> String {
    with_marks(&trace.rows(sql), "tasks.rs", include_str!("tasks.rs"))
}

#[test]
fn a_task_has_a_life_polls_and_the_time_in_the_queue() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let task = hairline_tokio::spawn(async { yield_now().await }); // task
                task.await.expect("no panic");
            });
        });
        let lives = "task\t-\t1\nqueued\ttask\t1\nqueued\ttask\t1";
        assert_eq!(marked(&trace, LIVES), lives, "{format:?}");
        assert_eq!(marked(&trace, EVENTS), "spawn\ntask\nwake\ntask", "{format:?}");
        assert_eq!(marked(&trace, ARROWS), "spawn -> task\ntask -> wake\nwake -> task", "{format:?}");
        // Queued from the spawn and from the end of the first poll, to the begins of the polls.
        let queued = "select (select count(*) from slice p where p.name like '%tasks.rs%' \
             and p.ts >= q.ts + q.dur and p.ts < q.ts + q.dur + 1000000) from slice q where q.name = 'queued'";
        assert_eq!(trace.rows(queued).lines().filter(|count| *count == "0").count(), 0, "{format:?}");
        let place = "select string_value from args where key in ('at', 'debug.at')";
        assert_eq!(marked(&trace, place), "task", "{format:?}");
    }
}

#[test]
fn a_task_that_is_woken_waits_in_the_queue_until_a_worker_is_free() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime = runtime(1);
            runtime.block_on(async {
                let (send, receive) = tokio::sync::oneshot::channel();
                let waits = async { receive.await.expect("sent") }.traced_task("web", "request");
                let waits = tokio::spawn(waits);
                tokio::time::sleep(Duration::from_millis(5)).await; // it waits now
                let blocks = tokio::spawn(async { std::thread::sleep(Duration::from_millis(40)) });
                std::thread::sleep(Duration::from_millis(5)); // this thread is no worker
                let woken = async {
                    trace_scope!("test", "sends");
                    send.send(7).expect("it waits");
                };
                woken.await;
                assert_eq!(waits.await.expect("no panic"), 7);
                blocks.await.expect("no panic");
            });
        });
        let queue = "select q.dur > 20000000 from slice q where q.name = 'queued' order by q.ts";
        assert_eq!(trace.rows(queue), "0\n1", "{format:?}");
        let wake = "select p.name from slice s join slice p on s.parent_id = p.id where s.name = 'wake'";
        assert_eq!(trace.rows(wake), "sends", "{format:?}");
    }
}

#[test]
fn only_the_first_of_several_wakes_is_recorded() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(1).block_on(async {
                let (send, receive) = mpsc::channel::<Waker>();
                let done = Arc::new(AtomicBool::new(false));
                let is_done = Arc::clone(&done);
                let waits = poll_fn(move |context| {
                    if is_done.load(Ordering::Acquire) {
                        return Poll::Ready(());
                    }
                    send.send(context.waker().clone()).expect("received");
                    Poll::Pending
                });
                let task = tokio::spawn(waits.traced_task("t", "task"));
                let blocks = tokio::spawn(async { std::thread::sleep(Duration::from_millis(20)) });
                let waker = receive.recv().expect("it was polled");
                done.store(true, Ordering::Release);
                for _ in 0..3 {
                    waker.wake_by_ref();
                }
                task.await.expect("no panic");
                blocks.await.expect("no panic");
                waker.wake(); // it is over
            });
        });
        assert_eq!(trace.rows("select count(*) from slice where name = 'wake'"), "1", "{format:?}");
        assert_eq!(trace.rows("select count(*) from slice where name = 'queued'"), "2", "{format:?}");
    }
}

#[test]
fn a_thousand_tasks_on_four_workers_have_whole_lives_and_each_poll_its_wake() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(4).block_on(async {
                let task = |n: u64| async move {
                    for _ in 0..3 {
                        tokio::time::sleep(Duration::from_micros(n % 7 * 100)).await;
                        yield_now().await;
                    }
                };
                let mut tasks = tokio::task::JoinSet::new();
                for n in 0..1000 {
                    tasks.spawn(task(n).traced_task("t", "task"));
                }
                tasks.join_all().await;
            });
        });
        let polls =
            "select count(*) from slice s join thread_track t on s.track_id = t.id where s.name = 'task'";
        let polls: u64 = trace.rows(polls).parse().expect("a number");
        let count = |name: &str| trace.rows(&format!("select count(*) from slice where name = '{name}'"));
        assert_eq!(count("task"), (polls + 1000).to_string(), "{format:?}");
        // Two wakes at a time may lead to a poll while the first one is recorded.
        let [queued, wakes] = ["queued", "wake"].map(|name| count(name).parse::<u64>().expect("a number"));
        assert!((polls - polls / 100..=polls).contains(&queued), "{format:?}: {queued} of {polls}");
        assert!(
            wakes <= polls - 1000 && wakes >= polls - 1000 - polls / 100,
            "{format:?}: {wakes} of {polls}"
        );
        // Nothing on one track overlaps without nesting, and nothing is open.
        let wrong = "select count(*) from slice where dur < 0";
        assert_eq!(trace.rows(wrong), "0", "{format:?}");
        let below = "select count(*) from slice s join slice life on s.parent_id = life.id \
             where s.name = 'queued' and life.name = 'task'";
        assert_eq!(trace.rows(below), queued.to_string(), "{format:?}");
        let numbers = "select count(distinct int_value) from args where key in ('task', 'debug.task')";
        assert_eq!(trace.rows(numbers), "1000", "{format:?}");
    }
}

#[test]
fn a_blocking_call_has_the_time_until_a_thread_calls_it() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(1)
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let sleep = || std::thread::sleep(Duration::from_millis(20));
                let first = hairline_tokio::spawn_blocking(sleep); // first
                let second = hairline_tokio::spawn_blocking(|| 7); // second
                first.await.expect("no panic");
                assert_eq!(second.await.expect("no panic"), 7);
            });
        });
        let queued = "select p.name, q.dur > 15000000 from slice q join slice p on q.parent_id = p.id \
             where q.name = 'queued' order by q.ts";
        assert_eq!(marked(&trace, queued), "first\t0\nsecond\t1", "{format:?}");
        let kinds =
            "select count(*) from args where key in ('kind', 'debug.kind') and display_value = 'blocking'";
        assert_eq!(trace.rows(kinds), "2", "{format:?}");
    }
}

#[test]
fn without_the_category_of_tasks_lives_and_polls_are_recorded() {
    for format in FORMATS {
        let configure = |builder: hairline::SessionBuilder| builder.categories("*,-task");
        let trace = record_with(format, configure, |_| {
            runtime(0).block_on(async {
                let task = async { yield_now().await }.traced_task("web", "request");
                tokio::spawn(task).await.expect("no panic");
                hairline_tokio::spawn(async {}).await.expect("no panic");
            });
        });
        assert_eq!(trace.rows(LIVES), "request\t-\t1", "{format:?}");
        assert_eq!(trace.rows(ARROWS), "request -> request", "{format:?}");
    }
}

#[test]
fn a_task_that_panics_or_is_aborted_has_a_whole_life() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let panics = async { std::panic::resume_unwind(Box::new(())) }.traced_task("t", "panics");
                assert!(tokio::spawn(panics).await.is_err_and(|error| error.is_panic()));
                let aborted = tokio::spawn(std::future::pending::<()>().traced_task("t", "aborted"));
                yield_now().await;
                aborted.abort();
                assert!(aborted.await.is_err_and(|error| error.is_cancelled()));
            });
        });
        let lives = "panics\t-\t1\nqueued\tpanics\t1\naborted\t-\t1\nqueued\taborted\t1";
        assert_eq!(trace.rows(LIVES), lives, "{format:?}");
    }
}

#[test]
fn a_session_that_begins_later_has_nothing_of_an_older_task() {
    for format in FORMATS {
        let runtime = runtime(0);
        let (send, receive) = tokio::sync::oneshot::channel();
        let mut task = None;
        let old = record(format, |_| {
            runtime.block_on(async {
                let waits = async { receive.await.expect("sent") }.traced_task("t", "task");
                task = Some(tokio::spawn(waits));
                yield_now().await;
            });
        });
        assert_eq!(old.rows("select count(*) from slice where name = 'queued'"), "1", "{format:?}");
        let new = record(format, |_| {
            runtime.block_on(async {
                send.send(7).expect("it waits");
                assert_eq!(task.take().expect("spawned").await.expect("no panic"), 7);
            });
        });
        let events = "select count(*) from slice where name in ('queued', 'wake', 'spawn')";
        assert_eq!(new.rows(events), "0", "{format:?}");
    }
}

#[test]
fn a_worker_without_work_is_parked_and_the_queue_is_counted() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().traced().build();
            runtime.expect("a runtime").block_on(async {
                let many = hairline_tokio::spawn(async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    for _ in 0..20 {
                        drop(hairline_tokio::spawn(async {})); // one of many
                    }
                    std::thread::sleep(Duration::from_millis(5));
                    drop(hairline_tokio::spawn(async {})); // the last
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }); // many
                many.await.expect("no panic");
            });
        });
        assert_eq!(
            trace.rows("select count(*) > 1 from slice where name = 'parked' and category = 'tokio'"),
            "1",
            "{format:?}"
        );
        let counters = "select t.name, count(*) > 1, max(c.value) > 0 or t.name = 'queue depth' from counter c \
             join counter_track t on c.track_id = t.id group by t.name order by t.name";
        assert_eq!(trace.rows(counters), "alive tasks\t1\t1\nqueue depth\t1\t1", "{format:?}");
        let is_noted =
            trace.summary.notes.iter().any(|note| note.starts_with("tokio: tasks that are not spawned"));
        assert_eq!(is_noted, !cfg!(tokio_unstable), "{format:?}: {:?}", trace.summary.notes);
    }
}

#[test]
fn a_session_that_begins_while_the_worker_is_parked_counts_the_queue_of_short_tasks() {
    for format in FORMATS {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).traced().build().expect("a runtime");
        runtime.block_on(async { tokio::spawn(async {}).await.expect("no panic") });
        std::thread::sleep(Duration::from_millis(5));
        let trace = record(format, |_| {
            runtime.block_on(async {
                for _ in 0..10 {
                    hairline_tokio::spawn(async {}).await.expect("no panic");
                    std::thread::sleep(Duration::from_millis(2)); // this thread is no worker
                }
            });
        });
        let counted = "select count(*) > 0 from counter c join counter_track t on c.track_id = t.id \
             where t.name = 'queue depth'";
        assert_eq!(trace.rows(counted), "1", "{format:?}");
    }
}

#[test]
fn a_task_that_nobody_can_wake_any_more_is_freed() {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Wake};

    /// As in executors whose tasks live for as long as their wakers.
    struct Task(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    for format in FORMATS {
        let trace = record(format, |_| {
            let freed = Arc::new(());
            let in_future = Arc::clone(&freed);
            let waits = poll_fn(move |context| {
                let _ = (&in_future, context.waker().clone()); // nobody keeps it
                Poll::<()>::Pending
            });
            let task = Arc::new(Task(Mutex::new(Some(Box::pin(waits.traced_task("t", "task"))))));
            let waker = Waker::from(Arc::clone(&task));
            let mut future = task.0.lock().expect("not poisoned");
            let poll = future.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&waker)));
            assert!(poll.is_some_and(|poll| poll.is_pending()));
            drop(future);
            drop((waker, task));
            assert_eq!(Arc::strong_count(&freed), 1, "{format:?}");
        });
        assert_eq!(trace.rows(LIVES), "task\t-\t1\nqueued\ttask\t1", "{format:?}");
    }
}

#[test]
fn a_full_ring_leaves_no_life_and_no_queue_open() {
    for format in FORMATS {
        let trace = hairline_tests::recording::record_tiny(format, |_| {
            runtime(2).block_on(async {
                let mut tasks = tokio::task::JoinSet::new();
                for _ in 0..20_000 {
                    tasks.spawn(async { yield_now().await }.traced_task("t", "task"));
                }
                tasks.join_all().await;
            });
        });
        assert!(trace.summary.lost.total() > 0, "{format:?}");
        let rows = [
            "select count(*) from slice where dur < 0",
            "select count(*) from slice q left join slice l on q.parent_id = l.id \
             where q.name = 'queued' and ifnull(l.name, '') != 'task'",
        ];
        // The judge says that packets were lost.
        let said: Vec<_> = trace.ask(&rows).results.iter().map(|result| result.text()).collect();
        assert_eq!(said, ["0", "0"], "{format:?}");
    }
}

#[test]
fn a_flight_recorder_has_whole_tasks_of_its_window() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(format!("window.{}", hairline_tests::recording::extension(format)));
        let session = hairline::Session::builder()
            .format(format)
            .overflow(hairline::Overflow::Overwrite)
            .buffer_size(1 << 20)
            .start()
            .expect("a session");
        runtime(2).block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..4000 {
                tasks.spawn(
                    async {
                        for _ in 0..5 {
                            yield_now().await;
                        }
                    }
                    .traced_task("t", "task"),
                );
            }
            tasks.join_all().await;
        });
        session.snapshot(&path).expect("a window");
        session.stop().expect("no error");
        let rows = [
            "select count(*) > 1000 from slice where name = 'queued'",
            "select count(*) from slice where dur < 0",
            "select count(*) from slice q left join slice l on q.parent_id = l.id \
             where q.name = 'queued' and ifnull(l.name, '') != 'task'",
        ];
        let verdict = hairline_tests::judge::load(&path, &rows);
        verdict.require_clean();
        let said: Vec<_> = verdict.results.iter().map(|result| result.text()).collect();
        assert_eq!(said, ["1", "0", "0"], "{format:?}");
    }
}

#[test]
fn a_poll_above_the_limit_is_marked() {
    for format in FORMATS {
        for (limit, expected) in [(Duration::from_millis(5), "request\t1\trequest"), (Duration::MAX, "")] {
            let trace = record_with(
                format,
                |builder| builder.poll_limit(limit),
                |_| {
                    runtime(0).block_on(async {
                        let blocks = async {
                            yield_now().await;
                            std::thread::sleep(Duration::from_millis(8));
                            yield_now().await;
                        };
                        let nested = blocks.traced("test", "nested"); // no task of its own
                        tokio::spawn(nested.traced_task("web", "request")).await.expect("no panic");
                    });
                },
            );
            let marks = "select l.name, n.int_value between 8000 and 1000000, \
                 (select p.name from slice p where p.track_id = s.track_id and p.ts < s.ts and p.depth = 0 \
                 order by p.ts desc limit 1) \
                 from slice s join args n on n.arg_set_id = s.arg_set_id and n.key in ('us', 'debug.us') \
                 join args a on a.arg_set_id = s.arg_set_id and a.key in ('task', 'debug.task') \
                 join args b on b.key in ('task', 'debug.task') and b.int_value = a.int_value \
                 join slice l on l.arg_set_id = b.arg_set_id and l.name != 'long poll' \
                 where s.name = 'long poll'";
            assert_eq!(trace.rows(marks), expected, "{format:?} {limit:?}");
        }
    }
}
