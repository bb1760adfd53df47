//! With `--cfg tokio_unstable`: all tasks of a runtime, by its hooks.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex as StdMutex};
use std::task::Poll;
use std::time::Duration;

use hairline::TraceFuture;
use hairline_tests::recording::{FORMATS, Trace, record, record_in, record_with, turn};
use hairline_tokio::{TraceRuntime, sync::Mutex};
use tokio::runtime::{Builder, Handle, HistogramConfiguration, LocalOptions, Runtime};
use tokio::task::{JoinSet, LocalSet, yield_now};

use crate::with_marks;

/// The lives of tasks by their names, with their number.
const LIVES: &str = "select s.name, count(*) from slice s join track t on s.track_id = t.id \
     where t.id not in (select id from thread_track) and t.parent_id is null and s.depth = 0 and s.name != 'recorded tasks' \
     group by s.name order by s.name";

/// The polls of tasks by their names, with their number.
const POLLS: &str = "select s.name, count(*) from slice s join thread_track t on s.track_id = t.id \
     where s.category in ('task', 'web') and s.name not in ('spawn', 'wake', 'long poll') group by s.name order by s.name";

/// Makes a runtime whose tasks are recorded: of this thread alone, or with so many workers.
fn builder(workers: usize) -> Builder {
    let builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let mut builder = builder;
    if workers > 0 {
        builder.worker_threads(workers).thread_name("worker");
    }
    builder.enable_time().traced();
    builder
}

fn runtime(workers: usize) -> Runtime {
    builder(workers).build().expect("a runtime")
}

/// The rows without the places of the lines.
fn marked(trace: &Trace, sql: &str) -> String {
    let rows = with_marks(&trace.rows(sql), "unstable.rs", include_str!("unstable.rs"));
    let mut rows: Vec<_> = rows.lines().collect();
    rows.sort_unstable(); // by their marks
    rows.join("\n")
}

fn count(trace: &Trace, what: &str) -> u64 {
    trace.rows(&format!("select count(*) from {what}")).parse().expect("a number")
}

#[test]
fn each_task_of_a_runtime_is_recorded_once_and_each_poll_is_one_that_tokio_counts() {
    for format in FORMATS {
        let mut polls = 0;
        let mut measured = Vec::new();
        let trace = record(format, |_| {
            let mut builder = builder(2);
            let buckets = HistogramConfiguration::linear(Duration::from_micros(50), 40);
            builder.metrics_schedule_latency_histogram_configuration(buckets);
            // Polls from the slot of the last woken task are not in the count of tokio.
            let runtime = builder.disable_lifo_slot().enable_metrics_schedule_latency_histogram().build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                let work = |n: u64| async move {
                    for _ in 0..3 {
                        tokio::time::sleep(Duration::from_micros(n % 7 * 100)).await;
                        yield_now().await;
                    }
                };
                let mut tasks = JoinSet::new();
                for n in 0..100 {
                    tasks.spawn(work(n)); // in a set
                    tasks.spawn(work(n).traced_task("web", "traced"));
                    tasks.spawn(hairline_tokio::task(work(n))); // task
                }
                for n in 0..100 {
                    let plain = tokio::spawn(work(n)); // plain
                    let through = hairline_tokio::spawn(work(n)); // through the crate
                    tasks.spawn(async move { (plain.await, through.await).0.expect("no panic") }); // waits
                }
                // Several are made before the first one is spawned.
                let several: Vec<_> = (0..8).map(|n| work(n).traced_task("web", "several")).collect();
                for task in several {
                    tasks.spawn(task);
                }
                tasks.join_all().await;
            });
            let metrics = runtime.metrics();
            drop(runtime); // the workers have counted
            polls = (0..metrics.num_workers()).map(|worker| metrics.worker_poll_count(worker)).sum();
            for bucket in 0..metrics.schedule_latency_histogram_num_buckets() {
                let count = |worker| metrics.schedule_latency_histogram_bucket_count(worker, bucket);
                let from = metrics.schedule_latency_histogram_bucket_range(bucket).start;
                measured.push((from, (0..metrics.num_workers()).map(count).sum::<u64>()));
            }
        });
        let lives = "in a set\t100\nplain\t100\nseveral\t8\ntask\t100\nthrough the crate\t100\ntraced\t100\nwaits\t100";
        assert_eq!(marked(&trace, LIVES), lives, "{format:?}");
        let slices: u64 = marked(&trace, POLLS)
            .lines()
            .map(|row| row.rsplit_once('\t').unwrap().1.parse::<u64>().unwrap())
            .sum();
        assert_eq!(slices, polls, "{format:?}");
        assert_eq!(count(&trace, "slice where dur < 0"), 0, "{format:?}");
        assert_eq!(count(&trace, "slice where name = 'polled'"), 0, "{format:?}");
        let recorded =
            "select count(distinct display_value), min(display_value) from args where key like '%tasks'";
        let all = "1\tall, except those of a LocalSet that are not spawned through hairline";
        assert_eq!(trace.rows(recorded), all, "{format:?}");

        // Each time in the queue is that of tokio, and what it takes to record it.
        let durations = "select q.dur from slice q where q.name = 'queued' order by q.dur";
        let queued: Vec<u64> = trace.rows(durations).lines().map(|ns| ns.parse().expect("ns")).collect();
        assert!(
            queued.len() as u64 <= polls && queued.len() as u64 >= polls - polls / 100,
            "{}",
            queued.len()
        );
        assert_eq!(measured.iter().map(|(_, count)| count).sum::<u64>(), polls, "{format:?}");
        let own = |from: u64| queued.iter().filter(|ns| **ns >= from).count() as u64;
        for (at, (from, _)) in measured.iter().enumerate().skip(1) {
            let tokio: u64 = measured[at..].iter().map(|(_, count)| count).sum();
            let from = u64::try_from(from.as_nanos()).expect("short");
            // A thread may lose its processor between the two clock reads.
            let few = polls / 100 + polls - queued.len() as u64;
            let (least, most) =
                (own(from + 20_000).saturating_sub(few), own(from.saturating_sub(20_000)) + few);
            assert!((least..=most).contains(&tokio), "{format:?}: {least} <= {tokio} <= {most} of {from} ns");
        }
    }
}

