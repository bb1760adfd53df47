//! Waits for the locks, semaphores, channels and notifications of `hairline_tokio::sync`.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hairline::{TraceFuture, trace_instant};
use hairline_tests::recording::{FORMATS, Trace, record};
use hairline_tokio::sync::{Mutex, Notify, RwLock, Semaphore, mpsc};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::{runtime, with_marks};

/// The waits, in the order of their begins: what is above, the name, all arguments. The number of a task is
/// shown as its name.
fn waits(trace: &Trace) -> String {
    let rows = trace.rows(
        "select coalesce(ps.name, p.name, '-') || ': ' || s.name \
         || ifnull((select group_concat(' ' || replace(a.key, 'debug.', '') || '=' || case when a.key like '%task' \
         then (select l.name from slice l join args n on l.arg_set_id = n.arg_set_id \
         where n.key in ('task', 'debug.task') and n.int_value = a.int_value) \
         when a.key like '%held_by' then (select name from thread where tid = a.int_value) \
         else a.display_value end, '') \
         from (select * from args order by id) a where a.arg_set_id = s.arg_set_id and (a.key like '%at' \
         or a.key like '%held_by%' or a.key like '%kind' or a.key like '%wanted')), '') \
         || case when s.dur < 0 then ' open' else '' end \
         from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id \
         left join slice ps on s.parent_id = ps.id where s.category = 'lock' and s.name like 'wait:%' order by s.ts, s.id",
    );
    with_marks(&rows, "waits.rs", include_str!("waits.rs"))
}

/// Runs two tasks on one thread: `holds`, and then `waits`, until both are over.
fn in_turn<H, W>(holds: H, waits: W)
where
    H: Future<Output: Send> + Send + 'static,
    W: Future<Output: Send> + Send + 'static,
{
    runtime(0).block_on(async {
        let holds = tokio::spawn(holds.traced_task("test", "holds"));
        let waits = tokio::spawn(waits.traced_task("test", "waits"));
        holds.await.expect("no panic");
        waits.await.expect("no panic");
    });
}

#[test]
fn a_wait_for_a_mutex_names_the_task_that_has_it_and_where_it_took_it() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Arc::new(Mutex::named("cache", 1));
            let other = Arc::clone(&mutex);
            let holds = async move {
                let mut held = mutex.lock().await; // taken here
                sleep(Duration::from_millis(5)).await;
                *held += 1;
            };
            let waits = async move { assert_eq!(*other.lock().await, 2) }; // waits here
            in_turn(holds, waits);
        });
        let expected = "waits: wait: cache at=waits here held_by_task=holds held_at=taken here kind=lock";
        assert_eq!(waits(&trace), expected, "{format:?}");
        let time = "select dur > 3000000 and dur < 1000000000 from slice where category = 'lock' and name like 'wait:%'";
        assert_eq!(trace.rows(time), "1", "{format:?}");
    }
}

#[test]
fn each_release_while_a_task_waits_names_the_one_that_held_the_lock() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let lock = Arc::new(RwLock::named("routes", 1));
            let other = Arc::clone(&lock);
            let holds = async move {
                drop(lock.read().await); // nobody waits
                let held = lock.write().await; // writes here
                sleep(Duration::from_millis(5)).await;
                drop(held);
                let held = lock.read().await; // reads here
                yield_now().await;
                drop(held);
            };
            let waits = async move {
                drop(other.read().await);
                drop(other.write().await);
            };
            in_turn(holds, waits);
        });
        let rows = trace.rows(
            "select s.name || (select group_concat(' ' || replace(a.key, 'debug.', '') || '=' || case \
             when a.key like '%task' then 'task ' || (select l.name from slice l join args n on \
             l.arg_set_id = n.arg_set_id where n.key in ('task', 'debug.task') and n.int_value = a.int_value) \
             when a.key like '%lock' then (select count(distinct int_value) from args where key like '%lock') \
             else a.display_value end, '') from (select * from args order by id) a where a.arg_set_id = s.arg_set_id \
             and a.key not like 'source%') from slice s where s.name like 'release:%' order by s.ts limit 2",
        );
        let rows = with_marks(&rows, "waits.rs", include_str!("waits.rs"));
        assert_eq!(
            rows,
            "release: routes at=writes here lock=1 held_by_task=task holds kind=lock\n\
             release: routes at=reads here lock=1 shared=true held_by_task=task holds kind=lock",
            "{format:?}"
        );
    }
}

