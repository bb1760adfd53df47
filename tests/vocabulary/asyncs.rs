//! Async intervals.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use hairline::{Flow, Format, Session, Track, trace_async, trace_instant, trace_scope};
use hairline_tests::output::slow;
use hairline_tests::recording::{FORMATS, record, record_with};

use crate::ON_TRACKS;

// main    [ request ............            [ request ....
// second       [ parse ]  · answered  ]                     ]
#[test]
fn intervals_begin_and_end_on_different_threads_each_on_a_track_of_its_own() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let first = trace_async!("net", "request", id = 7);
            let second = trace_async!("net", "request", id = 8);
            assert!(first.is_recorded());
            std::thread::spawn(move || {
                let mut parse = trace_async!("net", "parse", track: &first);
                trace_instant!("net", "answered", code = 200, track: &first);
                parse.arg("rows", 3);
                drop(parse);
                drop(first);
            })
            .join()
            .unwrap();
            drop(second);
        });
        // FXT's importer gives an async interval's instants its own depth, and no process.
        let parent = "request";
        assert_eq!(
            trace.rows(ON_TRACKS),
            format!(
                "0\trequest\trequest\t-\tended\n0\trequest\trequest\t-\tended\n0\tparse\tparse\t{parent}\tended\n\
                 1\tanswered\trequest\t-\tended"
            ),
            "{format:?}"
        );
        assert_eq!(
            trace.rows("select count(distinct track_id), count(*) from slice where name = 'request'"),
            "2\t2",
            "{format:?}"
        );
        assert_eq!(
            trace.rows("select name from slice where name = 'request' or name = 'parse' order by ts + dur"),
            "parse\nrequest\nrequest",
            "{format:?}"
        );
        let rows = trace.rows(
            "select s.name, replace(key, 'debug.', ''), display_value from slice s join args a using (arg_set_id) \
             where replace(key, 'debug.', '') in ('id', 'rows', 'code') order by s.ts",
        );
        assert_eq!(rows, "request\tid\t7\nrequest\tid\t8\nparse\trows\t3\nanswered\tcode\t200", "{format:?}");
    }
}

#[test]
fn an_interval_may_lie_under_a_track_and_have_a_name_of_its_own() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let pool = Track::new("pool");
            let job = trace_async!("t", "job", track: &pool, name: format!("job {}", 1));
            let plain = trace_async!("t", "job", name: "job 2");
            drop(plain);
            drop(job);
        });
        assert_eq!(
            trace.rows(ON_TRACKS),
            "0\tjob 1\tjob 1\tpool\tended\n0\tjob 2\tjob 2\t-\tended",
            "{format:?}"
        );
    }
}

#[test]
fn a_flow_goes_from_a_scope_into_an_interval() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            {
                trace_scope!("t", "push", flow: &flow);
            }
            let job = trace_async!("t", "job", flow: &flow);
            std::thread::spawn(move || {
                trace_scope!("t", "done", end_flow: &flow);
                drop(job);
            })
            .join()
            .unwrap();
        });
        // An FXT flow needs a slice on a thread: one without length stands in for the interval there.
        let ends = trace.rows(
            "select so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id order by so.ts",
        );
        assert_eq!(ends, "push\tjob\njob\tdone", "{format:?}");
    }
}

#[test]
fn what_lies_inside_of_an_interval_that_the_filter_leaves_out_is_recorded_without_it() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.categories("on"),
            |_| {
                let hidden = trace_async!("off", "hidden");
                trace_instant!("on", "instant", track: &hidden);
                let child = trace_async!("on", "child", track: &hidden);
                drop((child, hidden));
            },
        );
        assert_eq!(
            trace.rows("select s.name, s.dur >= 0, s.track_id in (select id from thread_track) from slice s order by s.ts"),
            "instant\t1\t1\nchild\t1\t0",
            "{format:?}"
        );
    }
}

// One after the other; then two at once; each below the one that is open.
#[test]
fn intervals_that_do_not_overlap_share_a_track() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let request = || trace_async!("net", "request");
            for n in 0..100 {
                let outer = request();
                drop(trace_async!("net", "parse", n, track: &outer));
            }
            let _both = (request(), request());
        });
        let tracks = |name: &str| {
            trace.rows(&format!(
                "select count(*), count(distinct track_id), sum(depth) from slice where name = '{name}'"
            ))
        };
        assert_eq!(tracks("request"), "102\t2\t0", "{format:?}");
        assert_eq!(tracks("parse"), "100\t1\t0", "{format:?}");
    }
}

#[test]
fn a_thousand_intervals_overlap() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let all: Vec<_> = (0..1000).map(|n| trace_async!("t", "job", n)).collect();
            let (sender, receiver) = mpsc::channel();
            let ender = std::thread::spawn(move || receiver.into_iter().for_each(drop));
            for job in all {
                sender.send(job).unwrap();
            }
            drop(sender);
            ender.join().unwrap();
        });
        assert_eq!(
            trace.rows("select count(*), count(distinct track_id), sum(dur < 0), sum(depth) from slice"),
            "1000\t1000\t0\t0",
            "{format:?}"
        );
        assert_eq!(trace.summary.records, 2000);
    }
}

