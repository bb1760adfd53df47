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
//! end. A thread takes a task out of the table while it polls it: no lock is held while code of the program
//! runs, and no memory is allocated or freed under one. The hooks see no wakes: the arrows lead from the
//! spawn to the polls.

use std::cell::Cell;
use std::mem;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hairline_formats::Value;

use crate::on::base::{clock, this_thread};
use crate::on::bridges::futures::Life;
use crate::on::bridges::polled::{Entered, Recorded};
use crate::on::bridges::roots::{self, Claim, Root};
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
    lists: Box<[Mutex<Option<Box<Task>>>]>,
    /// The number of tasks in the table or polled.
    known: AtomicUsize,
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
            self.known.fetch_add(1, Relaxed);
            self.put(Task::spawned(number, place, epoch));
        }
    }

    /// This thread is about to poll a task. It waited in the queue for the time `queued`, if that is known.
    pub fn begin_poll(&self, number: u64, place: &'static Location<'static>, queued: Option<Duration>) {
        let Some(epoch) = SPAWN.registered_epoch() else { return };
        let task = self.take(number).unwrap_or_else(|| {
            // It is older than the session.
            self.known.fetch_add(1, Relaxed);
            Task::new(number, Of::Polls(Polls::of(place)))
        });
        Poll::begin(task, epoch, queued).push();
    }

    /// The poll has ended.
    #[inline]
    pub fn end_poll(&self, number: u64) {
        if DEPTH.get() > 0 {
            self.end_recorded_poll(number);
        }
    }

    fn end_recorded_poll(&self, number: u64) {
        let Some(poll) = take_poll_of(number) else { return };
        match poll.end() {
            Some(task) => self.put(task),
            None => self.forget(),
        }
    }

    /// A task is over. This may be in its last poll.
    pub fn end(&self, number: u64) {
        let _ = LAST_ENDED.try_with(|last| last.set(number));
        if DEPTH.get() > 0
            && let Some(mut poll) = take_poll_of(number)
        {
            poll.is_last = true;
            poll.push();
        } else if self.known.load(Relaxed) > 0
            && let Some(task) = self.take(number)
        {
            drop(task);
            self.forget();
        }
    }

    fn forget(&self) {
        self.known.fetch_sub(1, Relaxed);
    }

    fn list(&self, number: u64) -> MutexGuard<'_, Option<Box<Task>>> {
        #[allow(clippy::cast_possible_truncation)] // the remainder
        let list = &self.lists[(number % LISTS as u64) as usize];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut task: Box<Task>) {
        let mut first = self.list(task.number);
        task.next = first.take();
        *first = Some(task);
    }

    fn take(&self, number: u64) -> Option<Box<Task>> {
        let mut list = self.list(number);
        let mut link = &mut *list;
        while link.as_ref()?.number != number {
            link = &mut link.as_mut()?.next;
        }
        let mut task = link.take()?;
        *link = task.next.take();
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

/// A task.
#[derive(Debug)]
struct Task {
    number: u64,
    of: Of,
    /// The next one in its list.
    next: Option<Box<Task>>,
}

/// What is recorded of a task.
#[derive(Debug)]
enum Of {
    Life(Lived),
    /// It is older than the session.
    Polls(Polls),
    /// It seems to be a root, which records itself. It was spawned at a place, in a session, at this time.
    Assumed(&'static Location<'static>, Epoch, u64),
    Root(&'static Location<'static>, Arc<Root>),
}

#[derive(Debug)]
struct Polls {
    callsite: &'static Callsite,
    flow: Flow,
}

impl Polls {
    fn of(place: &'static Location<'static>) -> Self {
        connect::connect(); // before the registry's lock
        Self { callsite: tasks::callsite_of("task", None, place), flow: Flow::new() }
    }
}

#[derive(Debug)]
struct Lived {
    callsite: &'static Callsite,
    epoch: Epoch,
    /// The number in the trace.
    number: u32,
    /// The time of its spawn, if it was not polled since.
    spawned_at: Option<u64>,
    /// `None` while it is polled.
    recorded: Option<Box<Recorded>>,
}

impl Task {
    fn new(number: u64, of: Of) -> Box<Self> {
        Box::new(Self { number, of, next: None })
    }

    fn spawned(number: u64, place: &'static Location<'static>, epoch: Epoch) -> Box<Self> {
        let of = if roots::is_spawn_of_root() {
            Of::Assumed(place, epoch, now())
        } else {
            Of::life(place, epoch, None)
        };
        Self::new(number, of)
    }
}

impl Of {
    /// Begins a life, now or in the past.
    fn life(place: &'static Location<'static>, epoch: Epoch, past: Option<u64>) -> Self {
        let _ = QUEUED.registered_epoch();
        let Polls { callsite, flow } = Polls::of(place);
        let number = tasks::new_number();
        let life = match past {
            _ if callsite.registered_epoch() != Some(epoch) => Life::none(callsite),
            None => Life::begin_task(callsite, epoch, &(i64::from(number), ())),
            Some(past) => Life::begin_task_at(callsite, epoch, &[Value::I64(i64::from(number))], past),
        };
        let Some(recorded) = life.into_recorded() else { return Self::Polls(Polls { callsite, flow }) };
        let spawned_at = past.is_none().then(|| tasks::record_spawn(epoch, &recorded.flow, place));
        Self::Life(Lived { callsite, epoch, number, spawned_at, recorded: Some(Box::new(recorded)) })
    }
}

impl Of {
    /// Records a poll that is over: below the life, since a slice of a thread cannot begin in the past.
    fn record_poll(&self, epoch: Epoch, since: u64) {
        if let Self::Life(Lived { recorded: Some(recorded), .. }) = self
            && POLLED.registered_epoch() == Some(epoch)
        {
            recorded.interval.record_since(&POLLED, epoch, since);
        }
    }
}

fn now() -> u64 {
    let hot = this_thread::hot();
    clock::now(hot.multiplier.get(), hot.offset.get())
}

/// The poll of a task by this thread.
#[derive(Debug)]
struct Poll {
    task: Box<Task>,
    slice: Option<Scope>,
    entered: Option<Entered>,
    began_at: u64,
    /// The number of the recorded task that the thread polled before.
    current: u32,
    /// The claim before.
    claim: Claim,
    /// The task is over.
    is_last: bool,
    above: Option<Box<Poll>>,
}

impl Poll {
    fn begin(mut task: Box<Task>, epoch: Epoch, queued: Option<Duration>) -> Self {
        if let Of::Root(place, root) = &task.of
            && root.is_over_in(epoch)
        {
            task.of = Of::Polls(Polls::of(place)); // the task had a root, and goes on without
        }
        let (mut slice, mut entered, mut began_at) = (None, None, 0);
        let (mut current, mut claim) = (tasks::CURRENT.get(), Claim::None);
        let begin = |callsite: &'static Callsite, flow: &Flow| {
            Some(Scope::begin_flow(callsite, callsite.registered_epoch()?, flow))
        };
        match &mut task.of {
            Of::Life(life) => {
                if let Some(mut recorded) = life.recorded.take() {
                    life.record_queue(&recorded, epoch, queued);
                    slice = begin(life.callsite, &recorded.flow);
                    #[cfg(feature = "subscriber")]
                    {
                        recorded.spans = tracing::entered_spans();
                    }
                    #[cfg(not(feature = "subscriber"))]
                    let _ = &mut recorded;
                    entered = Some(Entered::new(recorded));
                }
                current = tasks::CURRENT.replace(life.number);
            }
            Of::Polls(polls) => slice = begin(polls.callsite, &polls.flow),
            Of::Assumed(_, _, spawned_at) => (claim, began_at) = (Claim::Asked(*spawned_at), now()),
            Of::Root(..) => {}
        }
        Self { task, slice, entered, began_at, current, claim: claim.replace(), is_last: false, above: None }
    }

    /// Makes this the thread's innermost poll.
    fn push(self) {
        let Ok(above) = POLL.try_with(Cell::take) else { return };
        let _ = POLL.try_with(|poll| poll.set(Some(Self { above: above.map(Box::new), ..self })));
        DEPTH.set(DEPTH.get() + 1);
    }

    /// Ends it. Returns the task, unless it is over.
    fn end(mut self) -> Option<Box<Task>> {
        tasks::CURRENT.set(self.current);
        let claim = mem::take(&mut self.claim).replace();
        let left = self.entered.take().and_then(Entered::leave);
        self.slice = None;
        match &mut self.task.of {
            Of::Life(life) => life.recorded = left,
            Of::Assumed(place, epoch, spawned_at) => {
                let (place, epoch, spawned_at) = (*place, *epoch, *spawned_at);
                self.task.of = match claim {
                    Claim::By(root) => Of::Root(place, root),
                    _ if SPAWN.epoch() != Some(epoch) => Of::Polls(Polls::of(place)),
                    _ => Of::life(place, epoch, Some(spawned_at)),
                };
                self.task.of.record_poll(epoch, self.began_at);
            }
            Of::Polls(_) | Of::Root(..) => {}
        }
        (!self.is_last).then_some(self.task)
    }
}

