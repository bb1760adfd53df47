//! A flight recorder that runs for long, looked at all the time: a few seconds here, ten minutes by
//! `ci/flight.sh`.
//!
//! ```text
//! thread 1..4:  life[ ................................................ open all the time
//!                 round n[ step  step  step ]  round n + 1[ ...        250,000 events a second each
//! snapshots:           ^          ^          ^                         every second: each is a whole trace
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hairline::{Overflow, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};

const THREADS: u64 = 4;
/// Events a second, of all threads. A round is a scope with 10 scopes in it: 22 events.
const PACE: u64 = 1_000_000;
const ROUND: u64 = 22;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Bytes of memory that this process has in use, without the ring, which is shared.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Rounds at a pace of a few milliseconds' worth each time.
fn work(thread: u64, stop: &AtomicBool) {
    trace_scope!("long", "life", thread);
    let (start, mut n) = (Instant::now(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let due = start.elapsed().as_nanos() as u64 * (PACE / THREADS / ROUND) / 1_000_000_000;
        while n < due {
            trace_scope!("long", "round", n);
            for step in 0..10 {
                trace_scope!("long", "step", step);
            }
            n += 1;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_snapshot_of_a_long_recording_is_whole_and_memory_stays_as_it_is() {
    let seconds = variable("FLIGHT_SECONDS", 4).max(4);
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("snapshot.{}", extension(format)));
        let builder = Session::builder().overflow(Overflow::Overwrite).buffer_size(8 << 20).format(format);
        let session = builder.start().unwrap();
        let stop = AtomicBool::new(false);
        let mut memory = Vec::new();
        thread::scope(|threads| {
            for n in 0..THREADS {
                let stop = &stop;
                threads.spawn(move || work(n, stop));
            }
            let start = Instant::now();
            for second in 1..=seconds {
                thread::sleep(
                    (start + Duration::from_secs(second)).saturating_duration_since(Instant::now()),
                );
                let summary = session.snapshot(&path).unwrap();
                let verdict = judge::load(
                    &path,
                    &[
                        "select count(*), count(distinct track_id), sum(dur = -1) from slice where name = 'life'",
                        // A window of 8 MiB holds some 200,000 events, and of each round all that came before
                        // its end.
                        "select count(*) > 50000 from slice",
                        "select count(*) from slice s left join slice p on s.parent_id = p.id where not ( \
                           s.name = 'life' and p.name is null or s.name = 'round' and p.name = 'life' or s.name = 'step' and p.name = 'round')",
                        "select count(*) from (select n - lag(n) over (partition by track_id order by ts) as step from ( \
                           select s.ts, s.track_id, a.int_value as n from slice s join args a using (arg_set_id) \
                           where s.name = 'round' and a.key in ('n', 'debug.n'))) where step != 1",
                        "select count(*) from slice where dur < 0 and name != 'life'",
                    ],
                );
                verdict.require_clean();
                let texts: Vec<String> = verdict.results.iter().map(|r| r.text()).collect();
                assert_eq!(texts[..4], ["4\t4\t4", "1", "0", "0"], "{format:?}, second {second}");
                assert!(
                    texts[4].parse::<u64>().unwrap() <= 2 * THREADS,
                    "{format:?}, second {second}: {} open",
                    texts[4]
                );
                assert_eq!(summary.lost.total(), 0);
                memory.push(own_memory());
            }
            stop.store(true, Ordering::Relaxed);
        });
        session.stop().unwrap();
        // The allocator keeps what the first snapshots needed.
        let (first, last) = (memory[2], memory[memory.len() - 1]);
        println!("{format:?}: {seconds} s, own memory {} KiB, then {} KiB", first >> 10, last >> 10);
        assert!(last < first + (1 << 20), "{format:?}: from {first} to {last}");
    }
}
