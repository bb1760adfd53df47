//! The tasks of a runtime that has hooks: all of them, also those of libraries.
//!
//! ```text
//! spawn      a life begins                 [ src/main.rs:7 ............................ ]
//! before     a slice on this thread        [ queued ] [ src/main.rs:7 ]
//! after      its end
//! end        the end of the life, after the last slice
//! ```
//!
//! The hooks know the number of a task, so that a table has what is recorded of it, from its spawn to its
//! end. Each poll is an owner of that: the next one may begin, on another thread, before the hook after it is
//! called. No lock is held while code of the program runs, and no memory is allocated or freed under one. The
//! hooks see no wakes: the arrows lead from the spawn to the polls.

#![allow(unsafe_code)] // a runtime polls a task on one thread after the other

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::bridges::futures::Life;
use crate::on::bridges::long_polls::{self, PollOfTask};
use crate::on::bridges::polled::{Entered, Shared};
use crate::on::bridges::roots::{self, Question};
use crate::on::bridges::tasks::{self, QUEUED, SPAWN};
#[cfg(feature = "subscriber")]
use crate::on::bridges::tracing;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::flow::Flow;
use crate::on::lifecycle::connect;
use crate::on::thread::guards::Scope;
use crate::site::CallsiteKind;

/// The first poll of a task that was taken for one that records itself.
static POLLED: Callsite = tasks::callsite(CallsiteKind::Scope, "polled", &[]);

thread_local! {
    /// The number of polls in `POLL`, which is not touched if there are none.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The innermost poll.
    static POLL: Cell<Option<Poll>> = const { Cell::new(None) };
    /// The last task that ended on this thread. One that is spawned in a runtime that shuts down ends before the
    /// hook of its spawn.
    static LAST_ENDED: Cell<u64> = const { Cell::new(0) };
}

/// The lists of a table. Numbers of tasks follow each other, so 100,000 tasks are 25 in each.
const LISTS: usize = 4096;

/// The tasks of the runtimes with the same hooks. A number is not that of two tasks at a time, and not 0.
#[derive(Debug)]
pub struct HookedTasks {
    lists: Box<[Mutex<Option<Box<Known>>>]>,
    known: AtomicUsize,
}

/// A task in a list.
#[derive(Debug)]
struct Known {
    number: u64,
    of: Of,
    next: Option<Box<Known>>,
}

impl HookedTasks {
    /// Creates an empty table.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        roots::expect_hooks();
        Self { lists: (0..LISTS).map(|_| Mutex::new(None)).collect(), known: AtomicUsize::new(0) }
    }

    /// Whether something would be recorded.
    #[inline]
    #[must_use]
    pub fn is_on() -> bool {
        SPAWN.epoch().is_some()
    }

    /// A task has been spawned on this thread.
    pub fn spawn(&self, number: u64, place: &'static Location<'static>) {
        if LAST_ENDED.try_with(Cell::get).is_ok_and(|last| last == number) {
            return;
        }
        if let Some(epoch) = SPAWN.registered_epoch() {
            self.add(number, Of::spawned(place, epoch));
        }
    }

    /// This thread is about to poll a task. It waited in the queue for the time `queued`, if that is known.
    ///
    /// # Safety
    /// The polls of a task come one after the other, from this call to the return of its future's `poll`, and
    /// each one happens before the next one.
    pub unsafe fn begin_poll(
        &self,
        number: u64,
        place: &'static Location<'static>,
        queued: Option<Duration>,
    ) {
        let Some(epoch) = SPAWN.registered_epoch() else { return };
        let of = match self.get(number) {
            Some(Of::Assumed(assumed)) => assumed.next_poll(epoch).inspect(|of| self.replace(number, of)),
            Some(of) => Some(of),
            None => {
                // It is older than the session.
                let of = Of::Polls(Polls::of(place));
                self.add(number, of.clone());
                Some(of)
            }
        };
        let of = of.unwrap_or_else(|| Of::Polls(Polls::of(place)));
        // SAFETY: as the caller grants.
        unsafe { Poll::begin(number, of, epoch, queued) }.push();
    }

    /// The poll has ended.
    #[inline]
    pub fn end_poll(&self, number: u64) {
        if DEPTH.get() > 0 {
            self.end_recorded_poll(number);
        }
    }

    fn end_recorded_poll(&self, number: u64) {
        if let Some(poll) = take_poll_of(number)
            && let Some(of) = poll.end()
        {
            self.replace(number, &of);
        }
    }

    /// A task is over. This may be in its last poll, which still has its life then.
    pub fn end(&self, number: u64) {
        let _ = LAST_ENDED.try_with(|last| last.set(number));
        if self.known.load(Relaxed) > 0 {
            drop(self.remove(number)); // after the lock
        }
    }

    fn list(&self, number: u64) -> MutexGuard<'_, Option<Box<Known>>> {
        #[allow(clippy::cast_possible_truncation)] // the remainder
        let list = &self.lists[(number % LISTS as u64) as usize];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, number: u64, of: Of) {
        let mut known = Box::new(Known { number, of, next: None });
        self.known.fetch_add(1, Relaxed);
        let mut first = self.list(number);
        known.next = first.take();
        *first = Some(known);
    }

    fn get(&self, number: u64) -> Option<Of> {
        let list = self.list(number);
        let mut tasks = std::iter::successors(list.as_deref(), |task| task.next.as_deref());
        tasks.find(|task| task.number == number).map(|task| task.of.clone())
    }

    /// Replaces what is recorded of a task, unless it is over.
    fn replace(&self, number: u64, of: &Of) {
        let mut of = of.clone(); // the old one is dropped after the lock
        let mut list = self.list(number);
        let mut next = list.as_deref_mut();
        while let Some(task) = next {
            if task.number == number {
                std::mem::swap(&mut task.of, &mut of);
                break;
            }
            next = task.next.as_deref_mut();
        }
        drop(list);
    }

    fn remove(&self, number: u64) -> Option<Box<Known>> {
        let mut list = self.list(number);
        let mut link = &mut *list;
        while link.as_ref()?.number != number {
            link = &mut link.as_mut()?.next;
        }
        let mut task = link.take()?;
        *link = task.next.take();
        self.known.fetch_sub(1, Relaxed);
        Some(task)
    }
}

