//! The states of threads, from the records of all processors.
//!
//! Each ring is in the order of time, but a thread moves from one processor to another. So the records of all
//! rings wait here until none that is older can come: [`Tasks::take`] gets them up to a time.
//!
//! | record | state from then on |
//! |---|---|
//! | `Fork` | runnable |
//! | `Switch` in | running |
//! | `Switch` out, preempted | runnable |
//! | `Switch` out, waiting | asleep: the kernel does not report to a user what for |
//! | `Exit` | dead; no switch follows |
//! | `Comm` of an exec | the process's other threads: dead |
//! | waking | runnable, with the waker, if the thread is asleep |
//! | stop | as that of the `Switch` out which follows: stopped, by a signal or a debugger |
//!
//! Wake-ups and stops need more rights. Without them a thread that can run again after a sleep stays asleep
//! until it runs, and a thread that is stopped is asleep.
//!
//! A record that repeats the state of its thread is ignored. Two events may count for one thread: it was
//! opened, and has inherited from a thread that was opened before.

use hairline_formats::{SideState, SwitchSide};

use crate::maps::Map;
use crate::record::{Direction, Record, Stamp, Task};

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread runs.
    Running,
    /// The thread waits for a processor.
    Runnable,
    /// The thread waits for something else.
    Asleep,
    /// A signal or a debugger has stopped the thread.
    Stopped,
    /// The thread has ended.
    Dead,
}

impl State {
    /// Whether the thread waits for something else than a processor.
    fn is_asleep(self) -> bool {
        matches!(self, Self::Asleep | Self::Stopped)
    }
}

/// A thread gets into a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// `CLOCK_BOOTTIME`, in ns.
    pub time: u64,
    /// The thread.
    pub task: Task,
    /// The processor, in which the change happened.
    pub cpu: u32,
    /// The state from then on.
    pub state: State,
    /// What has woken the thread, if it is [`Runnable`](State::Runnable) for that reason and the kernel
    /// tells.
    pub waker: Option<Waker>,
}

/// As both formats write it.
impl From<&Change> for SwitchSide {
    fn from(change: &Change) -> Self {
        let state = match (change.state, change.waker) {
            (_, Some(Waker { tid, is_interrupt })) => SideState::Woken { waker: tid, is_interrupt },
            (State::Running, None) => SideState::Running,
            (State::Runnable, None) => SideState::Runnable,
            (State::Asleep, None) => SideState::Asleep,
            (State::Stopped, None) => SideState::Stopped,
            (State::Dead, None) => SideState::Dead,
        };
        Self { time: change.time, tid: change.task.tid, cpu: change.cpu, state }
    }
}

/// What wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The thread that ran; 0 if an interrupt stopped one that is not followed.
    pub tid: u32,
    /// Whether an interrupt of that thread has done it.
    pub is_interrupt: bool,
}

/// A thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// The thread that could go on from then on.
    pub tid: u32,
    /// Whether an interrupt has woken it, while the stamp's thread ran.
    pub is_by_interrupt: bool,
}

/// The kernel's name of a thread, for a thread that is new or has another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The thread.
    pub task: Task,
    /// At most 15 bytes.
    pub name: Box<str>,
}

/// What [`Tasks::take`] returns.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Names, before the changes of their threads.
    pub names: Vec<Named>,
    /// Changes, in the order of time.
    pub changes: Vec<Change>,
}

