//! Changes of thread states: packets that have one each, and bundles of ftrace events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use hairline_formats::proto::{Field, FieldValue, Fields};
use hairline_formats::track_event::{TaskState, TaskStateEvent, Thread};
use hairline_formats::{DecodeError, truncate_utf8};

use crate::{RunState, StateChange};

/// The limit for remembered names of threads, some 80 bytes each.
const MOST_NAMES: usize = 1 << 18;
/// The limit for such a name, in bytes. Those of Linux have at most 15.
const MOST_NAME: usize = 256;
/// The limit for changes of one packet. A bundle of the tracing service has some thousand.
const MOST_CHANGES: usize = 1 << 20;

/// `FtraceEventBundle`.
mod bundle {
    pub(super) const CPU: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const LOST_EVENTS: u32 = 3;
    pub(super) const COMPACT_SCHED: u32 = 4;
    pub(super) const FTRACE_CLOCK: u32 = 5;
}

/// `FtraceEvent`.
mod ftrace_event {
    pub(super) const TIMESTAMP: u32 = 1;
    pub(super) const PID: u32 = 2;
    pub(super) const SCHED_SWITCH: u32 = 4;
    pub(super) const COMMON_FLAGS: u32 = 5;
    pub(super) const SCHED_WAKEUP: u32 = 17;
    pub(super) const SCHED_WAKING: u32 = 20;
}

/// `FtraceEventBundle.CompactSched`.
mod compact {
    pub(super) const SWITCH_TIMESTAMP: u32 = 1;
    pub(super) const SWITCH_PREV_STATE: u32 = 2;
    pub(super) const SWITCH_NEXT_PID: u32 = 3;
    pub(super) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(super) const INTERN_TABLE: u32 = 5;
    pub(super) const SWITCH_NEXT_COMM_INDEX: u32 = 6;
    pub(super) const WAKING_TIMESTAMP: u32 = 7;
    pub(super) const WAKING_PID: u32 = 8;
    pub(super) const WAKING_COMM_INDEX: u32 = 11;
}

/// The changes of the current packet, and what later packets need.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    pub(super) changes: Vec<StateChange>,
    /// The events of the current packet that are no changes.
    pub(super) others: u64,
    /// The malformed changes of the current packet, and those beyond its limit.
    pub(super) malformed: u64,
    pub(super) is_lossy: bool,
    names: HashMap<u64, Arc<str>>,
    /// Names and processes of threads in process trees, until the next change of the thread.
    in_trees: HashMap<u64, (Arc<str>, u64)>,
    /// The thread that runs on each processor, for the compact encoding.
    running: HashMap<u32, u64>,
}

/// The flags of an event in a hard or soft interrupt. Its thread is the one that was interrupted.
const INTERRUPT: u64 = 0x8 | 0x10;

/// The number in a field.
fn number(field: &Field<'_>) -> Option<u64> {
    match field.value {
        FieldValue::Varint(value) => Some(value),
        _ => None,
    }
}

/// An `int32` or `int64` that is an id.
fn id(value: u64) -> u64 {
    u64::from(value as u32)
}

/// The kernel's name of a thread: any bytes.
fn text<'a>(field: &Field<'a>) -> Option<Cow<'a, str>> {
    match field.value {
        FieldValue::Bytes { bytes, .. } => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}

impl Scheduler {
    fn clear(&mut self) {
        self.changes.clear();
        (self.others, self.malformed, self.is_lossy) = (0, 0, false);
    }

    /// The name of a thread, if it is new.
    fn name(&mut self, tid: u64, name: Option<&str>) -> Option<Arc<str>> {
        let name = truncate_utf8(name.filter(|name| !name.is_empty())?, MOST_NAME);
        match self.names.get_mut(&tid) {
            Some(known) if **known == *name => None,
            Some(known) => {
                *known = name.into();
                Some(Arc::clone(known))
            }
            None => {
                let new: Arc<str> = name.into();
                if self.names.len() < MOST_NAMES {
                    self.names.insert(tid, Arc::clone(&new));
                }
                Some(new)
            }
        }
    }

