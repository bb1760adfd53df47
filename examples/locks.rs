//! A cache behind a lock, four threads that use it, and a journal that holds the lock while it writes to the
//! disk: the waits for the lock, who has it, and an arrow from each release to the end of a wait.
//!
//! ```text
//! cargo run --release -p hairline-examples --features locks --example locks
//! ```
//!
//! It writes `locks.pftrace`. `hairline explain locks.pftrace` says what the slow requests waited for.

use std::collections::HashMap;
use std::io::Write;
use std::thread;
use std::time::Duration;

use hairline::sync::{Mutex, RwLock};
use hairline::{Session, trace_scope};

static CACHE: Mutex<Vec<u64>> = Mutex::named("cache", Vec::new());

fn request(id: u64, routes: &RwLock<HashMap<u64, &'static str>>) {
    trace_scope!("web", "request", id);
    {
        trace_scope!("web", "route");
        let routes = routes.read().unwrap();
        std::hint::black_box(routes.get(&(id % 3)));
    }
    {
        trace_scope!("web", "look up");
        let mut cache = CACHE.lock().unwrap();
        if !cache.contains(&id) {
            cache.push(id);
        }
        spin(Duration::from_micros(20));
    }
    spin(Duration::from_micros(100));
}

/// Writes the cache to a file, and keeps the lock until the disk has it.
fn write_journal() -> std::io::Result<()> {
    trace_scope!("journal", "write");
    let mut file = std::fs::File::create(std::env::temp_dir().join("hairline-locks.journal"))?;
    let cache = CACHE.lock().unwrap();
    for id in &*cache {
        writeln!(file, "{id}")?;
    }
    file.sync_all()?;
    thread::sleep(Duration::from_millis(3)); // a slow disk
    Ok(())
}

fn spin(time: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::builder().output("locks.pftrace").start()?;
    let routes = RwLock::named("routes", HashMap::from([(0, "/"), (1, "/users"), (2, "/orders")]));
    thread::scope(|scope| {
        for worker in 0..4 {
            let (routes, name) = (&routes, format!("worker {worker}"));
            let serve = move || {
                for n in 0..50 {
                    request(n * 4 + worker, routes);
                    thread::sleep(Duration::from_micros(500));
                }
            };
            thread::Builder::new().name(name).spawn_scoped(scope, serve).expect("a thread");
        }
        let journal = || -> std::io::Result<()> {
            for _ in 0..4 {
                thread::sleep(Duration::from_millis(8));
                write_journal()?;
            }
            Ok(())
        };
        let journal = thread::Builder::new().name("journal".to_owned()).spawn_scoped(scope, journal);
        journal.expect("a thread").join().expect("no panic")
    })?;
    let summary = session.stop()?;
    println!("locks.pftrace: {} records, {} lost", summary.records, summary.lost.total());
    Ok(())
}