impl Drop for HookedTasks {
    fn drop(&mut self) {
        for list in &mut self.lists {
            let mut rest = list.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            while let Some(mut task) = rest {
                rest = task.next.take(); // a long list would need a deep stack
            }
        }
    }
}

/// What is recorded of a task.
#[derive(Clone, Debug)]
enum Of {
    Life(Arc<Lived>),
    /// It is older than the session.
    Polls(Arc<Polls>),
    /// It seems to be a root, which records itself.
    Assumed(Arc<Assumed>),
}

#[derive(Debug)]
struct Polls {
    callsite: &'static Callsite,
    flow: Flow,
}

#[derive(Debug)]
struct Lived {
    callsite: &'static Callsite,
    epoch: Epoch,
    /// The number in the trace.
    number: u32,
    /// The time of its spawn, or 0 if it was polled since.
    spawned_at: AtomicU64,
    recorded: Arc<Shared>,
}

#[derive(Debug)]
struct Assumed {
    place: &'static Location<'static>,
    epoch: Epoch,
    is_root: Arc<Question>,
    was_polled: AtomicBool,
    /// Its life begins after all.
    is_none: AtomicBool,
}

impl Polls {
    fn of(place: &'static Location<'static>) -> Arc<Self> {
        connect::connect(); // before the registry's lock
        Arc::new(Self { callsite: tasks::callsite_of("task", None, place), flow: Flow::new() })
    }
}

impl Of {
    fn spawned(place: &'static Location<'static>, epoch: Epoch) -> Self {
        let Some(begun_at) = roots::take_begun() else { return Self::life(place, epoch, None) };
        Self::Assumed(Arc::new(Assumed {
            place,
            epoch,
            // The time of an event may be later than that of the clock.
            is_root: Arc::new(Question::new(now().max(begun_at))),
            was_polled: AtomicBool::new(false),
            is_none: AtomicBool::new(false),
        }))
    }