/// A task that is woken while it is polled, so that another worker may poll it before the hook after that.
async fn wakes_itself(times: usize) {
    for _ in 0..times {
        let mut is_woken = false;
        let wakes = poll_fn(|context| {
            if is_woken {
                return Poll::Ready(());
            }
            is_woken = true;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        wakes.await;
    }
}

#[test]
fn a_poll_that_begins_before_the_hook_after_the_one_before_is_recorded() {
    for format in FORMATS {
        let configure = |builder: hairline::SessionBuilder| builder.buffer_size(32 << 20);
        let trace = record_with(format, configure, |_| {
            runtime(4).block_on(async {
                let mut tasks = JoinSet::new();
                for _ in 0..3 {
                    tasks.spawn(wakes_itself(4000)); // plain
                    tasks.spawn(wakes_itself(1000).traced_task("web", "traced"));
                    tasks.spawn(async {}); // short
                }
                // Taken for one that records itself.
                let other = async {}.traced_task("web", "other");
                tasks.spawn(wakes_itself(1000)); // assumed
                other.await;
                tasks.join_all().await;
            });
        });
        assert_eq!(
            marked(&trace, LIVES),
            "assumed\t1\nother\t1\nplain\t3\nshort\t3\ntraced\t3",
            "{format:?}"
        );
        let polls = marked(&trace, POLLS);
        let polls = polls.strip_prefix("assumed\t1000\n").or_else(|| polls.strip_prefix("assumed\t1001\n"));
        assert_eq!(polls, Some("other\t1\nplain\t12003\nshort\t3\ntraced\t3003"), "{format:?}");
        let queued = "select l.name, count(*) from slice q join slice l on q.parent_id = l.id \
             where q.name = 'queued' and l.category = 'task' group by l.name";
        let queued = marked(&trace, queued);
        assert!(queued.contains("plain\t12003\nshort\t3"), "{format:?}: {queued}");
    }
}

/// What the hook of a program sees of a poll, in ns.
type Latencies = Arc<StdMutex<BTreeMap<tokio::task::Id, Vec<u64>>>>;

#[test]
fn the_time_in_the_queue_from_wakes_is_that_of_tokio() {
    for format in FORMATS {
        let seen = Latencies::default();
        let trace = record(format, |_| {
            let hook = Arc::clone(&seen);
            let runtime = Builder::new_multi_thread()
                .worker_threads(2)
                .enable_time()
                .track_task_schedule_latency()
                .on_before_task_poll(move |task| {
                    let latency = task.schedule_latency().expect("it is measured").as_nanos();
                    let latency = u64::try_from(latency).expect("short");
                    hook.lock().expect("no panic").entry(task.id()).or_default().push(latency);
                })
                .build();
            runtime.expect("a runtime").block_on(async {
                let mut tasks = Vec::new();
                for n in 0..300_u64 {
                    tasks.push(hairline_tokio::spawn(async move {
                        for _ in 0..10 {
                            tokio::time::sleep(Duration::from_micros(n % 7 * 100)).await;
                            yield_now().await;
                        }
                    }));
                }
                for task in tasks {
                    task.await.expect("no panic");
                }
            });
        });
        let queued = "select l.id, group_concat(q.dur) from slice q join track t on q.track_id = t.id \
             join slice l on q.parent_id = l.id where q.name = 'queued' group by l.id order by l.ts";
        let rows = trace.rows(queued);
        let seen = seen.lock().expect("no panic");
        assert_eq!((rows.lines().count(), seen.len()), (300, 300), "{format:?}");
        let (mut differences, mut left_out) = (Vec::new(), 0);
        for (row, latencies) in rows.lines().zip(seen.values()) {
            let own: Vec<i64> =
                row.rsplit_once('\t').expect("two").1.split(',').map(|ns| ns.parse().expect("ns")).collect();
            if own.len() == latencies.len() {
                differences.extend(own.iter().zip(latencies).map(|(own, tokio)| own - *tokio as i64));
            } else {
                left_out += 1; // a wake led to a poll while it was recorded
            }
        }
        differences.sort_unstable_by_key(|ns| ns.abs());
        let at = |part: usize| differences[(differences.len() - 1) * part / 1000];
        println!(
            "{format:?}: {} polls, {left_out} tasks left out; difference of ours: median {} ns, 99 %: {} ns, most: {} ns",
            differences.len(),
            at(500),
            at(990),
            at(1000)
        );
        assert!(left_out <= 15, "{format:?}: {left_out}");
        assert!(at(500).abs() < 100_000, "{format:?}: {}", at(500));
    }
}

#[test]
fn a_task_has_arrows_from_its_spawn_to_its_polls_and_waits_below_its_life() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let lock = Arc::new(Mutex::named("cache", 0));
                let held = lock.lock().await;
                let of_task = Arc::clone(&lock);
                let task = tokio::spawn(async move { *of_task.lock().await += 1 }); // task
                yield_now().await;
                drop(held);
                task.await.expect("no panic");
            });
        });
        let arrows = "select a.name || ' -> ' || b.name from flow f join slice a on f.slice_out = a.id \
             join slice b on f.slice_in = b.id order by a.ts, b.ts";
        let arrows = with_marks(&trace.rows(arrows), "unstable.rs", include_str!("unstable.rs"));
        assert!(arrows.contains("spawn -> task") && arrows.contains("task -> task"), "{format:?}: {arrows}");
        let below = "select q.name, l.name from slice q join track t on q.track_id = t.id \
             join track p on t.parent_id = p.id join slice l on l.track_id = p.id where q.name like 'wait%' and l.depth = 0";
        assert_eq!(marked(&trace, below), "wait: cache\ttask", "{format:?}");
    }
}

