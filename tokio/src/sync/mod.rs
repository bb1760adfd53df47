//! The locks, semaphores, channels and notifications of [`tokio::sync`], with the waits for them in the
//! trace.
//!
//! A program changes its `use`: `tokio::sync::Mutex` becomes `hairline_tokio::sync::Mutex`. What is not here
//! is that of tokio, and so is `send_timeout` of a sender, whose wait is not recorded.
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
//! What can continue at once makes no event and reads no clock, except for the [depth of a channel](mpsc). A
//! wait is an interval `wait: NAME`, below the life of the future, or of the span of `tracing`, that waits.
//! It lasts from the first poll that cannot continue to the end of the wait, or to the drop of the future.
//! Its arguments:
//!
//! | argument | of the waits for | meaning |
//! |---|---|---|
//! | `at` | all | the place of the call that waits |
//! | `kind` | all | `lock`, `semaphore`, `channel` (its receiver must make room) or `notification` |
//! | `held_by_task` | locks | the number of the task that took the lock, and has it alone when the wait begins, if that task is recorded |
//! | `held_by` | locks | the id of the thread that has it, if it was taken by a call that blocks, outside of a task |
//! | `held_at` | locks | the place where it was taken |
//! | `wanted` | semaphores, channels | the number of permits, if that is not 1 |
//! | `lock` | locks | the address of the lock: several may have one name |
//!
//! While a wait for a lock lasts, each release of that lock is an instant `release: NAME` on its thread, with
//! the place where it was taken (`at`), the holder (`held_by_task` or `held_by`), `lock`, `shared` if it is
//! that of a reader, and `released_by_task` if another task has the guard by then.
//!
//! The begin of a wait does not name the readers of an [`RwLock`]. Those who have permits of a [`Semaphore`]
//! are not known. Functions that block a thread make no event.
//!
//! Fairness, cancellation and cooperation are tokio's: a task that has used up its
//! [budget](tokio::task::coop) yields where it does with tokio, and that is no wait.
//!
//! The names `named`, `channel_named` and `const_named` are those of this module. Missing are
//! `Semaphore::const_new`, the functions that map or return the lock of a guard, and those of a semaphore
//! that block and return an owned permit. The guards that own their lock need values without borrows. The
//! senders that an `OwnedPermit` of a channel returns are those of tokio.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hairline::__tasks::{Awaited, Waiting};
use tokio::task::coop::{self, Unconstrained};

mod common;
mod depth;
pub mod mpsc;
mod mutex;
mod notify;
mod rwlock;
mod semaphore;

pub use tokio::sync::{
    AcquireError, Barrier, BarrierWaitResult, OnceCell, OwnedSemaphorePermit, SemaphorePermit, SetError,
    SetOnce, SetOnceError, TryAcquireError, TryLockError, broadcast, oneshot, watch,
};

pub use mutex::{Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Notified, Notify};
pub use rwlock::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::Semaphore;

/// Takes permits by a future of tokio, and records its wait. `is_taken`: whether it got them.
fn acquire<'a, F: Future>(
    awaited: &'a Awaited,
    future: F,
    (place, wanted): (&'static Location<'static>, Option<u32>),
    is_taken: fn(&F::Output) -> bool,
) -> Acquire<'a, F> {
    Acquire { waiting: awaited.wait(coop::unconstrained(future), place, wanted), is_taken, taken: None }
}

pin_project_lite::pin_project! {
    /// tokio's future returns `Pending` for two reasons: the permits are not free; or they are its own now,
    /// but its task has used up its budget and must yield. So it is polled without a budget here, and then
    /// yields as there.
    ///
    /// It is no `async fn`, which would have its future twice: as its argument, and as what it awaits.
    #[must_use = "futures do nothing unless they are polled"]
    struct Acquire<'a, F: Future> {
        #[pin]
        waiting: Waiting<'a, Unconstrained<F>>,
        is_taken: fn(&F::Output) -> bool,
        taken: Option<F::Output>,
    }
}

impl<F: Future> Future for Acquire<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let out = match this.taken.take() {
            Some(out) => out,
            None => ready!(this.waiting.poll(cx)),
        };
        if (this.is_taken)(&out) {
            match coop::poll_proceed(cx) {
                Poll::Ready(budget) => budget.made_progress(),
                Poll::Pending => {
                    *this.taken = Some(out);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(out)
    }
}
