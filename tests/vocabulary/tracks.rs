//! Tracks that the program makes, and slices that are begun and ended by hand.

use std::time::Duration;

use hairline::{Ordering, Session, Track, scope, trace_begin, trace_end, trace_instant, trace_scope};
use hairline_tests::output::slow;
use hairline_tests::recording::{FORMATS, record, record_with};

use crate::ON_TRACKS;

// gpu (explicit)                    process
//   engine 1, rank -2   [  b  ]       queue   [ outer [ inner ] ]
//   engine 0, rank 3  [ a ]  · tick
#[test]
fn slices_lie_on_the_tracks_they_were_put_on() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let gpu = Track::new("gpu").ordering(Ordering::Explicit).description("as the driver tells it");
            let engines = [gpu.child("engine 0").rank(3), gpu.child("engine 1").rank(-2)];
            let queue = Track::process().child("queue");
            trace_begin!("gpu", "a", track: &engines[0]);
            trace_begin!("gpu", "b", number = 17, track: &engines[1]);
            trace_end!(&engines[0], result = "done");
            trace_instant!("gpu", "tick", track: &engines[0]);
            trace_end!(&engines[1]);
            trace_begin!("q", "outer", track: &queue);
            {
                trace_scope!("q", "inner", deep = true, track: &queue);
            }
            trace_end!(&queue);
            trace_instant!("q", "of the process", track: &Track::process());
        });
        assert_eq!(
            trace.rows(ON_TRACKS),
            "0\ta\tengine 0\tgpu\tended\n0\tb\tengine 1\tgpu\tended\n0\ttick\tengine 0\tgpu\tended\n\
             0\touter\tqueue\t-\tended\n1\tinner\tqueue\t-\tended\n0\tof the process\t-\t-\tended",
            "{format:?}"
        );
        let properties = trace.rows(
            "select distinct t.name, a.key, a.display_value from track t join args a on t.source_arg_set_id = a.arg_set_id \
             where a.key in ('child_ordering', 'description', 'sibling_order_rank') order by 1, 2",
        );
        assert_eq!(
            properties,
            "engine 0\tsibling_order_rank\t3\nengine 1\tsibling_order_rank\t-2\n\
             gpu\tchild_ordering\texplicit\ngpu\tdescription\tas the driver tells it",
            "{format:?}"
        );
        let of_process = trace.rows(
            "select count(*) from slice s join process_track t on s.track_id = t.id join process using (upid) \
             where s.name in ('outer', 'inner', 'of the process')",
        );
        assert_eq!(of_process, "3", "{format:?}");
        assert_eq!(
            trace.rows(
                "select s.name, replace(key, 'debug.', ''), display_value from slice s join args a using (arg_set_id) \
                 where a.key like 'debug.%' or a.key in ('number', 'result', 'deep') order by s.ts"
            ),
            "a\tresult\tdone\nb\tnumber\t17\ninner\tdeep\ttrue",
            "{format:?}"
        );
    }
}

#[test]
fn lexicographic_and_chronological_orders_are_told() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for ordering in [Ordering::Lexicographic, Ordering::Chronological] {
                let root = Track::new(format!("{ordering:?}")).ordering(ordering);
                trace_instant!("t", "i", track: &root.child("child"));
            }
        });
        let orders = trace.rows(
            "select t.name, a.display_value from track t join args a on t.source_arg_set_id = a.arg_set_id \
             where a.key = 'child_ordering' order by 1",
        );
        assert_eq!(orders, "Chronological\tchronological\nLexicographic\tlexicographic", "{format:?}");
    }
}

#[test]
fn a_thread_s_track_can_be_written_to_from_another_thread() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mine = std::thread::Builder::new()
                .name("worker".to_owned())
                .spawn(|| {
                    trace_instant!("t", "of its own");
                    Track::thread()
                })
                .unwrap()
                .join()
                .unwrap();
            trace_begin!("t", "for the worker", track: &mine);
            trace_instant!("t", "inside", track: &mine);
            trace_end!(&mine);
        });
        assert_eq!(
            trace.rows(
                "select s.depth, s.name, t.name from slice s join thread_track tt on s.track_id = tt.id \
                 join thread t using (utid) order by s.ts"
            ),
            "0\tof its own\tworker\n0\tfor the worker\tworker\n1\tinside\tworker",
            "{format:?}"
        );
    }
}

