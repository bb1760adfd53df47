//! Ends, across sessions, threads, forks and full rings: each finds the begin that it belongs to.

#![allow(unsafe_code)] // fork

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use hairline::{
    AsyncScope, Session, Track, scope, trace_async, trace_begin, trace_end, trace_instant, trace_scope,
};
use hairline_tests::output::gated;
use hairline_tests::outside::in_a_child;
use hairline_tests::recording::{FORMATS, record, record_in, record_tiny, record_with};

// session 1: [ interval ...
// session 2:   [ outer    x interval ends here; outer stays open ]
#[test]
fn the_end_of_an_interval_of_the_last_session_leaves_the_scopes_of_this_one_alone() {
    for format in FORMATS {
        let mut kept = None;
        let _first = record(format, |_| kept = Some(trace_async!("t", "kept")));
        let second = record(format, |_| {
            trace_scope!("t", "outer");
            drop(kept.take());
        });
        assert_eq!(second.rows("select name, dur >= 0 from slice"), "outer\t1", "{format:?}");
    }
}

#[test]
fn a_guard_dropped_in_a_forked_child_writes_nothing() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mut interval = Some(trace_async!("t", "interval"));
            // SAFETY: the child drops a guard.
            unsafe { in_a_child(|| drop(interval.take())) }.unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
            drop(interval);
        });
        assert_eq!(trace.summary.records, 2, "{format:?}");
        assert_eq!(
            trace.rows("select count(*) from slice where dur >= 5000000"),
            "1",
            "{format:?}: ended by the child"
        );
    }
}

// Other threads hold the locks of lanes and of the running session now and then.
#[test]
fn a_forked_child_that_drops_a_guard_goes_on() {
    let over = AtomicBool::new(false);
    let _trace = record(FORMATS[0], |_| {
        let outcome = std::thread::scope(|s| {
            (0..3).for_each(|_| {
                s.spawn(|| {
                    while !over.load(SeqCst) {
                        drop(trace_async!("t", "busy"));
                    }
                });
            });
            let outcome = (0..400).try_for_each(|_| {
                let interval = trace_async!("t", "interval");
                // SAFETY: the child drops a guard.
                unsafe { in_a_child(|| drop(interval)) }
            });
            over.store(true, SeqCst);
            outcome
        });
        outcome.unwrap();
    });
}

// session 1:         [ kept (under a track) ...
// session 2:             [ child ]
#[test]
fn an_interval_may_be_put_below_one_of_the_last_session() {
    for format in FORMATS {
        let mut kept = None;
        let track = Track::new("track");
        let _first = record(format, |_| kept = Some(trace_async!("t", "kept", track: &track)));
        let second = record(format, |_| {
            let above = kept.take().unwrap();
            drop(trace_async!("t", "child", track: &above));
            drop(trace_async!("t", "child by name", name: "c", track: &above));
        });
        assert_eq!(
            second.rows("select name, dur >= 0 from slice order by ts"),
            "child\t1\nc\t1",
            "{format:?}"
        );
    }
}

// [ grandparent ......................... ]
//     (parent: lost, the ring was full)
//                        [ child ]
#[test]
fn a_child_of_a_lost_interval_lies_below_what_is_above_that() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format);
        let session = session.buffer_size(16 << 10).chunk_size(4096).start().unwrap();
        let grandparent = trace_async!("t", "grandparent");
        gate.shut();
        gate.wait();
        (0..10_000).for_each(|_| trace_instant!("t", "fills the ring"));
        let parent = trace_async!("t", "parent", track: &grandparent);
        assert!(grandparent.is_recorded() && !parent.is_recorded());
        let trace = gate.open();
        session.flush().unwrap();
        let child = trace_async!("t", "child", track: &parent);
        assert!(child.is_recorded());
        trace_instant!("t", "instant", track: &parent);
        drop((child, parent, grandparent));
        session.stop().unwrap();
        let sql = [
            "select name, dur >= 0 from slice where name in ('child', 'grandparent', 'instant') order by ts",
        ];
        let verdict = hairline_tests::judge::load_bytes(&trace.recv().unwrap(), &sql);
        assert_eq!(verdict.results[0].text(), "grandparent\t1\nchild\t1\ninstant\t1", "{format:?}");
    }
}

