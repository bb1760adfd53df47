//! `Overflow::Block`: an event waits for room in the ring, never longer than it was told, and the program
//! goes on.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hairline::{Overflow, Session, trace_instant, trace_scope};
use hairline_tests::judge;
use hairline_tests::output::{gated, slow};
use hairline_tests::recording::{FORMATS, extension, record_with, turn};

use crate::program::run;

const THREADS: u64 = 4;

/// Scopes that are whole, by thread: how many threads, the fewest of one; those that come out of their order.
const STEPS: [&str; 2] = [
    "select count(*), min(n), max(n) from (select count(*) as n from slice s where s.name = 'step' and dur >= 0 group by track_id)",
    "select count(*) from (select a.int_value as n, lag(a.int_value) over (partition by s.track_id order by s.id) as before \
     from slice s join args a using (arg_set_id) where s.name = 'step' and a.key in ('n', 'debug.n')) \
     where n != ifnull(before + 1, 0)",
];

fn on_threads(work: impl Fn() + Sync) {
    thread::scope(|threads| (0..THREADS).for_each(|_| drop(threads.spawn(&work))));
}

#[test]
fn threads_flat_out_lose_nothing() {
    const SCOPES: u64 = 250_000;
    for format in FORMATS {
        let configure = |b: hairline::SessionBuilder| {
            b.buffer_size(1 << 20).overflow(Overflow::Block(Duration::from_secs(60)))
        };
        let trace = record_with(format, configure, |_| {
            on_threads(|| {
                for n in 0..SCOPES {
                    trace_scope!("block", "step", n);
                }
            });
        });
        assert_eq!(
            (trace.summary.lost.total(), trace.summary.records),
            (0, 2 * THREADS * SCOPES),
            "{format:?}"
        );
        let verdict = trace.ask(&STEPS);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), format!("{THREADS}\t{SCOPES}\t{SCOPES}"), "{format:?}");
        assert_eq!(verdict.results[1].single_i64(), 0, "{format:?}");
    }
}

#[test]
fn an_output_slower_than_the_threads_slows_them_down_with_their_scopes_open() {
    for format in FORMATS {
        let _turn = turn();
        let (output, trace) = slow(Duration::from_millis(2));
        let builder = Session::builder().output_writer(output).format(format).chunk_size(4096);
        let builder = builder.buffer_size(64 << 10).overflow(Overflow::Block(Duration::from_secs(60)));
        let session = builder.start().expect("a session");
        on_threads(|| {
            trace_scope!("block", "life");
            for n in 0..5000 {
                let mut outer = hairline::scope!("block", "outer");
                trace_scope!("block", "step", n);
                outer.arg("text", "known at the end");
            }
        });
        let summary = session.stop().expect("stopped");
        assert_eq!((summary.lost.total(), summary.lost.arguments), (0, 0), "{format:?}");
        assert_eq!(summary.records, THREADS * (2 + 5000 * 4), "{format:?}");
        let arguments = "select count(*) from slice s join args a using (arg_set_id) where s.name = 'outer'";
        let verdict = judge::load_bytes(&trace.recv().expect("a trace"), &[STEPS[0], arguments]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "4\t5000\t5000", "{format:?}");
        assert_eq!(verdict.results[1].single_i64(), 20_000, "{format:?}");
    }
}

