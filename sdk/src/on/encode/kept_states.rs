//! The states of threads that a flight recorder keeps for snapshots and for recovery: the entries of a tape.
//!
//! | entry | content |
//! |---|---|
//! | batch | time: names and states of all threads at this time follow, then what happens later |
//! | name | process, thread, name |
//! | change | time, process, thread, processor, state, waker |
//!
//! The tape forgets its oldest entries, so what is left begins with its first batch.

use hairline_perf::{Change, Named, State, Taken, Task, Waker};

const BATCH: u8 = 1;
const NAME: u8 = 2;
const CHANGE: u8 = 3;

/// The states, in the order of their numbers.
const STATES: [State; 5] = [State::Running, State::Runnable, State::Asleep, State::Dead, State::Stopped];

/// Numbers of a change's waker besides its thread.
const WOKEN: u8 = 1;
const BY_INTERRUPT: u8 = 2;

/// Calls `append` with the entry that begins a batch.
pub(crate) fn begin_batch(time: u64, mut append: impl FnMut(&[u8])) {
    append(&[&[BATCH][..], &time.to_le_bytes()].concat());
}

/// Calls `append` with an entry for each name and change.
pub(crate) fn put(taken: &Taken, mut append: impl FnMut(&[u8])) {
    let mut entry = Vec::new();
    for Named { task, name } in &taken.names {
        entry.clear();
        entry.push(NAME);
        [task.pid, task.tid].iter().for_each(|id| entry.extend(id.to_le_bytes()));
        entry.extend_from_slice(name.as_bytes());
        append(&entry);
    }
    for Change { time, task, cpu, state, waker } in &taken.changes {
        entry.clear();
        entry.push(CHANGE);
        entry.extend(time.to_le_bytes());
        let by = waker.map_or(0, |waker| waker.tid);
        [task.pid, task.tid, *cpu, by].iter().for_each(|number| entry.extend(number.to_le_bytes()));
        let flags = waker.map_or(0, |waker| WOKEN | if waker.is_interrupt { BY_INTERRUPT } else { 0 });
        let number = STATES.iter().position(|of| of == state).unwrap_or_default();
        entry.extend([number as u8, flags]);
        append(&entry);
    }
}

/// Reads entries, also of another process: what is not understood is left out. States that began before the
/// first batch begin with it.
pub(crate) fn read<'t>(entries: impl Iterator<Item = &'t [u8]>) -> Taken {
    let (mut taken, mut begin) = (Taken::default(), None);
    for entry in entries {
        let Some((kind, mut rest)) = entry.split_first() else { continue };
        if *kind == BATCH && begin.is_none() {
            begin = long(&mut rest);
        }
        let Some(begin) = begin else { continue };
        match *kind {
            NAME => taken.names.extend(name(rest)),
            CHANGE => taken.changes.extend(change(rest, begin)),
            _ => {}
        }
    }
    // Batches repeat changes that are before them.
    taken.changes.sort_by_key(|change| (change.time, change.task.tid));
    taken.changes.dedup();
    taken
}

fn name(mut rest: &[u8]) -> Option<Named> {
    let (pid, tid) = (number(&mut rest)?, number(&mut rest)?);
    Some(Named { task: Task { pid, tid }, name: String::from_utf8_lossy(rest).into() })
}

fn change(mut rest: &[u8], begin: u64) -> Option<Change> {
    let time = long(&mut rest)?.max(begin);
    let [pid, tid, cpu, by] =
        [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
    let [state, flags] = *rest.first_chunk()?;
    let state = *STATES.get(usize::from(state))?;
    let waker = (flags & WOKEN != 0).then_some(Waker { tid: by, is_interrupt: flags & BY_INTERRUPT != 0 });
    Some(Change { time, task: Task { pid, tid }, cpu, state, waker })
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(time: u64, tid: u32, state: State) -> Change {
        let waker =
            (state == State::Runnable).then_some(Waker { tid: 7, is_interrupt: time.is_multiple_of(2) });
        Change { time, task: Task { pid: 1, tid }, cpu: tid % 3, state, waker }
    }

    fn named(tid: u32) -> Named {
        Named { task: Task { pid: 1, tid }, name: format!("thread {tid}").into() }
    }

    fn entries(of: &[(Option<u64>, Taken)]) -> Vec<Vec<u8>> {
        let mut entries = Vec::new();
        for (batch, taken) in of {
            batch.iter().for_each(|time| begin_batch(*time, |entry| entries.push(entry.to_vec())));
            put(taken, |entry| entries.push(entry.to_vec()));
        }
        entries
    }

    fn read_all(entries: &[Vec<u8>]) -> Taken {
        read(entries.iter().map(Vec::as_slice))
    }

    #[test]
    fn what_the_tape_has_left_begins_with_a_batch_and_has_each_thread_from_there_on() {
        use State::{Asleep, Dead, Runnable, Running};
        let first = Taken {
            names: vec![named(2), named(3)],
            changes: vec![change(10, 2, Asleep), change(12, 3, Running)],
        };
        let later = Taken { names: vec![], changes: vec![change(21, 3, Runnable), change(25, 3, Running)] };
        let last = Taken { names: vec![], changes: vec![change(31, 3, Dead)] };
        let now = Taken {
            names: first.names.clone(),
            changes: vec![change(10, 2, Asleep), change(25, 3, Running)],
        };
        let all = entries(&[(Some(0), first.clone()), (None, later.clone()), (Some(25), now), (None, last)]);
        let whole = read_all(&all);
        let times = |taken: &Taken| taken.changes.iter().map(|of| (of.time, of.task.tid)).collect::<Vec<_>>();
        assert_eq!(times(&whole), [(10, 2), (12, 3), (21, 3), (25, 3), (31, 3)]);
        assert_eq!(whole.changes[2], later.changes[0]);
        let left = read_all(&all[2..]);
        assert_eq!(times(&left), [(25, 2), (25, 3), (31, 3)]);
        assert_eq!(left.names, first.names);
    }

    #[test]
    fn damaged_entries_are_left_out() {
        let taken = Taken { names: vec![named(2)], changes: vec![change(10, 2, State::Asleep)] };
        let whole = entries(&[(Some(0), taken)]);
        for number in 0..whole.len() {
            for length in 0..whole[number].len() {
                let mut cut = whole.clone();
                cut[number].truncate(length);
                assert!(read_all(&cut).changes.len() <= 1);
                let mut changed = whole.clone();
                changed[number][length] = 0xff;
                let _ = read_all(&changed);
            }
        }
    }
}