#[test]
fn what_is_free_makes_no_event() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let work = async {
                let (mutex, lock) = (Arc::new(Mutex::new(1)), Arc::new(RwLock::new(1)));
                let (semaphore, notify) = (Arc::new(Semaphore::new(2)), Notify::new());
                let (send, mut receive) = mpsc::channel(4);
                for _ in 0..100 {
                    *mutex.lock().await += 1;
                    *Arc::clone(&mutex).lock_owned().await += 1;
                    *mutex.try_lock().expect("free") += 1;
                    *lock.write().await += 1;
                    let reader = Arc::clone(&lock).read_owned().await;
                    assert!(lock.try_write().is_err());
                    assert_eq!(*lock.read().await, *reader);
                    drop(reader);
                    drop(lock.write().await.downgrade());
                    drop(semaphore.acquire_many(2).await.expect("open"));
                    drop(Arc::clone(&semaphore).acquire_owned().await.expect("open"));
                    notify.notify_one();
                    notify.notified().await;
                    send.send(1).await.expect("open");
                    send.reserve().await.expect("open").send(2);
                    assert_eq!((receive.recv().await, receive.recv().await), (Some(1), Some(2)));
                }
                assert_eq!(*mutex.lock().await, 301);
            };
            in_turn(work, async {});
        });
        assert_eq!(waits(&trace), "", "{format:?}");
    }
}

#[test]
fn a_future_that_waits_is_little_larger_than_that_of_tokio() {
    /// What is known of the wait, in bytes. That of tokio has about 100, and must not be there twice.
    const MORE: usize = 256;
    fn check<O, T>(what: &str, own: &O, tokio: &T) {
        let (own, tokio) = (size_of_val(own), size_of_val(tokio));
        assert!(own <= tokio + MORE, "{what}: {own} bytes, of tokio {tokio}");
    }
    let (own, tokio) = (Semaphore::new(1), tokio::sync::Semaphore::new(1));
    check("acquire", &own.acquire(), &tokio.acquire());
    check("acquire_owned", &Arc::new(own).acquire_owned(), &Arc::new(tokio).acquire_owned());
    let (own, tokio) = (Mutex::new(1), tokio::sync::Mutex::new(1));
    check("lock", &own.lock(), &tokio.lock());
    check("lock_owned", &Arc::new(own).lock_owned(), &Arc::new(tokio).lock_owned());
    let (own, tokio) = (RwLock::new(1), tokio::sync::RwLock::new(1));
    check("read", &own.read(), &tokio.read());
    check("write", &own.write(), &tokio.write());
    let ((own, _), (tokio, _)) = (mpsc::channel(1), tokio::sync::mpsc::channel(1));
    check("send", &own.send(1), &tokio.send(1));
    check("reserve", &own.reserve(), &tokio.reserve());
}

#[test]
fn a_task_that_must_yield_does_not_wait() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Mutex::new(0);
            let work = async move {
                let mut yields = 0;
                for _ in 0..1000 {
                    let mut lock = std::pin::pin!(mutex.lock());
                    let guard = std::future::poll_fn(|context| {
                        let poll = lock.as_mut().poll(context);
                        yields += u32::from(poll.is_pending());
                        poll
                    });
                    *guard.await += 1;
                }
                assert!(yields > 0, "tokio's budget is used up");
            };
            in_turn(work, async {});
        });
        assert_eq!(waits(&trace), "", "{format:?}");
    }
}

#[test]
fn readers_wait_for_the_writer_and_a_writer_for_readers_who_are_not_known() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let lock = Arc::new(RwLock::named("routes", 0));
            let other = Arc::clone(&lock);
            let holds = async move {
                *lock.write().await += 1;
                let written = lock.write().await; // written here
                yield_now().await;
                drop(written);
                let read = lock.read().await;
                yield_now().await;
                drop(read);
            };
            let waits = async move {
                drop(other.read().await); // reads here
                yield_now().await;
                drop(other.write().await); // writes here
            };
            in_turn(holds, waits);
        });
        assert_eq!(
            waits(&trace),
            "waits: wait: routes at=reads here held_by_task=holds held_at=written here kind=lock\n\
             waits: wait: routes at=writes here kind=lock",
            "{format:?}"
        );
    }
}

