//! Tries inputs on all processors.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time after which an input counts as endless.
const STALL: Duration = Duration::from_secs(30);
/// The number of inputs that a thread takes at once.
const BATCH: u64 = 64;

/// The result of some inputs.
pub(crate) trait Tally: Default + Send {
    fn add(&mut self, other: &Self);
}

/// Tries the inputs with these indices. Stops at the first failure, and returns its index and description.
///
/// `worker` makes the function of one thread, from the number of the thread. `name` is for messages.
pub(crate) fn run<T: Tally, W: FnMut(u64) -> Result<T, String>>(
    name: &str,
    indices: Range<u64>,
    worker: impl Fn(usize) -> W + Sync,
) -> Result<T, (u64, String)> {
    let (next, stop) = (AtomicU64::new(indices.start), AtomicBool::new(false));
    let (tally, failure) = (Mutex::new(T::default()), Mutex::new(None));
    let work = |number: usize| {
        let (mut one, mut own) = (worker(number), T::default());
        while !stop.load(Ordering::Relaxed) {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= indices.end {
                break;
            }
            for index in first..(first + BATCH).min(indices.end) {
                let checked = catch_unwind(AssertUnwindSafe(|| one(index)));
                match checked.unwrap_or_else(|_| Err("panicked".to_owned())) {
                    Ok(tally) => own.add(&tally),
                    Err(what) => {
                        stop.store(true, Ordering::Relaxed);
                        *failure.lock().unwrap() = Some((index, what));
                        return;
                    }
                }
            }
        }
        tally.lock().unwrap().add(&own);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        let mut seen = (0, Instant::now());
        while !workers.iter().all(|worker| worker.is_finished()) {
            thread::sleep(Duration::from_millis(10));
            let now = next.load(Ordering::Relaxed);
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > STALL {
                // A thread cannot be stopped from outside, so the process ends.
                let first = now.saturating_sub(BATCH * threads as u64);
                eprintln!("{name}: one of the inputs {first}..{now} does not end");
                std::process::exit(1);
            }
        }
    });
    match failure.into_inner().unwrap() {
        Some(failure) => Err(failure),
        None => Ok(tally.into_inner().unwrap()),
    }
}
