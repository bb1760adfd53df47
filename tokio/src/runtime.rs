//! What a runtime does besides its tasks.

use std::cell::Cell;
use std::sync::Mutex;

use hairline::{Scope, Track, scope, trace_counter, trace_instant};
use tokio::runtime::{Builder, Handle, Id};

#[cfg(all(tokio_unstable, feature = "enable"))]
use crate::hooks;

/// Records what a runtime does.
pub trait TraceRuntime {
    /// Records where a worker is parked, as a slice `parked`: it has nothing to do, or waits for I/O and timers.
    /// Also records the counters `queue depth` and `alive tasks`, when a worker parks, when it continues and when
    /// a task is [spawned](crate::spawn), at most once in a millisecond for each thread. They are on a track
    /// `tokio`, that of a second runtime is `tokio 2`.
    ///
    /// With `--cfg tokio_unstable`, it also records all tasks of the runtime, except those of a `LocalSet`:
    /// their lives from the spawn to the end with the place of the spawn as the name, and a slice for each
    /// poll. With the feature `schedule-latency`, also an interval `queued` before each poll. A task that is
    /// spawned through this crate, or with [`traced_task`](hairline::TraceFuture::traced_task), is recorded
    /// once, with its wakes. An instant `recorded tasks` on the track of the runtime says which tasks the trace
    /// has.
    ///
    /// It sets the hooks `on_thread_park` and `on_thread_unpark`, of which a runtime has one each: if the program
    /// sets its own, the last one counts. The same holds, with `--cfg tokio_unstable`, for `on_task_spawn`,
    /// `on_before_task_poll`, `on_after_task_poll` and `on_task_terminate`. If the program sets one of the last
    /// two, tasks are recorded as without the `cfg`.
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
static RUNTIMES: Mutex<Runtimes> = Mutex::new(Runtimes { last: [const { None }; MOST_RUNTIMES], number: 0 });
const MOST_RUNTIMES: usize = 64;

struct Runtimes {
    last: [Option<Known>; MOST_RUNTIMES],
    /// The number of all runtimes that had a track.
    number: usize,
}

struct Known {
    id: Id,
    track: Track,
    /// The session that knows which tasks of the runtime are recorded.
    session: u32,
}

/// The tasks of a runtime that are recorded.
const RECORDED: &str = if cfg!(tokio_unstable) {
    "all, except those of a LocalSet that are not spawned through hairline"
} else {
    "those that are spawned through hairline"
};

impl TraceRuntime for Builder {
    fn traced(&mut self) -> &mut Self {
        #[cfg(all(tokio_unstable, feature = "enable"))]
        hooks::set(self, || sample(false));
        self.on_thread_park(|| {
            sample(true);
            PARKED.set(Some(scope!("tokio", "parked")));
        })
        .on_thread_unpark(|| {
            drop(PARKED.take());
            // Known also to a session that begins after the first park: the next one may come within the millisecond.
            sample(true);
        })
    }
}

/// Records the numbers of the runtime that this thread is in, if it is time to do so. `is_traced`: this is
/// known to be one that is recorded, and not another one of the program.
pub(crate) fn sample(is_traced: bool) {
    if !hairline::__tasks::is_sample_due() {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    let Some((track, is_new)) = track_of(runtime.id(), is_traced) else { return };
    if is_new {
        trace_instant!("tokio", "recorded tasks", tasks = RECORDED, track: &track);
    }
    let metrics = runtime.metrics();
    trace_counter!("tokio", "queue depth", metrics.global_queue_depth(), unit: "tasks", track: &track);
    trace_counter!("tokio", "alive tasks", metrics.num_alive_tasks(), unit: "tasks", track: &track);
}

/// Returns the track of a runtime that is recorded, and whether the session has nothing on it so far.
fn track_of(id: Id, is_traced: bool) -> Option<(Track, bool)> {
    let session = hairline::__tasks::session();
    // Nobody waits: a number that is missing comes a millisecond later.
    let before = {
        let mut runtimes = RUNTIMES.try_lock().ok()?;
        if let Some(known) = runtimes.last.iter_mut().flatten().find(|known| known.id == id) {
            let before = std::mem::replace(&mut known.session, session);
            return Some((known.track.clone(), before != session));
        }
        runtimes.number
    };
    if !is_traced {
        return None;
    }
    let track = if before == 0 { Track::new("tokio") } else { Track::new(format!("tokio {}", before + 1)) };
    add(before, Known { id, track: track.clone(), session })?;
    Some((track, true))
}

/// Adds a runtime, unless there are other ones than `before` by now: another worker was first, perhaps of
/// this runtime. Returns the one that is forgotten: its memory is freed outside of the lock.
fn add(before: usize, runtime: Known) -> Option<Option<Known>> {
    let mut runtimes = RUNTIMES.try_lock().ok()?;
    if runtimes.number != before {
        return None;
    }
    runtimes.number += 1;
    Some(runtimes.last[before % MOST_RUNTIMES].replace(runtime))
}