impl Lived {
    /// Records how long the task was in the queue. Before its first poll it was there since its spawn.
    fn record_queue(&mut self, recorded: &Recorded, epoch: Epoch, queued: Option<Duration>) {
        let spawned_at = self.spawned_at.take();
        if epoch != self.epoch || QUEUED.epoch() != Some(epoch) {
            return;
        }
        let queued = queued.and_then(|queued| u64::try_from(queued.as_nanos()).ok());
        if let Some(since) = queued.map(|queued| now().saturating_sub(queued)).or(spawned_at) {
            recorded.interval.record_since(&QUEUED, epoch, since);
        }
    }
}

/// Takes the innermost poll of this thread, if it is that of a task.
fn take_poll_of(number: u64) -> Option<Poll> {
    let mut poll = POLL.try_with(Cell::take).ok()??;
    if poll.task.number != number {
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
        let in_lists = |list: &Mutex<Option<Box<Task>>>| {
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
            let poll = |number| tasks.begin_poll(number, here(), None);
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
        tasks.begin_poll(1, here(), None);
        drop(task); // aborted
        tasks.end(1);
        tasks.end_poll(1);
        // The life of one task, its spawn, and nothing of another one.
        assert_eq!(session.stop().expect("no error").records, 3);
        assert_eq!(known(&tasks), 0);
    }
}