/// Follows the states of threads.
///
/// ```
/// use hairline_perf::{Direction, Record, Stamp, State, Tasks};
///
/// let mut tasks = Tasks::new(None);
/// let at = |time, cpu| Stamp { pid: 70, tid: 71, time, id: 0, cpu };
/// tasks.add(&Record::Switch { direction: Direction::In }, at(300, 1)); // the ring of processor 1
/// tasks.add(&Record::Switch { direction: Direction::In }, at(100, 0)); // and of processor 0
/// tasks.add(&Record::Switch { direction: Direction::OutWaiting }, at(200, 0));
/// let states: Vec<_> = tasks.take(250).changes.iter().map(|change| (change.time, change.state)).collect();
/// assert_eq!(states, [(100, State::Running), (200, State::Asleep)]);
/// ```
#[derive(Debug)]
pub struct Tasks {
    /// The process whose threads count. `None`: all.
    only: Option<u32>,
    /// Records that older ones may precede.
    pending: Vec<Pending>,
    known: Map<u32, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    stamp: Stamp,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Switch(Direction),
    Fork(Task),
    Exit(Task),
    Name(Task, Name),
    /// A name that comes from exec.
    Program(Task, Name),
    /// The stamp's thread ran.
    Waking(Waking),
    /// The stamp's thread is about to leave its processor, stopped.
    Stop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Name {
    bytes: [u8; 16],
    length: u8,
}

/// A thread.
#[derive(Debug)]
struct Known {
    task: Task,
    /// `None`: unknown yet.
    state: Option<State>,
    /// The time and the processor of its last change; before it, those at which it was found.
    time: u64,
    cpu: u32,
    waker: Option<Waker>,
    /// `None`: unknown. A thread may have the empty name.
    name: Option<Name>,
    /// Whether its name was returned.
    is_named: bool,
    /// Whether the next switch out stops it.
    is_stopping: bool,
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let length = name.len().min(16);
        let mut bytes = [0; 16];
        bytes[..length].copy_from_slice(&name[..length]);
        Self { bytes, length: length as u8 }
    }

    fn text(&self) -> Box<str> {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)]).into()
    }
}

impl Tasks {
    /// Follows the threads of one process, or of all that have records.
    #[must_use]
    pub fn new(only: Option<u32>) -> Self {
        Self { only, pending: Vec::new(), known: Map::default() }
    }

    /// Adds a thread that exists when the recording begins, at `time`. An empty name is unknown. Without a
    /// state, its first record tells what it was: a thread that loses its processor has run.
    pub fn found(&mut self, task: Task, name: &[u8], time: u64, cpu: u32, state: Option<State>) -> bool {
        let known = Known {
            task,
            state,
            time,
            cpu,
            waker: None,
            name: (!name.is_empty()).then(|| Name::new(name)),
            is_named: false,
            is_stopping: false,
        };
        self.known.insert(task.tid, known).is_none()
    }

    /// Adds a record. Records without a meaning for states are ignored.
    pub fn add(&mut self, record: &Record<'_>, stamp: Stamp) {
        let (what, pid) = match *record {
            Record::Switch { direction } => (What::Switch(direction), stamp.pid),
            Record::Fork { child, .. } => (What::Fork(child), child.pid),
            Record::Exit { task, .. } => (What::Exit(task), task.pid),
            Record::Comm { task, name, is_exec } => {
                let what = if is_exec { What::Program } else { What::Name };
                (what(task, Name::new(name)), task.pid)
            }
            _ => return,
        };
        if self.only.is_none_or(|only| only == pid) {
            self.pending.push(Pending { stamp, what });
        }
    }

    /// Adds a wake-up, by the stamp's thread. Those of threads that are not followed are ignored.
    pub fn add_waking(&mut self, waking: Waking, stamp: Stamp) {
        self.pending.push(Pending { stamp, what: What::Waking(waking) });
    }

    /// Adds that the stamp's thread is about to stop.
    pub(crate) fn add_stop(&mut self, stamp: Stamp) {
        self.pending.push(Pending { stamp, what: What::Stop });
    }

    /// Returns the number of records that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Returns what the records up to this time (inclusive) tell. Later calls pass no earlier time.
    pub fn take(&mut self, until: u64) -> Taken {
        self.pending.sort_by_key(|pending| pending.stamp.time); // stable: a ring is in order
        let ready = self.pending.partition_point(|pending| pending.stamp.time <= until);
        let mut taken = Taken::default();
        let records: Vec<Pending> = self.pending.drain(..ready).collect();
        for Pending { stamp, what } in records {
            match what {
                What::Switch(direction) => self.switched(direction, stamp, &mut taken),
                What::Fork(child) => self.forked(child, stamp, &mut taken),
                What::Name(task, name) => self.renamed(task, name, stamp, &mut taken),
                What::Program(task, name) => {
                    self.executed(task, stamp, &mut taken);
                    self.renamed(task, name, stamp, &mut taken);
                }
                What::Exit(task) => self.ended(task, stamp, &mut taken),
                What::Waking(waking) => self.woken(waking, stamp, &mut taken),
                What::Stop => self.stopping(stamp),
            }
        }
        self.known.values_mut().for_each(|known| known.put_name(&mut taken.names));
        taken
    }