// The output is busy while the session is stopped:
//   outer (guard)      [ .................. x
//   inner (by hand)          [ ....... x
#[test]
fn an_end_while_the_session_stops_closes_no_stranger() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format).start().unwrap();
        let track = Track::new("track");
        let mut outer = scope!("t", "outer", track: &track);
        trace_begin!("t", "inner", track: &track);
        gate.shut();
        gate.wait();
        let stopped = std::thread::spawn(move || session.stop().unwrap());
        while scope!("t", "probe").is_recorded() {}
        trace_end!(&track, of = "inner");
        outer.arg("of", "outer");
        drop(outer);
        let trace = gate.open();
        stopped.join().unwrap();
        let verdict = hairline_tests::judge::load_bytes(
            &trace.recv().unwrap(),
            &["select s.name, a.display_value from slice s join args a using (arg_set_id) \
               where a.key in ('of', 'debug.of') order by s.ts"],
        );
        let text = verdict.results[0].text();
        assert!(!text.contains("inner\touter"), "{format:?}: {text}");
    }
}

#[test]
fn the_end_of_an_interval_of_the_last_session_takes_no_room_away() {
    for format in FORMATS {
        let mut kept = None;
        let _first = record(format, |_| kept = Some(trace_async!("t", "kept")));
        let _turn = hairline_tests::recording::turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format);
        let session = session.buffer_size(16 << 10).chunk_size(4096).start().unwrap();
        gate.shut();
        trace_instant!("t", "so that there is something to write");
        gate.wait();
        {
            let _outer: Vec<_> = (0..20).map(|_| scope!("t", "outer")).collect();
            drop(kept.take());
            for _ in 0..10_000 {
                trace_instant!("t", "fills the ring");
            }
        }
        let trace = gate.open();
        session.stop().unwrap();
        let sql = ["select sum(dur >= 0) from slice where name = 'outer'"];
        let verdict = hairline_tests::judge::load_bytes(&trace.recv().unwrap(), &sql);
        assert_eq!(verdict.results[0].text(), "20", "{format:?}");
    }
}

#[test]
fn arguments_of_an_end_without_room_are_there_or_counted() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format);
        let session = session.buffer_size(16 << 10).chunk_size(4096).start().unwrap();
        let mut interval = trace_async!("t", "interval");
        gate.shut();
        gate.wait();
        (0..10_000).for_each(|_| trace_instant!("t", "fills the ring"));
        interval.arg("result", 7);
        drop(interval);
        let trace = gate.open();
        let lost = session.stop().unwrap().lost;
        let sql = ["select count(*) from args where key in ('result', 'debug.result') and int_value = 7"];
        let verdict = hairline_tests::judge::load_bytes(&trace.recv().unwrap(), &sql);
        assert_eq!(verdict.results[0].single_i64() as u64 + lost.arguments, 1, "{format:?}");
    }
}

#[test]
fn ends_without_room_allocate_nothing() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format);
        let session = session.buffer_size(16 << 10).chunk_size(4096).start().unwrap();
        (0..10).for_each(|_| drop(trace_async!("t", "sets everything up")));
        let interval = || trace_async!("t", "interval");
        let all: Vec<_> = (0..20).map(|_| interval()).collect();
        drop(all);
        let all: Vec<_> = (0..20).map(|_| interval()).collect();
        gate.shut();
        gate.wait();
        (0..10_000).for_each(|_| trace_instant!("t", "fills the ring"));
        let ((), allocations) = hairline_tests::alloc::allocations_during(|| all.into_iter().for_each(drop));
        let _trace = gate.open();
        session.stop().unwrap();
        assert_eq!(allocations, 0, "{format:?}");
    }
}

#[test]
fn intervals_with_names_of_their_own_allocate_nothing() {
    for format in FORMATS {
        let _trace = record(format, |_| {
            let both = || {
                let parent = trace_async!("t", "parent", name: "by name");
                drop(trace_async!("t", "child", track: &parent));
            };
            (0..100).for_each(|_| both());
            let ((), allocations) =
                hairline_tests::alloc::allocations_during(|| (0..100).for_each(|_| both()));
            assert_eq!(allocations, 0, "{format:?}");
        });
    }
}

#[test]
fn source_locations_allocate_nothing() {
    for format in FORMATS {
        let with_locations = |builder: hairline::SessionBuilder| builder.source_locations(true);
        let _trace = record_with(format, with_locations, |_| {
            let events = || (0..100).for_each(|_| trace_instant!("t", "instant"));
            events();
            let ((), allocations) = hairline_tests::alloc::allocations_during(events);
            assert_eq!(allocations, 0, "{format:?}");
        });
    }
}

