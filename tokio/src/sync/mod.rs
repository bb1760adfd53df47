//! The locks, semaphores, channels and notifications of [`tokio::sync`], with the waits for them in the
//! trace.
//!
//! A program changes its `use`: `tokio::sync::Mutex` becomes `hairline_tokio::sync::Mutex`. What is not here
//! is that of tokio, and so is `send_timeout` of a sender, whose wait is not recorded. `Semaphore::const_new`
//! and the functions `map` of the guards are missing.
//!
//! ```
//! use hairline_tokio::sync::{Mutex, Semaphore, mpsc};
//!
//! # async fn work() {
//! let cache = Mutex::named("cache", 0); // else the name is this place in the source
//! *cache.lock().await += 1;
//! let connections = Semaphore::named("connections", 10);
//! let _permit = connections.acquire().await;
//! let (jobs, mut queue) = mpsc::channel_named("jobs", 64);
//! jobs.send(7).await.unwrap();
//! # queue.recv().await;
//! # }
//! ```
//!
//! What can continue at once makes no event and reads no clock. A wait is an interval `wait: NAME`, below the
//! life of the future that waits, from the first poll that cannot continue to the end of the wait, or to the
//! drop of the future. Its arguments:
//!
//! | argument | of the waits for | meaning |
//! |---|---|---|
//! | `at` | all | the place of the call that waits |
//! | `kind` | all | `lock`, `semaphore`, `channel` (its receiver must make room) or `notification` |
//! | `held_by_task` | locks | the number of the task that has the lock alone when the wait begins, if that task is recorded |
//! | `held_by` | locks | the id of the thread that has it, if it was taken by a call that blocks, outside of a task |
//! | `held_at` | locks | the place where it was taken |
//! | `wanted` | semaphores, channels | the number of permits, if that is not 1 |
//!
//! The readers of an [`RwLock`] and those who have permits of a [`Semaphore`] are not known. Functions that
//! block a thread make no event.
//!
//! The names `named`, `channel_named` and `const_named` are those of this module. All other functions are
//! those of tokio: fairness, cancellation and cooperation are tokio's. A wait because the task has used up
//! its [budget](tokio::task::coop) is not recorded.

mod guards;
pub mod mpsc;
mod mutex;
mod notify;
mod rwlock;
mod semaphore;

pub use tokio::sync::{
    AcquireError, Barrier, BarrierWaitResult, OnceCell, OwnedSemaphorePermit, SemaphorePermit, SetError,
    TryAcquireError, TryLockError, broadcast, oneshot, watch,
};

pub use mutex::{Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Notified, Notify};
pub use rwlock::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::Semaphore;

/// Whether a future may find that it cannot continue because of a lock, not because its task must yield.
fn can_wait() -> bool {
    tokio::task::coop::has_budget_remaining()
}