    /// Returns what is left at the end: threads that have been running the whole time have no record.
    pub fn take_rest(&mut self) -> Taken {
        let mut taken = self.take(u64::MAX);
        for known in self.known.values_mut().filter(|known| known.state.is_none()) {
            let (time, cpu) = (known.time, known.cpu);
            known.put(State::Running, time, cpu, &mut taken.changes);
        }
        taken
    }

    /// Returns the names and the last changes of all threads, for another file that is read alone.
    #[must_use]
    pub fn now(&self) -> Taken {
        let name = |known: &Known| known.name.map(|name| name.text()).unwrap_or_default();
        let names = |known: &Known| Named { task: known.task, name: name(known) };
        let change = |known: &Known| {
            let Known { task, time, cpu, state, .. } = *known;
            state.map(|state| Change { time, task, cpu, state, waker: known.waker })
        };
        Taken {
            names: self.known.values().map(names).collect(),
            changes: self.known.values().filter_map(change).collect(),
        }
    }

    fn switched(&mut self, direction: Direction, stamp: Stamp, taken: &mut Taken) {
        let task = Task { pid: stamp.pid, tid: stamp.tid };
        if task.tid == 0 {
            return;
        }
        let known = self.known.entry(task.tid).or_insert_with(|| Known::new(task, stamp));
        let state = match direction {
            Direction::In => State::Running,
            Direction::OutPreempted => State::Runnable,
            Direction::OutWaiting if known.is_stopping => State::Stopped,
            Direction::OutWaiting => State::Asleep,
        };
        known.is_stopping = false;
        if known.state.is_none() && direction != Direction::In {
            let since = known.time.min(stamp.time);
            known.put(State::Running, since, stamp.cpu, &mut taken.changes);
        }
        if known.state == Some(State::Running) && direction == Direction::In && known.cpu != stamp.cpu {
            // The record between was lost, and is counted.
            known.put(State::Runnable, stamp.time, known.cpu, &mut taken.changes);
        }
        known.put(state, stamp.time, stamp.cpu, &mut taken.changes);
    }

    fn forked(&mut self, child: Task, stamp: Stamp, taken: &mut Taken) {
        let parent = self.known.get(&stamp.tid).and_then(|parent| parent.name);
        match self.known.get(&child.tid).map(|known| known.task) {
            Some(known) if known == child => return, // found, or forked by a thread with two events
            Some(before) => self.ended(before, stamp, taken), // its own end was lost, and is counted
            None => {}
        }
        let mut known = Known { name: parent, ..Known::new(child, stamp) };
        known.put(State::Runnable, stamp.time, stamp.cpu, &mut taken.changes);
        self.known.insert(child.tid, known);
    }

    /// A thread that is on its way to sleep, or runs again already, is in no other state for it.
    fn woken(&mut self, waking: Waking, stamp: Stamp, taken: &mut Taken) {
        let is_other = waking.is_by_interrupt && !self.known.contains_key(&stamp.tid);
        if let Some(known) = self.known.get_mut(&waking.tid)
            && known.state.is_some_and(State::is_asleep)
        {
            let tid = if is_other { 0 } else { stamp.tid };
            let waker = Waker { tid, is_interrupt: waking.is_by_interrupt };
            known.put_woken(State::Runnable, stamp.time, stamp.cpu, Some(waker), &mut taken.changes);
        }
    }