    /// Begins a life, now or in the past.
    fn life(place: &'static Location<'static>, epoch: Epoch, past: Option<u64>) -> Self {
        let _ = QUEUED.registered_epoch();
        let polls = Polls::of(place);
        let (callsite, number) = (polls.callsite, tasks::new_number());
        let life = match past {
            _ if callsite.registered_epoch() != Some(epoch) => Life::none(callsite),
            None => Life::begin_task(callsite, epoch, &(i64::from(number), ())),
            Some(past) => Life::begin_task_at(callsite, epoch, &[Value::I64(i64::from(number))], past),
        };
        let Some(recorded) = life.into_recorded() else { return Self::Polls(polls) };
        let spawned_at = past.is_none().then(|| tasks::record_spawn(epoch, &recorded.flow, place));
        Self::Life(Arc::new(Lived {
            callsite,
            epoch,
            number,
            spawned_at: AtomicU64::new(spawned_at.unwrap_or(0)),
            recorded: Arc::new(Shared::new(recorded)),
        }))
    }
}

impl Assumed {
    /// Returns what is recorded of the poll that begins.
    fn next_poll(self: Arc<Self>, epoch: Epoch) -> Option<Of> {
        match self.is_root.answer.get() {
            // The task had a root, and goes on without.
            Some(root) if root.is_over_in(epoch) => Some(Of::Polls(Polls::of(self.place))),
            None if self.was_polled.swap(true, Relaxed) => self.begin_life(),
            _ => Some(Of::Assumed(self)),
        }
    }

    /// Begins the life of a task that is no root. Returns `None` if another thread does.
    fn begin_life(&self) -> Option<Of> {
        if self.is_none.swap(true, Relaxed) {
            return None;
        }
        if SPAWN.epoch() != Some(self.epoch) {
            return Some(Of::Polls(Polls::of(self.place)));
        }
        Some(Of::life(self.place, self.epoch, Some(self.is_root.asked_at)))
    }
}

impl Lived {
    /// Records how long the task was in the queue. Before its first poll it was there since its spawn.
    fn record_queue(&self, epoch: Epoch, queued: Option<Duration>) {
        let spawned_at = Some(self.spawned_at.swap(0, Relaxed)).filter(|at| *at != 0);
        if epoch != self.epoch || QUEUED.epoch() != Some(epoch) {
            return;
        }
        let queued = queued.and_then(|queued| u64::try_from(queued.as_nanos()).ok());
        if let Some(since) = queued.map(|queued| now().saturating_sub(queued)).or(spawned_at) {
            self.recorded.interval().record_since(&QUEUED, epoch, since);
        }
    }

    /// Records a poll that is over: below the life, since a slice of a thread cannot begin in the past.
    fn record_poll(&self, since: u64) {
        if POLLED.registered_epoch() == Some(self.epoch) {
            self.recorded.interval().record_since(&POLLED, self.epoch, since);
        }
        long_polls::check(self.epoch, self.number, now().saturating_sub(since));
    }
}

fn now() -> u64 {
    this_thread::hot().now()
}

/// The poll of a task by this thread.
#[derive(Debug)]
struct Poll {
    number: u64,
    slice: Option<PollOfTask>,
    entered: Option<Entered>,
    of: Of,
    began_at: u64,
    /// The number of the recorded task that the thread polled before.
    current: u32,
    /// The question before.
    question: Option<Arc<Question>>,
    above: Option<Box<Poll>>,
}

impl Poll {
    /// Begins it.
    ///
    /// # Safety
    /// That of [`HookedTasks::begin_poll`].
    unsafe fn begin(number: u64, of: Of, epoch: Epoch, queued: Option<Duration>) -> Self {
        let (mut slice, mut entered, mut question, mut began_at) = (None, None, None, 0);
        let mut current = tasks::CURRENT.get();
        let begin = |callsite: &'static Callsite, flow: &Flow, task| {
            Some(PollOfTask::new(Scope::begin_flow(callsite, callsite.registered_epoch()?, flow), task))
        };
        match &of {
            Of::Life(life) => {
                life.record_queue(epoch, queued);
                slice = begin(life.callsite, life.recorded.flow(), life.number);
                #[cfg(feature = "subscriber")]
                let spans = tracing::entered_spans();
                #[cfg(not(feature = "subscriber"))]
                let spans = 0;
                // SAFETY: as the caller grants.
                entered = Some(unsafe { Entered::new(Arc::clone(&life.recorded), spans) });
                current = tasks::CURRENT.replace(life.number);
            }
            Of::Polls(polls) => slice = begin(polls.callsite, &polls.flow, 0),
            Of::Assumed(assumed) if assumed.is_root.answer.get().is_none() => {
                (question, began_at) = (Some(Arc::clone(&assumed.is_root)), now());
            }
            Of::Assumed(_) => {}
        }
        let question = roots::ask(question);
        Self { number, slice, entered, of, began_at, current, question, above: None }
    }

    /// Makes this the thread's innermost poll.
    fn push(self) {
        let Ok(above) = POLL.try_with(Cell::take) else { return };
        let _ = POLL.try_with(|poll| poll.set(Some(Self { above: above.map(Box::new), ..self })));
        DEPTH.set(DEPTH.get() + 1);
    }

    /// Ends it. Returns what is recorded of the task from now on, if that has changed.
    fn end(self) -> Option<Of> {
        tasks::CURRENT.set(self.current);
        drop(roots::ask(self.question));
        if let Some(entered) = self.entered {
            entered.leave();
        }
        drop(self.slice);
        let Of::Assumed(assumed) = &self.of else { return None };
        if assumed.is_root.answer.get().is_some() {
            return None;
        }
        let of = assumed.begin_life()?;
        if let Of::Life(life) = &of {
            life.record_poll(self.began_at);
        }
        Some(of)
    }
}

