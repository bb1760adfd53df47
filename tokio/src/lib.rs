//! Records the tasks of a tokio runtime, and what they wait for, with [Hairline](hairline).
//!
//! ```
//! use hairline_tokio::{TraceRuntime, sync::Mutex};
//!
//! # fn main() -> std::io::Result<()> {
//! let runtime = tokio::runtime::Builder::new_multi_thread().traced().build()?;
//! runtime.block_on(async {
//!     let cache = std::sync::Arc::new(Mutex::named("cache", 0));
//!     let task = hairline_tokio::spawn(async move { *cache.lock().await += 1 });
//!     task.await
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! * [`spawn`], [`spawn_local`], [`spawn_blocking`] and [`task`] record a task: its life, its polls, who
//!   spawned and woke it, and how long it was in the queue.
//! * [`sync`] has the locks, semaphores, channels and notifications of tokio. It records the waits for them,
//!   with the holder of a lock.
//! * [`TraceRuntime::traced`] records the runtime: parked workers, queue depths, the number of tasks.
//!
//! In the repository, `docs/guide/async.md` has a table of all that is in the trace.
//!
//! A task has the category `task`, a wait the category `lock`, and the runtime the category `tokio`. For a
//! task with another category and name, take [`traced_task`](hairline::TraceFuture::traced_task):
//! `tokio::spawn(serve().traced_task("web", "request"))`.
//!
//! Tasks that are spawned in another way, for example by a library, are recorded only with
//! `--cfg tokio_unstable` (tokio 1.46.1 or later): then [`TraceRuntime::traced`] records all tasks of the
//! runtime.
//!
//! While nothing is recorded, a spawn, a poll and a lock cost some loads and branches more than those of
//! tokio. Without the feature `enable`, all of it is tokio alone.

#[cfg(all(tokio_unstable, feature = "enable"))]
mod hooks;
mod runtime;
pub mod sync;

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use hairline::TracedTask;
use tokio::task::JoinHandle;

pub use crate::runtime::TraceRuntime;

/// As [`tokio::spawn`], for a task that is recorded.
///
/// # Panics
/// If it is called outside of a runtime, as `tokio::spawn` does.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let task = task(future);
    #[cfg(all(tokio_unstable, feature = "enable"))]
    let _of_this_spawn = hooks::Spawning::new(&task);
    let spawned = tokio::spawn(task);
    runtime::sample(runtime::When::IfDue);
    spawned
}

/// As [`tokio::task::spawn_local`], for a task that is recorded.
///
/// # Panics
/// If it is called outside of a `LocalSet` or `LocalRuntime`, as `tokio::task::spawn_local` does.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    let task = task(future);
    #[cfg(all(tokio_unstable, feature = "enable"))]
    let _of_this_spawn = hooks::Spawning::new(&task);
    tokio::task::spawn_local(task)
}

/// As [`tokio::task::spawn_blocking`], for a closure that is recorded like a task with one poll: `queued` is
/// the time until a thread of the blocking pool calls it. Its life has the argument `kind` with the value
/// `blocking`.
///
/// # Panics
/// If it is called outside of a runtime, as `tokio::task::spawn_blocking` does.
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let task = TracedTask::begin_blocking(async { f() }, Location::caller());
    #[cfg(all(tokio_unstable, feature = "enable"))]
    drop(hooks::Spawning::new(&task)); // the runtime has no hook for it
    tokio::task::spawn_blocking(move || {
        let mut task = pin!(task);
        loop {
            // It never waits, so its first poll is its last one.
            if let Poll::Ready(out) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return out;
            }
        }
    })
}

/// Records a future that becomes a task by another function than those of this crate: a `JoinSet`, a
/// `Handle`, a `LocalSet`. Its name is the place of this call.
///
/// ```
/// # async fn serve(_: u32) {}
/// # let _ = async {
/// let mut tasks = tokio::task::JoinSet::new();
/// for n in 0..4 {
///     tasks.spawn(hairline_tokio::task(serve(n)));
/// }
/// tasks.join_all().await;
/// # };
/// ```
#[track_caller]
pub fn task<F: Future>(future: F) -> TracedTask<F> {
    TracedTask::begin(future, "task", None, Location::caller())
}