#[test]
fn a_semaphore_without_permits_a_full_channel_and_a_notification_are_waited_for() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let semaphore = Arc::new(Semaphore::named("connections", 2));
            let other = Arc::clone(&semaphore);
            let holds = async move {
                let _permit = semaphore.acquire().await;
                sleep(Duration::from_millis(2)).await;
            };
            let waits = async move {
                drop(other.acquire_many(2).await); // both
            };
            in_turn(holds, waits);

            let (send, mut receive) = mpsc::channel_named("jobs", 1);
            let holds = async move {
                sleep(Duration::from_millis(2)).await;
                while receive.recv().await.is_some() {}
            };
            let waits = async move {
                send.send(1).await.expect("open");
                send.send(2).await.expect("open"); // full
            };
            in_turn(holds, waits);

            let notify = Arc::new(Notify::named("stop"));
            let other = Arc::clone(&notify);
            let holds = async move {
                sleep(Duration::from_millis(2)).await;
                notify.notify_one();
            };
            let waits = async move { other.notified().await }; // stops
            in_turn(holds, waits);
        });
        assert_eq!(
            waits(&trace),
            "waits: wait: connections at=both kind=semaphore wanted=2\n\
             waits: wait: jobs at=full kind=channel\n\
             waits: wait: stop at=stops kind=notification",
            "{format:?}"
        );
    }
}

#[test]
fn a_wait_is_below_the_life_of_the_innermost_future_and_ends_with_the_drop_of_the_future() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Arc::new(Mutex::named("cache", ()));
            let other = Arc::clone(&mutex);
            let holds = async move {
                let held = mutex.lock_owned().await; // owned
                sleep(Duration::from_millis(5)).await;
                drop(held);
            };
            let waits = async move {
                let inner = async {
                    let lock = other.lock(); // in time
                    tokio::time::timeout(Duration::from_millis(1), lock).await
                };
                assert!(inner.traced("test", "inner").await.is_err());
            };
            in_turn(holds, waits);
        });
        let expected = "inner: wait: cache at=in time held_by_task=holds held_at=owned kind=lock";
        assert_eq!(waits(&trace), expected, "{format:?}");
    }
}

#[test]
fn a_thread_that_blocks_and_a_task_that_is_not_recorded_are_holders_too() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Arc::new(Mutex::named("cache", ()));
            let runtime = runtime(0);
            let [blocks, hidden, waits] = [(); 3].map(|()| Arc::clone(&mutex));
            let (set_taken, taken) = tokio::sync::oneshot::channel();
            let holder = std::thread::Builder::new().name("holder".to_owned()).spawn(move || {
                let held = blocks.blocking_lock(); // by a thread
                trace_instant!("test", "holds"); // so that the trace has its name
                set_taken.send(()).expect("it waits");
                std::thread::sleep(Duration::from_millis(10));
                drop(held);
            });
            runtime.block_on(async {
                taken.await.expect("sent");
                drop(waits.lock().await); // first
                let hidden = tokio::spawn(async move {
                    let _held = hidden.lock().await; // by a task
                    sleep(Duration::from_millis(2)).await;
                });
                yield_now().await;
                drop(waits.lock().await); // second
                hidden.await.expect("no panic");
            });
            holder.expect("a thread").join().expect("no panic");
        });
        assert_eq!(
            waits(&trace),
            "-: wait: cache at=first held_by=holder held_at=by a thread kind=lock\n\
             -: wait: cache at=second held_at=by a task kind=lock",
            "{format:?}"
        );
    }
}

#[test]
fn the_locks_have_the_traits_and_the_values_of_those_of_tokio() {
    fn all<T: Send + Sync>() {}
    fn sends<T: Send>(_: T) {}
    all::<(Mutex<u8>, RwLock<u8>, Semaphore, Notify, mpsc::Sender<u8>)>();
    all::<Mutex<std::cell::Cell<u8>>>();
    static MUTEX: Mutex<u8> = Mutex::const_named("static", 7);
    sends(MUTEX.lock());
    assert_eq!(format!("{:?}", Mutex::new(7)), format!("{:?}", tokio::sync::Mutex::new(7)));
    assert_eq!(Mutex::from(7).into_inner(), 7);
    let unsized_one: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
    runtime(0).block_on(async {
        assert_eq!(unsized_one.lock().await.len(), 2);
        let guard = Arc::clone(&unsized_one).lock_owned().await;
        drop(unsized_one);
        assert_eq!(guard.len(), 2); // it has an owner of the lock
    });
}

