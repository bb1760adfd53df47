//! Holds of the locks of `hairline::sync` that are as long as the limit of the session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use hairline::sync::{Condvar, Mutex, Once, RawMutex, RwLock};
use hairline::{Format, Session, SessionBuilder, trace_instant, trace_scope};
use hairline_tests::alloc::allocations_during;
use hairline_tests::recording::{FORMATS, Trace, record, record_in, record_with, turn};

const LIMIT: Duration = Duration::from_millis(5);
/// The time of a hold that is recorded.
const LONG: Duration = Duration::from_millis(8);

fn with_limit(builder: SessionBuilder) -> SessionBuilder {
    builder.hold_limit(LIMIT)
}

fn recorded(format: Format, program: impl FnOnce(&Session)) -> Trace {
    record_with(format, with_limit, program)
}

/// The holds in the order of their begins: the thread below which they are, the name, and the line of their
/// place. None is shorter than the limit.
fn holds(trace: &Trace) -> String {
    let rows = trace.rows(&format!(
        "select t.name || ': ' || s.name || ' at ' || (select string_value from args a \
         where a.arg_set_id = s.arg_set_id and replace(a.key, 'debug.', '') = 'at') \
         || iif(s.dur < {}, ' too short', '') || iif(s.category = 'lock', '', ' no category') \
         || iif(tt.name = 'hold', '', ' no lane') \
         from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
         where s.name like 'hold: %' order by s.ts",
        LIMIT.as_nanos()
    ));
    rows.replace(file!(), "line").replace("tests/recording/holds.rs", "line")
}

/// Runs the program on a thread with the name `holder`.
fn as_holder<R: Send>(program: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let holder = thread::Builder::new().name("holder".to_owned()).spawn_scoped(scope, program);
        holder.expect("a thread").join().expect("no panic")
    })
}

/// The line, shown as [`holds`] shows it.
fn hold(name: &str, line: u32) -> String {
    format!("holder: hold: {name} at line:{line}")
}

#[test]
fn a_hold_of_the_limit_is_a_slice_on_a_lane_below_its_thread_and_a_short_one_is_none() {
    for format in FORMATS {
        let mutex = Mutex::named("cache", 1);
        let (mut line, mut measured) = (0, Duration::ZERO);
        let trace = recorded(format, |_| {
            (line, measured) = as_holder(|| {
                drop(mutex.lock().expect("not poisoned"));
                let held = (mutex.lock().expect("not poisoned"), line!(), Instant::now());
                thread::sleep(LONG);
                let measured = held.2.elapsed();
                drop(held.0);
                drop(mutex.try_lock().expect("free"));
                (held.1, measured)
            });
        });
        assert_eq!(holds(&trace), hold("cache", line), "{format:?}");
        assert_eq!(trace.summary.records, 2, "{format:?}");
        let dur = trace.rows("select dur from slice where name = 'hold: cache'");
        let dur = Duration::from_nanos(dur.parse().expect("ns"));
        assert!(
            dur >= measured && dur < measured + Duration::from_secs(1),
            "{format:?}: {dur:?} {measured:?}"
        );
    }
}

/// The program's own readings are inside and around those of the hold.
#[test]
fn the_limit_decides_to_the_nanosecond() {
    for format in FORMATS {
        let mutex = Mutex::named("cache", ());
        let (mut least, mut most) = (0, 0);
        let trace = record_with(
            format,
            |builder| builder.hold_limit(Duration::from_micros(200)),
            |_| {
                for n in 0..400_u64 {
                    let around = Instant::now();
                    let held = mutex.lock();
                    let inside = Instant::now();
                    while inside.elapsed() < Duration::from_nanos(199_000 + n * 5) {}
                    let inside = inside.elapsed();
                    drop(held);
                    least += u32::from(inside >= Duration::from_micros(200));
                    most += u32::from(around.elapsed() >= Duration::from_micros(200));
                }
            },
        );
        let shown = trace.rows("select count(*), min(dur) >= 200000 from slice where name = 'hold: cache'");
        let (count, are_long) = shown.split_once('\t').expect("two numbers");
        let count: u32 = count.parse().expect("a number");
        assert!((least..=most).contains(&count) && least < 400, "{format:?}: {least} {count} {most}");
        assert_eq!(are_long, "1", "{format:?}");
    }
}

#[test]
fn without_a_limit_no_hold_is_recorded_also_after_a_session_with_one() {
    for format in FORMATS {
        let mutex = Mutex::named("cache", 1);
        let long = || {
            let _held = mutex.lock();
            thread::sleep(LONG);
        };
        for _ in 0..2 {
            let trace = record(format, |_| {
                long();
                trace_instant!("test", "end");
            });
            assert_eq!(trace.summary.records, 1, "{format:?}");
            let trace = recorded(format, |_| as_holder(long));
            assert_eq!(trace.summary.records, 2, "{format:?}");
        }
    }
}

