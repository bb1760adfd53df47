//! The traits that add `traced` to futures and streams.

use std::future::Future;
use std::panic::Location;

use crate::on::bridges::futures::{Life, Traced};
use crate::on::bridges::tasks::TracedTask;

/// Adds `traced` to every future.
pub trait TraceFuture: Future + Sized {
    /// Records the future's life, from this call to its end or its drop, as an interval on an async track.
    /// Each poll is a slice on the thread that polls, and a flow links the polls. Futures that are wrapped
    /// during a poll go below this interval.
    ///
    /// ```
    /// use hairline::TraceFuture;
    ///
    /// # async fn read() {}
    /// # let _ = async {
    /// read().traced("io", "read").await;
    /// # };
    /// ```
    #[track_caller]
    fn traced(self, category: &'static str, name: &'static str) -> Traced<Self> {
        Life::begin_here(category, name).wrap(self)
    }

    /// As [`traced`](Self::traced), for a future that an executor runs on its own: the argument of a function
    /// like `spawn`. It also records, in the category `task`:
    ///
    /// * an instant `spawn` at this call, and an instant `wake` on the thread that wakes the task, with an
    ///   arrow to the poll that follows;
    /// * an interval `queued` below the task's life, from this call or the wake to the poll: so long the task
    ///   could run, and had no thread.
    ///
    /// The life is below no other one, and has the number of the task as the argument `task`. A task costs
    /// three allocations while it is recorded, else none.
    ///
    /// ```
    /// use hairline::TraceFuture;
    ///
    /// # async fn answer() {}
    /// # fn spawn(_: impl Future) {}
    /// spawn(answer().traced_task("web", "request"));
    /// ```
    #[track_caller]
    fn traced_task(self, category: &'static str, name: &'static str) -> TracedTask<Self> {
        TracedTask::begin(self, category, Some(name), Location::caller())
    }
}

impl<F: Future> TraceFuture for F {}

/// Adds `traced` to every stream.
///
/// ```
/// use std::pin::{Pin, pin};
/// use std::task::{Context, Poll, Waker};
///
/// use futures_core::Stream;
/// use hairline::TraceStream;
///
/// struct Lines(u32);
/// impl Stream for Lines {
///     type Item = u32;
///     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
///         self.0 += 1;
///         Poll::Ready((self.0 <= 2).then_some(self.0))
///     }
/// }
///
/// let mut lines = pin!(Lines(0).traced("io", "lines")); // a slice for each poll
/// let mut context = Context::from_waker(Waker::noop());
/// assert_eq!(lines.as_mut().poll_next(&mut context), Poll::Ready(Some(1)));
/// ```
#[cfg(feature = "futures")]
#[cfg_attr(docsrs, doc(cfg(feature = "futures")))]
pub trait TraceStream: futures_core::Stream + Sized {
    /// As [`TraceFuture::traced`]. The stream's life ends with its last item.
    #[track_caller]
    fn traced(self, category: &'static str, name: &'static str) -> Traced<Self> {
        Life::begin_here(category, name).wrap(self)
    }
}

#[cfg(feature = "futures")]
impl<S: futures_core::Stream> TraceStream for S {}
