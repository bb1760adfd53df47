//! A program that Perfetto's tracing service records: it registers itself, says "ready", and records until its
//! input ends.
//!
//! ```text
//! producer THREADS          so many threads, each with slices, instants and counters, without a pause
//! producer THREADS calm     the same, with a pause of 1 ms after each round
//! ```
//!
//! Each line of its input is answered with the number of rounds of each thread so far.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hairline::{Session, trace_counter, trace_instant, trace_scope};

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(1_usize);
    let is_calm = arguments.get(1).is_some_and(|word| word == "calm");
    // Without `HAIRLINE`.
    let _registered = std::env::var_os("HAIRLINE")
        .is_none()
        .then(|| Session::builder().output_traced().expect("registered"));
    trace_instant!("main", "begin");
    let rounds: Vec<_> = (0..threads).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let workers: Vec<_> = rounds
        .iter()
        .enumerate()
        .map(|(n, rounds)| {
            let rounds = Arc::clone(rounds);
            let body = move || work(n as u64, &rounds, is_calm);
            std::thread::Builder::new().name(format!("worker-{n}")).spawn(body).expect("a thread")
        })
        .collect();
    println!("ready");
    std::io::stdout().flush().expect("said");
    for _ in std::io::stdin().lock().lines() {
        let rounds: Vec<_> = rounds.iter().map(|of| of.load(Ordering::Relaxed).to_string()).collect();
        println!("{}", rounds.join(" "));
    }
    IS_OVER.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("it ends"));
}

fn work(thread: u64, rounds: &AtomicU64, is_calm: bool) {
    while !IS_OVER.load(Ordering::Relaxed) {
        let round = rounds.load(Ordering::Relaxed);
        {
            trace_scope!("net", "request", thread = thread, round = round);
            trace_scope!("db", "query");
            trace_instant!("net", "retry", text = "some text that is not short");
        }
        trace_counter!("load", "depth", round);
        rounds.store(round + 1, Ordering::Relaxed);
        if is_calm {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
