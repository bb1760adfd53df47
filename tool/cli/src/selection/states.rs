//! The states of threads at the begin and at the end of a range.

use std::sync::Arc;

use hairline_convert::{RunState, StateChange};

use crate::selection::chosen::Chosen;

/// The states of a thread outside of the range.
#[derive(Default)]
pub(super) struct States {
    /// The last change before the range that is no wake-up, and how many changes came before it.
    last: Option<(StateChange, u64)>,
    /// The last wake-up before the range, and how many changes came before it.
    woken: Option<(StateChange, u64)>,
    /// The changes that have come.
    count: u64,
    /// The time of the first change in the range, and whether that is a wake-up.
    first: Option<(i64, bool)>,
    name: Option<Arc<str>>,
}

impl States {
    /// Notes a change. Returns whether it is in the range.
    pub(super) fn see(&mut self, change: &StateChange, chosen: &Chosen) -> bool {
        if change.name.is_some() {
            self.name.clone_from(&change.name);
        }
        if change.time > chosen.from {
            let is_in = change.time < chosen.to;
            if is_in && self.first.is_none_or(|(first, _)| change.time < first) {
                self.first = Some((change.time, change.is_wakeup));
            }
            return is_in;
        }
        let known = if change.is_wakeup { &mut self.woken } else { &mut self.last };
        if known.as_ref().is_none_or(|(known, _)| known.time <= change.time) {
            *known = Some((change.clone(), self.count));
        }
        self.count += 1;
        false
    }

    /// The thread's states at the begin and at the end of the range. None if it has none in the range.
    pub(super) fn around(self, chosen: &Chosen, tid: u64) -> Vec<StateChange> {
        let Self { last, woken, first, name, .. } = self;
        let end = chosen.to.min(chosen.states_end);
        let is_woken = woken.as_ref().is_some_and(|(woken, number)| {
            let is_later = |of: &(StateChange, u64)| (woken.time, *number) > (of.0.time, of.1);
            last.as_ref().is_none_or(|last| last.0.state.is_asleep() && is_later(last))
        });
        let known = if is_woken { woken } else { last }.map(|(known, _)| known);
        if chosen.from > end {
            return Vec::new();
        }
        let begin = chosen.states_begin.max(chosen.from);
        let name_of = |change| StateChange { name: name.clone(), ..change };
        let ran_first =
            chosen.first_runners.contains(&tid) && first.map_or(chosen.to, |(first, _)| first) > begin;
        let at_begin = match (known, first) {
            (Some(known), _) => {
                let time = known.time.max(chosen.from);
                Some(name_of(StateChange { time, is_wakeup: false, waker: None, ..known }))
            }
            (None, _) if ran_first => Some(name_of(StateChange::new(begin, tid, RunState::Running))),
            (None, None) => return Vec::new(),
            (None, Some((_, true))) => None,
            // It did not run before, although a first change that leaves a processor seems to say so.
            (None, Some((first, false))) => {
                Some(name_of(StateChange::new(begin.min(first - 1), tid, RunState::Dead)))
            }
        };
        // The part's states end when those of the trace do, or at the end of the range.
        let at_end = name_of(StateChange::new(end, tid, RunState::Dead));
        at_begin.into_iter().chain([at_end]).collect()
    }
}
