//! Waits for the locks of `hairline::sync`: who waits, for which lock, who has it, who ends the wait.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hairline::sync::{Barrier, Condvar, Mutex, Once, RawMutex, RawRwLock, RwLock};
use hairline::{Format, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, Trace, record, record_in, record_with, turn};

/// Each event of a lock with its arguments, in the order of time. A thread's id is shown as its name, a place
/// in this file as the text of its line up to the first blank, dot or bracket after `let`.
fn events(trace: &Trace) -> String {
    let rows = trace.rows(
        "select t.name || ': ' || s.name || ifnull((select group_concat(' ' || replace(a.key, 'debug.', '') \
         || '=' || ifnull((select h.name from thread h where h.tid = a.int_value), a.string_value), '') \
         from (select * from args order by id) a where a.arg_set_id = s.arg_set_id \
         and (a.key like '%at' or a.key like '%by')), '') \
         from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
         where s.category = 'lock' order by s.ts, s.depth",
    );
    with_marks(&rows)
}

/// Replaces each place in this file by the comment at the end of its line.
fn with_marks(rows: &str) -> String {
    let lines: Vec<_> = include_str!("waits.rs").lines().collect();
    let mut out = String::new();
    for word in rows.split_inclusive([' ', '\n']) {
        let trimmed = word.trim_end();
        let mark = trimmed.rsplit_once(':').and_then(|(before, line)| {
            let file = before.rsplit_once('=').map_or(before, |(_, file)| file);
            let line = lines.get(line.parse::<usize>().ok()?.checked_sub(1)?)?;
            let (_, mark) = line.rsplit_once("// ")?;
            file.ends_with("waits.rs").then(|| word.replace(&trimmed[before.len() - file.len()..], mark))
        });
        out.push_str(&mark.unwrap_or_else(|| word.to_owned()));
    }
    out
}

/// The arrows, from event to event.
fn arrows(trace: &Trace) -> String {
    trace.rows(
        "select a.name || ' -> ' || b.name || ' in ' || p.name from flow f join slice a on f.slice_out = a.id \
         join slice b on f.slice_in = b.id left join slice p on b.parent_id = p.id order by a.ts, b.ts",
    )
}

fn tid() -> i64 {
    // The link's target is PID/task/TID.
    let link = std::fs::read_link("/proc/thread-self").expect("procfs");
    link.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok()).expect("a thread id")
}

/// Runs `waits` on a thread of this name, which falls asleep in it, and then `ends` on this thread.
fn while_asleep(name: &str, waits: impl FnOnce() + Send, ends: impl FnOnce()) {
    let waiter = AtomicI64::new(0);
    thread::scope(|threads| {
        let run = || {
            waiter.store(tid(), Ordering::Release);
            waits();
        };
        threads::spawn(threads, name, run);
        let is_asleep = || {
            let path = format!("/proc/self/task/{}/stat", waiter.load(Ordering::Acquire));
            std::fs::read_to_string(path)
                .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S")))
        };
        while !is_asleep() {
            thread::sleep(Duration::from_millis(1));
        }
        ends();
    });
}

mod threads {
    use std::thread::{Builder, Scope};

    /// Spawns a thread with a name.
    pub(super) fn spawn<'s>(scope: &'s Scope<'s, '_>, name: &str, run: impl FnOnce() + Send + 's) {
        Builder::new().name(name.to_owned()).spawn_scoped(scope, run).expect("a thread");
    }
}

/// Runs `program` on a thread with the name `holder`.
fn as_holder(program: impl FnOnce() + Send) {
    thread::scope(|scope| threads::spawn(scope, "holder", program));
}

#[test]
fn a_wait_for_a_mutex_names_the_holder_and_ends_with_an_arrow_from_the_release() {
    for format in FORMATS {
        let mutex = Mutex::named("cache", 1);
        let trace = record(format, |_| {
            as_holder(|| {
                let held = mutex.lock().expect("not poisoned"); // holds
                let wait = || drop(mutex.lock().expect("not poisoned")); // waits
                while_asleep("waiter", wait, || drop(held));
            });
        });
        assert_eq!(
            events(&trace),
            "waiter: wait: cache at=waits held_by=holder held_at=holds\n\
             holder: release: cache at=holds\n\
             waiter: released released_by=holder released_at=holds",
            "{format:?}"
        );
        assert_eq!(arrows(&trace), "release: cache -> released in wait: cache", "{format:?}");
    }
}