/// Takes the innermost poll of this thread, if it is that of a task.
fn take_poll_of(number: u64) -> Option<Poll> {
    let mut poll = POLL.try_with(Cell::take).ok()??;
    if poll.number != number {
        let _ = POLL.try_with(|innermost| innermost.set(Some(poll)));
        return None;
    }
    let _ = POLL.try_with(|innermost| innermost.set(poll.above.take().map(|above| *above)));
    DEPTH.set(DEPTH.get() - 1);
    Some(poll)
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::*;
    use crate::options::Format;
    use crate::{Session, TraceFuture};

    fn here() -> &'static Location<'static> {
        Location::caller()
    }

    fn known(tasks: &HookedTasks) -> usize {
        let in_lists = |list: &Mutex<Option<Box<Known>>>| {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            std::iter::successors(list.as_deref(), |task| task.next.as_deref()).count()
        };
        let number = tasks.lists.iter().map(in_lists).sum();
        assert_eq!(number, tasks.known.load(Relaxed));
        number
    }

    #[test]
    fn a_table_has_the_tasks_that_are_not_over() {
        let _turn = crate::on::TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for format in [Format::Fxt, Format::TrackEvent] {
            let tasks = HookedTasks::new();
            // SAFETY: This thread alone polls.
            let poll = |number| unsafe { tasks.begin_poll(number, here(), None) };
            tasks.spawn(7, here()); // nothing is recorded
            poll(7);
            tasks.end_poll(7);
            assert_eq!(known(&tasks), 0);

            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            poll(7); // older than the session
            tasks.end_poll(7);
            let lists = LISTS as u64;
            for number in [8, 8 + lists, 8 + 2 * lists, 9] {
                tasks.spawn(number, here());
            }
            assert_eq!(known(&tasks), 5);
            poll(8 + lists);
            poll(9); // inside of it
            tasks.end(9);
            tasks.end_poll(9);
            tasks.end(8 + lists);
            tasks.end_poll(8 + lists);
            tasks.end(8 + 2 * lists); // never polled
            assert_eq!(known(&tasks), 2, "7 and 8");
            tasks.end(10); // the runtime is over: its end comes before its spawn
            tasks.spawn(10, here());
            assert_eq!(known(&tasks), 2);
            tasks.spawn(11, here());
            poll(11);
            let summary = session.stop().expect("no error");
            assert_eq!(summary.lost.total(), 0, "{format:?}");
            tasks.end_poll(11);
            for number in [7, 8, 11] {
                tasks.end(number);
            }
            assert_eq!((known(&tasks), DEPTH.get()), (0, 0), "{format:?}");
        }
    }

    #[test]
    fn a_task_that_is_over_before_its_first_poll_is_still_the_one_that_records_itself() {
        let _turn = crate::on::TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = HookedTasks::new();
        let session = Session::builder().output_writer(std::io::sink()).start().expect("a session");
        let task = std::future::pending::<()>().traced_task("t", "task");
        tasks.spawn(1, here());
        // SAFETY: This thread alone polls.
        unsafe { tasks.begin_poll(1, here(), None) };
        drop(task); // aborted
        tasks.end(1);
        tasks.end_poll(1);
        // The life of one task, its spawn, and nothing of another one.
        assert_eq!(session.stop().expect("no error").records, 3);
        assert_eq!(known(&tasks), 0);
    }
}
