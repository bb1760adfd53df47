//! What is in a snapshot when the ring has been overwritten many times.
//!
//! ```text
//! recorded:  outer[ begin .................................................... open
//!                   step 0  step 1  ...  step 100,000  ...  step 199,999
//! the ring:                               [..............................]
//! shown:     outer[ its own begin,         step k, k + 1, ...  step 199,999
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hairline::{
    Flow, Format, Overflow, SessionBuilder, Track, Unit, interned, trace_async, trace_begin, trace_counter,
    trace_end, trace_instant, trace_scope,
};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::recording::{FORMATS, SLICES, Trace, extension, record, record_with, turn};

fn small(builder: SessionBuilder) -> SessionBuilder {
    builder.overflow(Overflow::Overwrite).buffer_size(256 << 10)
}

fn ask(trace: &Trace, sql: &[&str]) -> Verdict {
    let verdict = trace.ask(sql);
    verdict.require_clean();
    verdict
}

/// Steps that are whole: how many, the first and the last number, and whether each follows the one before.
const STEPS: &str = "select count(*), min(n), max(n), max(n) - min(n) + 1 = count(*) from \
    (select a.int_value as n from slice s join args a using (arg_set_id) where s.name = 'step' and a.key in ('n', 'debug.n'))";

#[test]
fn a_program_that_fits_the_ring_is_recorded_as_ever() {
    let program = || {
        thread::scope(|threads| {
            for name in ["a", "b"] {
                let thread = thread::Builder::new().name(name.into());
                let work = || {
                    for n in 0..50 {
                        trace_scope!("t", "outer", n, text = "some");
                        trace_instant!("t", "instant");
                        trace_scope!("t", "inner");
                        trace_counter!("t", "count", n);
                    }
                };
                thread.spawn_scoped(threads, work).unwrap();
            }
        });
    };
    for format in FORMATS {
        let counters = "select count(*), sum(value) from counter";
        let streamed = record(format, |_| program());
        let kept = record_with(format, small, |_| program());
        let (streamed, kept) = (ask(&streamed, &[SLICES, counters]), ask(&kept, &[SLICES, counters]));
        assert_eq!(streamed.results[0].text(), kept.results[0].text(), "{format:?}");
        assert_eq!(streamed.results[1].text(), kept.results[1].text(), "{format:?}");
    }
}

#[test]
fn an_outer_scope_from_before_the_window_is_there_with_its_true_begin() {
    const STEPS_DONE: u64 = 200_000;
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            let flow = Flow::new();
            trace_scope!("t", "outer", answer = 42, text = "of the outer", kept = interned("interned"), flow: &flow);
            trace_scope!("t", "second", list = [1, 2]);
            thread::sleep(Duration::from_millis(20));
            for n in 0..STEPS_DONE {
                trace_scope!("t", "step", n);
            }
        });
        let verdict = ask(
            &trace,
            &[
                STEPS,
                "select o.name, o.dur >= 20000000, o.depth from slice o where o.name in ('outer', 'second') order by o.depth",
                "select count(*) from slice s join slice p on s.parent_id = p.id where s.name = 'step' and p.name = 'second'",
                "select replace(a.key, 'debug.', ''), ifnull(a.int_value, a.string_value) from slice s join args a using (arg_set_id) \
                 where s.name in ('outer', 'second') and a.key not like '%flow%' order by 1",
                "select count(*) from slice where dur < 0 or name is null",
                "select p.ts <= (select min(ts) from slice) from slice p where p.name = 'outer'",
            ],
        );
        let steps: Vec<i64> = verdict.results[0].text().split('\t').map(|n| n.parse().unwrap()).collect();
        assert!(steps[0] > 2000 && steps[1] > 0, "{format:?}: {steps:?}");
        assert_eq!((steps[2], steps[3]), (STEPS_DONE as i64 - 1, 1), "{format:?}");
        assert_eq!(verdict.results[1].text(), "outer\t1\t0\nsecond\t1\t1", "{format:?}");
        assert_eq!(verdict.results[2].text(), steps[0].to_string(), "{format:?}");
        assert_eq!(
            verdict.results[3].text(),
            "answer\t42\nkept\tinterned\nlist[0]\t1\nlist[1]\t2\ntext\tof the outer",
            "{format:?}"
        );
        assert_eq!(verdict.results[4].text(), "0", "{format:?}");
        assert_eq!(verdict.results[5].text(), "1", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0);
    }
}