#[test]
fn a_lock_that_is_free_makes_no_event() {
    for format in FORMATS {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
        let (once, changed) = (Once::new(), Condvar::new());
        let trace = record(format, |_| {
            for _ in 0..100 {
                *mutex.lock().expect("not poisoned") += 1;
                assert_eq!(mutex.try_lock().map(|value| *value > 1).ok(), Some(true));
                let read = *lock.read().expect("not poisoned");
                *lock.write().expect("not poisoned") = read + 1;
                once.call_once(|| drop(lock.try_write().expect("free")));
                changed.notify_one();
                changed.notify_all();
                let held = mutex.lock().expect("not poisoned");
                assert!(mutex.try_lock().is_err(), "no wait, and no event");
                let (held, over) = changed.wait_timeout_while(held, Duration::MAX, |_| false).expect("held");
                drop(changed.wait_while(held, |_| false).expect("held"));
                assert!(!over.timed_out());
                Barrier::new(1).wait();
            }
            trace_instant!("test", "end");
        });
        assert_eq!(trace.summary.records, 1, "{format:?}");
    }
}

#[test]
fn a_writer_waits_for_readers_and_readers_for_a_writer() {
    for format in FORMATS {
        let lock = RwLock::named("routes", 1);
        let trace = record(format, |_| {
            as_holder(|| {
                let read = lock.read().expect("not poisoned"); // reads
                let wait = || drop(lock.write().expect("not poisoned")); // writes
                while_asleep("writer", wait, || drop(read));
            });
            as_holder(|| {
                let written = lock.write().expect("not poisoned"); // holds
                let wait = || drop(lock.read().expect("not poisoned")); // waits
                while_asleep("reader", wait, || while_asleep("reader 2", wait, || drop(written)));
            });
        });
        let events = events(&trace);
        let (first, second) = events.split_once("wait: routes at=waits").expect("two waits");
        assert_eq!(
            first.trim_end_matches("reader: "),
            "writer: wait: routes at=writes\n\
             holder: release: routes at=reads\n\
             writer: released released_by=holder released_at=reads\n",
            "{format:?}"
        );
        for waiter in ["reader", "reader 2"] {
            let ends = format!("{waiter}: released released_by=holder released_at=holds");
            assert!(second.contains(&ends), "{format:?}: {events}");
        }
        assert_eq!(second.matches("held_by=holder held_at=holds").count(), 2, "{format:?}: {events}");
        let one = "release: routes -> released in wait: routes";
        assert_eq!(arrows(&trace), [one, one].join("\n"), "{format:?}: the second release has one arrow");
    }
}

#[test]
fn a_wait_for_a_condition_ends_with_its_notification_unless_it_ends_by_its_limit() {
    for format in FORMATS {
        let (mutex, changed) = (Mutex::named("jobs", 0), Condvar::named("jobs changed"));
        let trace = record(format, |_| {
            as_holder(|| {
                let wait = || {
                    let jobs = mutex.lock().expect("not poisoned");
                    let jobs = changed.wait_while(jobs, |jobs| *jobs == 0); // waits
                    drop(jobs.expect("not poisoned"));
                };
                while_asleep("waiter", wait, || {
                    *mutex.lock().expect("not poisoned") += 1;
                    changed.notify_all(); // notifies
                });
                let jobs = mutex.lock().expect("not poisoned");
                let limit = Duration::from_millis(2);
                let (_, outcome) = changed.wait_timeout(jobs, limit).expect("not poisoned"); // limits
                assert!(outcome.timed_out());
            });
        });
        assert_eq!(
            events(&trace),
            "waiter: wait: jobs changed at=waits\n\
             holder: notify: jobs changed at=notifies\n\
             waiter: notified notified_by=holder notified_at=notifies\n\
             holder: wait: jobs changed at=limits",
            "{format:?}"
        );
        assert_eq!(arrows(&trace), "notify: jobs changed -> notified in wait: jobs changed", "{format:?}");
    }
}