#[test]
fn a_hold_that_the_session_does_not_have_whole_is_not_recorded() {
    for format in FORMATS {
        let (before, after) = (Mutex::named("before", 1), Mutex::named("after", 1));
        let turn = turn(); // no other test records meanwhile
        let from_before = before.lock();
        let mut held = None;
        let trace = record_in(&turn, format, with_limit, |_| {
            held = Some(after.lock());
            thread::sleep(LONG);
            drop(from_before);
            trace_instant!("test", "end");
        });
        assert_eq!(trace.summary.records, 1, "{format:?}");
        let trace = record_in(&turn, format, with_limit, |_| {
            drop(held.take()); // it is that of an earlier session
            trace_instant!("test", "end");
        });
        assert_eq!(trace.summary.records, 1, "{format:?}");
    }
}

#[test]
fn holds_may_overlap_each_other_and_the_slices_of_their_thread() {
    for format in FORMATS {
        let (one, other) = (Mutex::named("one", 1), Mutex::named("other", 1));
        let mut lines = [0; 2];
        let trace = recorded(format, |_| {
            lines = as_holder(|| {
                let (first, at) = (one.lock(), line!());
                trace_scope!("test", "scope");
                thread::sleep(LONG);
                let (second, then) = (other.lock(), line!());
                {
                    trace_scope!("test", "inner");
                    thread::sleep(LONG);
                    drop(first);
                }
                drop(one.lock());
                thread::sleep(LONG);
                drop(second);
                [at, then]
            });
        });
        assert_eq!(holds(&trace), [hold("one", lines[0]), hold("other", lines[1])].join("\n"), "{format:?}");
        let scopes = "select name, depth from slice where category = 'test' order by ts";
        assert_eq!(trace.rows(scopes), "scope\t0\ninner\t1", "{format:?}");
        let overlap = "select b.ts < a.ts + a.dur and a.ts + a.dur < b.ts + b.dur and a.depth = b.depth \
                       from slice a, slice b where a.name = 'hold: one' and b.name = 'hold: other'";
        assert_eq!(trace.rows(overlap), "1", "{format:?}");
    }
}

#[test]
fn a_wait_for_a_condition_ends_a_hold_and_begins_another() {
    for format in FORMATS {
        let (mutex, changed) = (Mutex::named("jobs", 0), Condvar::named("jobs changed"));
        let mut lines = [0; 2];
        let trace = recorded(format, |_| {
            lines = as_holder(|| {
                let (held, at) = (mutex.lock().expect("not poisoned"), line!());
                thread::sleep(LONG);
                let limit = Duration::from_millis(1);
                let (held, then) = (changed.wait_timeout(held, limit).expect("not poisoned").0, line!());
                thread::sleep(LONG);
                drop(held);
                [at, then]
            });
        });
        assert_eq!(holds(&trace), lines.map(|line| hold("jobs", line)).join("\n"), "{format:?}");
        let inside = "select count(*) from slice w, slice h where w.name like 'wait: %' and h.name like 'hold: %' \
                      and (h.ts + h.dur <= w.ts or w.ts + w.dur <= h.ts + 1000)";
        assert_eq!(trace.rows(inside), "2", "{format:?}: neither hold is during the wait");
    }
}

#[test]
fn readers_and_writers_hold_a_lock_and_a_thread_that_reads_twice_holds_it_once() {
    for format in FORMATS {
        let lock = RwLock::named("routes", 1);
        let mut lines = [0; 2];
        let trace = recorded(format, |_| {
            lines = as_holder(|| {
                let (written, at) = (lock.write().expect("not poisoned"), line!());
                thread::sleep(LONG);
                drop(written);
                let (first, then) = (lock.read().expect("not poisoned"), line!());
                let second = lock.try_read().expect("no writer");
                drop(first);
                thread::sleep(LONG);
                drop(second);
                [at, then]
            });
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let _read = lock.read();
                        thread::sleep(LONG);
                    });
                }
            });
        });
        let all = holds(&trace);
        let of_holder: Vec<_> = all.lines().filter(|line| line.starts_with("holder")).collect();
        assert_eq!(of_holder, lines.map(|line| hold("routes", line)), "{format:?}");
        assert_eq!(trace.rows("select count(*) from slice where name = 'hold: routes'"), "4", "{format:?}");
    }
}

#[test]
fn a_guard_that_a_panic_drops_ends_its_hold_and_a_forgotten_one_has_none() {
    for format in FORMATS {
        let (mutex, lock) = (Mutex::named("poisoned", 1), RwLock::named("forgotten", 1));
        let once = Once::named("start");
        let mut lines = [0; 3];
        let trace = recorded(format, |_| {
            lines = as_holder(|| {
                std::mem::forget(lock.read());
                let mut at = 0;
                let panics = || {
                    at = line!() + 1;
                    let _held = mutex.lock().expect("not poisoned");
                    thread::sleep(LONG);
                    panic!("as planned");
                };
                assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                let then = line!() + 1;
                let poisoned = mutex.lock().expect_err("poisoned").into_inner();
                thread::sleep(LONG);
                drop(poisoned);
                let runs = line!() + 1;
                once.call_once(|| thread::sleep(LONG));
                drop(lock.read());
                [at, then, runs]
            });
        });
        let [at, then, runs] = lines;
        let expected = [hold("poisoned", at), hold("poisoned", then), hold("start", runs)];
        assert_eq!(holds(&trace), expected.join("\n"), "{format:?}");
    }
}

