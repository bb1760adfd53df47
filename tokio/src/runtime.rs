//! What a runtime does besides its tasks.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hairline::{Scope, Track, scope, trace_counter, trace_instant};
use tokio::runtime::{Builder, Handle, Id};

#[cfg(all(tokio_unstable, feature = "enable"))]
use crate::hooks;

/// Records what a runtime does.
pub trait TraceRuntime {
    /// Records where a worker is parked, as a slice `parked`: it has nothing to do, or waits for I/O and
    /// timers. Also records the counters `queue depth` and `alive tasks`, when a worker parks, when it
    /// continues and when a task is [spawned](crate::spawn), at most once in a millisecond for each thread,
    /// and when a worker parks and a number has changed. They are on a track `tokio`, that of a second
    /// runtime is `tokio 2`.
    ///
    /// With `--cfg tokio_unstable`, there are also counters of the pool for blocking calls:
    /// `blocking threads`, `idle blocking threads` and `blocking queue depth`, the calls that wait for a
    /// thread. And it records all tasks of the runtime, except those of a `LocalSet`: their lives from the
    /// spawn to the end with the place of the spawn as the name, and a slice for each poll. With the feature
    /// `schedule-latency`, also an interval `queued` before each poll. A task that is spawned through this
    /// crate, or with [`traced_task`](hairline::TraceFuture::traced_task), is recorded once, with its wakes.
    /// An instant `recorded tasks` on the track of the runtime says which tasks the trace has.
    ///
    /// It sets the hooks `on_thread_park` and `on_thread_unpark`, of which a runtime has one each: if the
    /// program sets its own, the last one counts. The same holds, with `--cfg tokio_unstable`, for
    /// `on_task_spawn`, `on_before_task_poll`, `on_after_task_poll` and `on_task_terminate`. If the program
    /// sets one of the last two, tasks are recorded as without the `cfg`.
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
    /// The numbers that were recorded last.
    last: Numbers,
}

/// The numbers of a runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Numbers {
    queued: usize,
    alive: usize,
    #[cfg(tokio_unstable)]
    blocking: Blocking,
}

/// The numbers of its pool for blocking calls.
#[cfg(tokio_unstable)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Blocking {
    threads: usize,
    idle: usize,
    queued: usize,
}

impl Numbers {
    fn of(runtime: &Handle) -> Self {
        let metrics = runtime.metrics();
        #[cfg(tokio_unstable)]
        let blocking = Blocking {
            threads: metrics.num_blocking_threads(),
            idle: metrics.num_idle_blocking_threads(),
            queued: metrics.blocking_queue_depth(),
        };
        Self {
            queued: metrics.global_queue_depth(),
            alive: metrics.num_alive_tasks(),
            #[cfg(tokio_unstable)]
            blocking,
        }
    }

    fn record(self, track: &Track) {
        trace_counter!("tokio", "queue depth", self.queued, unit: "tasks", track: track);
        trace_counter!("tokio", "alive tasks", self.alive, unit: "tasks", track: track);
        #[cfg(tokio_unstable)]
        {
            let Blocking { threads, idle, queued } = self.blocking;
            trace_counter!("tokio", "blocking threads", threads, unit: "threads", track: track);
            trace_counter!("tokio", "idle blocking threads", idle, unit: "threads", track: track);
            trace_counter!("tokio", "blocking queue depth", queued, unit: "calls", track: track);
        }
    }
}

/// The tasks of a runtime that are recorded.
const RECORDED: &str = if cfg!(tokio_unstable) {
    "all, except those of a LocalSet that are not spawned through hairline"
} else {
    "those that are spawned through hairline"
};

const NOT_RECORDED: &str = "tokio: tasks that are not spawned through hairline, as those of libraries, are not \
     recorded; with `--cfg tokio_unstable` they are";

impl TraceRuntime for Builder {
    fn traced(&mut self) -> &mut Self {
        #[cfg(all(tokio_unstable, feature = "enable"))]
        hooks::set(self, || sample(When::IfDue));
        self.on_thread_park(|| {
            sample(When::Parks);
            PARKED.set(Some(scope!("tokio", "parked")));
        })
        .on_thread_unpark(|| {
            drop(PARKED.take());
            // Known also to a session that begins after the first park: the next one may come within the
            // millisecond.
            sample(When::Continues);
        })
    }
}

/// When the numbers of a runtime are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// If it is time to do so, and the runtime is known to be one that is recorded, and not another one of
    /// the program.
    IfDue,
    /// A worker of a recorded runtime parks: also if they have changed, since perhaps nobody looks for long.
    Parks,
    /// A worker of a recorded runtime continues.
    Continues,
}

/// Records the numbers of the runtime that this thread is in.
pub(crate) fn sample(when: When) {
    let session = hairline::__tasks::session();
    let is_due = session != 0 && hairline::__tasks::is_sample_due();
    if session == 0 || !is_due && when != When::Parks {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    let Some(_turn) = Turn::take(if when == When::Parks { MOST_LOOKS } else { 1 }) else { return };
    let numbers = Numbers::of(&runtime);
    let known = track_of(runtime.id(), session, numbers, when != When::IfDue);
    let Some((track, before)) = known else { return };
    if before.is_none() {
        trace_instant!("tokio", "recorded tasks", tasks = RECORDED, track: &track);
        if !cfg!(tokio_unstable) {
            hairline::__tasks::note(session, NOT_RECORDED);
        }
    }
    if is_due || before != Some(numbers) {
        numbers.record(&track);
    }
}

/// One thread at a time looks at the numbers and records them: none records older ones after newer ones. A
/// worker that parks tries again for some microseconds, since perhaps nobody looks after it; a thread that
/// records under this does not wait for another one.
struct Turn;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
const MOST_LOOKS: usize = 1000;

impl Turn {
    fn take(most_looks: usize) -> Option<Self> {
        for _ in 0..most_looks {
            if !IS_TAKEN.swap(true, Ordering::Acquire) {
                return Some(Self);
            }
            std::hint::spin_loop();
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_TAKEN.store(false, Ordering::Release); // pairs with the Acquire above: the next one sees newer numbers
    }
}

/// Returns the track of a runtime that is recorded, and the numbers that the session has of it. From now on
/// it has these.
fn track_of(id: Id, session: u32, numbers: Numbers, is_traced: bool) -> Option<(Track, Option<Numbers>)> {
    // Nobody waits: a number that is missing comes a millisecond later.
    let before = {
        let mut runtimes = RUNTIMES.try_lock().ok()?;
        if let Some(known) = runtimes.last.iter_mut().flatten().find(|known| known.id == id) {
            let last = std::mem::replace(&mut known.last, numbers);
            let of_session = std::mem::replace(&mut known.session, session) == session;
            return Some((known.track.clone(), of_session.then_some(last)));
        }
        runtimes.number
    };
    if !is_traced {
        return None;
    }
    let track = if before == 0 { Track::new("tokio") } else { Track::new(format!("tokio {}", before + 1)) };
    add(before, Known { id, track: track.clone(), session, last: numbers })?;
    Some((track, None))
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