#[test]
fn of_several_threads_that_wait_for_a_condition_none_is_said_to_be_the_notified_one() {
    for format in FORMATS {
        let (mutex, changed) = (Mutex::named("jobs", 0), Condvar::named("jobs changed"));
        let trace = record(format, |_| {
            as_holder(|| {
                let wait = || {
                    let jobs = mutex.lock().expect("not poisoned");
                    drop(changed.wait(jobs).expect("not poisoned")); // waits
                };
                while_asleep("one", wait, || {
                    while_asleep("other", wait, || {
                        // Neither of the two can end its wait, and leave the other one alone, meanwhile.
                        let held = mutex.lock().expect("not poisoned");
                        changed.notify_one(); // notifies
                        changed.notify_one(); // notifies again
                        drop(held);
                    });
                });
            });
        });
        let events = events(&trace);
        assert!(!events.contains("notified_by"), "{format:?}: {events}");
        assert_eq!(events.matches("holder: notify: jobs changed").count(), 2, "{format:?}: {events}");
    }
}

#[test]
fn a_thread_that_slept_before_the_session_leaves_no_false_name() {
    for format in FORMATS {
        let (mutex, changed) = (Mutex::named("jobs", 0), Condvar::named("jobs changed"));
        let wait = || {
            let jobs = mutex.lock().expect("not poisoned");
            drop(changed.wait(jobs).expect("not poisoned")); // waits
        };
        let (mut trace, turn) = (None, turn()); // no other test records meanwhile
        while_asleep("before", wait, || {
            trace = Some(record_in(
                &turn,
                format,
                |builder| builder,
                |_| {
                    while_asleep("waiter", wait, || {
                        let held = mutex.lock().expect("not poisoned");
                        changed.notify_one(); // may wake either of the two
                        changed.notify_one(); // wakes the other one
                        drop(held);
                    });
                },
            ));
        });
        let events = events(&trace.expect("a trace"));
        assert!(events.contains("waiter: wait: jobs changed at=waits"), "{format:?}: {events}");
        assert!(!events.contains("notified_by"), "{format:?}: {events}");
    }
}

#[test]
fn the_last_thread_at_a_barrier_ends_the_waits_of_the_others() {
    for format in FORMATS {
        let barrier = Barrier::named("phase", 3);
        let trace = record(format, |_| {
            as_holder(|| {
                let wait = || _ = barrier.wait(); // waits
                let last = || _ = barrier.wait(); // last
                while_asleep("one", wait, || while_asleep("two", wait, last));
            });
        });
        let events = events(&trace);
        assert!(
            events.starts_with(
                "one: wait: phase at=waits\n\
                 two: wait: phase at=waits\n\
                 holder: release: phase at=last\n"
            ),
            "{format:?}: {events}"
        );
        for waiter in ["one", "two"] {
            let end = format!("{waiter}: released released_by=holder released_at=last");
            assert!(events.contains(&end), "{format:?}: {events}");
        }
        assert_eq!(arrows(&trace), "release: phase -> released in wait: phase", "{format:?}");
    }
}

#[test]
fn who_comes_second_to_a_once_waits_for_the_thread_that_runs_the_closure() {
    for format in FORMATS {
        let once = Once::named("start");
        let trace = record(format, |_| {
            as_holder(|| {
                let (begun, ends) = (&std::sync::Barrier::new(2), &std::sync::Barrier::new(2));
                let once = &once;
                thread::scope(|scope| {
                    let run = move || {
                        begun.wait();
                        ends.wait();
                    };
                    threads::spawn(scope, "runner", move || once.call_once(run)); // runs
                    begun.wait();
                    let wait = || once.call_once(|| unreachable!()); // waits
                    let wait_too = || once.wait(); // waits too
                    while_asleep("waiter", wait, || while_asleep("other", wait_too, || _ = ends.wait()));
                });
            });
        });
        let events = events(&trace);
        assert!(
            events.starts_with(
                "waiter: wait: start at=waits held_by=runner held_at=runs\n\
                 other: wait: start at=waits too held_by=runner held_at=runs\n\
                 runner: release: start at=runs\n"
            ),
            "{format:?}: {events}"
        );
        for waiter in ["waiter", "other"] {
            let end = format!("{waiter}: released released_by=runner released_at=runs");
            assert!(events.contains(&end), "{format:?}: {events}");
        }
    }
}

