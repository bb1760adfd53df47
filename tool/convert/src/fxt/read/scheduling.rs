//! Scheduling records to changes of thread states.

use std::collections::HashMap;

use hairline_formats::Value;
use hairline_formats::fxt::{Arguments, Record, ThreadRef, ThreadState};

use crate::fxt::read::current::resolved;
use crate::fxt::read::reason::{Reason, TIME, UNKNOWN_THREAD};
use crate::fxt::read::tables::Tables;
use crate::{RunState, StateChange};

/// Sets `changes` to those of the record. Returns `false` if it is no scheduling record.
pub(super) fn put(
    changes: &mut Vec<StateChange>,
    record: &Record<'_>,
    tables: &Tables,
) -> Result<bool, Reason> {
    changes.clear();
    let time = |ticks| tables.rate().ns(ticks).ok_or(TIME);
    let tid = |thread: ThreadRef| Ok(tables.thread(thread).ok_or(UNKNOWN_THREAD)?.thread);
    let mut add = |time: i64, tid: u64, state: RunState, cpu: u32, priority: Option<i32>| {
        // The idle task is no thread. By convention it has the lowest weight.
        if tid != 0 && priority != Some(i32::MIN) {
            changes.push(StateChange { cpu: Some(cpu), priority, ..StateChange::new(time, tid, state) });
        }
    };
    match record {
        Record::ContextSwitch(switch) => {
            let (time, cpu) = (time(switch.timestamp)?, u32::from(switch.cpu));
            let weights = weights(&switch.args, tables);
            let weight = |name: &str| weights.get(name).copied();
            add(time, switch.outgoing, run_state(switch.outgoing_state), cpu, weight("outgoing_weight"));
            add(time, switch.incoming, RunState::Running, cpu, weight("incoming_weight"));
        }
        Record::LegacyContextSwitch(switch) => {
            let (time, cpu) = (time(switch.timestamp)?, u32::from(switch.cpu));
            let (outgoing, incoming) = (tid(switch.outgoing)?, tid(switch.incoming)?);
            // A thread of priority 0 is the idle task.
            let mut add = |tid, state, priority: u8| {
                if priority > 0 {
                    add(time, tid, state, cpu, Some(i32::from(priority)));
                }
            };
            add(outgoing, run_state(switch.outgoing_state), switch.outgoing_priority);
            add(incoming, RunState::Running, switch.incoming_priority);
        }
        Record::ThreadWakeup(wakeup) => {
            let weights = weights(&wakeup.args, tables);
            let priority = weights.get("weight").copied();
            let time = time(wakeup.timestamp)?;
            add(time, wakeup.thread, RunState::Runnable, u32::from(wakeup.cpu), priority);
            changes.iter_mut().for_each(|change| change.is_wakeup = true);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn run_state(state: ThreadState) -> RunState {
    match state {
        ThreadState::Suspended => RunState::Stopped,
        ThreadState::Blocked => RunState::Sleeping,
        ThreadState::Dying | ThreadState::Dead => RunState::Dead,
        _ => RunState::Runnable,
    }
}

fn weights(args: &Arguments<'_>, tables: &Tables) -> HashMap<String, i32> {
    let weight = |(name, value)| match resolved(value, tables) {
        Value::I64(weight) => Some((tables.string(name)?.text.to_owned(), i32::try_from(weight).ok()?)),
        _ => None,
    };
    args.clone().flatten().filter_map(weight).collect()
}