#[test]
fn an_output_that_is_stuck_is_waited_for_once_and_all_that_is_lost_is_counted() {
    const PATIENCE: Duration = Duration::from_millis(300);
    const SCOPES: u64 = 20_000;
    for format in FORMATS {
        let _turn = turn();
        let (output, gate) = gated();
        let builder = Session::builder().output_writer(output).format(format).chunk_size(4096);
        let session =
            builder.buffer_size(64 << 10).overflow(Overflow::Block(PATIENCE)).start().expect("a session");
        gate.shut();
        trace_instant!("block", "for the output to be stuck with");
        let flushing = thread::scope(|threads| {
            let flushing = threads.spawn(|| session.flush());
            gate.wait();
            let recorded = AtomicU64::new(0);
            let began = Instant::now();
            on_threads(|| {
                for _ in 0..SCOPES {
                    let scope = hairline::scope!("block", "scope");
                    recorded.fetch_add(u64::from(scope.is_recorded()), SeqCst);
                }
            });
            let took = began.elapsed();
            assert!(took >= PATIENCE && took < PATIENCE * 10, "{format:?}: {took:?}");
            let began = Instant::now();
            thread::scope(|s| drop(s.spawn(|| trace_instant!("block", "of a late thread"))));
            assert!(began.elapsed() < PATIENCE, "nobody waits again");
            let bytes = gate.open();
            (flushing.join().expect("no panic"), recorded.into_inner(), bytes)
        });
        let (flushed, recorded, bytes) = flushing;
        flushed.expect("flushed");
        {
            trace_scope!("block", "scope"); // there is room again
        }
        let summary = session.stop().expect("stopped");
        assert_eq!(summary.lost.buffer_full, THREADS * SCOPES - recorded + 1, "{format:?}");
        let verdict = judge::load_bytes(
            &bytes.recv().expect("a trace"),
            &["select count(*), min(dur) >= 0 from slice where name = 'scope'"],
        );
        assert_eq!(verdict.results[0].text(), format!("{}\t1", recorded + 1), "{format:?}");
    }
}

#[test]
fn stop_ends_all_waits() {
    let _turn = turn();
    let (output, gate) = gated();
    let builder = Session::builder().output_writer(output).chunk_size(4096).buffer_size(64 << 10);
    let session = builder.overflow(Overflow::Block(Duration::from_secs(600))).start().expect("a session");
    gate.shut();
    let (barrier, done) = (Arc::new(Barrier::new(5)), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (barrier, done) = (Arc::clone(&barrier), Arc::clone(&done));
            thread::spawn(move || {
                trace_scope!("block", "life");
                barrier.wait();
                while !done.load(SeqCst) {
                    trace_scope!("block", "scope");
                }
            })
        })
        .collect();
    barrier.wait();
    gate.wait();
    thread::sleep(Duration::from_millis(100)); // they fill the ring and wait
    done.store(true, SeqCst);
    let stopping = thread::spawn(move || session.stop());
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
    let bytes = gate.open();
    let summary = stopping.join().expect("no panic").expect("stopped");
    assert!(summary.lost.buffer_full <= THREADS, "{:?}", summary.lost);
    judge::load_bytes(&bytes.recv().expect("a trace"), &[]);
}

/// Records far more than the ring holds, from within the output, then fails.
struct Chatty(u32);

impl Write for Chatty {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += 1;
        if self.0 > 1 {
            (0..20_000).for_each(|n| trace_instant!("block", "from the output", n));
        }
        if self.0 > 3 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn neither_the_output_itself_waits_nor_anybody_after_it_has_failed() {
    let _turn = turn();
    let builder = Session::builder().output_writer(Chatty(0)).chunk_size(4096).buffer_size(64 << 10);
    let session = builder.overflow(Overflow::Block(Duration::from_secs(600))).start().expect("a session");
    on_threads(|| (0..50_000).for_each(|n| trace_instant!("block", "into the void", n)));
    let _ = session.flush();
    on_threads(|| (0..50_000).for_each(|n| trace_instant!("block", "into the void", n)));
    assert!(session.stop().is_err());
}

#[test]
fn the_environment_may_ask_for_it() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let variables =
            [("HAIRLINE", &*trace), ("HAIRLINE_OVERFLOW", "block:20s"), ("HAIRLINE_BUFFER", "64K")];
        let run = run(&["much"], &variables);
        assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 0), "{:?}", run.output);
        let verdict = judge::load(run.path(&trace), &STEPS);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "1\t100000\t100000");
        let wrong =
            crate::program::run(&["return"], &[("HAIRLINE", &trace), ("HAIRLINE_OVERFLOW", "block:soon")]);
        assert_eq!((wrong.said().len(), wrong.files().len()), (1, 0), "{:?}", wrong.said());
    }
}