#[test]
fn a_guard_on_a_track_may_end_on_another_thread() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("jobs");
            let mut job = scope!("t", "job", track: &track);
            assert!(job.is_recorded());
            std::thread::spawn(move || {
                job.arg("done", true);
            })
            .join()
            .unwrap();
        });
        assert_eq!(trace.rows(ON_TRACKS), "0\tjob\tjobs\t-\tended", "{format:?}");
        assert!(trace.rows("select key || display_value from args").contains("done"), "{format:?}");
    }
}

// begun     [outer on] [hidden off] [inner on]
// ended                                 x         x           x
#[test]
fn the_end_of_a_slice_that_the_filter_leaves_out_ends_no_other() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.categories("on"),
            |session| {
                let track = Track::new("t");
                trace_begin!("on", "outer", track: &track);
                trace_begin!("off", "hidden", track: &track);
                trace_begin!("on", "inner", track: &track);
                trace_end!(&track);
                trace_end!(&track);
                trace_instant!("on", "before the end of outer", track: &track);
                session.set_categories("nothing").unwrap(); // an end is recorded whatever the filter says by now
                trace_end!(&track);
                trace_end!(&track); // of nothing
            },
        );
        assert_eq!(
            trace.rows(ON_TRACKS),
            "0\touter\tt\t-\tended\n1\tinner\tt\t-\tended\n1\tbefore the end of outer\tt\t-\tended",
            "{format:?}"
        );
        assert_eq!(trace.summary.lost.total(), 0);
    }
}

#[test]
fn an_end_does_not_reach_into_the_next_session() {
    let track = Track::new("t");
    for format in FORMATS {
        let open = record(format, |_| trace_begin!("t", "stays open", track: &track));
        assert_eq!(open.rows(ON_TRACKS), "0\tstays open\tt\t-\topen", "{format:?}");
        let next = record(format, |_| {
            trace_end!(&track);
            trace_instant!("t", "here", track: &track);
        });
        assert_eq!(next.rows(ON_TRACKS), "0\there\tt\t-\tended", "{format:?}");
    }
}

// Four threads that begin and end as fast as they can, behind an output that is much slower: most begins are
// lost. Each that is recorded has its end, by its own thread or by the writer thread.
#[test]
fn loss_leaves_out_whole_slices_on_tracks_too() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, trace) = slow(Duration::from_millis(2));
        let session = Session::builder()
            .output_writer(output)
            .format(format)
            .buffer_size(64 << 10)
            .chunk_size(4096)
            .start()
            .unwrap();
        const EACH: u64 = 20_000;
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    let track = Track::new("t");
                    for n in 0..EACH {
                        trace_begin!("t", "outer", n, track: &track);
                        trace_begin!("t", "inner", track: &track);
                        trace_end!(&track);
                        trace_end!(&track);
                    }
                });
            }
        });
        let summary = session.stop().unwrap();
        let verdict = hairline_tests::judge::load_bytes(
            &trace.recv().unwrap(),
            &[
                "select count(*), sum(s.dur < 0) from slice s where s.name in ('outer', 'inner')",
                "select count(*) from slice s where s.name = 'outer' and s.depth != 0",
            ],
        );
        let row = verdict.results[0].iter().next().unwrap();
        let recorded = row.i64("count(*)") as u64;
        assert_eq!(row.i64("sum(s.dur < 0)"), 0, "{format:?}: a slice is open");
        assert_eq!(verdict.results[1].text(), "0", "{format:?}: an outer slice lies inside of another");
        assert!(summary.lost.total() > 0, "{format:?}: nothing was lost, so nothing was tried");
        assert_eq!(recorded + summary.lost.total(), 4 * 2 * EACH, "{format:?}");
        assert_eq!(summary.records, 2 * recorded, "{format:?}");
    }
}

#[test]
fn many_tracks_and_deep_trees_are_all_there() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let root = Track::new("root");
            for n in 0..5000 {
                let track = root.child(format!("{n}"));
                trace_instant!("t", "i", track: &track);
            }
            let mut deep = root;
            for n in 0..100 {
                deep = deep.child(format!("deep {n}"));
            }
            trace_instant!("t", "i", track: &deep);
        });
        assert_eq!(trace.rows("select count(*) from slice"), "5001", "{format:?}");
        assert_eq!(
            trace.rows("select count(distinct t.name) from slice s join track t on s.track_id = t.id"),
            "5001"
        );
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
        assert_eq!(rows, "tests/vocabulary/tracks.rs", "{format:?}");
    }
}