#[test]
fn a_closure_that_panics_leaves_a_once_to_the_next_call_as_in_the_standard_library() {
    let once = Once::new();
    let panics = || once.call_once(|| panic!("as planned"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    let trace = record(Format::TrackEvent, |_| {
        for _ in 0..2 {
            let poisoned = || once.call_once(|| unreachable!());
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poisoned)).is_err());
        }
        once.call_once_force(|state| assert!(state.is_poisoned()));
        trace_instant!("test", "end");
    });
    assert!(once.is_completed());
    assert_eq!(trace.summary.records, 1, "no call did wait");
}

#[test]
fn a_holder_from_before_the_session_is_not_known_and_the_filter_leaves_locks_out() {
    for format in FORMATS {
        let (mutex, turn) = (Mutex::named("cache", 1), turn()); // no other test records meanwhile
        let held = mutex.lock().expect("not poisoned");
        let wait = || drop(mutex.lock().expect("not poisoned")); // waits
        let trace =
            record_in(&turn, format, |builder| builder, |_| while_asleep("waiter", wait, || drop(held)));
        let events = events(&trace);
        assert!(events.starts_with("waiter: wait: cache at=waits\n"), "{format:?}: {events}");

        let held = mutex.lock().expect("not poisoned");
        let trace = record_in(
            &turn,
            format,
            |builder| builder.categories("*,-lock"),
            |_| {
                while_asleep("waiter", wait, || drop(held));
                trace_instant!("test", "end");
            },
        );
        assert_eq!(trace.summary.records, 1, "{format:?}");
    }
}

#[test]
fn a_poisoned_lock_is_one_as_in_the_standard_library() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _held = (mutex.lock(), lock.write());
            panic!("as planned");
        });
        assert!(panics.join().is_err());
    });
    assert!(mutex.is_poisoned() && lock.is_poisoned());
    assert_eq!(*mutex.lock().expect_err("poisoned").into_inner(), 1);
    assert!(mutex.try_lock().is_err() && lock.try_read().is_err() && lock.read().is_err());
    mutex.clear_poison();
    lock.clear_poison();
    assert!(mutex.try_lock().is_ok() && lock.write().is_ok());
    assert_eq!(mutex.into_inner().ok(), Some(1));
}

#[test]
fn the_locks_of_parking_lot_say_the_same_with_the_places_of_the_program() {
    type Parking<T> = lock_api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
    type ParkingRw<T> = lock_api::RwLock<RawRwLock<parking_lot::RawRwLock>, T>;
    static MUTEX: Parking<u32> = Parking::from_raw(RawMutex::named("cache"), 1);
    static LOCK: ParkingRw<u32> = ParkingRw::from_raw(RawRwLock::named("routes"), 1);
    for format in FORMATS {
        let trace = record(format, |_| {
            as_holder(|| {
                let held = MUTEX.lock(); // holds
                let wait = || drop(MUTEX.lock()); // waits
                while_asleep("waiter", wait, || drop(held));
                let read = LOCK.upgradable_read();
                let wait = || drop(LOCK.write()); // writes
                while_asleep("writer", wait, || drop(lock_api::RwLockUpgradableReadGuard::upgrade(read))); // up
                let held = LOCK.write(); // rewrites
                let limit = Duration::from_millis(2);
                assert!(LOCK.try_read_for(limit).is_none()); // limits
                drop(lock_api::RwLockWriteGuard::downgrade(held));
            });
        });
        assert_eq!(
            events(&trace),
            "waiter: wait: cache at=waits held_by=holder held_at=holds\n\
             holder: release: cache at=holds\n\
             waiter: released released_by=holder released_at=holds\n\
             writer: wait: routes at=writes\n\
             holder: release: routes at=up\n\
             writer: released released_by=holder released_at=up\n\
             holder: wait: routes at=limits held_by=holder held_at=rewrites",
            "{format:?}"
        );
    }
}

