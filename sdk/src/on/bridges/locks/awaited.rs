//! What is known of what the tasks of an async runtime wait for: a lock, a semaphore, a channel.
//!
//! ```text
//! async track   [ request .............................. ]
//!                  [ wait: cache .......... ]                   has the task and the place of the holder
//! thread 1     [ request ]               [ request ]            polls
//! ```
//!
//! A wait is an interval below the life of the future, or of the span of `tracing`, that waits. It begins
//! when a poll finds that the future cannot continue. So what is free at once makes no event.
//!
//! While such a wait lasts, each release of a lock is recorded: the waits have all that held it meanwhile.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use crate::on::base::this_thread;
use crate::on::bridges::futures;
use crate::on::bridges::locks::who::Who;
use crate::on::bridges::locks::{RELEASE, epoch, epoch_of, known_epoch, number_of, place_of, text_of};
use crate::on::bridges::tasks;
use crate::on::callsite::{Callsite, registry};
use crate::on::event::extras::Extras;
use crate::on::event::text::Text;
use crate::on::lifecycle::entry;
use crate::on::thread::events;
use crate::on::thread::guards::interval::AsyncScope;
use crate::sync::name::{Name, Place};

/// The arguments of a wait.
const KEYS: &[&str] = &["at", "held_by", "held_by_task", "held_at", "kind", "wanted", "lock"];

/// The kind of a lock, which one task has alone, or several ones that read.
const LOCK: &str = "lock";

/// Marks the number of a task, where else the id of a thread is.
const TASK: u32 = !tasks::LAST_NUMBER;
/// Stands for a task that is not recorded.
const UNKNOWN: u32 = tasks::LAST_NUMBER;

/// What is known of one lock, semaphore or channel.
#[derive(Debug)]
pub struct Awaited {
    name: Name,
    kind: &'static str,
    /// Who took it, if one task or thread alone has it. Written by the holder.
    holder: Who<Location<'static>>,
    /// The epoch in which it was taken. The numbers of tasks are those of its trace.
    taken_in: AtomicU32,
    /// The callsite of the waits. All that have the same name have the same one.
    callsite: OnceLock<&'static Callsite>,
    /// How many waits are recorded now. Relaxed: it guards no other memory.
    waiting: AtomicU32,
}