    fn push(&mut self, change: StateChange, name: Option<&str>) {
        if change.tid == 0 {
            return; // the idle task
        }
        if self.changes.len() >= MOST_CHANGES {
            self.malformed += 1;
            return;
        }
        let (name, pid) = match self.in_trees.remove(&change.tid) {
            Some((name, pid)) => (Some(name), Some(pid)),
            None => (self.name(change.tid, name), None),
        };
        self.changes.push(StateChange { name, pid, ..change });
    }

    /// Stores the name of a thread in a process tree.
    pub(super) fn in_tree(&mut self, thread: &Thread<'_>) {
        let (tid, pid) = (u64::from(thread.tid.cast_unsigned()), u64::from(thread.pid.cast_unsigned()));
        if !thread.name.is_empty() && self.in_trees.len() < MOST_NAMES {
            self.in_trees.insert(tid, (truncate_utf8(thread.name, MOST_NAME).into(), pid));
        }
    }

    /// Reads a `GenericKernelTaskStateEvent`.
    pub(super) fn task_state(&mut self, event: &TaskStateEvent<'_>, time: i64) {
        self.clear();
        let state = match event.state {
            TaskState::Runnable => RunState::Runnable,
            TaskState::Running => RunState::Running,
            // A thread that is created does not run yet.
            TaskState::Created | TaskState::InterruptibleSleep => RunState::Sleeping,
            TaskState::UninterruptibleSleep => RunState::Uninterruptible,
            TaskState::Stopped => RunState::Stopped,
            TaskState::Dead | TaskState::Destroyed => RunState::Dead,
            _ => {
                self.malformed += 1;
                return;
            }
        };
        let cpu = event.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let change = StateChange::new(time, event.tid.cast_unsigned(), state);
        self.push(StateChange { cpu, priority: event.prio, ..change }, Some(event.comm));
    }

    /// Reads an `FtraceEventBundle`. Returns `false` if its clock is not the trace's.
    pub(super) fn bundle(&mut self, bytes: &[u8]) -> Result<bool, DecodeError> {
        self.clear();
        let mut cpu = 0;
        for field in Fields::new(bytes, 0) {
            let field = field?;
            match (field.number, number(&field)) {
                (bundle::CPU, Some(value)) => cpu = value as u32,
                (bundle::LOST_EVENTS, Some(value)) => self.is_lossy = value != 0,
                (bundle::FTRACE_CLOCK, Some(1..)) => return Ok(false),
                _ => {}
            }
        }
        if self.is_lossy {
            self.running.remove(&cpu);
        }
        for field in Fields::new(bytes, 0) {
            let field = field?;
            let FieldValue::Bytes { bytes, offset } = field.value else { continue };
            match field.number {
                bundle::EVENT => self.ftrace_event(cpu, Fields::new(bytes, offset))?,
                bundle::COMPACT_SCHED => self.compact(cpu, Fields::new(bytes, offset))?,
                _ => {}
            }
        }
        Ok(true)
    }

    fn ftrace_event(&mut self, cpu: u32, event: Fields<'_>) -> Result<(), DecodeError> {
        let (mut time, mut pid, mut is_interrupt, mut data) = (0, 0, false, None);
        for field in event {
            let field = field?;
            match (field.number, field.value) {
                (ftrace_event::TIMESTAMP, FieldValue::Varint(value)) => time = value.cast_signed(),
                (ftrace_event::PID, FieldValue::Varint(value)) => pid = id(value),
                (ftrace_event::COMMON_FLAGS, FieldValue::Varint(value)) => {
                    is_interrupt = value & INTERRUPT != 0;
                }
                (number, FieldValue::Bytes { bytes, offset }) => {
                    data = Some((number, Fields::new(bytes, offset)));
                }
                _ => {}
            }
        }
        match data {
            Some((ftrace_event::SCHED_SWITCH, switch)) => self.switch(cpu, time, switch),
            Some((ftrace_event::SCHED_WAKEUP | ftrace_event::SCHED_WAKING, waking)) => {
                self.waking(time, if is_interrupt { 0 } else { pid }, waking)
            }
            _ => {
                self.others += 1;
                Ok(())
            }
        }
    }

