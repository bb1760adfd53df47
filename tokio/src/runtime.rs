//! What a runtime does besides its tasks.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicU32, Ordering};

use hairline::{Scope, Track, scope, trace_counter};
use tokio::runtime::{Builder, Handle};

/// Records what a runtime does.
pub trait TraceRuntime {
    /// Records where a worker is parked, as a slice `parked`: it has nothing to do, or waits for I/O and timers.
    /// Also records the counters `queue depth` and `alive tasks`, when a worker parks, when it continues and when
    /// it [spawns](crate::spawn) a task, at most once in a millisecond for each thread. They are on a track `tokio`,
    /// that of a second runtime is `tokio 2`.
    ///
    /// It sets the hooks `on_thread_park` and `on_thread_unpark`, of which a runtime has one each: if the program
    /// sets its own, the last one counts.
    ///
    /// ```
    /// use hairline_tokio::TraceRuntime;
    ///
    /// let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().traced().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn traced(&mut self) -> &mut Self;
}

thread_local! {
    static PARKED: Cell<Option<Scope>> = const { Cell::new(None) };
    /// The track of the runtime that this thread works for.
    static TRACK: OnceCell<Track> = const { OnceCell::new() };
}

/// The number of the runtimes that are recorded.
static RUNTIMES: AtomicU32 = AtomicU32::new(0);

impl TraceRuntime for Builder {
    fn traced(&mut self) -> &mut Self {
        let track = match RUNTIMES.fetch_add(1, Ordering::Relaxed) {
            0 => Track::new("tokio"),
            before => Track::new(format!("tokio {}", before + 1)),
        };
        self.on_thread_park(move || {
            TRACK.with(|own| {
                own.get_or_init(|| track.clone());
            });
            sample();
            PARKED.set(Some(scope!("tokio", "parked")));
        })
        .on_thread_unpark(|| {
            drop(PARKED.take());
            sample();
        })
    }
}

/// Records the numbers of the runtime that this thread works for, if it is time to do so.
pub(crate) fn sample() {
    if !hairline::__tasks::is_sample_due() {
        return;
    }
    let record = |track: &Track| {
        if let Ok(runtime) = Handle::try_current() {
            let metrics = runtime.metrics();
            trace_counter!("tokio", "queue depth", metrics.global_queue_depth(), unit: "tasks", track: track);
            trace_counter!("tokio", "alive tasks", metrics.num_alive_tasks(), unit: "tasks", track: track);
        }
    };
    let _ = TRACK.try_with(|track| track.get().map(record));
}
