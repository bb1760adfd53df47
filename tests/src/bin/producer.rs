//! A program that Perfetto's tracing service records. It says "ready", obeys lines of its input, and ends
//! with it.
//!
//! ```text
//! producer THREADS          so many threads, each with slices, instants and counters, without a pause
//! producer THREADS calm     the same, with a pause of 1 ms after each round
//! producer forks            a forked child with one calm thread
//! producer file PATH        records the vocabulary to a file instead
//!
//! rounds        answered with the number of rounds of each thread so far
//! vocabulary    records events of each kind once, and answers
//! session       starts a session of its own and ends it, and says how that went
//! sessions      the same again and again for a second
//! ```
//!
//! It registers itself, unless `HAIRLINE` does.

#![allow(unsafe_code)] // fork

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::{
    Flow, Level, MemoryOutput, Session, Track, scope, trace_async, trace_begin, trace_counter, trace_end,
    trace_instant, trace_log, trace_scope,
};
use hairline_tests::children;

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("", String::as_str);
    if let ("file", Some(path)) = (mode, arguments.get(1)) {
        let session = Session::builder().output(path).start().expect("a session");
        vocabulary();
        drop(session.stop().expect("whole"));
        return;
    }
    let registers = std::env::var_os("HAIRLINE").is_none();
    let _registered = registers.then(|| Session::builder().output_traced().expect("registered"));
    trace_instant!("main", "begin");
    if mode == "forks" {
        // SAFETY: the child records and ends, and this process has one thread of its own.
        if unsafe { children::fork() } == 0 {
            trace_instant!("main", "begin");
            return work(0, &AtomicU64::new(0), true);
        }
    }
    let threads = mode.parse().unwrap_or(0);
    let is_calm = arguments.get(1).is_some_and(|word| word == "calm");
    let rounds: Vec<_> = (0..threads).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let start = |(n, rounds): (u64, &Arc<AtomicU64>)| {
        let rounds = Arc::clone(rounds);
        let body = move || work(n, &rounds, is_calm);
        std::thread::Builder::new().name(format!("worker-{n}")).spawn(body).expect("a thread")
    };
    let workers: Vec<_> = (0..).zip(&rounds).map(start).collect();
    say("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match &*line {
            "vocabulary" => {
                vocabulary();
                say("done");
            }
            "session" => say(&own_session()),
            "sessions" => {
                let until = Instant::now() + Duration::from_secs(1);
                let mut outcomes = Vec::new();
                while Instant::now() < until {
                    outcomes.push(own_session());
                    std::thread::sleep(Duration::from_millis(1));
                }
                outcomes.sort();
                outcomes.dedup();
                say(&outcomes.join(", "));
            }
            _ => {
                let rounds: Vec<_> = rounds.iter().map(|of| of.load(Ordering::Relaxed).to_string()).collect();
                say(&rounds.join(" "));
            }
        }
    }
    IS_OVER.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("it ends"));
}

fn own_session() -> String {
    let session = Session::builder().output_memory(&MemoryOutput::new()).start();
    session.map_or_else(|e| e.to_string(), |session| format!("{:?}", session.stop().is_ok()))
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("said");
}

fn work(thread: u64, rounds: &AtomicU64, is_calm: bool) {
    // A child of `forks` ends with its parent.
    let parent = std::os::unix::process::parent_id();
    while !IS_OVER.load(Ordering::Relaxed) && std::os::unix::process::parent_id() == parent {
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

/// Events of each kind, from two threads.
fn vocabulary() {
    let flow = Flow::new();
    {
        trace_scope!("net", "request", bytes = 7_u64, name = "héron", ratio = 0.5, flow: &flow);
        trace_instant!("net", "text", long = "x".repeat(9_000));
        trace_scope!("db", "query", rows = -3);
    }
    let child = std::thread::Builder::new().name("second".to_owned()).spawn(move || {
        let mut late = scope!("net", "late", flow: &flow);
        late.arg("result", "ok");
        drop(late);
        trace_log!(Level::Warn, "log", "the disk is {} % full", 97);
    });
    child.expect("a thread").join().expect("it ends");
    trace_counter!("load", "queue", 5);
    trace_counter!("load", "memory", 1.5, unit: "MiB");
    let disk = Track::new("disk");
    trace_begin!("disk", "write", bytes = 4096, track: &disk);
    trace_instant!("disk", "sync", track: &disk);
    trace_end!(&disk, synced = true);
    let life = trace_async!("jobs", "job", number = 1);
    drop(life);
    for n in 0..200 {
        trace_instant!("many", "numbered", n, name: format!("name {n}"));
    }
}
