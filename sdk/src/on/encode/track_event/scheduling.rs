//! The states of threads, as packets that importers take for the scheduler's.

use hairline_formats::track_event as te;
use hairline_perf::{Change, State};

use crate::on::encode::OWN_SEQUENCE;
use crate::on::encode::scheduling::{Scheduling, shown};

/// Writes names and states.
///
/// The names are in a process tree: a thread that records has a track with a name, which importers show before
/// it, whatever comes first. A second track of the thread would make a second thread of it.
pub(crate) fn put(out: &mut Vec<u8>, of: &Scheduling<'_>) {
    if !of.names.is_empty() {
        let threads: Vec<te::Thread<'_>> = of
            .names
            .iter()
            .map(|named| te::Thread {
                tid: named.task.tid.cast_signed(),
                pid: named.task.pid.cast_signed(),
                name: shown(named),
            })
            .collect();
        te::process_threads(out, OWN_SEQUENCE, of.time, &threads);
    }
    of.changes.iter().for_each(|change| put_change(out, change));
}

fn put_change(out: &mut Vec<u8>, change: &Change) {
    let (state, cpu) = match change.state {
        State::Running => (te::TaskState::Running, i32::try_from(change.cpu).ok()),
        State::Runnable => (te::TaskState::Runnable, None),
        State::Asleep => (te::TaskState::InterruptibleSleep, None),
        State::Dead => (te::TaskState::Dead, None),
    };
    let event = te::TaskStateEvent { cpu, ..te::TaskStateEvent::new(i64::from(change.task.tid), state) };
    te::task_state(out, OWN_SEQUENCE, change.time, &event);
}