    fn switch(&mut self, cpu: u32, time: i64, switch: Fields<'_>) -> Result<(), DecodeError> {
        let (mut names, mut pids, mut priorities, mut state) = ([None, None], [0; 2], [None; 2], 0);
        for field in switch {
            let field = field?;
            match (field.number, number(&field)) {
                (1, None) => names[0] = text(&field),
                (2, Some(value)) => pids[0] = id(value),
                (3, Some(value)) => priorities[0] = Some(value as i32),
                (4, Some(value)) => state = value,
                (5, None) => names[1] = text(&field),
                (6, Some(value)) => pids[1] = id(value),
                (7, Some(value)) => priorities[1] = Some(value as i32),
                _ => {}
            }
        }
        self.running.insert(cpu, pids[1]);
        let out = StateChange {
            cpu: Some(cpu),
            priority: priorities[0],
            ..StateChange::new(time, pids[0], state_of_bits(state))
        };
        self.push(out, names[0].as_deref());
        self.runs(cpu, time, pids[1], priorities[1], names[1].as_deref());
        Ok(())
    }

    fn runs(&mut self, cpu: u32, time: i64, tid: u64, priority: Option<i32>, name: Option<&str>) {
        let change = StateChange::new(time, tid, RunState::Running);
        self.push(StateChange { cpu: Some(cpu), priority, ..change }, name);
    }

    fn waking(&mut self, time: i64, waker: u64, waking: Fields<'_>) -> Result<(), DecodeError> {
        let (mut name, mut pid) = (None, 0);
        for field in waking {
            let field = field?;
            match (field.number, number(&field)) {
                (1, None) => name = text(&field),
                (2, Some(value)) => pid = id(value),
                _ => {}
            }
        }
        self.wakes(time, pid, Some(waker), name.as_deref());
        Ok(())
    }

    fn wakes(&mut self, time: i64, tid: u64, waker: Option<u64>, name: Option<&str>) {
        let change = StateChange::new(time, tid, RunState::Runnable);
        self.push(StateChange { is_wakeup: true, waker, ..change }, name);
    }

    /// Reads columns of switches and wakings.
    fn compact(&mut self, cpu: u32, message: Fields<'_>) -> Result<(), DecodeError> {
        let mut names = Vec::new();
        let mut columns: [Column<'_>; 12] = std::array::from_fn(|_| Column::default());
        for field in message {
            let field = field?;
            match field.value {
                FieldValue::Bytes { bytes, .. } if field.number == compact::INTERN_TABLE => {
                    names.push(String::from_utf8_lossy(bytes));
                }
                FieldValue::Bytes { bytes, .. } => {
                    if let Some(column) = columns.get_mut(field.number as usize) {
                        column.rest = bytes;
                    }
                }
                _ => {}
            }
        }
        let name = |index: Option<u64>| names.get(usize::try_from(index?).ok()?).map(|name| &**name);
        let mut time = 0_i64;
        while let Some(delta) = columns[compact::SWITCH_TIMESTAMP as usize].next() {
            let mut next = |column: u32| columns[column as usize].next();
            let (state, tid) = (next(compact::SWITCH_PREV_STATE), next(compact::SWITCH_NEXT_PID));
            let (priority, comm) = (next(compact::SWITCH_NEXT_PRIO), next(compact::SWITCH_NEXT_COMM_INDEX));
            let sum = time.checked_add(delta.cast_signed());
            let (Some(state), Some(tid), Some(now)) = (state, tid.map(id), sum) else {
                self.malformed += 1;
                break;
            };
            time = now;
            // The thread that ran is the one of the switch before.
            if let Some(out) = self.running.insert(cpu, tid) {
                let change = StateChange::new(time, out, state_of_bits(state));
                self.push(StateChange { cpu: Some(cpu), ..change }, None);
            }
            self.runs(cpu, time, tid, priority.map(|value| value as i32), name(comm));
        }
        time = 0;
        while let Some(delta) = columns[compact::WAKING_TIMESTAMP as usize].next() {
            let mut next = |column: u32| columns[column as usize].next();
            let (tid, comm) = (next(compact::WAKING_PID), next(compact::WAKING_COMM_INDEX));
            let (Some(tid), Some(now)) = (tid.map(id), time.checked_add(delta.cast_signed())) else {
                self.malformed += 1;
                break;
            };
            time = now;
            self.wakes(time, tid, None, name(comm));
        }
        Ok(())
    }
}

/// A packed column of numbers.
#[derive(Default)]
struct Column<'a> {
    rest: &'a [u8],
}