#[test]
fn a_task_without_budget_waits_as_others_do() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mutex = Arc::new(Mutex::named("cache", ()));
            let other = Arc::clone(&mutex);
            let holds = async move {
                let _held = mutex.lock().await; // holds
                sleep(Duration::from_millis(5)).await;
            };
            let waits = async move {
                while tokio::task::coop::has_budget_remaining() {
                    tokio::task::consume_budget().await;
                }
                drop(other.lock().await); // waits
            };
            in_turn(holds, waits);
        });
        let expected = "waits: wait: cache at=waits held_by_task=holds held_at=holds kind=lock";
        assert_eq!(waits(&trace), expected, "{format:?}");
    }
}

#[test]
fn a_lock_that_was_taken_in_another_session_names_nobody_of_this_one() {
    for format in FORMATS {
        let runtime = runtime(0);
        let mutex = Arc::new(Mutex::named("cache", ()));
        let (free, wanted) = tokio::sync::oneshot::channel();
        let mut holder = None;
        let taken = Arc::clone(&mutex);
        let old = record(format, |_| {
            runtime.block_on(async {
                let holds = async move {
                    let _held = taken.lock().await;
                    let _ = wanted.await;
                };
                holder = Some(tokio::spawn(holds.traced_task("test", "holds")));
                yield_now().await;
            });
        });
        assert_eq!(waits(&old), "", "{format:?}");
        let trace = record(format, |_| {
            runtime.block_on(async {
                let waits = async move { drop(mutex.lock().await) }; // waits
                let waits = tokio::spawn(waits.traced_task("test", "waits"));
                yield_now().await;
                free.send(()).expect("it waits");
                waits.await.expect("no panic");
                holder.take().expect("spawned").await.expect("no panic");
            });
        });
        assert_eq!(waits(&trace), "waits: wait: cache at=waits kind=lock", "{format:?}");
    }
}

/// The values of the counter `depth`, in order, by the names of the tracks above it.
const DEPTHS: &str = "select t.name || ': ' || group_concat(cast(c.value as int), ' ') \
     from (select * from counter order by ts, id) c join counter_track t on c.track_id = t.id \
     where t.name like 'depth:%' group by t.id order by min(c.ts)";

#[test]
fn the_depth_of_a_channel_is_a_counter() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let (send, mut receive) = mpsc::channel_named("few", 2);
                send.send(1).await.expect("open");
                send.try_send(2).expect("open");
                assert!(send.try_send(3).is_err());
                assert_eq!(receive.recv().await, Some(1));
                let permit = send.reserve().await.expect("open");
                permit.send(3);
                assert_eq!((receive.recv().await, receive.try_recv()), (Some(2), Ok(3)));

                let (send, mut receive) = mpsc::channel_named("many", 80);
                for n in 0..80 {
                    send.send(n).await.expect("open");
                }
                for _ in 0..30 {
                    receive.recv().await.expect("one");
                }
                drop(receive); // with 50
                assert!(send.send(1).await.is_err());

                let (send, receive) = mpsc::channel_named("of tokio", 1);
                let mut receive = receive.into_inner();
                send.send(1).await.expect("open");
                assert_eq!(receive.recv().await, Some(1));
            });
        });
        let expected = "depth: few: 1 2 1 2 1 0\ndepth: many: 1 11 21 31 41 51 61 71 80 70 60 50 0";
        assert_eq!(trace.rows(DEPTHS), expected, "{format:?}");
    }
}

#[test]
fn two_channels_with_one_name_have_a_depth_each_and_a_second_session_has_it_too() {
    for format in FORMATS {
        let (one, other) = (mpsc::channel_named("jobs", 4), mpsc::channel_named("jobs", 4));
        for expected in ["1\n2", "2\n4"] {
            let trace = record(format, |_| {
                one.0.try_send(1).expect("room");
                for n in 0..2 {
                    other.0.try_send(n).expect("room");
                }
            });
            let last = "select cast(max(c.value) as int) from counter c join counter_track t on c.track_id = t.id \
                 where t.name like 'depth:%' group by t.id order by 1";
            let found = trace.rows(last);
            assert_eq!(found, expected, "{format:?}");
        }
    }
}

