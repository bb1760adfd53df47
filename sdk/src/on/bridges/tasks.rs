//! Tasks: futures that an executor runs on their own, with their wakes.
//!
//! ```text
//! async track   [ request ............................ ]
//!               [ queued ]             [ queued ]          from the spawn or the wake to the poll
//! thread 1    spawn ──┐
//! thread 2            └─> [ request ]  ┌─> wake            a thread wakes the task
//! thread 3                        └────┘      └─> [ request ]
//! ```
//!
//! The arrows are the flow of the polls, which passes through the wakes. A task that is woken
//! while it is polled is queued from the poll's end.

use std::cell::Cell;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::on::base::this_thread;
use crate::on::bridges::futures::{Life, Traced};
#[cfg(feature = "sync")]
use crate::on::bridges::roots::Root;
use crate::on::callsite::{Callsite, Epoch, Key, registry};
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::text::Text;
use crate::on::lifecycle::{connect, entry};
#[cfg(feature = "sync")]
use crate::on::session::current;
use crate::on::thread::events;
use crate::site::{CallsiteKind, Site};

pub(super) static SPAWN: Callsite = callsite(CallsiteKind::Instant, "spawn", &SPAWN_KEYS);
static WAKE: Callsite = callsite(CallsiteKind::Instant, "wake", &[]);
pub(super) static QUEUED: Callsite = callsite(CallsiteKind::Scope, "queued", &[]);

static SPAWN_KEYS: [Key; 1] = [Key::new("at")];
/// The arguments of a task's life.
const LIFE_KEYS: &[&str] = &["task"];
/// The same, of a call that blocks, which waits for a thread of the pool for such calls.
const CALL_KEYS: &[&str] = &["task", "kind"];
const CALL: &str = "blocking";

pub(super) const fn callsite(kind: CallsiteKind, name: &'static str, keys: &'static [Key]) -> Callsite {
    Callsite::new(kind, "task", name, keys, &Site::NOWHERE)
}

thread_local! {
    /// The number of the recorded task that the thread polls; 0 if it polls none.
    pub(super) static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// Returns the number of the recorded task that this thread polls.
#[cfg(feature = "sync")]
pub(crate) fn current() -> Option<u32> {
    Some(CURRENT.get()).filter(|number| *number != 0)
}

/// A number of a task is at most this; then they begin again.
pub(crate) const LAST_NUMBER: u32 = u32::MAX >> 1;

pub(super) fn new_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % LAST_NUMBER + 1
}

/// Returns the callsite of the life of tasks, by default with the name of the place.
pub(super) fn callsite_of(
    category: &'static str,
    name: Option<&str>,
    place: &'static Location<'static>,
) -> &'static Callsite {
    match name {
        Some(name) => registry::callsite_of(place, category, name, LIFE_KEYS, entry::first_hit),
        None => callsite_of(category, Some(place_text(place).as_str()), place),
    }
}

/// Returns the callsite of the life of a call that blocks.
fn callsite_of_call(place: &'static Location<'static>) -> &'static Callsite {
    registry::callsite_of(place, "task", place_text(place).as_str(), CALL_KEYS, entry::first_hit)
}

fn place_text(place: &Location<'_>) -> Text {
    Text::display(&format_args!("{}:{}", short(place.file()), place.line()))
}

/// Returns the path of a file of the program's source. That of a library begins with its name and version.
fn short(file: &str) -> &str {
    for registry in ["/registry/src/", "\\registry\\src\\"] {
        if let Some((_, of_index)) = file.split_once(registry) {
            return of_index.split_once(['/', '\\']).map_or(file, |(_, of_library)| of_library);
        }
    }
    file
}

/// Returns the epoch in which wakes and times in the queue are recorded, if that is so. A wake may happen
/// under a lock of the program, where nothing is registered: this comes before the first one.
fn epoch_of_wakes() -> Option<Epoch> {
    let [spawn, wake, queued] = [&SPAWN, &WAKE, &QUEUED].map(|callsite| callsite.registered_epoch());
    spawn.filter(|_| spawn == wake && wake == queued)
}

/// Records the spawn of a task. Returns the time from which it can run.
pub(super) fn record_spawn(epoch: Epoch, flow: &Flow, place: &Location<'_>) -> u64 {
    events::event_rich(&SPAWN, epoch, &(place_text(place), ()), &Extras::new().flow(flow));
    events::last_event()
}

pin_project_lite::pin_project! {
    /// A future whose life, polls and wakes are recorded. [`TraceFuture::traced_task`] makes it.
    ///
    /// [`TraceFuture::traced_task`]: crate::TraceFuture::traced_task
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct TracedTask<F> {
        #[pin]
        inner: Traced<F>,
        number: u32, // 0 if the task is not recorded
        wakes: Option<Wakes>, // `None` if the task is over, or its wakes are not recorded
    }

    impl<F> PinnedDrop for TracedTask<F> {
        fn drop(this: Pin<&mut Self>) {
            *this.project().wakes = None; // what the future wakes in its drop is not polled
        }
    }
}

