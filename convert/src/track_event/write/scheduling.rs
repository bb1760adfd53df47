//! Changes of thread states to packets.

use std::collections::HashMap;
use std::sync::Arc;

use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{trace, trace_packet};

use crate::track_event::write::state::State;
use crate::track_event::write::tracks::GENERAL_SEQUENCE;
use crate::{Report, RunState, Scheduling, StateChange, TraceFormat, TrackId};

/// `TracePacket.generic_kernel_task_state_event`.
const TASK_STATE: u32 = 117;

/// The limit for threads whose state is remembered.
const MOST_THREADS: usize = 1 << 20;

pub(crate) const OTHERS: &str = "ftrace events that are not about scheduling left out";

/// What is known of each thread.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    /// The tracks of threads.
    pub(super) tracks: HashMap<u64, TrackId>,
    running: HashMap<u64, bool>,
    names: HashMap<u64, Arc<str>>,
}

impl Scheduled {
    /// Whether a change has no effect: the wakeup of a thread that runs.
    fn is_idle(&mut self, change: &StateChange) -> bool {
        let running = self.running.get(&change.tid).copied();
        if change.is_wakeup && running == Some(true) {
            return true;
        }
        if running.is_some() || self.running.len() < MOST_THREADS {
            self.running.insert(change.tid, change.state.is_running());
        }
        false
    }
}

impl State {
    pub(super) fn scheduling(&mut self, scheduling: &Scheduling<'_>) {
        if let Some(copy) = scheduling.copy.filter(|copy| copy.format == TraceFormat::TrackEvent) {
            return self.copy(copy.bytes);
        }
        self.report.add_many(OTHERS, scheduling.others);
        for change in scheduling.changes {
            self.state_change(change);
        }
    }

    fn state_change(&mut self, change: &StateChange) {
        let Ok(time) = u64::try_from(change.time) else {
            return self.report.add("thread states before 0, left out");
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
        put_message(&mut self.out, trace::PACKET, |out| {
            put_uint(out, trace_packet::TIMESTAMP, time);
            put_uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(GENERAL_SEQUENCE.0));
            put_message(out, TASK_STATE, |out| put_task_state(out, change, name, &mut self.report));
        });
    }
}

fn put_task_state(out: &mut Vec<u8>, change: &StateChange, name: Option<&Arc<str>>, report: &mut Report) {
    let state = match change.state {
        RunState::Running => 3,
        RunState::Runnable => 2,
        RunState::Sleeping => 4,
        RunState::Uninterruptible => 5,
        RunState::Stopped => 6,
        RunState::Dead => 7,
    };
    report.add_many("wakers of threads left out", change.waker.is_some().into());
    if let Some(cpu) = change.cpu {
        put_uint(out, 1, u64::from(cpu));
    }
    if let Some(name) = name {
        put_str(out, 2, name);
    }
    put_uint(out, 3, change.tid);
    put_uint(out, 4, state);
    if let Some(priority) = change.priority {
        put_uint(out, 5, i64::from(priority).cast_unsigned());
    }
}
