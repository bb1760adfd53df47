//! What a runtime does besides its tasks.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hairline::{Scope, Track, scope, trace_counter};
use tokio::runtime::{Builder, Handle, Id};

/// Records what a runtime does.
pub trait TraceRuntime {
    /// Records where a worker is parked, as a slice `parked`: it has nothing to do, or waits for I/O and timers.
    /// Also records the counters `queue depth` and `alive tasks`, when a worker parks, when it continues and when
    /// a task is [spawned](crate::spawn), at most once in a millisecond for each thread. They are on a track
    /// `tokio`, that of a second runtime is `tokio 2`.
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
}

/// The runtimes that are recorded, whose workers have run, with their tracks: the last ones.
static RUNTIMES: Mutex<VecDeque<(Id, Track)>> = Mutex::new(VecDeque::new());
const MOST_RUNTIMES: usize = 64;

/// The number of the runtimes that were made.
static MADE: AtomicU32 = AtomicU32::new(0);

impl TraceRuntime for Builder {
    fn traced(&mut self) -> &mut Self {
        let track = match MADE.fetch_add(1, Ordering::Relaxed) {
            0 => Track::new("tokio"),
            before => Track::new(format!("tokio {}", before + 1)),
        };
        self.on_thread_park(move || {
            sample(Some(&track));
            PARKED.set(Some(scope!("tokio", "parked")));
        })
        .on_thread_unpark(|| {
            drop(PARKED.take());
            sample(None);
        })
    }
}

/// Records the numbers of the runtime that this thread is in, if it is time to do so. `track`: that of the
/// runtime, from its own worker.
pub(crate) fn sample(track: Option<&Track>) {
    if !hairline::__tasks::is_sample_due() {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    let Some(track) = track_of(runtime.id(), track) else { return };
    let metrics = runtime.metrics();
    trace_counter!("tokio", "queue depth", metrics.global_queue_depth(), unit: "tasks", track: &track);
    trace_counter!("tokio", "alive tasks", metrics.num_alive_tasks(), unit: "tasks", track: &track);
}

/// Returns the track of a runtime that is recorded.
fn track_of(id: Id, known: Option<&Track>) -> Option<Track> {
    // Nobody waits: a number that is missing comes a millisecond later.
    let mut runtimes = RUNTIMES.try_lock().ok()?;
    if let Some((_, track)) = runtimes.iter().find(|(known, _)| *known == id) {
        return Some(track.clone());
    }
    let track = known?.clone();
    if runtimes.len() == MOST_RUNTIMES {
        runtimes.pop_front();
    }
    runtimes.push_back((id, track.clone()));
    Some(track)
}
