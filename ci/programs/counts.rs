//! What the programs with tasks count and measure themselves, to be compared with the trace.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

/// The tasks of one kind that are over: how many of them had so many polls.
pub struct Polls(Mutex<BTreeMap<u64, u64>>);

impl Polls {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

/// Prints `POLLSxTASKS` for each number of polls.
impl fmt::Display for Polls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().expect("nobody panics with it");
        counts.iter().try_for_each(|(polls, tasks)| write!(f, " {polls}x{tasks}"))
    }
}

/// Counts the polls of one task.
pub struct Counted<F> {
    future: Pin<Box<F>>,
    polls: u64,
    kind: &'static Polls,
}

impl<F> Counted<F> {
    pub fn new(kind: &'static Polls, future: F) -> Self {
        Self { future: Box::pin(future), polls: 0, kind }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls += 1;
        self.future.as_mut().poll(context)
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        *self.kind.0.lock().expect("nobody panics with it").entry(self.polls).or_default() += 1;
    }
}

/// The waits for one lock, semaphore or channel: their number and their time. A wait of the trace begins
/// inside of the first poll that cannot continue, and ends inside of the last one.
pub struct Waits {
    count: AtomicU64,
    /// From the end of the first poll to the begin of the last one, in ns.
    least: AtomicU64,
    /// From the begin of the first poll to the end of the last one, in ns.
    most: AtomicU64,
}

impl Waits {
    pub const fn new() -> Self {
        Self { count: AtomicU64::new(0), least: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Measures a future that waits for it, and for nothing else.
    pub async fn measure<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut begun: Option<(Instant, Instant)> = None;
        poll_fn(|context| {
            let before = Instant::now();
            let outcome = future.as_mut().poll(context);
            match (&outcome, begun) {
                (Poll::Pending, None) => begun = Some((before, Instant::now())),
                (Poll::Ready(_), Some((first, waits))) => {
                    self.count.fetch_add(1, Relaxed);
                    self.least.fetch_add((before - waits).as_nanos() as u64, Relaxed);
                    self.most.fetch_add(first.elapsed().as_nanos() as u64, Relaxed);
                }
                _ => {}
            }
            outcome
        })
        .await
    }
}

/// Prints the number of waits, and the least and the most of their time in ns.
impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [count, least, most] = [&self.count, &self.least, &self.most].map(|n| n.load(Relaxed));
        write!(f, " {count} {least} {most}")
    }
}