#[test]
fn a_session_that_begins_later_has_the_polls_of_older_tasks_once() {
    for format in FORMATS {
        let turn = turn(); // the tasks between the sessions are not those of another test's session
        let runtime = runtime(1);
        let ends = Arc::new(tokio::sync::Notify::new());
        let task = || {
            let ends = Arc::clone(&ends);
            async move { ends.notified().await }
        };
        let mut tasks = vec![runtime.spawn(task())]; // oldest
        let old = record_in(
            &turn,
            format,
            |builder| builder,
            |_| {
                tasks.push(runtime.spawn(task())); // old
                tasks.push(runtime.spawn(task().traced_task("web", "traced")));
                tasks.push(runtime.spawn(task()));
                std::thread::sleep(Duration::from_millis(20));
            },
        );
        assert_eq!(count(&old, "slice where name = 'queued'"), 3, "{format:?}");
        let new = record_in(
            &turn,
            format,
            |builder| builder,
            |_| {
                ends.notify_waiters();
                for task in tasks {
                    runtime.block_on(task).expect("no panic");
                }
            },
        );
        let polls = new.rows(POLLS);
        let polls: Vec<_> = polls.lines().map(|row| row.rsplit_once('\t').expect("two").1).collect();
        assert_eq!(polls, ["1"; 4], "{format:?}");
        assert_eq!(new.rows(LIVES), "", "{format:?}");
    }
}