#[test]
fn a_send_that_is_given_up_leaves_no_depth() {
    for format in FORMATS {
        let trace = record(format, |_| {
            runtime(0).block_on(async {
                let (send, mut receive) = mpsc::channel_named("one", 1);
                send.try_reserve().expect("room").send(1);
                let mut waits = Box::pin(send.send(2));
                assert!(
                    std::future::poll_fn(|context| Poll::Ready(waits.as_mut().poll(context).is_pending()))
                        .await
                );
                assert_eq!(receive.recv().await, Some(1)); // its place is that of the one that waits
                drop(waits);
                assert_eq!((send.capacity(), receive.len()), (1, 0));
            });
        });
        assert_eq!(trace.rows(DEPTHS), "depth: one: 1 0", "{format:?}");
    }
}

/// Each has two threads that change and record its depth at the same time.
#[test]
fn the_last_depths_of_many_channels_are_right() {
    const CHANNELS: usize = 400;
    for format in FORMATS {
        let mut kept = Vec::new(); // the drop of a receiver is a change too
        let trace = record(format, |_| {
            let channels = (0..CHANNELS).map(|_| mpsc::channel_named("many", 1));
            let (senders, mut receivers): (Vec<_>, Vec<_>) = channels.unzip();
            std::thread::scope(|threads| {
                threads.spawn(|| senders.iter().for_each(|send| send.try_send(1).expect("room")));
                for receive in &mut receivers {
                    while receive.try_recv().is_err() {
                        std::hint::spin_loop();
                    }
                }
            });
            kept = receivers;
        });
        drop(kept);
        let last = "select count(*), sum((select c.value from counter c where c.track_id = t.id order by c.ts desc, \
             c.id desc limit 1)) from counter_track t where t.name = 'depth: many'";
        let rows = trace.rows(last);
        let (count, last) = rows.split_once('\t').expect("two");
        assert!(count.parse::<usize>().expect("a number") > 0, "{format:?}");
        assert_eq!(last, "0.0", "{format:?}: of {count}");
    }
}

/// Whoever changes a depth last also records it last.
#[test]
fn the_last_depth_is_right_with_many_senders() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (send, mut receive) = mpsc::channel_named("jobs", 4);
            let senders: Vec<_> = (0..3)
                .map(|_| {
                    let send = send.clone();
                    std::thread::spawn(move || (0..2000).for_each(|n| send.blocking_send(n).expect("open")))
                })
                .collect();
            for _ in 0..6000 {
                receive.blocking_recv().expect("one");
            }
            senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
            std::mem::forget(receive);
        });
        let last = "select cast(c.value as int) from counter c join counter_track t on c.track_id = t.id \
             where t.name like 'depth:%' order by c.ts desc limit 1";
        assert_eq!(trace.rows(last), "0", "{format:?}");
    }
}

#[test]
fn what_is_dropped_before_it_is_ready_says_so() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (lock, notify) = (Mutex::named("cache", ()), Notify::named("reload"));
            let select = async move {
                let _held = lock.lock().await;
                tokio::select! {
                    () = std::future::pending().traced("test", "shutdown") => {}
                    _ = lock.lock() => {}
                    () = notify.notified() => {}
                    () = sleep(Duration::from_millis(1)).traced("test", "work") => {}
                }
            };
            in_turn(select, async {});
        });
        let dropped = "select s.name, ifnull((select display_value from args a where a.arg_set_id = s.arg_set_id \
             and key in ('dropped', 'debug.dropped')), '-') from slice s join track t on s.track_id = t.id \
             where s.name in ('shutdown', 'work', 'wait: cache', 'wait: reload') \
             and t.id not in (select id from thread_track) order by s.name";
        let expected = "shutdown\ttrue\nwait: cache\ttrue\nwait: reload\ttrue\nwork\t-";
        assert_eq!(trace.rows(dropped), expected, "{format:?}");
    }
}