#[test]
fn slices_that_are_open_at_the_snapshot_stay_open() {
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("open.{}", extension(format)));
        let session = small(hairline::Session::builder()).format(format).start().unwrap();
        {
            trace_scope!("t", "outer");
            for n in 0..50_000 {
                trace_scope!("t", "step", n);
            }
            let summary = session.snapshot(&path).unwrap();
            assert!(summary.records > 4000 && summary.path.as_deref() == Some(&*path), "{summary:?}");
        }
        let verdict = judge::load(&path, &["select name, dur from slice where dur < 0", STEPS]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "outer\t-1", "{format:?}");
        assert!(
            verdict.results[1].text().ends_with("\t49999\t1"),
            "{format:?}: {}",
            verdict.results[1].text()
        );
        session.stop().unwrap();
    }
}

/// Four threads, each in a scope of its own, record as fast as they can while snapshots are taken.
#[test]
fn a_snapshot_of_threads_that_record_flat_out_is_whole() {
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let session =
            small(hairline::Session::builder()).buffer_size(4 << 20).format(format).start().unwrap();
        let stop = AtomicBool::new(false);
        let running = AtomicU64::new(0);
        thread::scope(|threads| {
            for thread in 0..4 {
                let (stop, running) = (&stop, &running);
                threads.spawn(move || {
                    trace_scope!("t", "outer", thread);
                    running.fetch_add(1, Ordering::Relaxed);
                    let mut n = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        trace_scope!("t", "middle", n, text = "text");
                        trace_scope!("t", "inner", n);
                        n += 1;
                    }
                });
            }
            while running.load(Ordering::Relaxed) < 4 {
                thread::yield_now();
            }
            for n in 0..10 {
                thread::sleep(Duration::from_millis(20));
                let path = folder.path().join(format!("{n}.{}", extension(format)));
                session.snapshot(&path).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        session.stop().unwrap();
        for n in 0..10 {
            let path = folder.path().join(format!("{n}.{}", extension(format)));
            let verdict = judge::load(
                &path,
                &[
                    "select count(*), sum(dur = -1), count(distinct utid) from slice s join thread_track t on s.track_id = t.id where s.name = 'outer'",
                    "select count(*) from slice s left join slice p on s.parent_id = p.id where s.name != 'outer' and not ( \
                       s.name = 'middle' and p.name = 'outer' or s.name = 'inner' and p.name = 'middle')",
                    // Each thread's numbers follow each other without a gap.
                    "select count(*) from (select n - lag(n) over (partition by track_id order by ts) as step from ( \
                       select s.ts, s.track_id, a.int_value as n from slice s join args a using (arg_set_id) \
                       where s.name = 'middle' and a.key in ('n', 'debug.n'))) where step != 1",
                    "select count(*) > 100 from slice",
                    // No more than the two that are open in each thread when the snapshot is taken, beside
                    // the outer one.
                    "select max(open) <= 2 from (select sum(dur < 0) as open from slice where name != 'outer' group by track_id)",
                ],
            );
            verdict.require_clean();
            let texts: Vec<String> = verdict.results.iter().map(|r| r.text().to_owned()).collect();
            assert_eq!(texts, ["4\t4\t4", "0", "0", "1", "1"], "{format:?}, snapshot {n}");
        }
    }
}

fn recurse(depth: u32) {
    if depth > 0 {
        trace_scope!("t", "deep", depth);
        recurse(depth - 1);
        trace_instant!("t", "back", depth);
    }
}

#[test]
fn recursion_deeper_than_a_chunk_tells_still_nests() {
    // Without optimisation, 5,000 frames take more stack than a test has.
    let deep = std::thread::Builder::new().stack_size(32 << 20).spawn(deep_recursion);
    deep.expect("a thread").join().expect("its end");
}

fn deep_recursion() {
    for format in FORMATS {
        for depth in [100, 1000, 5000] {
            let trace = record_with(
                format,
                |b| small(b).chunk_size(16 << 10),
                |_| {
                    trace_scope!("t", "outer");
                    (0..5).for_each(|_| recurse(depth));
                    for n in 0..500 {
                        trace_scope!("t", "step", n);
                    }
                },
            );
            // Where more are open than a chunk can tell again, the deeper ones are lost, and trace_processor
            // says so.
            let verdict = trace.ask(&["select count(*) from slice where name = 'step' and dur >= 0"]);
            assert!(depth > 100 || verdict.stat("traced_buf_trace_writer_packet_loss") == 0);
            assert_eq!(verdict.stat("fuchsia_invalid_string_ref"), 0, "{format:?} {depth}");
            assert_eq!(verdict.results[0].text(), "500", "{format:?} {depth}");
            if depth == 100 {
                assert_eq!(trace.rows("select dur >= 0 from slice where name = 'outer'"), "1", "{format:?}");
                assert_eq!(trace.summary.lost.total(), 0);
            }
        }
    }
}

/// Counters, tracks and intervals are told anew in each chunk, so whatever is left of them has its name and
/// unit.
#[test]
fn what_is_left_of_tracks_and_counters_has_its_names() {
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            let track = Track::new("parent").child("mine");
            for n in 0..20_000_i64 {
                trace_counter!("t", "bytes", n, unit: Unit::Bytes);
                trace_counter!("t", "sum", n, track: &Track::thread(), incremental: true);
                trace_begin!("t", "on track", n, track: &track);
                trace_end!(&track);
                let interval = trace_async!("t", "interval", n);
                drop(interval);
            }
        });
        let verdict = ask(
            &trace,
            &[
                "select count(*) > 100, max(c.value), t.unit from counter c join counter_track t on c.track_id = t.id where t.name like 'bytes%'",
                "select count(*) > 100, max(c.value), max(c.value) - min(c.value) + 1 = count(*) from counter c join counter_track t on c.track_id = t.id where t.name like 'sum%'",
                "select count(*) > 100, count(distinct t.name), max(t.name) from slice s join track t on s.track_id = t.id where s.name = 'on track' and s.dur >= 0",
                "select count(*) > 100 from slice where name = 'interval' and dur >= 0",
            ],
        );
        let texts: Vec<String> = verdict.results.iter().map(|r| r.text().to_owned()).collect();
        assert!(texts[0].starts_with("1\t19999"), "{format:?} {texts:?}");
        assert_eq!(texts[1], "1\t19999.0\t1", "{format:?}");
        assert_eq!(texts[2], "1\t1\tmine", "{format:?}");
        assert_eq!(texts[3], "1", "{format:?}");
    }
}