#[test]
fn tasks_that_are_aborted_or_dropped_or_never_polled_have_whole_lives() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime = runtime(0);
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                tokio::spawn(async {}).abort(); // aborted
                tokio::spawn(std::future::pending::<()>().traced_task("web", "traced")).abort();
                drop(tokio::spawn(std::future::pending::<()>())); // waits
                drop(tokio::spawn(async { std::panic::resume_unwind(Box::new(())) })); // panics
                yield_now().await;
            });
            drop(runtime.spawn(async {})); // never polled
            drop(runtime);
            assert!(handle.block_on(handle.spawn(async {})).is_err(), "the runtime is over");
        });
        assert_eq!(
            marked(&trace, LIVES),
            "aborted\t1\nnever polled\t1\npanics\t1\ntraced\t1\nwaits\t1",
            "{format:?}"
        );
        assert_eq!(count(&trace, "slice where dur < 0"), 0, "{format:?}");
    }
}

#[test]
fn a_plain_task_beside_one_that_records_itself_but_has_no_hook_is_recorded() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(LocalSet::new().run_until(async {
                let local = hairline_tokio::spawn_local(async {}); // local
                let plain = tokio::spawn(async {}); // plain
                let blocking = hairline_tokio::spawn_blocking(|| ()); // blocking
                let second = tokio::spawn(async {}); // second
                // It looks as if this one were spawned.
                let awaited = async { yield_now().await }.traced_task("web", "awaited");
                let third = tokio::spawn(async { yield_now().await }); // third
                awaited.await;
                for task in [local, plain, blocking, second, third] {
                    task.await.expect("no panic");
                }
            }));
            let local = Builder::new_current_thread().traced().build_local(LocalOptions::default());
            local.expect("a runtime").block_on(async {
                hairline_tokio::spawn_local(async {}).await.expect("no panic"); // local runtime
                tokio::task::spawn_local(async {}).await.expect("no panic"); // plain local
            });
        });
        let lives = "awaited\t1\nblocking\t1\nlocal\t1\nlocal runtime\t1\nplain\t1\nplain local\t1\nsecond\t1\nthird\t1";
        assert_eq!(marked(&trace, LIVES), lives, "{format:?}");
        let polls = "awaited\t2\nblocking\t1\nlocal\t1\nlocal runtime\t1\nplain\t1\nplain local\t1\nsecond\t1\nthird\t1";
        assert_eq!(marked(&trace, POLLS), polls, "{format:?}");
        let below = "select p.name from slice s join slice p on s.parent_id = p.id where s.name = 'polled'";
        assert_eq!(marked(&trace, below), "third", "{format:?}");
    }
}

#[test]
fn a_task_that_awaits_an_older_recorded_future_is_that_one_for_as_long_as_it_lives() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let older = async { yield_now().await }.traced_task("web", "older");
                let task = async {
                    older.await;
                    yield_now().await;
                    yield_now().await;
                };
                tokio::spawn(task).await.expect("no panic"); // task
            });
        });
        assert_eq!(marked(&trace, POLLS), "older\t2\ntask\t2", "{format:?}");
    }
}

#[test]
fn a_poll_inside_of_a_poll_and_several_runtimes_are_recorded() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let outer = runtime(2);
            let inner = runtime(0);
            outer.block_on(async move {
                let nests = async move {
                    let inside =
                        || inner.block_on(async { tokio::spawn(yield_now()).await.expect("no panic") }); // inner
                    tokio::task::block_in_place(inside);
                    yield_now().await;
                    tokio::task::block_in_place(|| drop(inner));
                };
                tokio::spawn(nests).await.expect("no panic"); // outer
            });
        });
        assert_eq!(marked(&trace, LIVES), "inner\t1\nouter\t1", "{format:?}");
        assert_eq!(marked(&trace, POLLS), "inner\t2\nouter\t2", "{format:?}");
    }
}