/// A wait that is recorded, and counted.
#[derive(Debug)]
struct Wait<'a> {
    awaited: &'a Awaited,
    interval: AsyncScope,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.awaited.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Awaited {
    /// Creates it with a name.
    #[must_use]
    pub const fn named(kind: &'static str, name: &'static str) -> Self {
        Self::with(kind, Name::Given(name))
    }

    /// Creates it with the name of a place.
    #[must_use]
    pub const fn made_at(kind: &'static str, place: Place) -> Self {
        Self::with(kind, Name::MadeAt(place))
    }

    const fn with(kind: &'static str, name: Name) -> Self {
        Self {
            name,
            kind,
            holder: Who::nobody(),
            taken_in: AtomicU32::new(0),
            callsite: OnceLock::new(),
            waiting: AtomicU32::new(0),
        }
    }

    pub(super) fn name(&self) -> Name {
        self.name
    }

    /// Call it before it is taken: the first event may start a session, and that under no lock of the
    /// program.
    pub fn prepare(&self) {
        let _ = epoch();
    }

    /// Notes that the task which this thread polls holds it alone.
    pub fn took(&self, place: Place) {
        self.note(UNKNOWN, place);
    }

    /// Notes that this thread holds it alone: it was blocked until it got it.
    pub fn took_as_thread(&self, place: Place) {
        self.note(this_thread::tid(), place);
    }

    /// `unless_task`: the holder, if the thread polls no recorded task.
    fn note(&self, unless_task: u32, place: Place) {
        let Some(epoch) = known_epoch() else { return };
        let holder = tasks::current().map_or(unless_task, |task| task | TASK);
        self.taken_in.store(epoch.get(), Ordering::Release); // as `Who::look` demands
        self.holder.set(holder, std::ptr::from_ref(place).cast_mut());
    }

    /// Call it before it is released by the task or thread that holds it alone.
    pub fn leave(&self) {
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.release(None);
        }
        if self.holder.is_somebody() {
            self.holder.clear();
        }
    }

    /// Call it before it is released by a task or thread that holds it with others, and took it at `place`.
    pub fn leave_shared(&self, place: Place) {
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.release(Some(place));
        }
    }

    /// Records a release while others wait. `shared`: the place of one of several that hold it.
    #[cold]
    #[inline(never)]
    fn release(&self, shared: Option<Place>) {
        let Some(epoch) = epoch_of(&RELEASE) else { return };
        let name = Text::display(&format_args!("release: {}", self.name));
        let (who, place) = match shared {
            Some(place) => (tasks::current().map_or(UNKNOWN, |task| task | TASK), Some(text_of(place))),
            None => self.holder_in(epoch.get()),
        };
        let (thread, task) = numbers(who);
        // A guard that owns its lock may have gone to another task.
        let other = tasks::current().filter(|now| (now | TASK) != who).map(i64::from);
        let lock = number_of(std::ptr::from_ref(self).addr());
        let values = (place, (lock, (shared.map(|_| true), (thread, (task, (self.kind, (other, ())))))));
        events::event_rich(&RELEASE, epoch, &values, &Extras::new().name(name.as_str()));
    }

    /// Who holds it alone, and took it at which place, if that was in this session.
    fn holder_in(&self, epoch: u32) -> (u32, Option<Text>) {
        let holder = self.holder.look(|| self.taken_in.load(Ordering::Acquire));
        let holder = holder.filter(|(_, taken_in)| *taken_in == epoch).map(|(seen, _)| seen);
        let who = holder.map_or(UNKNOWN, |seen| seen.thread);
        (who, holder.and_then(|seen| place_of(seen.place)).map(text_of))
    }

    /// Wraps a future that waits for it, and for nothing else. `wanted`: for how many permits, if that is not
    /// one.
    pub fn wait<F>(&self, future: F, place: Place, wanted: Option<u32>) -> Waiting<'_, F> {
        self.prepare();
        Waiting { future, awaited: self, place, wanted, wait: None }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, place: Place, wanted: Option<u32>) -> Option<Wait<'_>> {
        epoch()?;
        let callsite = self.callsite.get().copied().unwrap_or_else(|| {
            let name = Text::display(&format_args!("wait: {}", self.name));
            let nowhere = Location::caller();
            registry::callsite_of(nowhere, "lock", name.as_str(), KEYS, entry::first_hit)
        });
        let epoch = callsite.registered_epoch()?;
        let _ = self.callsite.set(callsite);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (who, held_at) = self.holder_in(epoch.get());
        let (thread, task) = numbers(who);
        let wanted = wanted.map(i64::from);
        let lock = (self.kind == LOCK).then(|| number_of(std::ptr::from_ref(self).addr()));
        let values = (text_of(place), (thread, (task, (held_at, (self.kind, (wanted, (lock, ())))))));
        let interval = futures::below_current(|extras| AsyncScope::begin(callsite, epoch, &values, extras));
        Some(Wait { awaited: self, interval })
    }
}

/// The ids of a thread and of a task, of which a holder is one at most.
fn numbers(holder: u32) -> (Option<i64>, Option<i64>) {
    let id = Some(holder).filter(|id| *id != UNKNOWN);
    let thread = id.filter(|id| id & TASK == 0).map(i64::from);
    let task = id.filter(|id| id & TASK != 0).map(|id| i64::from(id & !TASK));
    (thread, task)
}

pin_project_lite::pin_project! {
    /// A future whose wait is recorded.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Waiting<'a, F> {
        #[pin]
        future: F,
        awaited: &'a Awaited,
        place: Place,
        wanted: Option<u32>,
        wait: Option<Wait<'a>>,
    }

    impl<F> PinnedDrop for Waiting<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(wait) = this.project().wait {
                wait.interval.arg(futures::DROPPED, true); // it ends when the future is dropped
            }
        }
    }
}

impl<F> Waiting<'_, F> {
    /// Returns the future.
    pub fn inner(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().future
    }
}

impl<F: Future> Future for Waiting<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let outcome = this.future.poll(cx);
        if outcome.is_ready() {
            *this.wait = None;
        } else if this.wait.is_none() {
            *this.wait = this.awaited.begin(this.place, *this.wanted);
        }
        outcome
    }
}
