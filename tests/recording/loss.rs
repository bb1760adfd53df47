//! When the ring is full: whole scopes are left out, and each is counted.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use hairline::{Format, Session, SessionBuilder, Summary, trace_counter, trace_instant, trace_scope};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::output::{kept, slow};
use hairline_tests::recording::{FORMATS, turn};

const THREADS: u64 = 4;

// outer ───────────────────
//   inner ────   middle ───
//    · instant     deep ─
fn flood(format: Format, buffer: u64, chunk: u32, rounds: u64, sql: &[&str]) -> (Summary, Verdict) {
    let _turn = turn();
    let (output, trace) = slow(Duration::from_micros(500));
    let builder = Session::builder().output_writer(output).format(format);
    let session = builder.buffer_size(buffer).chunk_size(chunk).start().expect("a session");
    thread::scope(|threads| {
        for thread in 0..THREADS {
            threads.spawn(move || {
                for n in 0..rounds {
                    trace_scope!("flood", "outer", thread);
                    {
                        trace_scope!("flood", "inner", n, text = "some text");
                        trace_instant!("flood", "instant", n);
                    }
                    trace_counter!("flood", "counter", n);
                    trace_scope!("flood", "middle");
                    trace_scope!("flood", "deep");
                }
            });
        }
    });
    let summary = session.stop().expect("stopped");
    (summary, judge::load_bytes(&trace.recv().expect("a trace"), sql))
}

#[test]
fn recorded_and_lost_are_all_that_was_attempted_and_what_is_there_nests() {
    let sql = [
        "select count(*), sum(dur < 0), sum(name is null) from slice where category = 'flood'",
        "select count(*) from counter c join track t on c.track_id = t.id where t.name like 'counter%'",
        // A parent is one of those that may be: what lies between may be lost, the order may not.
        "select count(*) from slice s left join slice p on s.parent_id = p.id where s.category = 'flood' and not ( \
           s.name = 'outer' and p.name is null or s.name = 'inner' and ifnull(p.name, 'outer') = 'outer' \
           or s.name = 'instant' and ifnull(p.name, 'inner') in ('inner', 'outer') \
           or s.name = 'middle' and ifnull(p.name, 'outer') = 'outer' \
           or s.name = 'deep' and ifnull(p.name, 'middle') in ('middle', 'outer'))",
        "select count(*) from slice s join args a using (arg_set_id) \
         where s.name = 'inner' and a.key in ('text', 'debug.text') and a.string_value = 'some text'",
        "select count(*) from slice where name = 'inner'",
        "select a.int_value from slice s join args a using (arg_set_id) \
         where s.name = 'lost in all' and a.key in ('buffer full', 'debug.buffer full')",
    ];
    for (format, (buffer, chunk, rounds)) in FORMATS
        .into_iter()
        .flat_map(|f| [(1 << 20, 16384, 100_000), (64 << 10, 4096, 50_000)].map(|size| (f, size)))
    {
        let (summary, verdict) = flood(format, buffer, chunk, rounds, &sql);
        let attempted = THREADS * rounds * 6;
        let slices = verdict.results[0].iter().next().expect("a row").i64("count(*)") as u64;
        let counters = verdict.results[1].single_i64() as u64;
        assert!(summary.lost.buffer_full > 0, "{format:?}: the ring was large enough after all");
        assert_eq!(slices + counters + summary.lost.total(), attempted, "{format:?}");
        assert!(verdict.results[0].text().ends_with("\t0\t0"), "{format:?}: {}", verdict.results[0].text());
        assert_eq!(verdict.results[2].single_i64(), 0, "{format:?}: a slice in a place where none may be");
        assert_eq!(verdict.results[3].single_i64(), verdict.results[4].single_i64(), "{format:?}: arguments");
        assert_eq!(
            verdict.results[5].single_i64() as u64,
            summary.lost.buffer_full,
            "{format:?}: shown by reason"
        );
        if format == Format::Fxt {
            verdict.require_clean();
        } else {
            assert_eq!(verdict.stat("traced_buf_trace_writer_packet_loss") as u64, summary.lost.total());
            let others: Vec<_> = verdict
                .complaints
                .iter()
                .filter(|c| c.name != "traced_buf_trace_writer_packet_loss")
                .collect();
            assert!(others.is_empty(), "{others:?}");
        }
    }
}

