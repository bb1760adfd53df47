//! When the ring is full: whole scopes are left out, and each is counted.

use std::thread;
use std::time::Duration;

use hairline::{Format, Session, Summary, trace_counter, trace_instant, trace_scope};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::output::slow;
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
