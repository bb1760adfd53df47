//! What a review found: code of the program's own inside of events, guards that outlive their session, handles.

#![allow(unsafe_code)] // fork

use std::panic::{AssertUnwindSafe, catch_unwind};

use hairline::{
    Argument, AsyncScope, Flow, Format, Level, Track, interned, scope, trace_async, trace_begin,
    trace_counter, trace_end, trace_instant, trace_log, trace_scope,
};
use hairline_tests::outside::in_a_child;
use hairline_tests::recording::{FORMATS, record, record_with};

/// An argument whose code panics once it is written.
struct Panics;

impl Argument for Panics {
    type Held<'a> = u64;
    fn hold(&self) -> u64 {
        panic!("in the program's own code")
    }
}

fn quietly(f: impl FnOnce()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    std::panic::set_hook(hook);
}

#[test]
fn a_nested_argument_that_panics_leaves_the_writer_as_it_is_in_its_chunk() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(4096).buffer_size(64 << 10),
            |_| {
                for n in 0..2_000 {
                    trace_instant!("t", "before", n);
                    if n % 100 == 50 {
                        let name = format!("a name made at run time, {n}");
                        let track = Track::new(name);
                        // The track is described, then the argument panics.
                        quietly(|| trace_instant!("t", "panics", list = [Panics], track: &track));
                    }
                }
            },
        );
        let verdict = trace.ask(&["select count(*) from slice where name = 'before'"]);
        let lost = trace.summary.lost.total();
        if lost == 0 {
            verdict.require_clean();
        }
        assert_eq!(verdict.results[0].text(), (2_000 - lost).to_string(), "{format:?}");
    }
}

#[test]
fn an_end_argument_that_panics_is_left_out_and_its_scope_ends() {
    for format in FORMATS {
        let trace = record(format, |_| {
            quietly(|| {
                let mut scope = scope!("t", "scope");
                scope.arg("list", [Panics]);
            });
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "scope\t1", "{format:?}");
    }
}

#[test]
fn a_slice_on_a_track_ends_though_its_argument_panics() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("track");
            trace_begin!("t", "slice", track: &track);
            quietly(|| trace_end!(&track, list = [Panics]));
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "slice\t1", "{format:?}");
    }
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

#[test]
fn every_handle_of_a_thread_s_track_is_that_track() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_begin!("t", "slice", track: &Track::thread());
            trace_end!(&Track::thread());
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "slice\t1", "{format:?}");
    }
}

// thread [ push ]                   [ next ]
// track            [ on a track ]
#[test]
fn a_flow_goes_through_slices_of_threads_and_of_tracks() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("track");
            let (first, second) = (Flow::new(), Flow::new());
            {
                trace_scope!("t", "push", flow: &first);
            }
            {
                trace_scope!("t", "on a track", track: &track, flow: &first, flow: &second);
            }
            trace_scope!("t", "next", end_flow: &first, end_flow: &second);
        });
        let ends = trace.rows(
            "select so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id order by so.ts",
        );
        assert_eq!(ends, "push\ton a track\non a track\tnext\non a track\tnext", "{format:?}");
        assert_eq!(trace.rows("select count(*) from slice"), "3", "{format:?}");
    }
}

#[test]
fn an_event_may_name_a_flow_twice() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            {
                trace_scope!("t", "a", flow: &flow, flow: &flow);
            }
            trace_scope!("t", "b", flow: &flow, end_flow: &flow);
        });
        let ends = trace.rows(
            "select distinct so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id where so.name != si.name",
        );
        assert_eq!(ends, "a\tb", "{format:?}");
    }
}

#[test]
fn a_flow_through_a_slice_on_a_track_has_a_place_with_a_name() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (track, flow) = (Track::new("track"), Flow::new());
            {
                trace_scope!("category", "named", track: &track, flow: &flow);
            }
            trace_scope!("t", "next", end_flow: &flow);
        });
        let ends = trace.rows(
            "select so.category, so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id",
        );
        assert_eq!(ends, "category\tnamed\tnext", "{format:?}");
    }
}

#[test]
fn arguments_may_be_made_of_the_program_s_own_statics_whatever_their_names() {
    const KEYS: [u32; 3] = [1, 2, 3];
    static CALLSITE: &str = "mine";
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!("t", "i", keys = KEYS.len(), callsite = CALLSITE);
            trace_counter!("t", "c", KEYS.len());
        });
        assert_eq!(trace.arguments(), "i: keys = 3\ni: callsite = mine", "{format:?}");
        assert_eq!(trace.counters(), "c = 3.0", "{format:?}");
    }
}

#[test]
fn a_counter_may_belong_to_an_async_interval() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let request = trace_async!("t", "request");
            trace_counter!("t", "bytes", 7, track: &request);
        });
        let rows = trace.rows(
            "select p.name, t.name, c.value from counter c join track t on c.track_id = t.id \
             left join track p on t.parent_id = p.id",
        );
        assert_eq!(rows, "request\tbytes\t7.0", "{format:?}");
    }
}

#[test]
fn a_counter_is_incremental_or_not_at_each_place_of_its_own() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mine = Track::thread();
            trace_counter!("t", "c", 10, track: &mine);
            for value in [15, 20] {
                trace_counter!("t", "c", value, track: &mine, incremental: true);
            }
            trace_counter!("t", "c", 30, track: &mine);
            // On the track, but from another sequence: as they are.
            std::thread::spawn(move || {
                for value in [40, 50] {
                    trace_counter!("t", "c", value, track: &mine, incremental: true);
                }
            })
            .join()
            .unwrap();
        });
        let values = trace.rows("select c.value from counter c order by c.ts, c.id");
        assert_eq!(values, "10.0\n15.0\n20.0\n30.0\n40.0\n50.0", "{format:?}");
    }
}