const ROUNDS: u64 = 3;
const SCOPES: u64 = 2 * 2500;

// output   | blocks .......... |      | blocks .......... |      | blocks .......... |      stopped, and another session
// threads  | recorded ... lost | wait | recorded ... lost | wait | recorded ... lost | last | again
fn record_again_and_again(step: &Barrier) {
    drop(hairline::scope!("t", "first"));
    for _ in 0..ROUNDS {
        step.wait();
        for n in 0..SCOPES / 2 {
            trace_scope!("t", "outer");
            trace_scope!("t", "inner", n);
        }
        step.wait();
    }
    step.wait();
    drop(hairline::scope!("t", "last"));
    step.wait();
    step.wait();
    drop(hairline::scope!("t", "again"));
}

/// The summary and the trace of the session that loses scopes, and of the one after it.
fn record_on_two_threads(configure: impl Fn(SessionBuilder) -> SessionBuilder) -> [(Summary, Vec<u8>); 2] {
    let lock = Arc::new(Mutex::new(()));
    let wait = Arc::clone(&lock);
    let (output, bytes) = kept(move || drop(wait.lock()));
    let builder = configure(Session::builder().output_writer(output));
    let session = builder.buffer_size(64 << 10).chunk_size(4 << 10).start().expect("a session");
    let step = Barrier::new(3);
    let (first, later, later_bytes) = thread::scope(|threads| {
        (0..2).for_each(|_| drop(threads.spawn(|| record_again_and_again(&step))));
        for _ in 0..ROUNDS {
            let held = lock.lock().expect("no panic");
            step.wait();
            step.wait();
            drop(held);
            (0..2).for_each(|_| session.flush().expect("flushed"));
        }
        step.wait();
        step.wait();
        let first = session.stop().expect("stopped");
        let (output, bytes) = kept(|| ());
        let later = configure(Session::builder().output_writer(output)).start().expect("another session");
        step.wait();
        (first, later, bytes)
    });
    let later = later.stop().expect("stopped");
    [(first, bytes.recv().expect("a trace")), (later, later_bytes.recv().expect("a trace"))]
}

#[test]
fn each_lost_scope_is_counted_once_though_room_comes_back_and_a_later_session_loses_none() {
    for (format, detail) in FORMATS.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let _turn = turn();
        let [(summary, trace), (later, later_trace)] = record_on_two_threads(|builder| {
            builder.format(format).thread_time(detail).source_locations(detail)
        });
        let attempted = 2 * (2 + ROUNDS * SCOPES);
        let lost = summary.lost.buffer_full;
        assert!(lost > attempted / 2, "{format:?}: {lost} lost");
        assert_eq!((summary.records / 2 + lost, summary.lost.total()), (attempted, lost), "{format:?}");
        let sql = [
            "select count(*), sum(dur < 0) from slice where category = 't'",
            "select count(*) from slice where name = 'last'",
            "select sum(a.int_value) from slice s join args a using (arg_set_id) where s.name = 'events lost'",
        ];
        let verdict = judge::load_bytes(&trace, &sql);
        assert_eq!(verdict.results[0].text(), format!("{}\t0", summary.records / 2), "{format:?}");
        assert_eq!(verdict.results[1].text(), "2", "{format:?}");
        if format == Format::Fxt {
            verdict.require_clean();
            assert_eq!(verdict.results[2].text(), lost.to_string());
        } else {
            assert_eq!(verdict.stat("traced_buf_trace_writer_packet_loss") as u64, lost);
        }
        assert_eq!((later.records, later.lost.total()), (4, 0), "{format:?}");
        let verdict = judge::load_bytes(&later_trace, &["select name, dur >= 0 from slice"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "again\t1\nagain\t1", "{format:?}");
    }
}