/// A mutex whose guards may go to another thread.
struct Spinning(std::sync::atomic::AtomicBool);

#[allow(unsafe_code)] // an unsafe trait
// SAFETY: a spin lock.
unsafe impl lock_api::RawMutex for Spinning {
    const INIT: Self = Self(std::sync::atomic::AtomicBool::new(false));
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            thread::yield_now();
        }
    }

    fn try_lock(&self) -> bool {
        !self.0.swap(true, std::sync::atomic::Ordering::Acquire)
    }

    unsafe fn unlock(&self) {
        self.0.store(false, std::sync::atomic::Ordering::Release);
    }
}

#[test]
fn the_hold_of_a_guard_that_another_thread_drops_is_not_recorded() {
    type Sent = lock_api::Mutex<RawMutex<Spinning>, u32>;
    for format in FORMATS {
        let mutex = Sent::from_raw(RawMutex::named("sent"), 1);
        let mut line = 0;
        let trace = recorded(format, |_| {
            line = as_holder(|| {
                let held = mutex.lock();
                thread::scope(|scope| drop(scope.spawn(|| drop(held))));
                let of_other = thread::scope(|scope| scope.spawn(|| mutex.lock()).join().expect("no panic"));
                thread::sleep(LONG);
                drop(of_other); // not the hold of this thread, which began before
                let (held, at) = (mutex.lock(), line!());
                thread::sleep(LONG);
                drop(held);
                at
            });
        });
        assert_eq!(holds(&trace), hold("sent", line), "{format:?}");
    }
}

#[test]
fn the_locks_of_parking_lot_have_holds_through_fair_releases_too() {
    type Parking = lock_api::Mutex<RawMutex<parking_lot::RawMutex>, u32>;
    for format in FORMATS {
        let mutex = Parking::from_raw(RawMutex::named("fair"), 1);
        let mut lines = [0; 2];
        let trace = recorded(format, |_| {
            lines = as_holder(|| {
                let (mut held, at) = (mutex.lock(), line!());
                thread::sleep(LONG);
                let then = line!() + 1;
                lock_api::MutexGuard::bump(&mut held);
                thread::sleep(LONG);
                lock_api::MutexGuard::unlock_fair(held);
                [at, then]
            });
        });
        assert_eq!(holds(&trace), lines.map(|line| hold("fair", line)).join("\n"), "{format:?}");
    }
}

#[test]
fn a_million_short_holds_leave_nothing_and_a_long_one_allocates_nothing() {
    for format in FORMATS {
        let trace = recorded(format, |_| {
            as_holder(|| {
                let long = || {
                    let mutex = Mutex::named("long", 1);
                    let _held = mutex.lock();
                    thread::sleep(LONG);
                };
                long(); // the thread's first event
                let (_, allocations) = allocations_during(|| {
                    for n in 0..1_000_000 {
                        let mutex = Mutex::named("short", n);
                        drop(mutex.lock());
                    }
                    long();
                });
                assert_eq!(allocations, 0, "{format:?}");
            });
        });
        // A preempted thread may hold one of them for long.
        assert!((4..400).contains(&trace.summary.records), "{format:?}: {}", trace.summary.records);
        assert_eq!(holds(&trace).matches("hold: long").count(), 2, "{format:?}");
        // None of the holds overlaps another one: they share a lane.
        assert_eq!(trace.rows("select count(*) from track where name = 'hold'"), "1", "{format:?}");
    }
}

#[test]
fn more_locks_than_a_thread_has_places_for_do_no_harm() {
    for format in FORMATS {
        let locks: Vec<_> = (0..40).map(|_| Mutex::named("one of many", 1)).collect();
        let trace = recorded(format, |_| {
            as_holder(|| {
                let held: Vec<_> = locks.iter().map(Mutex::lock).collect();
                thread::sleep(LONG);
                drop(held);
            });
        });
        let shown =
            trace.rows("select count(*), count(distinct track_id) from slice where name like 'hold: %'");
        assert_eq!(shown, "16\t16", "{format:?}");
    }
}

#[test]
fn a_limit_of_0_is_refused() {
    let started =
        Session::builder().output_memory(&hairline::MemoryOutput::new()).hold_limit(Duration::ZERO).start();
    let said = started.err().map(|e| e.to_string());
    assert!(said.as_deref().is_some_and(|said| said.contains("use a limit above 0")), "{said:?}");
}