impl Iterator for Column<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for (place, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Some(value);
            }
        }
        self.rest = &[];
        None
    }
}

/// The state in the bits of `prev_state`. Without any, the thread could have run on.
fn state_of_bits(bits: u64) -> RunState {
    match bits & 0xff {
        0 => RunState::Runnable,
        bits if bits & 1 != 0 => RunState::Sleeping,
        bits if bits & 2 != 0 => RunState::Uninterruptible,
        bits if bits & 12 != 0 => RunState::Stopped,
        bits if bits & 48 != 0 => RunState::Dead,
        _ => RunState::Sleeping,
    }
}

#[cfg(test)]
mod tests {
    use hairline_formats::proto::{put_bytes, put_message, put_uint, put_varint};

    use super::*;

    fn short(scheduler: &Scheduler) -> Vec<(i64, u64, RunState)> {
        scheduler.changes.iter().map(|change| (change.time, change.tid, change.state)).collect()
    }

    #[test]
    fn columns_are_deltas_and_the_thread_before_is_that_of_the_switch_before() {
        let mut bytes = Vec::new();
        put_uint(&mut bytes, bundle::CPU, 1);
        put_message(&mut bytes, bundle::COMPACT_SCHED, |out| {
            let columns: [(u32, &[u64]); 6] = [
                (compact::SWITCH_TIMESTAMP, &[1000, 50, 50]),
                (compact::SWITCH_PREV_STATE, &[1, 0, 2]),
                (compact::SWITCH_NEXT_PID, &[7, 8, 0]),
                (compact::SWITCH_NEXT_COMM_INDEX, &[0, 1, 9]),
                (compact::WAKING_TIMESTAMP, &[1010]),
                (compact::WAKING_PID, &[8]),
            ];
            for (field, values) in columns {
                let mut packed = Vec::new();
                values.iter().for_each(|value| put_varint(&mut packed, *value));
                put_bytes(out, field, &packed);
            }
            put_bytes(out, compact::INTERN_TABLE, b"a");
            put_bytes(out, compact::INTERN_TABLE, b"b");
        });
        let mut scheduler = Scheduler::default();
        assert!(scheduler.bundle(&bytes).unwrap());
        let expected = [
            (1000, 7, RunState::Running),
            (1050, 7, RunState::Runnable),
            (1050, 8, RunState::Running),
            (1100, 8, RunState::Uninterruptible),
            (1010, 8, RunState::Runnable),
        ];
        assert_eq!(short(&scheduler), expected);
        assert_eq!(scheduler.changes[2].name.as_deref(), Some("b"));
        assert!(scheduler.changes[4].is_wakeup);
    }

    #[test]
    fn columns_of_different_lengths_end_with_the_shortest() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, bundle::COMPACT_SCHED, |out| {
            put_bytes(out, compact::SWITCH_TIMESTAMP, &[1, 1, 1, 0xff]);
            put_bytes(out, compact::SWITCH_PREV_STATE, &[0]);
            put_bytes(out, compact::SWITCH_NEXT_PID, &[5, 6]);
            put_bytes(out, compact::WAKING_TIMESTAMP, &[1, 1]);
        });
        let mut scheduler = Scheduler::default();
        assert!(scheduler.bundle(&bytes).unwrap());
        assert_eq!((scheduler.changes.len(), scheduler.malformed), (1, 2));
    }
}