#[test]
fn cpu_time_and_source_locations_are_recorded_as_ever() {
    for format in FORMATS {
        let detail = |b| small(b).thread_time(true).source_locations(true);
        let trace = record_with(format, detail, |_| {
            trace_scope!("t", "outer", of = "outer");
            for n in 0..20_000_i64 {
                trace_scope!("t", "step", n);
            }
        });
        let (place, time) = if format == Format::Fxt {
            (
                "source",
                "(select max(int_value) from args a where a.arg_set_id = s.arg_set_id \
                and a.key = 'cpu_end_ns') >= (select max(int_value) from args a where a.arg_set_id = s.arg_set_id \
                and a.key = 'cpu_begin_ns')",
            )
        } else {
            ("source.file_name", "thread_dur >= 0")
        };
        // The begin from before the window has its time. In TrackEvent its place and its CPU time are not
        // shown.
        let all = format!(
            "select sum({time}) = count(*), sum(exists (select 1 from args a where a.arg_set_id = s.arg_set_id \
               and a.key = '{place}' and a.string_value glob '*window.rs*')) = count(*) \
             from slice s where dur > 0 and name = 'step'"
        );
        let outer = "select count(*) from slice where name = 'outer' and dur > 0";
        let verdict = ask(&trace, &[STEPS, &all, outer]);
        assert!(
            verdict.results[0].text().ends_with("\t19999\t1"),
            "{format:?} {}",
            verdict.results[0].text()
        );
        assert_eq!(verdict.results[1].text(), "1\t1", "{format:?}");
        assert_eq!(verdict.results[2].text(), "1", "{format:?}");
    }
}