#[test]
fn a_program_with_a_hook_of_its_own_for_the_end_has_no_tasks_of_ours() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime = builder(0).on_task_terminate(|_| ()).build().expect("a runtime");
            runtime.block_on(async { tokio::spawn(async {}).await.expect("no panic") });
        });
        assert_eq!(trace.rows(POLLS), "", "{format:?}");
    }
}

#[test]
fn without_the_category_of_tasks_only_traced_tasks_are_recorded() {
    for format in FORMATS {
        let configure = |builder: hairline::SessionBuilder| builder.categories("*,-task");
        let trace = record_with(format, configure, |_| {
            runtime(0).block_on(async {
                tokio::spawn(async {}).await.expect("no panic");
                tokio::spawn(async {}.traced_task("web", "request")).await.expect("no panic");
            });
        });
        assert_eq!(trace.rows(LIVES), "request\t1", "{format:?}");
        assert_eq!(trace.rows(POLLS), "request\t1", "{format:?}");
    }
}

#[test]
fn sessions_begin_and_end_while_tasks_are_spawned_and_polled() {
    for format in FORMATS {
        let turn = turn();
        let runtime = runtime(2);
        let works = |handle: Handle| async move {
            loop {
                let child = handle.spawn(async { yield_now().await });
                let traced = handle.spawn(async { yield_now().await }.traced_task("web", "traced"));
                let _ = (child.await, traced.await); // the runtime may be dropped
            }
        };
        let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(works(runtime.handle().clone()))).collect();
        for _ in 0..5 {
            let trace = record_in(
                &turn,
                format,
                |builder| builder,
                |_| {
                    std::thread::sleep(Duration::from_millis(5));
                },
            );
            trace.ask(&["select 1"]).require_clean();
        }
        tasks.iter().for_each(|task| task.abort());
    }
}

#[test]
fn the_pool_for_blocking_calls_is_counted() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let runtime = builder(1).max_blocking_threads(2).build().expect("a runtime");
            runtime.block_on(async {
                let calls = (0..6)
                    .map(|_| tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(20))));
                let calls: Vec<_> = calls.collect();
                tokio::spawn(async {}).await.expect("no panic"); // a worker looks
                for call in calls {
                    call.await.expect("no panic");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                tokio::spawn(async {}).await.expect("no panic");
            });
        });
        let values = "select t.name, cast(max(c.value) as int) >= case when t.name like '%queue%' then 4 else 2 end, \
             cast(max(c.value) as int) <= case when t.name like '%queue%' then 6 else 2 end \
             from counter c join counter_track t on c.track_id = t.id \
             where t.name like '%blocking%' group by t.name order by t.name";
        let expected = "blocking queue depth\t1\t1\nblocking threads\t1\t1\nidle blocking threads\t1\t1";
        assert_eq!(trace.rows(values), expected, "{format:?}");
        let last = "select cast(c.value as int) from counter c join counter_track t on c.track_id = t.id \
             where t.name = 'blocking queue depth' order by c.ts desc limit 1";
        assert_eq!(trace.rows(last), "0", "{format:?}");
    }
}

#[test]
fn a_long_poll_of_a_task_that_the_hooks_see_is_marked() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(1).block_on(async {
                let blocks = async {
                    yield_now().await;
                    std::thread::sleep(Duration::from_millis(12));
                };
                tokio::spawn(blocks).await.expect("no panic"); // blocks
            });
        });
        let marks = "select l.name from slice s join args a on a.arg_set_id = s.arg_set_id \
             join args b on b.int_value = a.int_value and b.key in ('task', 'debug.task') \
             join slice l on l.arg_set_id = b.arg_set_id and l.name not in ('long poll', 'spawn') \
             where s.name = 'long poll' and a.key in ('task', 'debug.task')";
        assert_eq!(marked(&trace, marks), "blocks", "{format:?}");
    }
}