impl<F> TracedTask<F> {
    /// Begins the life of a task, by default with the name of the place.
    #[doc(hidden)]
    pub fn begin(
        future: F,
        category: &'static str,
        name: Option<&'static str>,
        place: &'static Location<'static>,
    ) -> Self {
        Self::begin_with(future, place, &(), || callsite_of(category, name, place))
    }

    /// Begins the life of a call that blocks, as a task with one poll.
    #[doc(hidden)]
    pub fn begin_blocking(future: F, place: &'static Location<'static>) -> Self {
        Self::begin_with(future, place, &(CALL, ()), || callsite_of_call(place))
    }

    fn begin_with(
        future: F,
        place: &'static Location<'static>,
        kind: &(impl Values + Copy),
        callsite: impl FnOnce() -> &'static Callsite,
    ) -> Self {
        if SPAWN.epoch() == Some(Epoch::UNREGISTERED) {
            let _ = SPAWN.registered_epoch(); // starts the session that the environment requests
        } else if registry::active_epoch().is_none() {
            return Self::unrecorded(future, &SPAWN);
        }
        connect::connect(); // before the registry's lock
        let callsite = callsite();
        match callsite.registered_epoch() {
            None => Self::unrecorded(future, callsite),
            Some(epoch) => Self::begin_in(future, callsite, epoch, place, *kind),
        }
    }

    /// Returns what the hooks of a runtime know of the task.
    #[cfg(feature = "sync")]
    #[doc(hidden)]
    pub fn root(&self) -> Option<Arc<Root>> {
        self.wakes.as_ref()?.root.clone()
    }

    fn unrecorded(future: F, callsite: &'static Callsite) -> Self {
        Self { inner: Life::none(callsite).wrap(future), number: 0, wakes: None }
    }

    fn begin_in(
        future: F,
        callsite: &'static Callsite,
        epoch: Epoch,
        place: &'static Location<'static>,
        kind: impl Values,
    ) -> Self {
        let are_wakes_on = epoch_of_wakes() == Some(epoch);
        let number = new_number();
        let life = Life::begin_task(callsite, epoch, &(i64::from(number), kind));
        let flow = life.parts().map(|(_, flow)| flow).filter(|_| are_wakes_on);
        let wakes = flow.map(|flow| {
            let can_run = record_spawn(epoch, flow, place);
            let state = Arc::new(State { epoch, flow: flow.clone(), word: AtomicU64::new(can_run) });
            #[cfg(feature = "sync")]
            let root = Root::begin(epoch, can_run);
            Wakes {
                state,
                waker: Weak::new(),
                polls: 0,
                #[cfg(feature = "sync")]
                root,
            }
        });
        let number = if life.parts().is_some() { number } else { 0 };
        Self { inner: life.wrap(future), number, wakes }
    }
}

impl<F: Future> Future for TracedTask<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _of_this_thread = Leave(CURRENT.replace(*this.number));
        if this.wakes.as_ref().is_some_and(|wakes| registry::active_epoch() != Some(wakes.state.epoch)) {
            *this.wakes = None; // the session is over
        }
        let Some(wakes) = this.wakes else { return this.inner.poll_task(cx, *this.number) };
        #[cfg(feature = "sync")]
        if let (0, Some(root)) = (wakes.polls, &wakes.root) {
            root.poll();
        }
        wakes.state.begin_poll(this.inner.as_ref().life());
        let waker = wakes.waker(cx.waker());
        let outcome = this.inner.poll_task(&mut Context::from_waker(&waker), *this.number);
        match outcome {
            Poll::Pending => wakes.end_poll(),
            Poll::Ready(_) => *this.wakes = None,
        }
        outcome
    }
}

/// Ends a poll, also by a panic.
struct Leave(u32);

impl Drop for Leave {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// What a task has for its wakes.
#[derive(Debug)]
struct Wakes {
    state: Arc<State>,
    /// The waker of the last poll, which owns the executor's waker. That may own the task: the task would own
    /// itself.
    waker: Weak<Recording>,
    polls: u64,
    /// What the hooks of a runtime know of it.
    #[cfg(feature = "sync")]
    root: Option<Arc<Root>>,
}

impl Wakes {
    /// Returns the waker that records the wakes and passes them on to `inner`.
    fn waker(&mut self, inner: &Waker) -> Waker {
        let last = self.waker.upgrade().filter(|recording| recording.inner.will_wake(inner));
        let recording = last.unwrap_or_else(|| {
            let recording = Arc::new(Recording { state: Arc::clone(&self.state), inner: inner.clone() });
            self.waker = Arc::downgrade(&recording);
            recording
        });
        Waker::from(recording)
    }