// Begun on two threads, ended on two others that have no room in the ring most of the time.
#[test]
fn every_recorded_interval_ends_though_the_ring_is_full() {
    for format in FORMATS {
        let _turn = hairline_tests::recording::turn();
        let (output, trace) = slow(Duration::from_millis(1));
        let session = Session::builder()
            .output_writer(output)
            .format(format)
            .buffer_size(32 << 10)
            .chunk_size(4096)
            .start()
            .unwrap();
        const EACH: u64 = 10_000;
        let begun: u64 = std::thread::scope(|s| {
            let beginners: Vec<_> = (0..2)
                .map(|_| {
                    let (sender, receiver) = mpsc::channel();
                    s.spawn(move || receiver.into_iter().for_each(drop));
                    s.spawn(move || {
                        let mut begun = 0;
                        for n in 0..EACH {
                            let job = trace_async!("t", "job", n);
                            begun += u64::from(job.is_recorded());
                            sender.send(job).unwrap();
                        }
                        begun
                    })
                })
                .collect();
            beginners.into_iter().map(|b| b.join().unwrap()).sum()
        });
        let summary = session.stop().unwrap();
        let verdict = hairline_tests::judge::load_bytes(
            &trace.recv().unwrap(),
            &["select count(*), sum(dur < 0), sum(depth) from slice where name = 'job'"],
        );
        assert_eq!(verdict.results[0].text(), format!("{begun}\t0\t0"), "{format:?}");
        assert!(begun < 2 * EACH, "{format:?}: nothing was lost, so nothing was tried");
        assert_eq!(begun + summary.lost.total(), 2 * EACH, "{format:?}");
        assert_eq!(summary.records, 2 * begun, "{format:?}");
    }
}

#[test]
fn fxt_has_async_records_and_track_event_has_none() {
    for format in FORMATS {
        let trace = record(format, |_| drop(trace_async!("t", "job")));
        let bytes = std::fs::read(trace.path()).unwrap();
        if format == Format::Fxt {
            let mut reader = hairline_formats::fxt::RecordReader::new(&bytes[..]);
            let mut kinds = Vec::new();
            while let Some((_, record)) = reader.next().unwrap() {
                if let hairline_formats::fxt::Record::Event(event) = record {
                    kinds.push(event.kind);
                }
            }
            use hairline_formats::fxt::EventKind::{AsyncBegin, AsyncEnd};
            assert_eq!(kinds, [AsyncBegin, AsyncEnd]);
        }
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "job\t1");
    }
}

// lane 0  [ request ........................ ]    FXT: a record of its own, not a lane
//            [ handler ............ ]             a lane of their own in FXT
//              [ query ] [ query ]
// lane 1         [ other ............. ]          overlaps the handler
#[test]
fn an_interval_that_owns_its_parent_is_a_slice_below_it_on_its_lane() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..10 {
                let request = Arc::new(trace_async!("net", "request"));
                let handler = Arc::new(trace_async!("net", "handler", track: &request));
                let query = trace_async!("net", "query", track: &handler);
                let other = trace_async!("net", "other", track: &request);
                drop(request);
                std::thread::spawn(move || drop(query)).join().unwrap();
                drop(trace_async!("net", "query", name: "second query", track: &handler));
                drop((handler, other));
            }
        });
        let is_lane = i32::from(format == Format::TrackEvent); // the request
        let rows = trace.rows(
            "select s.name, s.depth, count(*), count(distinct s.track_id), sum(s.dur < 0), \
                 ifnull(sum(s.ts < p.ts or s.ts + s.dur > p.ts + p.dur), '-') \
             from slice s left join slice p on s.parent_id = p.id group by 1, 2 order by 2, 1",
        );
        let inside = |name: &str, depth: i32| {
            let outside = if depth == 0 { "-" } else { "0" };
            (depth, format!("{name}\t{depth}\t10\t1\t0\t{outside}"))
        };
        let mut expected = [
            inside("handler", is_lane),
            inside("other", 0),
            inside("query", is_lane + 1),
            inside("request", 0),
            inside("second query", is_lane + 1),
        ];
        expected.sort();
        let expected: Vec<_> = expected.into_iter().map(|(_, row)| row).collect();
        assert_eq!(rows, expected.join("\n"), "{format:?}");
        let inside = trace.rows(
            "select count(*) from slice r join slice h on h.ts > r.ts and h.ts + h.dur < r.ts + r.dur \
             where r.name = 'request' and h.name in ('handler', 'other')",
        );
        assert_eq!(inside, "20", "{format:?}: the request lasts as long as its children");
    }
}
