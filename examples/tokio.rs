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
//! | slice `parked` on a worker thread, counters `queue depth` and `alive tasks` | `traced` of the runtime's builder |
//! | instant `spawn`, the life of a task, a slice for each poll, a wake with an arrow to the poll | `traced_task`, `spawn` |
//! | interval `queued`, below the life: the task could run, and no worker was free | the same |
//! | interval `wait: connections` below a request | `sync::Semaphore` |

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hairline::TraceFuture;
use hairline_tokio::{TraceRuntime, sync::Semaphore};
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, JoinSet};

const WORKERS: usize = 2;
const BURSTS: u32 = 6;
const REQUESTS: u32 = 50;
/// The burst in which tasks block their workers.
const BLOCKED: u32 = 3;
/// The requests that are answered at the same time.
const CONNECTIONS: usize = 20;

/// The workers that have begun to block.
static BLOCKING: AtomicUsize = AtomicUsize::new(0);

/// The tasks that were spawned.
static TASKS: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("worker")
        .enable_time()
        .traced()
        .build()?;
    let connections = Arc::new(Semaphore::named("connections", CONNECTIONS));
    for burst in 0..BURSTS {
        runtime.block_on(serve(burst, &connections));
    }
    drop(runtime);
    println!("tasks: {}", TASKS.load(Relaxed));
    Ok(())
}

/// Spawns a task with a name.
fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    TASKS.fetch_add(1, Relaxed);
    tokio::spawn(future.traced_task("web", name))
}

async fn serve(burst: u32, connections: &Arc<Semaphore>) {
    let mut requests = JoinSet::new();
    if burst == BLOCKED {
        for _ in 0..WORKERS {
            requests.spawn(spawn("blocks", async {
                BLOCKING.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_millis(30));
            }));
        }
        // This thread is no worker: it goes on once all of them are blocked.
        while BLOCKING.load(Relaxed) < WORKERS {
            thread::yield_now();
        }
    }
    for n in 0..REQUESTS {
        let connections = Arc::clone(connections);
        requests.spawn(spawn("request", request(n, connections)));
    }
    TASKS.fetch_add(1, Relaxed);
    let counted = hairline_tokio::spawn(async {}); // the counters are read here
    while requests.join_next().await.is_some() {}
    let _ = counted.await;
}

async fn request(n: u32, connections: Arc<Semaphore>) {
    let _connection = connections.acquire().await;
    tokio::time::sleep(Duration::from_millis(u64::from(1 + n % 3))).await;
    let sum: u64 = (0..u64::from(n) * 1000).map(std::hint::black_box).sum();
    std::hint::black_box(sum);
}
