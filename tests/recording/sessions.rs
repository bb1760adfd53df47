//! Sessions: one after the other, outputs, flush, what the summary says.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hairline::{Format, MemoryOutput, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::output::kept;
use hairline_tests::recording::{FORMATS, extension, record, record_in, turn};

#[test]
fn a_thread_that_lives_across_sessions_records_in_each() {
    let (order, orders) = mpsc::channel::<mpsc::Sender<()>>();
    let pool = thread::spawn(move || {
        for done in orders {
            {
                trace_scope!("t", "job");
            }
            done.send(()).expect("a listener");
        }
    });
    let job = || {
        let (done, wait) = mpsc::channel();
        order.send(done).expect("a pool");
        wait.recv().expect("done");
    };
    let turn = turn();
    for round in 0..4 {
        let trace = record_in(&turn, FORMATS[round % 2], |b| b, |_| (0..=round).for_each(|_| job()));
        assert_eq!(trace.rows("select count(*), min(dur) >= 0 from slice"), format!("{}\t1", round + 1));
        job(); // between sessions: nothing
    }
    drop(order);
    pool.join().expect("the pool");
}

#[test]
fn stopping_while_others_record_leaves_a_clean_trace() {
    let turn = turn();
    for format in FORMATS {
        let (go_on, rounds) = (AtomicBool::new(true), AtomicU64::new(0));
        // However late the others come to run.
        let some_rounds = || {
            let enough = rounds.load(Ordering::Relaxed) + 100;
            thread::sleep(Duration::from_millis(5));
            while rounds.load(Ordering::Relaxed) < enough {
                thread::yield_now();
            }
        };
        thread::scope(|threads| {
            let _stop = OnDrop(&go_on);
            for _ in 0..3 {
                threads.spawn(|| {
                    while go_on.load(Ordering::Relaxed) {
                        trace_scope!("t", "outer");
                        trace_scope!("t", "inner");
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..3 {
                let trace = record_in(&turn, format, |b| b, |_| some_rounds());
                // What was open at the stop stays open; nothing else does.
                let rows =
                    trace.ask(&["select count(*) > 0, sum(dur < 0) <= 6, sum(name is null) from slice"]);
                assert_eq!(rows.results[0].text(), "1\t1\t0", "{format:?}");
            }
        });
    }
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_flush_puts_everything_before_it_into_the_file() {
    let _turn = turn();
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(format!("flushed.{}", extension(format)));
        let session = Session::builder().output(&path).start().expect("a session");
        for n in 1..=3 {
            {
                trace_scope!("t", "before the flush");
            }
            session.flush().expect("flushed");
            let verdict = judge::load(&path, &["select count(*), min(dur) >= 0 from slice"]);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), format!("{n}\t1"), "{format:?}");
        }
        session.stop().expect("stopped");
    }
}

#[test]
fn memory_and_writers_get_what_a_file_would() {
    let _turn = turn();
    for format in FORMATS {
        let (memory, (writer, written)) = (MemoryOutput::new(), kept(|| ()));
        for builder in [Session::builder().output_memory(&memory), Session::builder().output_writer(writer)] {
            let session = builder.format(format).start().expect("a session");
            for n in 0..1000 {
                trace_scope!("t", "slice", n);
            }
            session.stop().expect("stopped");
        }
        for bytes in [memory.to_vec(), written.recv().expect("a trace")] {
            let verdict = judge::load_bytes(&bytes, &["select count(*), sum(dur >= 0) from slice"]);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), "1000\t1000", "{format:?}");
        }
    }
}

#[test]
fn the_summary_agrees_with_the_file() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let work = |n: u32| {
                move || {
                    for _ in 0..n {
                        trace_scope!("t", "work");
                    }
                }
            };
            for n in [1, 20] {
                let name = format!("summed-{n}");
                thread::Builder::new().name(name).spawn(work(n)).expect("a thread").join().expect("joined");
            }
        });
        let summary = &trace.summary;
        assert_eq!(summary.bytes, std::fs::metadata(trace.path()).expect("a file").len());
        assert_eq!((summary.records, summary.lost.total()), (42, 0));
        let threads: Vec<_> = summary.threads.iter().map(|t| (t.name.as_str(), t.records)).collect();
        assert_eq!(threads, [("summed-1", 2), ("summed-20", 40)]);
        assert_eq!(summary.path.as_deref(), Some(trace.path()));
    }
}

#[test]
fn a_dropped_session_completes_its_trace_and_its_path_may_name_the_process() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let session = Session::builder().output(directory.path().join("of-%p.fxt")).start().expect("a session");
    {
        trace_scope!("t", "kept");
    }
    drop(session);
    let path = directory.path().join(format!("of-{}.fxt", std::process::id()));
    let verdict = judge::load(&path, &["select name from slice"]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "kept");
    assert_eq!(Format::from_path(&path), Some(Format::Fxt));
}
