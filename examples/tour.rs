//! A tour of what a trace can say: a small job server in which every kind of event has its place.
//!
//! ```text
//! cargo run --release -p hairline-examples --example tour [-- trace.pftrace | trace.fxt]
//! ```
//!
//! | look for | made with |
//! |---|---|
//! | `job`, one row for all that overlap, below the process | [`trace_async!`], ended on another thread |
//! | arrows from `submit` to `run` to `collect` | [`Flow`] |
//! | the tracks `disks`, `disk 0`, `disk 1`, in this order | [`Track`] |
//! | `queued`, `written` in bytes, `cache` of each worker | [`trace_counter!`] |
//! | the log messages | [`trace_log!`] |
//! | names and arguments that are known only at run time | `name:`, `Scope::arg` |

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hairline::{
    AsyncScope, Error, Flow, Level, Ordering, Session, Track, Unit, scope, trace_async, trace_begin,
    trace_counter, trace_end, trace_instant, trace_log, trace_scope,
};

const JOBS: usize = 24;
const WORKERS: usize = 2;

/// What goes from the front to a worker and on to the end: with its interval and its arrows.
struct Job {
    number: usize,
    interval: AsyncScope,
    flow: Flow,
}

fn work_for(microseconds: u64) {
    thread::sleep(Duration::from_micros(microseconds));
}

fn submit(jobs: &Sender<Job>) {
    for number in 0..JOBS {
        let flow = Flow::new();
        trace_scope!("front", "submit", number, flow: &flow);
        let interval = trace_async!("jobs", "job", number);
        work_for(300);
        trace_counter!("jobs", "queued", number + 1, unit: "jobs");
        if jobs.send(Job { number, interval, flow }).is_err() {
            trace_log!(Level::Error, "front", "nobody takes job {number}");
        }
    }
}

/// One of two disks, each a track of its own that any thread writes to.
fn write(disk: &Track, bytes: usize) {
    trace_begin!("disk", "write", bytes, track: disk);
    work_for(400);
    trace_end!(disk, synced = true);
}

fn work(jobs: &Mutex<Receiver<Job>>, done: &Sender<Job>, disks: &[Track]) {
    let mut hits = 0;
    loop {
        let next = jobs.lock().map(|jobs| jobs.recv());
        let Ok(Ok(job)) = next else { return };
        // The name is made at run time; what is found out later goes on the end.
        let mut run = scope!("worker", "run", number = job.number, name: format!("run {}", job.number), flow: &job.flow);
        {
            let parse = trace_async!("jobs", "parse", track: &job.interval);
            work_for(200);
            drop(parse);
        }
        if job.number % 3 == 0 {
            hits += 1;
            trace_instant!("worker,cache", "hit", track: &job.interval);
        } else {
            let bytes = 4096 * (1 + job.number % 5);
            write(&disks[job.number % disks.len()], bytes);
            trace_counter!("disk", "written", bytes, unit: Unit::Bytes);
        }
        trace_counter!("cache", "cache", hits, unit: "hits", track: &Track::thread());
        if job.number == 13 {
            trace_log!(Level::Warn, "worker", "job {} took a second try", job.number);
        }
        run.arg("result", BTreeMap::from([("cached", job.number.is_multiple_of(3)), ("ok", true)]));
        drop(run);
        if done.send(job).is_err() {
            return;
        }
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("tour.pftrace"), PathBuf::from);
    let session = Session::builder().output(&path).source_locations(true).start()?;

    let all =
        Track::process().child("disks").ordering(Ordering::Explicit).description("One track for each disk");
    let disks = [all.child("disk 0").rank(0), all.child("disk 1").rank(1)];
    let (submitted, jobs) = channel();
    let (done, results) = channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));

    let workers: Vec<_> = (0..WORKERS)
        .map(|n| {
            let (jobs, done, disks) = (Arc::clone(&jobs), done.clone(), disks.clone());
            let named = thread::Builder::new().name(format!("worker {n}"));
            named.spawn(move || work(&jobs, &done, &disks)).expect("a thread")
        })
        .collect();
    drop(done);
    let collector = thread::Builder::new().name("collector".to_owned()).spawn(move || {
        for job in results {
            trace_scope!("front", "collect", number = job.number, end_flow: &job.flow);
            work_for(50);
            drop(job.interval); // begun by the main thread
        }
    });
    submit(&submitted);
    drop(submitted);
    workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    collector.expect("a thread").join().expect("the collector");

    let summary = session.stop()?;
    println!("{}: {} records, {} lost", path.display(), summary.records, summary.lost.total());
    println!("open it at https://ui.perfetto.dev");
    Ok(())
}