    fn stopping(&mut self, stamp: Stamp) {
        let task = Task { pid: stamp.pid, tid: stamp.tid };
        let known = self.known.entry(task.tid).or_insert_with(|| Known::new(task, stamp));
        known.is_stopping = true;
    }

    fn renamed(&mut self, task: Task, name: Name, stamp: Stamp, taken: &mut Taken) {
        let known = self.known.entry(task.tid).or_insert_with(|| Known::new(task, stamp));
        known.is_named &= known.name == Some(name);
        known.name = Some(name);
        if known.state.is_none() && task.tid == stamp.tid {
            known.put(State::Running, stamp.time, stamp.cpu, &mut taken.changes); // it names itself
        }
    }

    /// An exec ends the other threads of its process. The one that executes gets the number of the first
    /// thread, and its own has no `Exit`.
    fn executed(&mut self, task: Task, stamp: Stamp, taken: &mut Taken) {
        let others = self.known.values().map(|known| known.task);
        let others: Vec<Task> = others.filter(|of| of.pid == task.pid && of.tid != task.tid).collect();
        others.into_iter().for_each(|other| self.ended(other, stamp, taken));
    }

    fn ended(&mut self, task: Task, stamp: Stamp, taken: &mut Taken) {
        // Of two events the second finds no thread.
        let Some(mut known) = self.known.remove(&task.tid) else { return };
        if known.state.is_none() {
            let since = known.time;
            known.put(State::Running, since, stamp.cpu, &mut taken.changes);
        }
        known.put_name(&mut taken.names);
        known.put(State::Dead, stamp.time, stamp.cpu, &mut taken.changes);
    }
}

impl Known {
    fn new(task: Task, stamp: Stamp) -> Self {
        let Stamp { time, cpu, .. } = stamp;
        Self { task, state: None, time, cpu, waker: None, name: None, is_named: false, is_stopping: false }
    }

    fn put(&mut self, state: State, time: u64, cpu: u32, changes: &mut Vec<Change>) {
        self.put_woken(state, time, cpu, None, changes);
    }

    fn put_woken(
        &mut self,
        state: State,
        time: u64,
        cpu: u32,
        waker: Option<Waker>,
        changes: &mut Vec<Change>,
    ) {
        if self.state != Some(state) {
            (self.state, self.time, self.cpu) = (Some(state), time, cpu);
            self.waker = waker;
            changes.push(Change { time, task: self.task, cpu, state, waker });
        }
    }