    /// A poll has ended, and the task is not over.
    fn end_poll(&mut self) {
        self.polls += 1;
        if self.state.change(POLLED, WAITS | self.polls).is_err() {
            let now = this_thread::hot().now();
            self.state.word.store(now.max(FIRST_TIME), Ordering::Relaxed);
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        #[cfg(feature = "sync")]
        if let Some(root) = &self.root {
            root.end();
        }
        self.state.word.store(OVER, Ordering::Relaxed);
    }
}

/// A waker that records the wakes of a task.
#[derive(Debug)]
struct Recording {
    state: Arc<State>,
    inner: Waker,
}

impl Wake for Recording {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.state.wake();
        self.inner.wake_by_ref();
    }
}

/// The state of a task. The word guards no other memory, so all accesses are relaxed.
#[derive(Debug)]
struct State {
    /// The epoch of its life.
    epoch: Epoch,
    /// The flow of its polls.
    flow: Flow,
    /// One of the states below, or the time from which it can run.
    word: AtomicU64,
}

/// It is being polled.
const POLLED: u64 = 1;
/// The same, and it was woken meanwhile.
const POLLED_AGAIN: u64 = 2;
const OVER: u64 = 3;
/// The first word that is a time. Times are below `WAITS`.
const FIRST_TIME: u64 = 4;
/// With the number of polls: it waits for a wake.
const WAITS: u64 = 1 << 62;
/// With that number: a thread records its wake. If that takes until the next wait, it is not taken for that
/// of this one.
const WAKING: u64 = 1 << 63;

impl State {
    /// Records a wake, if it is the first one since the last poll.
    fn wake(&self) {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & WAITS != 0 {
                let waking = word ^ WAITS ^ WAKING;
                if self.change(word, waking).is_ok() {
                    let woken = self.record_wake().unwrap_or(word);
                    // Another thread's wake may have led to a poll meanwhile.
                    let _ = self.change(waking, woken);
                    return;
                }
            } else if word != POLLED {
                return;
            } else if self.change(POLLED, POLLED_AGAIN).is_ok() {
                self.record_wake();
                return;
            }
        }
    }

    fn change(&self, from: u64, to: u64) -> Result<u64, u64> {
        self.word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Returns the time of the record.
    fn record_wake(&self) -> Option<u64> {
        events::instant_with_flow(&WAKE, self.epoch_of(&WAKE)?, &self.flow)
    }

    /// Returns the epoch of a callsite, if it is that of the task's life.
    fn epoch_of(&self, callsite: &'static Callsite) -> Option<Epoch> {
        callsite.epoch().filter(|epoch| *epoch == self.epoch)
    }

    /// A poll begins: records how long the task was queued.
    fn begin_poll(&self, life: &Life) {
        let since = self.word.swap(POLLED, Ordering::Relaxed);
        let parts = life.parts().filter(|_| (FIRST_TIME..WAITS).contains(&since));
        if let (Some((interval, _)), Some(epoch)) = (parts, self.epoch_of(&QUEUED)) {
            interval.record_since(&QUEUED, epoch, since);
        }
    }
}

/// The time in ns between two samples of a thread.
#[cfg(feature = "sync")]
const SAMPLE: u64 = 1_000_000;

/// Returns whether a session runs and this thread has had no `true` for a millisecond: for numbers that
/// are read often enough.
#[cfg(feature = "sync")]
pub fn is_sample_due() -> bool {
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    if registry::active_epoch().is_none() {
        return false;
    }
    let now = this_thread::hot().now();
    let is_due = now.wrapping_sub(LAST.get()) >= SAMPLE;
    if is_due {
        LAST.set(now);
    }
    is_due
}

/// Returns the number of the session that runs, or 0.
#[cfg(feature = "sync")]
#[inline]
pub fn session() -> u32 {
    registry::active_epoch().map_or(0, Epoch::get)
}

/// Adds a note about the tasks that a session does not record to its summary.
#[cfg(feature = "sync")]
pub fn note(session: u32, note: &'static str) {
    if let Some(shared) = Epoch::from_raw(session).and_then(current::current) {
        let _ = shared.tasks_note.set(note);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_of_a_library_has_no_folders_of_the_machine() {
        let files = [
            ("src/main.rs", "src/main.rs"),
            (
                "/home/me/.cargo/registry/src/index-1949/hyper-1.7.0/src/server.rs",
                "hyper-1.7.0/src/server.rs",
            ),
            (r"C:\me\registry\src\index-1949\hyper-1.7.0\src\server.rs", r"hyper-1.7.0\src\server.rs"),
            ("/registry/src/main.rs", "/registry/src/main.rs"),
        ];
        for (file, short) in files {
            assert_eq!(super::short(file), short);
        }
    }
}