#[test]
fn there_may_be_any_number_of_incremental_counters() {
    let trace = record(Format::TrackEvent, |_| {
        let mine = Track::thread();
        for value in [5, 3, 4] {
            for n in 0..5_000 {
                trace_counter!("t", "c", value + n, track: &mine, incremental: true, name: format!("c{n}"));
            }
        }
    });
    let wrong = trace.rows(
        "select count(*), sum(c.value - cast(substr(t.name, 2) as int) not in (3, 4, 5)) from counter c \
         join counter_track t on c.track_id = t.id",
    );
    assert_eq!(wrong, "15000\t0");
}

#[test]
fn floats_do_not_add_up_errors() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mine = Track::thread();
            for value in [1e16, 0.1, 0.2] {
                trace_counter!("t", "float", value, track: &mine, incremental: true);
            }
        });
        assert_eq!(
            trace.rows("select c.value from counter c order by c.ts, c.id"),
            "1e+16\n0.1\n0.2",
            "{format:?}"
        );
    }
}

#[test]
fn interned_strings_are_whole_or_cut_with_a_mark() {
    const LONG: &str = include_str!("review.rs");
    const SHORT: &str = LONG.split_at(3_000).0;
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(4096).buffer_size(64 << 10),
            |_| {
                trace_instant!("t", "short", text = interned(SHORT));
                trace_instant!("t", "long", text = interned(LONG));
            },
        );
        let rows = trace.rows(
            "select s.name, length(a.display_value) >= 3000 from slice s join args a using (arg_set_id) \
             where replace(a.key, 'debug.', '') = 'text' order by s.ts",
        );
        assert_eq!(rows, "short\t1\nlong\t1", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn slices_on_tracks_say_where_they_are() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.source_locations(true),
            |_| trace_instant!("t", "i", track: &Track::new("track")),
        );
        let rows = trace.rows(
            "select a.display_value from slice s join args a using (arg_set_id) where a.key like 'source%.file_name'",
        );
        assert_eq!(rows, "tests/vocabulary/review.rs", "{format:?}");
    }
}

#[test]
fn a_category_of_blanks_is_none() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!(" ", "i");
            trace_instant!(",", "j");
        });
        assert_eq!(trace.rows("select name from slice order by ts"), "i\nj", "{format:?}");
    }
}

// Counters at the end of a full ring: a value whose track could not be described is lost as well.
#[test]
fn a_counter_s_value_is_in_the_trace_or_counted() {
    for filled in 150..215 {
        let trace = record_with(
            Format::TrackEvent,
            |b| b.chunk_size(4096).buffer_size(16 << 10),
            |_| {
                let (hold, held) = std::sync::mpsc::sync_channel::<()>(0);
                let held = std::sync::Mutex::new(held);
                std::thread::scope(|s| {
                    for _ in 0..3 {
                        let ready = std::sync::Barrier::new(2);
                        let ready = std::sync::Arc::new(ready);
                        let theirs = ready.clone();
                        let held = &held;
                        s.spawn(move || {
                            trace_instant!("t", "hold a chunk");
                            theirs.wait();
                            let _ = held.lock().unwrap().recv();
                        });
                        ready.wait();
                    }
                    std::thread::Builder::new()
                        .spawn_scoped(s, || {
                            for _ in 0..filled {
                                trace_instant!("t", "fill");
                            }
                            for n in 0..2 {
                                trace_counter!("t", "a counter with a name of some length", n);
                            }
                        })
                        .unwrap()
                        .join()
                        .unwrap();
                    drop(hold);
                });
            },
        );
        let verdict = trace.ask(&[
            "select (select count(*) from slice where name != 'lost in all') + (select count(*) from counter)",
        ]);
        assert_eq!(verdict.results[0].text(), trace.summary.records.to_string(), "{filled}");
        assert_eq!(trace.summary.records + trace.summary.lost.total(), filled + 5, "{filled}");
    }
}

// Threads of their own hold all chunks of the ring, so that the ends of this one are late.
#[test]
fn an_argument_of_a_late_end_is_in_the_trace_or_counted() {
    const ENDS: u64 = 20;
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(4096).buffer_size(16 << 10),
            |_| {
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
            },
        );
        let verdict = trace.ask(&[
            "select (select count(*) from slice join args using (arg_set_id) where replace(key, 'debug.', '') = 'late'), \
             sum(dur < 0) from slice",
        ]);
        let shown = ENDS - trace.summary.lost.arguments;
        assert_eq!(verdict.results[0].text(), format!("{shown}\t0"), "{format:?}");
    }
}

#[test]
fn macros_mean_no_names_of_the_program() {
    mod core {}
    #[allow(dead_code)]
    struct Some;
    #[allow(unused_macros)]
    macro_rules! stringify {
        ($($tokens:tt)*) => {
            compile_error!("the program's")
        };
    }
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("t", "s", n = 1, r = { 2 }, b = 1 < 2,);
            trace_log!(Level::Info, "t", "text",);
        });
        assert_eq!(trace.rows("select count(*) from slice"), "2", "{format:?}");
    }
}