macro_rules! ten {
    ($($t:tt)*) => { $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* };
}

// The callsites of a session are switched on one after the other, trace_end! here as the last of a thousand.
// Until then:
//   outer (guard)      [ ............. x   closes inner; outer stays open, and so on with the next
//   inner (by hand)          [ ... x       not recorded
#[test]
fn no_slice_stays_open_because_it_began_while_the_session_started() {
    let over = AtomicBool::new(false);
    let track = Track::new("track");
    let end = || trace_end!(&track);
    let others = || {
        ten! { ten! { ten! { trace_instant!("t", "one of a thousand"); } } }
    };
    // The thread below records whichever session runs, so nobody else's may.
    let turn = hairline_tests::recording::turn();
    let record = |format, program: &dyn Fn(&Session)| record_in(&turn, format, |b| b, program);
    drop(record(FORMATS[0], &|_: &Session| {
        end();
        others();
    }));
    let deepest = std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(SeqCst) {
                let _outer = scope!("t", "outer", track: &track);
                trace_begin!("t", "inner", track: &track);
                end();
            }
        });
        let depths = (0..100).map(|n| {
            let short = |_: &Session| std::thread::sleep(std::time::Duration::from_millis(2));
            let verdict = record(FORMATS[n % 2], &short).ask(&["select ifnull(max(depth), 0) from slice"]);
            verdict.results[0].single_i64()
        });
        let deepest = depths.max();
        over.store(true, SeqCst);
        deepest
    });
    assert_eq!(deepest, Some(1));
}

#[test]
fn a_guard_of_the_last_session_does_not_end_the_thread_s_part_in_this_one() {
    for format in FORMATS {
        let mut old = None;
        let mut on_track = None;
        let track = Track::new("track");
        let before = record(format, |_| {
            old = Some(trace_async!("t", "old"));
            on_track = Some(scope!("t", "old", track: &track));
        });
        assert_eq!(before.summary.records, 2);
        let trace = record(format, |_| {
            trace_scope!("t", "open");
            drop(old);
            drop(on_track);
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "open\t1", "{format:?}");
        assert_eq!(trace.summary.threads.len(), 1, "{format:?}");
    }
}

#[test]
fn a_forked_child_ends_nothing_of_its_parent_s() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("track");
            let mut guards = Some((trace_async!("t", "interval"), scope!("t", "slice", track: &track)));
            trace_begin!("t", "begun", track: &track);
            let child = || {
                trace_end!(&track);
                drop(guards.take());
                drop(trace_async!("t", "of the child"));
            };
            // SAFETY: the child calls nothing but this crate's macros and guards, which say that it may.
            unsafe { in_a_child(child) }.unwrap();
            trace_instant!("t", "child gone");
            trace_end!(&track);
            drop(guards);
        });
        let open = trace.rows(
            "select count(*) from slice s, slice g where g.name = 'child gone' and s.name != g.name and s.ts + s.dur > g.ts",
        );
        assert_eq!(open, "3", "{format:?}");
        assert_eq!((trace.summary.records, trace.summary.threads.len()), (7, 1), "{format:?}");
    }
}

// Threads of their own hold all chunks of the ring, so that the ends of this one are late.
#[test]
fn an_argument_of_a_late_end_is_in_the_trace_or_counted() {
    const ENDS: u64 = 20;
    for format in FORMATS {
        let trace = record_tiny(format, |_| {
            let barrier = std::sync::Barrier::new(5);
            let guards = std::thread::spawn(|| {
                let guards: Vec<_> = (0..ENDS).map(|_| trace_async!("t", "interval")).collect();
                assert!(guards.iter().all(AsyncScope::is_recorded));
                guards
            });
            let guards = guards.join().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(100)); // its chunk is read and free
            std::thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        trace_instant!("t", "hold a chunk");
                        barrier.wait();
                        barrier.wait();
                    });
                }
                barrier.wait();
                for mut guard in guards {
                    guard.arg("late", 1);
                }
                barrier.wait();
            });
        });
        let verdict = trace.ask(&[
            "select (select count(*) from slice join args using (arg_set_id) where replace(key, 'debug.', '') = 'late'), \
             sum(dur < 0) from slice",
        ]);
        let shown = ENDS - trace.summary.lost.arguments;
        assert_eq!(verdict.results[0].text(), format!("{shown}\t0"), "{format:?}");
    }
}
