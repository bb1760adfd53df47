//! Counters with units, on tracks, as differences.

use hairline::{Format, Track, Unit, trace_async, trace_counter, trace_instant};
use hairline_tests::recording::{FORMATS, record, record_with};

const COUNTERS: &str = "select t.name, c.value, ifnull(t.unit, '-') from counter c join counter_track t \
     on c.track_id = t.id order by c.ts, c.id";

#[test]
fn counters_have_units_and_multipliers() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_counter!("t", "time", 1_500, unit: Unit::Nanoseconds);
            trace_counter!("t", "memory", 4, unit: Unit::Bytes, multiplier: 1024);
            trace_counter!("t", "things", 3, unit: Unit::Count);
            trace_counter!("t", "speed", 59.5, unit: "frames/s");
            for n in 0..3 {
                trace_counter!("t", "memory", n, unit: Unit::Bytes, multiplier: 1024);
            }
        });
        assert_eq!(
            trace.rows(COUNTERS),
            "time\t1500.0\tns\nmemory\t4096.0\tbytes\nthings\t3.0\tcount\nspeed\t59.5\tframes/s\n\
             memory\t0.0\tbytes\nmemory\t1024.0\tbytes\nmemory\t2048.0\tbytes",
            "{format:?}"
        );
        assert_eq!(
            trace.rows("select count(*) from process_counter_track where unit = 'bytes'"),
            "1",
            "{format:?}"
        );
        assert_eq!(trace.summary.records, 7);
    }
}

// The first value of a callsite describes the counter; the others are written on a shorter way.
#[test]
fn later_values_of_a_counter_on_a_track_are_as_the_first() {
    const INTEGERS: [i64; 8] = [0, -1, 127, 128, -300, 1 << 40, i64::MAX, i64::MIN];
    const FLOATS: [f64; 3] = [0.5, -2.25, 1e300];
    for format in FORMATS {
        let trace = record(format, |_| {
            let (disk, own) = (Track::new("disk"), Track::thread());
            for value in INTEGERS {
                trace_counter!("t", "there", value, unit: Unit::Bytes, track: &disk);
                trace_counter!("t", "here", value, unit: Unit::Count, track: &own);
                trace_counter!("t", "process", value, unit: "things");
            }
            for value in FLOATS {
                trace_counter!("t", "there", value, unit: Unit::Bytes, track: &disk);
                trace_counter!("t", "process", value, unit: "things");
            }
            // One that is read by others as differences, with the same name on the same track.
            (0..3).for_each(|n| trace_counter!("t", "here", n, incremental: true, track: &own));
        });
        let values = |name: &str| {
            let of = format!(
                "select c.value, ifnull(t.unit, '-') as unit from counter c join counter_track t on c.track_id = t.id \
                 where t.name = '{name}' order by c.ts, c.id"
            );
            let verdict = trace.ask(&[&of]);
            verdict.require_clean();
            let rows: Vec<(f64, String)> =
                verdict.results[0].iter().map(|r| (r.f64("value"), r.str("unit").to_owned())).collect();
            rows
        };
        let recorded: Vec<f64> = INTEGERS.iter().map(|v| *v as f64).chain(FLOATS).collect();
        for (name, unit) in [("there", "bytes"), ("process", "things")] {
            let expected: Vec<_> = recorded.iter().map(|v| (*v, unit.to_owned())).collect();
            assert_eq!(values(name), expected, "{format:?} {name}");
        }
        // In FXT there are no differences, so these are values of the same counter.
        let (of_unit, others): (Vec<_>, Vec<_>) =
            values("here").into_iter().partition(|(_, unit)| unit == "count");
        let values: Vec<f64> = of_unit.into_iter().chain(others).map(|row| row.0).collect();
        let expected: Vec<f64> = INTEGERS.iter().map(|v| *v as f64).chain([0.0, 1.0, 2.0]).collect();
        assert_eq!(values, expected, "{format:?}");
    }
}

#[test]
fn a_counter_belongs_to_the_track_it_names() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let gpu = Track::new("gpu");
            trace_instant!("t", "i", track: &gpu);
            let one = |n: i32| {
                std::thread::Builder::new().name(format!("worker {n}")).spawn(move || {
                    trace_counter!("t", "depth", n, track: &Track::thread());
                    trace_counter!("t", "depth", n + 10, track: &Track::thread());
                })
            };
            (1..=2).for_each(|n| one(n).unwrap().join().unwrap());
            trace_counter!("t", "depth", 0.5, track: &gpu);
            trace_counter!("t", "depth", 7, track: &Track::process());
            trace_counter!("t", "depth", 8, track: &gpu, name: "by another name");
        });
        let of_threads = trace.rows(
            "select th.name, t.name, c.value from counter c join thread_counter_track t on c.track_id = t.id \
             join thread th using (utid) order by c.ts",
        );
        assert_eq!(
            of_threads,
            "worker 1\tdepth\t1.0\nworker 1\tdepth\t11.0\nworker 2\tdepth\t2.0\nworker 2\tdepth\t12.0",
            "{format:?}"
        );
        let of_gpu = trace.rows(
            "select p.name, t.name, c.value from counter c join track t on c.track_id = t.id \
             join track p on t.parent_id = p.id where p.name = 'gpu' order by c.ts",
        );
        assert_eq!(of_gpu, "gpu\tdepth\t0.5\ngpu\tby another name\t8.0", "{format:?}");
        assert_eq!(
            trace.rows(
                "select c.value from counter c join process_counter_track t on c.track_id = t.id where t.name = 'depth'"
            ),
            "7.0",
            "{format:?}"
        );
    }
}

// 5 7 6 -> 5 +2 -1; after a float, floats
#[test]
fn differences_add_up_to_the_values() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mine = Track::thread();
            for value in [5, 7, 6, i64::MAX, i64::MIN, 0] {
                trace_counter!("t", "whole", value, track: &mine, incremental: true);
            }
            for value in [0.5, 2.25, -1.0] {
                trace_counter!("t", "float", value, track: &mine, incremental: true);
            }
        });
        let values = |name: &str| {
            trace.rows(&format!(
                "select c.value from counter c join counter_track t on c.track_id = t.id where t.name = '{name}' order by c.ts, c.id"
            ))
        };
        let whole = "5.0\n7.0\n6.0\n9.223372036854776e+18\n-9.223372036854776e+18\n0.0";
        assert_eq!(values("whole"), whole, "{format:?}");
        assert_eq!(values("float"), "0.5\n2.25\n-1.0", "{format:?}");
    }
}

#[test]
fn differences_take_fewer_bytes() {
    let size = |incremental: bool| {
        let trace = record(Format::TrackEvent, |_| {
            let mine = Track::thread();
            for n in 0..1000_i64 {
                let value = (1 << 40) + n;
                if incremental {
                    trace_counter!("t", "c", value, track: &mine, incremental: true);
                } else {
                    trace_counter!("t", "c", value, track: &mine);
                }
            }
        });
        assert_eq!(
            trace.rows("select min(value), max(value), count(*) from counter"),
            "1099511627776.0\t1099511628775.0\t1000"
        );
        trace.summary.bytes
    };
    assert!(size(true) + 4000 < size(false));
}

#[test]
fn counters_have_the_categories_of_their_callsite() {
    for format in FORMATS {
        let trace = record(format, |_| trace_counter!("net,slow", "bytes", 7, unit: Unit::Bytes));
        let categories = trace.rows(
            "select t.name, a.display_value from counter_track t join args a on t.source_arg_set_id = a.arg_set_id \
             where a.key = 'category'",
        );
        assert_eq!(categories, "bytes\tnet,slow", "{format:?}");
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
