//! Threads that outnumber the chunks.

use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use hairline::{Overflow, Session, trace_instant, trace_scope};
use hairline_tests::crowd::{RECORDS, STEPS_AFTER, STEPS_BEFORE};
use hairline_tests::judge;
use hairline_tests::output::gated;
use hairline_tests::recording::{FORMATS, extension, turn};

const THREADS: u64 = 10_000;

/// Memory that a session may take beside the ring and the mappings of the threads' stacks, which have their
/// thread-local variables too, in KiB: 1.8 KiB a thread, for its chunk writer and what its sequence has
/// written.
const BUDGET: u64 = 18 << 10;

/// Threads, records, lost, KiB.
fn crowd(output: Option<&Path>) -> [u64; 4] {
    let run = Command::new(env!("CARGO_BIN_EXE_crowd"))
        .arg(THREADS.to_string())
        .args(output)
        .env_remove("HAIRLINE")
        .output()
        .expect("it starts");
    let said = String::from_utf8(run.stdout).expect("text");
    let numbers: Vec<u64> = said.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{said} {}", String::from_utf8_lossy(&run.stderr)))
}

#[test]
fn ten_thousand_threads_lose_nothing_and_take_little_memory() {
    let [_, _, _, without] = crowd(None);
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(format!("t.{}", extension(format)));
        let [threads, records, lost, memory] = crowd(Some(&path));
        assert!(threads >= 1000, "the system let it start {threads} threads only");
        assert_eq!((records, lost), (threads * RECORDS, 0), "{format:?}");
        assert!(memory <= without + BUDGET, "{format:?}: {memory} KiB, {without} without a session");
        let sql = "select name, count(*), count(distinct track_id), min(dur) >= 0 from slice group by name order by name";
        let verdict = judge::load(&path, &[sql]);
        verdict.require_clean();
        let steps = threads * (STEPS_BEFORE + STEPS_AFTER);
        let expected = format!("life\t{threads}\t{threads}\t1\nstep\t{steps}\t{threads}\t1");
        assert_eq!(verdict.results[0].text(), expected, "{format:?}");
    }
}

// sleeper  |named at run time
//          |  plain
//          |    with arguments at its end          chunk taken back; ring full; all three end
#[test]
fn slices_whose_thread_finds_no_chunk_any_more_end_all_the_same() {
    for format in FORMATS {
        let _turn = turn();
        let (output, gate) = gated();
        let session = Session::builder()
            .output_writer(output)
            .format(format)
            .buffer_size(64 << 10) // sixteen chunks
            .chunk_size(4 << 10)
            .start()
            .expect("a session");
        let (asleep, awake, all) = (Barrier::new(2), Barrier::new(2), Barrier::new(14));
        thread::scope(|threads| {
            threads.spawn(|| {
                trace_scope!("crowd", "named", name: "named at run time");
                trace_scope!("crowd", "plain");
                let mut last = hairline::scope!("crowd", "with arguments");
                asleep.wait();
                awake.wait();
                last.arg("late", 7);
            });
            asleep.wait();
            thread::scope(|others| {
                for _ in 0..13 {
                    others.spawn(|| {
                        trace_instant!("crowd", "here");
                        all.wait();
                        all.wait();
                    });
                }
                all.wait();
                for _ in 0..10 {
                    thread::sleep(Duration::from_millis(2)); // all are idle
                    session.flush().expect("no error");
                }
                all.wait();
            });
            gate.shut();
            (0..20_000).for_each(|_| drop(hairline::scope!("crowd", "flood")));
            awake.wait();
        });
        let bytes = gate.open();
        let summary = session.stop().expect("no error");
        assert!(summary.lost.buffer_full > 0, "{summary:?}");
        let file = tempfile::NamedTempFile::with_suffix(format!(".{}", extension(format))).expect("a file");
        std::fs::write(file.path(), bytes.recv().expect("a trace")).expect("written");
        let sql = [
            "select name, dur > 1e7, depth from slice where category = 'crowd' and name not in ('flood', 'here') order by depth",
            "select count(*) from slice where dur < 0",
        ];
        let verdict = judge::load(file.path(), &sql);
        let expected = "named at run time\t1\t0\nplain\t1\t1\nwith arguments\t1\t2";
        assert_eq!(verdict.results[0].text(), expected, "{format:?}");
        assert_eq!(verdict.results[1].single_i64(), 0, "{format:?}");
        assert_eq!(summary.records % 2, 13 % 2, "each slice has its begin and its end");
    }
}

// 16 threads hold a chunk each, which is all there are, and do nothing; then another one comes
#[test]
fn in_a_flight_recorder_idle_threads_give_their_chunks_to_a_busy_one() {
    for format in FORMATS {
        let _turn = turn();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(format!("t.{}", extension(format)));
        let builder = Session::builder().output(&path).overflow(Overflow::Overwrite);
        let session = builder.buffer_size(64 << 10).chunk_size(4 << 10).start().expect("a session");
        let all = Barrier::new(17);
        thread::scope(|threads| {
            for _ in 0..16 {
                threads.spawn(|| {
                    trace_instant!("crowd", "idle");
                    all.wait();
                    all.wait();
                });
            }
            all.wait();
            threads.spawn(|| {
                for _ in 0..200 {
                    trace_scope!("crowd", "busy");
                    thread::sleep(Duration::from_millis(2));
                }
                all.wait();
            });
        });
        let summary = session.stop().expect("no error");
        let verdict = judge::load(&path, &["select count(*) from slice where name = 'busy' and dur >= 0"]);
        assert!(verdict.results[0].single_i64() >= 10, "{format:?}: {summary:?}");
    }
}
