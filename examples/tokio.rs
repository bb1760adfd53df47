//! A tokio runtime from the inside: its worker threads, its tasks and its queue.
//!
//! ```text
//! HAIRLINE=tokio.pftrace cargo run --release -p hairline-examples --features tokio --example tokio
//! ```
//!
//! Requests come in bursts. In the middle, two tasks sleep without `await`, one on each worker thread: until
//! they return, nothing else is polled, and the queue grows.
//!
//! | in the trace | from |
//! |---|---|
//! | slice `parked` on a worker thread | the hooks for parked and unparked threads |
//! | instant `spawn`, the life of a task, a slice for each poll | `traced`, around each spawned future |
//! | counters `queue depth`, `alive tasks` | the runtime's metrics, read every 500 us |
//! | slice `poll` with the task's id, for tasks of libraries too | hooks for tasks, which need `RUSTFLAGS="--cfg tokio_unstable"` |
//!
//! A task is idle where its life has no poll: it waits, or it is in the queue.

use std::cell::Cell;
use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hairline::{Scope, TraceFuture, scope, trace_counter, trace_instant};
use tokio::runtime::{Builder, Handle};
use tokio::task::{JoinHandle, JoinSet};

const WORKERS: usize = 2;
const BURSTS: u32 = 6;
const REQUESTS: u32 = 50;
/// The burst in which tasks block their workers.
const BLOCKED: u32 = 3;

thread_local! {
    /// The slice of a worker thread that is parked.
    static PARKED: Cell<Option<Scope>> = const { Cell::new(None) };
}

/// The tasks that were spawned.
static TASKS: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Box<dyn Error>> {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(WORKERS)
        .thread_name("worker")
        .enable_time()
        .on_thread_start(|| trace_instant!("tokio", "thread starts"))
        .on_thread_stop(|| trace_instant!("tokio", "thread stops"))
        .on_thread_park(|| PARKED.set(Some(scope!("tokio", "parked"))))
        .on_thread_unpark(|| drop(PARKED.take()));
    #[cfg(tokio_unstable)]
    unstable::hook(&mut builder);
    let runtime = builder.build()?;

    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        // A thread of its own: a task would wait for a worker, just when the queue is of interest.
        threads.spawn(|| sample(runtime.handle(), &stop));
        for burst in 0..BURSTS {
            runtime.block_on(serve(burst));
        }
        stop.store(true, Relaxed);
    });
    drop(runtime);
    println!("tasks: {}", TASKS.load(Relaxed));
    Ok(())
}

/// Records the numbers that the runtime knows.
fn sample(runtime: &Handle, stop: &AtomicBool) {
    let metrics = runtime.metrics();
    while !stop.load(Relaxed) {
        trace_counter!("tokio", "queue depth", metrics.global_queue_depth(), unit: "tasks");
        trace_counter!("tokio", "alive tasks", metrics.num_alive_tasks(), unit: "tasks");
        thread::sleep(Duration::from_micros(500));
    }
}

/// Spawns a task and records it: the spawn, the life, the polls.
fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    TASKS.fetch_add(1, Relaxed);
    trace_instant!("tokio", "spawn", task = name);
    tokio::spawn(future.traced("task", name))
}

async fn serve(burst: u32) {
    let mut requests = JoinSet::new();
    if burst == BLOCKED {
        for _ in 0..WORKERS {
            requests.spawn(spawn("blocks", async { thread::sleep(Duration::from_millis(30)) }));
        }
        // This thread is no worker: it goes on.
        thread::sleep(Duration::from_millis(5));
    }
    for n in 0..REQUESTS {
        requests.spawn(spawn("request", request(n)));
    }
    while requests.join_next().await.is_some() {}
}

async fn request(n: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(1 + n % 3))).await;
    let sum: u64 = (0..u64::from(n) * 1000).map(std::hint::black_box).sum();
    std::hint::black_box(sum);
}

/// What tokio offers with `--cfg tokio_unstable` alone.
#[cfg(tokio_unstable)]
mod unstable {
    use std::cell::Cell;

    use hairline::{Scope, scope, trace_instant};
    use tokio::runtime::Builder;

    thread_local! {
        static POLL: Cell<Option<Scope>> = const { Cell::new(None) };
    }

    /// Records every task, spawned by whom it may be.
    pub(super) fn hook(builder: &mut Builder) {
        builder
            .on_task_spawn(|task| trace_instant!("tokio", "task spawned", task = %task.id()))
            .on_before_task_poll(|task| POLL.set(Some(scope!("tokio", "poll", task = %task.id()))))
            .on_after_task_poll(|_| drop(POLL.take()))
            .on_task_terminate(|task| trace_instant!("tokio", "task ended", task = %task.id()));
    }
}