    fn put_name(&mut self, names: &mut Vec<Named>) {
        if let Some(name) = self.name.filter(|_| !self.is_named) {
            self.is_named = true;
            names.push(Named { task: self.task, name: name.text() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task { pid: 70, tid: 71 };

    fn at(time: u64, cpu: u32) -> Stamp {
        Stamp { pid: 70, tid: 71, time, id: 0, cpu }
    }

    fn switch(direction: Direction) -> Record<'static> {
        Record::Switch { direction }
    }

    fn states(taken: &Taken) -> Vec<(u64, u32, State)> {
        taken.changes.iter().map(|c| (c.time, c.cpu, c.state)).collect()
    }

    #[test]
    fn a_thread_that_was_found_running_has_run_since() {
        let mut tasks = Tasks::new(Some(70));
        tasks.found(TASK, b"main", 10, 0, None);
        tasks.add(&switch(Direction::OutPreempted), at(50, 1));
        let taken = tasks.take(100);
        assert_eq!(states(&taken), [(10, 1, State::Running), (50, 1, State::Runnable)]);
        assert_eq!(taken.names, [Named { task: TASK, name: "main".into() }]);
        assert!(tasks.take(200).names.is_empty());
    }

    #[test]
    fn a_thread_that_was_found_waiting_for_a_processor_has_no_state_before_it_runs() {
        let mut tasks = Tasks::new(None);
        tasks.found(TASK, b"", 10, 0, None);
        tasks.add(&switch(Direction::In), at(50, 1));
        assert_eq!(states(&tasks.take(100)), [(50, 1, State::Running)]);
    }

    #[test]
    fn a_thread_may_have_the_empty_name() {
        let mut tasks = Tasks::new(None);
        tasks.add(&switch(Direction::In), at(10, 1));
        assert!(tasks.take(15).names.is_empty(), "its name is not known");
        for (name, time) in [(&b"worker"[..], 20), (b"", 30), (b"", 40)] {
            tasks.add(&Record::Comm { task: TASK, name, is_exec: false }, at(time, 1));
        }
        assert_eq!(tasks.take(25).names, [Named { task: TASK, name: "worker".into() }]);
        assert_eq!(tasks.take(100).names, [Named { task: TASK, name: "".into() }]);
        // Its children have it too.
        let child = Task { pid: 70, tid: 72 };
        tasks.add(&Record::Fork { child, parent: TASK, time: 110 }, at(110, 1));
        assert_eq!(tasks.take(120).names, [Named { task: child, name: "".into() }]);
    }

    #[test]
    fn a_thread_without_a_switch_has_run_from_the_begin_to_the_end() {
        let mut tasks = Tasks::new(None);
        tasks.found(TASK, b"", 10, 3, None);
        assert!(tasks.take(100).changes.is_empty());
        assert_eq!(states(&tasks.take_rest()), [(10, 3, State::Running)]);
    }

    #[test]
    fn two_events_of_one_thread_count_once() {
        let mut tasks = Tasks::new(None);
        for (direction, time) in [(Direction::In, 10), (Direction::OutWaiting, 20), (Direction::In, 30)] {
            tasks.add(&switch(direction), at(time, 1));
            tasks.add(&switch(direction), at(time + 1, 1));
        }
        let exit = Record::Exit { task: TASK, time: 40 };
        tasks.add(&exit, at(40, 1));
        tasks.add(&exit, at(41, 1));
        let expected =
            [(10, 1, State::Running), (20, 1, State::Asleep), (30, 1, State::Running), (40, 1, State::Dead)];
        assert_eq!(states(&tasks.take(100)), expected);
    }

    #[test]
    fn a_lost_switch_leaves_no_thread_on_two_processors() {
        let mut tasks = Tasks::new(None);
        tasks.add(&switch(Direction::In), at(10, 1));
        tasks.add(&switch(Direction::In), at(30, 0));
        let expected = [(10, 1, State::Running), (30, 1, State::Runnable), (30, 0, State::Running)];
        assert_eq!(states(&tasks.take(100)), expected);
    }

    #[test]
    fn new_threads_have_the_names_of_their_parents_until_they_have_their_own() {
        let mut tasks = Tasks::new(Some(70));
        tasks.found(TASK, b"app", 1, 0, None);
        let child = Task { pid: 70, tid: 72 };
        let other = Task { pid: 99, tid: 99 };
        tasks.add(&Record::Fork { child, parent: TASK, time: 5 }, at(5, 0));
        tasks.add(&Record::Fork { child: other, parent: TASK, time: 6 }, at(6, 0));
        let taken = tasks.take(7);
        assert!(taken.names.contains(&Named { task: child, name: "app".into() }) && taken.names.len() == 2);
        assert_eq!(
            taken.changes,
            [Change { time: 5, task: child, cpu: 0, state: State::Runnable, waker: None }]
        );
        tasks.add(&Record::Comm { task: child, name: b"worker", is_exec: false }, at(8, 0));
        tasks.add(&Record::Exit { task: child, time: 9 }, at(9, 0));
        let taken = tasks.take(10);
        assert_eq!(taken.names, [Named { task: child, name: "worker".into() }]);
        assert_eq!(taken.changes, [Change { time: 9, task: child, cpu: 0, state: State::Dead, waker: None }]);
        assert_eq!(tasks.now().names.len(), 1, "an ended thread is forgotten");
    }

    #[test]
    fn a_thread_that_executes_a_program_leaves_no_other_thread_of_its_process() {
        let mut tasks = Tasks::new(None);
        // A thread that is not the first has the number of the first one from its exec on.
        let (first, worker) = (Task { pid: 70, tid: 70 }, Task { pid: 70, tid: 71 });
        let stamp = |of: Task, time| Stamp { pid: of.pid, tid: of.tid, time, id: 0, cpu: 1 };
        tasks.add(&Record::Exit { task: first, time: 10 }, stamp(first, 10));
        tasks.add(&switch(Direction::In), stamp(worker, 20));
        tasks.add(&Record::Comm { task: first, name: b"sleep", is_exec: true }, stamp(first, 30));
        let other = Task { pid: 80, tid: 80 };
        tasks.add(&switch(Direction::In), stamp(other, 5));
        let taken = tasks.take(100);
        let of = |task| {
            let changes = taken.changes.iter().filter(move |change| change.task == task);
            changes.map(|change| (change.time, change.state)).collect::<Vec<_>>()
        };
        assert_eq!(of(worker), [(20, State::Running), (30, State::Dead)]);
        assert_eq!(of(first), [(30, State::Running)]);
        assert_eq!(of(other), [(5, State::Running)]);
    }

    #[test]
    fn a_number_that_comes_again_in_another_process_is_another_thread() {
        let mut tasks = Tasks::new(None);
        tasks.add(&switch(Direction::In), at(10, 1));
        let child = Task { pid: 99, tid: TASK.tid }; // the end of the thread before was lost
        tasks.add(&Record::Fork { child, parent: Task { pid: 99, tid: 99 }, time: 50 }, at(50, 0));
        let changes: Vec<_> = tasks.take(100).changes.iter().map(|c| (c.task.pid, c.time, c.state)).collect();
        assert_eq!(changes, [(70, 10, State::Running), (70, 50, State::Dead), (99, 50, State::Runnable)]);
    }

    #[test]
    fn a_woken_thread_waits_for_a_processor_and_knows_its_waker() {
        let mut tasks = Tasks::new(Some(70));
        tasks.found(TASK, b"", 1, 0, Some(State::Asleep));
        let waking = Waking { tid: 71, is_by_interrupt: false };
        let by = |time, tid| Stamp { tid, ..at(time, 1) };
        tasks.add_waking(waking, by(5, 80));
        tasks.add_waking(waking, by(6, 81)); // it is awake already
        tasks.add_waking(Waking { tid: 99, ..waking }, by(7, 80)); // of another process
        tasks.add(&switch(Direction::In), at(9, 0));
        tasks.add_waking(waking, by(10, 80));
        let taken = tasks.take(100);
        assert_eq!(states(&taken), [(5, 1, State::Runnable), (9, 0, State::Running)]);
        let wakers: Vec<_> = taken.changes.iter().map(|change| change.waker).collect();
        assert_eq!(wakers, [Some(Waker { tid: 80, is_interrupt: false }), None]);
    }

    #[test]
    fn a_thread_that_stops_is_not_asleep_for_another_reason() {
        let mut tasks = Tasks::new(Some(70));
        tasks.add(&switch(Direction::In), at(5, 0));
        tasks.add_stop(at(9, 0));
        tasks.add(&switch(Direction::OutWaiting), at(10, 0));
        tasks.add_waking(Waking { tid: 71, is_by_interrupt: false }, Stamp { tid: 80, ..at(20, 1) });
        tasks.add(&switch(Direction::In), at(22, 0));
        tasks.add(&switch(Direction::OutWaiting), at(30, 0));
        let expected = [
            (5, 0, State::Running),
            (10, 0, State::Stopped),
            (20, 1, State::Runnable),
            (22, 0, State::Running),
            (30, 0, State::Asleep),
        ];
        assert_eq!(states(&tasks.take(100)), expected);
    }

    #[test]
    fn records_that_older_ones_may_precede_wait() {
        let mut tasks = Tasks::new(None);
        tasks.add(&switch(Direction::OutWaiting), at(200, 1));
        assert!(tasks.take(150).changes.is_empty() && tasks.waiting() == 1);
        tasks.add(&switch(Direction::In), at(160, 1));
        assert_eq!(states(&tasks.take(200)), [(160, 1, State::Running), (200, 1, State::Asleep)]);
    }
}
