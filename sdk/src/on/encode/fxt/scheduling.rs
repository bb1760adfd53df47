//! The states of threads, as context switches. The kernel reports each side of a switch by itself, so the other
//! side is the idle thread.

use hairline_formats::{Value, fxt};
use hairline_perf::{Change, State};

use crate::on::encode::cut;
use crate::on::encode::scheduling::{Scheduling, shown};

/// The weight of the idle thread of a processor: importers show no row for it.
const IDLE: i64 = i32::MIN as i64;

/// The koid of a thread that is none.
const NO_THREAD: u64 = 0;

/// Writes names and states. Of two names of a thread, readers show the later one in the file.
pub(crate) fn put(out: &mut Vec<u8>, of: &Scheduling<'_>) {
    for named in of.names {
        let process = (fxt::StringRef::Inline("process"), Value::Koid(u64::from(named.task.pid)));
        let name = fxt::StringRef::Inline(cut(shown(named)));
        fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(named.task.tid), name, &[process]);
    }
    of.changes.iter().for_each(|change| put_change(out, change));
}

fn put_change(out: &mut Vec<u8>, change: &Change) {
    let thread = u64::from(change.task.tid);
    let state = match change.state {
        State::Running | State::Runnable => fxt::ThreadState::Running,
        State::Asleep => fxt::ThreadState::Blocked,
        State::Dead => fxt::ThreadState::Dead,
    };
    let is_in = change.state == State::Running;
    let (outgoing, outgoing_state, incoming, idle) = if is_in {
        (NO_THREAD, fxt::ThreadState::Blocked, thread, "outgoing_weight")
    } else {
        (thread, state, NO_THREAD, "incoming_weight")
    };
    let switch = fxt::ContextSwitch {
        timestamp: change.time,
        cpu: u16::try_from(change.cpu).unwrap_or(u16::MAX),
        outgoing,
        outgoing_state,
        incoming,
        args: &[(fxt::StringRef::Inline(idle), Value::I64(IDLE))][..],
    };
    fxt::context_switch(out, &switch);
}