/// The waits that a program measures itself are those of the trace.
#[test]
fn a_wait_is_as_long_as_the_program_measures() {
    for format in FORMATS {
        let mutex = Mutex::named("cache", ());
        let holds = [Duration::from_millis(50), Duration::from_millis(1), Duration::from_micros(100)];
        let measured = Cell::new(Vec::new());
        let trace = record(format, |_| {
            as_holder_of(&measured, || {
                holds.map(|hold| {
                    let (waited, held) = (AtomicU64::new(0), mutex.lock().expect("not poisoned"));
                    let wait = || {
                        let start = Instant::now();
                        let lock = mutex.lock();
                        let time = start.elapsed();
                        drop(lock);
                        waited.store(time.as_nanos() as u64, Ordering::Relaxed);
                    };
                    while_asleep("waiter", wait, || {
                        thread::sleep(hold);
                        drop(held);
                    });
                    waited.into_inner()
                })
            });
        });
        let rows = trace.rows("select dur from slice where name = 'wait: cache' order by ts");
        let recorded: Vec<u64> = rows.lines().map(|row| row.parse().expect("ns")).collect();
        let measured = measured.take();
        assert_eq!(recorded.len(), measured.len(), "{format:?}");
        for ((recorded, measured), hold) in recorded.iter().zip(&measured).zip(holds) {
            // The program's reading is around that of the slice: it cannot be less.
            assert!(recorded <= measured, "{format:?}: {recorded} ns of {measured}");
            assert!(u128::from(*recorded) >= hold.as_nanos(), "{format:?}: {recorded} ns of {hold:?}");
        }
    }
}

/// Runs `program` on this thread, and keeps what it measures.
fn as_holder_of<const N: usize>(kept: &Cell<Vec<u64>>, program: impl FnOnce() -> [u64; N]) {
    kept.set(program().to_vec());
}

/// What each thread knows to be so, from the data under the lock, against what the waits say.
#[test]
fn the_thread_that_ended_a_wait_is_the_one_that_had_the_lock_before() {
    const ROUNDS: u64 = 2500;
    for format in FORMATS {
        let mutex = Mutex::named("last", tid());
        let trace = record_with(
            format,
            |builder| builder.buffer_size(64 << 20),
            |_| {
                thread::scope(|scope| {
                    for seed in 1..=4u64 {
                        let mutex = &mutex;
                        scope.spawn(move || {
                            let me = tid();
                            let mut random = seed;
                            for _ in 0..ROUNDS {
                                let mut last = mutex.lock().expect("not poisoned");
                                {
                                    trace_scope!("truth", "hold", last = *last);
                                    *last = me;
                                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                                    for _ in 0..random >> 55 {
                                        std::hint::spin_loop();
                                    }
                                    if random >> 32 & 15 == 0 {
                                        thread::yield_now();
                                    }
                                }
                                drop(last);
                            }
                        });
                    }
                });
            },
        );
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
        let key = |name: &str| format!("extract_arg(s.arg_set_id, '{}{name}')", prefix(format));
        // The next hold of the thread after each wait that says who ended it.
        let ended = trace.rows(&format!(
            "with e as (select s.ts, s.track_id, {} as by from slice s where s.name = 'released'), \
             h as (select s.ts, s.track_id, {} as last from slice s where s.name = 'hold') \
             select count(*), sum(e.by != (select last from h where h.track_id = e.track_id and h.ts >= e.ts \
             order by h.ts limit 1)) from e",
            key("released_by"),
            key("last"),
        ));
        let (ends, wrong) = ended.split_once('\t').expect("two numbers");
        assert_eq!(wrong, "0", "{format:?}: of {ends}");
        // Who is said to hold it when a wait begins has a hold then, or around the few ns of its begin.
        let began = trace.rows(&format!(
            "with w as (select s.ts, s.dur, {} as by from slice s where s.name = 'wait: last' and {} is not null), \
             h as (select s.ts, s.dur, t.tid from slice s join thread_track tt on s.track_id = tt.id \
             join thread t using (utid) where s.name = 'hold') \
             select count(*), sum(not exists (select 1 from h where h.tid = w.by and h.ts < w.ts + w.dur \
             and h.ts + h.dur > w.ts - 100000)) from w",
            key("held_by"),
            key("held_by"),
        ));
        let (begins, wrong) = began.split_once('\t').expect("two numbers");
        assert_eq!(wrong, "0", "{format:?}: of {begins}");
        eprintln!("{format:?}: {ends} ends and {begins} begins of waits");
    }
}

/// The prefix of the arguments in trace_processor.
fn prefix(format: Format) -> &'static str {
    if format == Format::TrackEvent { "debug." } else { "" }
}