#[test]
fn threads_that_have_ended_are_in_the_window_until_they_are_overwritten() {
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            for n in 0..200 {
                let thread = thread::Builder::new().name(format!("worker {n}"));
                let work = move || {
                    for _ in 0..100 {
                        trace_scope!("t", "step", n);
                    }
                };
                thread.spawn(work).unwrap().join().unwrap();
            }
        });
        let sql = "select count(distinct utid) > 10, max(s.ts) filter (where t.name = 'worker 199') = max(s.ts) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)";
        let whole = "select count(*) from (select count(*) as n from slice group by track_id) where n > 100";
        let verdict = ask(&trace, &[sql, whole]);
        assert_eq!(verdict.results[0].text(), "1\t1", "{format:?}");
        assert_eq!(verdict.results[1].text(), "0", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn each_snapshot_has_its_own_window() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let session = small(hairline::Session::builder()).format(Format::TrackEvent).start().unwrap();
    for round in 0..3 {
        for n in 0..30_000 {
            trace_scope!("t", "step", n, round);
        }
        let path = folder.path().join("same.pftrace"); // replaced each time
        session.snapshot(&path).unwrap();
        let rounds = "select count(*) > 100, min(a.int_value), max(a.int_value) from slice s join args a using (arg_set_id) where a.key = 'debug.round'";
        let verdict = judge::load(&path, &[rounds]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), format!("1\t{round}\t{round}"));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished is left");
    session.stop().unwrap();
}

/// Intervals and slices on tracks that were begun long before the window, on whichever thread they end.
#[test]
fn what_was_begun_on_a_track_before_the_window_is_there_whole_or_open() {
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            let track = Track::new("jobs");
            let mut ends_later = trace_async!("t", "request", id = 7, text = "kept");
            let never_ends = trace_async!("t", "connection", id = 8);
            trace_begin!("t", "outer job", of = "outer", track: &track);
            for n in 0..30_000_u64 {
                if n % 100 == 0 {
                    trace_begin!("t", "inner job", n, track: &track);
                    trace_end!(&track, done = true);
                }
                trace_scope!("t", "step", n);
            }
            thread::scope(|threads| {
                threads.spawn(|| {
                    ends_later.arg("rows", 3);
                    drop(ends_later);
                    trace_instant!("t", "after");
                });
            });
            trace_end!(&track);
            std::mem::forget(never_ends);
        });
        let verdict = ask(
            &trace,
            &[
                "select name, dur > 0 from slice where name in ('request', 'connection', 'outer job') order by name",
                "select s.ts <= (select min(ts) from slice where name != 'connection' and name != 'request') from slice s where s.name = 'outer job'",
                "select count(*) > 3, sum(s.dur < 0), sum(p.name != 'outer job') from slice s left join slice p on s.parent_id = p.id where s.name = 'inner job'",
                "select replace(a.key, 'debug.', ''), ifnull(a.int_value, a.string_value) from slice s join args a using (arg_set_id) \
                 where s.name = 'request' and a.key not like 'legacy_event%' order by 1",
            ],
        );
        assert_eq!(verdict.results[0].text(), "connection\t0\nouter job\t1\nrequest\t1", "{format:?}");
        assert_eq!(verdict.results[1].text(), "1", "{format:?}");
        assert_eq!(verdict.results[2].text(), "1\t0\t0", "{format:?}");
        assert_eq!(verdict.results[3].text(), "id\t7\nrows\t3\ntext\tkept", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0);
    }
}

/// A thread that cannot go on in another chunk loses the slice that it ends, and only that.
#[test]
fn the_slice_around_one_that_is_lost_at_its_end_is_there() {
    fn ends_at_the_bottom(depth: u32, track: &Track) {
        if depth > 0 {
            trace_scope!("t", "deep");
            ends_at_the_bottom(depth - 1, track);
        } else {
            // More are open than can be told again, and the chunk is full.
            (0..1000).for_each(|_| trace_instant!("t", "filler"));
            trace_end!(track);
        }
    }
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| small(b).chunk_size(4096),
            |_| {
                let track = Track::new("jobs");
                trace_begin!("t", "outer job", track: &track);
                trace_begin!("t", "inner job", track: &track);
                ends_at_the_bottom(200, &track);
                trace_end!(&track);
            },
        );
        let jobs = trace.ask(&["select name, dur > 0 from slice where name like '%job' order by name"]);
        assert_eq!(jobs.results[0].text(), "outer job\t1", "{format:?}: {:?}", trace.summary.lost);
    }
}
