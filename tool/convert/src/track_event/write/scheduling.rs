//! Changes of thread states to packets.

use std::sync::Arc;

use hairline_formats::track_event::{self as te, TaskState, TaskStateEvent, Thread};

use crate::scheduling::{BEFORE_0, OTHERS, WAKERS};
use crate::track_event::write::scheduled::MOST_THREADS;
use crate::track_event::write::state::State;
use crate::track_event::write::tracks::GENERAL_SEQUENCE;
use crate::{RunState, Scheduling, StateChange, TraceFormat};

impl State {
    pub(super) fn scheduling(&mut self, scheduling: &Scheduling<'_>) {
        self.thread_names(scheduling.changes);
        if let Some(copy) = scheduling.copy.filter(|copy| copy.format == TraceFormat::TrackEvent) {
            return self.copy(copy.bytes);
        }
        self.report.add_many(OTHERS, scheduling.others);
        for change in scheduling.changes {
            self.state_change(change);
        }
    }

    /// Writes the names that come with a process. They are in no packet with a state.
    fn thread_names(&mut self, changes: &[StateChange]) {
        let named = |change: &StateChange| {
            let (pid, tid) = (i32::try_from(change.pid?).ok()?, i32::try_from(change.tid).ok()?);
            Some((Thread { tid, pid, name: "" }, Arc::clone(change.name.as_ref()?)))
        };
        for (thread, name) in changes.iter().filter_map(named) {
            let thread = Thread { name: &name, ..thread };
            te::process_threads(&mut self.out, GENERAL_SEQUENCE, self.time, &[thread]);
        }
    }

    fn state_change(&mut self, change: &StateChange) {
        let Ok(time) = u64::try_from(change.time) else {
            return self.report.add(BEFORE_0);
        };
        if self.scheduled.is_idle(change) {
            return self.report.add("wakeups of threads that ran left out");
        }
        // A thread that is described after its end would be another one.
        if let Some(track) = self.scheduled.tracks.remove(&change.tid) {
            self.tracks.describe(&mut self.out, track, &[], self.time.min(time));
        }
        if let Some(name) = &change.name
            && self.scheduled.names.len() < MOST_THREADS
        {
            self.scheduled.names.insert(change.tid, Arc::clone(name));
        }
        let name = self.scheduled.names.get(&change.tid);
        self.report.add_many(WAKERS, change.waker.is_some_and(|waker| waker != 0).into());
        let event = TaskStateEvent {
            cpu: change.cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            comm: name.map_or("", |name| name),
            prio: change.priority,
            ..TaskStateEvent::new(change.tid.cast_signed(), task_state(change.state))
        };
        te::task_state(&mut self.out, GENERAL_SEQUENCE, time, &event);
    }
}

fn task_state(state: RunState) -> TaskState {
    match state {
        RunState::Running => TaskState::Running,
        RunState::Runnable => TaskState::Runnable,
        RunState::Sleeping => TaskState::InterruptibleSleep,
        RunState::Uninterruptible => TaskState::UninterruptibleSleep,
        RunState::Stopped => TaskState::Stopped,
        // With `Dead` of a process's first thread, importers take what follows of its others for new threads.
        RunState::Dead => TaskState::Destroyed,
    }
}
