//! Changes of thread states to scheduling records.

use std::io::Write;
use std::sync::Arc;

use hairline_formats::Value;
use hairline_formats::fxt::{self, ContextSwitch, StringRef, ThreadState, ThreadWakeup};

use crate::fxt::write::scheduled::{Leaving, MOST_THREADS, Scheduled};
use crate::fxt::write::state::FxtWriter;
use crate::scheduling::{BEFORE_0, OTHERS, WAKERS};
use crate::{RunState, Scheduling, StateChange, TraceFormat};

/// The thread id of no thread: the idle task.
const IDLE: u64 = 0;

/// The weight of the idle task: importers show no row for it.
const IDLE_WEIGHT: i32 = i32::MIN;

impl<W: Write> FxtWriter<W> {
    pub(super) fn scheduling(&mut self, scheduling: &Scheduling<'_>) {
        if let Some(copy) = scheduling.copy.filter(|copy| copy.format == TraceFormat::Fxt) {
            return self.output.bytes.extend_from_slice(copy.bytes);
        }
        self.report.add_many(OTHERS, scheduling.others);
        for change in scheduling.changes {
            self.state_change(change);
        }
    }

    fn state_change(&mut self, change: &StateChange) {
        let Ok(time) = u64::try_from(change.time) else {
            return self.report.add(BEFORE_0);
        };
        if let Some(name) = &change.name
            && self.scheduled.names.len() < MOST_THREADS
        {
            self.scheduled.names.insert(change.tid, (Arc::clone(name), change.pid));
        }
        let known = self.scheduled.cpus.get(&change.tid).copied();
        let Ok(cpu) = u16::try_from(change.cpu.or(known).unwrap_or(0)) else {
            return self.report.add("thread states on processors beyond 16 bits left out");
        };
        match change.state {
            RunState::Running => {
                if self.scheduled.cpus.len() < MOST_THREADS {
                    self.scheduled.cpus.insert(change.tid, u32::from(cpu));
                }
                self.runs(time, cpu, change);
            }
            state if !change.is_wakeup && (known.is_some() || change.cpu.is_some()) => {
                self.leave();
                self.scheduled.cpus.remove(&change.tid);
                let state = self.thread_state(state);
                let (tid, priority) = (change.tid, change.priority);
                self.scheduled.leaving = Some(Leaving { time, cpu, tid, state, priority });
            }
            RunState::Runnable => {
                self.leave();
                self.report.add_many(WAKERS, change.waker.is_some_and(|waker| waker != 0).into());
                let weight = [(StringRef::Inline("weight"), weight(change.priority))];
                let args = if change.priority.is_some() { &weight[..] } else { &[] };
                let wakeup = ThreadWakeup { timestamp: time, cpu, thread: change.tid, args };
                fxt::thread_wakeup(&mut self.output.bytes, &wakeup);
            }
            // A thread that ends is asleep for the last time.
            RunState::Dead => {}
            _ => self.report.add("states of threads that did not run before left out"),
        }
    }

    fn thread_state(&mut self, state: RunState) -> ThreadState {
        match state {
            RunState::Running | RunState::Runnable => ThreadState::Running,
            RunState::Sleeping => ThreadState::Blocked,
            RunState::Uninterruptible => {
                self.report.add("uninterruptible sleeps became sleeps");
                ThreadState::Blocked
            }
            RunState::Stopped => ThreadState::Suspended,
            RunState::Dead => ThreadState::Dead,
        }
    }

    /// Writes the switch to a thread, from the one that leaves the processor at this time.
    fn runs(&mut self, time: u64, cpu: u16, change: &StateChange) {
        if self.scheduled.leaving.is_some_and(|leaving| (leaving.time, leaving.cpu) != (time, cpu)) {
            self.leave();
        }
        let leaving = self.scheduled.leaving.take();
        self.switch(time, cpu, leaving, Some((change.tid, change.priority)));
    }

    /// Writes the switch to the idle task, if a thread has left its processor.
    fn leave(&mut self) {
        if let Some(leaving) = self.scheduled.leaving.take() {
            self.switch(leaving.time, leaving.cpu, Some(leaving), None);
        }
    }

    /// Writes what was held back.
    pub(super) fn finish_scheduling(&mut self) {
        self.leave();
        let Scheduled { names, with_track, .. } = &self.scheduled;
        let mut names: Vec<_> = names.iter().filter(|(tid, _)| !with_track.contains(tid)).collect();
        names.sort_unstable();
        for (tid, (name, pid)) in names {
            let (name, out) = (StringRef::Inline(name), &mut self.output.bytes);
            let process = pid.map(|pid| (StringRef::Inline("process"), Value::Koid(pid)));
            fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, *tid, name, process.as_slice());
        }
    }

    fn switch(
        &mut self,
        timestamp: u64,
        cpu: u16,
        leaving: Option<Leaving>,
        incoming: Option<(u64, Option<i32>)>,
    ) {
        let mut args = Vec::new();
        let incoming_weight = incoming.map_or(Some(IDLE_WEIGHT), |(_, priority)| priority);
        let outgoing_weight = leaving.map_or(Some(IDLE_WEIGHT), |leaving| leaving.priority);
        for (name, priority) in [("incoming_weight", incoming_weight), ("outgoing_weight", outgoing_weight)] {
            if priority.is_some() {
                args.push((StringRef::Inline(name), weight(priority)));
            }
        }
        let switch = ContextSwitch {
            timestamp,
            cpu,
            outgoing: leaving.map_or(IDLE, |leaving| leaving.tid),
            outgoing_state: leaving.map_or(ThreadState::Running, |leaving| leaving.state),
            incoming: incoming.map_or(IDLE, |(tid, _)| tid),
            args: &args[..],
        };
        fxt::context_switch(&mut self.output.bytes, &switch);
    }
}

fn weight(priority: Option<i32>) -> Value<'static> {
    Value::I64(i64::from(priority.unwrap_or(0)))
}
