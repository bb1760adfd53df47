//! The polls of each life: those that one flow goes through.

use std::collections::HashMap;

use hairline_convert::slices::{Key, Slice};
use hairline_convert::{Event, EventKind, TrackId};

use crate::explain::polls::RIGHT_AFTER;
use crate::track_names::TrackNames;

/// The limit for slices of threads with flows. The polls of further ones are not known.
const MOST_POLLS: usize = 1 << 21;

/// So many lives of a name end before the one that is looked for, and right before the same time, at most.
const MOST_BESIDE: usize = 64;

/// The slices of threads through which flows go, by flow.
#[derive(Debug, Default)]
pub(super) struct OwnPolls {
    /// The begin of the last slice of each thread, and the flows through those that are open.
    begins: HashMap<TrackId, i64>,
    open: HashMap<(TrackId, i64), u64>,
    polls: Vec<(u64, Slice)>,
    /// The polls of each flow, in order; the flows by category, name and last end; and their numbers there by
    /// category, name and first begin.
    all: Vec<Poll>,
    flows: Vec<Flow>,
    by_start: Vec<usize>,
}

#[derive(Debug)]
struct Flow {
    process: Option<TrackId>,
    name: (Key, Key),
    /// The begin of the first poll, and the end of the last one.
    start: i64,
    end: i64,
    polls: std::ops::Range<usize>,
}

/// The track, the begin and the end of a life.
type Place = (TrackId, i64, i64);

/// A poll on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Poll {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) thread: TrackId,
}

impl OwnPolls {
    /// Adds an event of a thread.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let flow = match event.kind {
            EventKind::Begin | EventKind::Complete { .. } => {
                self.begins.insert(event.track, event.time);
                event.flows().first().copied()
            }
            EventKind::Flow { id, to_next: false, .. } => {
                Some(id).filter(|_| self.begins.get(&event.track) == Some(&event.time))
            }
            _ => None,
        };
        if let Some(flow) = flow.filter(|_| self.open.len() < MOST_POLLS) {
            self.open.insert((event.track, event.time), flow);
        }
    }

    /// Adds a slice of a thread.
    pub(super) fn slice(&mut self, slice: &Slice) {
        if self.open.is_empty() {
            return;
        }
        let flow = self.open.remove(&(slice.track, slice.start)).filter(|_| self.polls.len() < MOST_POLLS);
        self.polls.extend(flow.map(|flow| (flow, *slice)));
    }

    /// Call it once there are no more, with what tells the names of polls.
    pub(super) fn finish(&mut self, names: &TrackNames, are_polls: impl Fn(Key, Key) -> bool) {
        let Self { polls, .. } = std::mem::take(self);
        let polls = polls.into_iter().filter(|(_, poll)| are_polls(poll.category, poll.name));
        let mut polls: Vec<_> = polls
            .map(|(flow, Slice { track, category, name, start, duration, .. })| {
                let poll = Poll { start, end: start.saturating_add(duration), thread: track };
                ((names.process_of(track), (category, name), flow), poll)
            })
            .collect();
        polls.sort_unstable();
        for of_flow in polls.chunk_by(|(a, _), (b, _)| a == b) {
            let ((process, name, _), Poll { end, .. }) = of_flow[of_flow.len() - 1];
            let (first, start) = (self.all.len(), of_flow[0].1.start);
            self.all.extend(of_flow.iter().map(|(_, poll)| *poll));
            self.flows.push(Flow { process, name, start, end, polls: first..self.all.len() });
        }
        self.flows.sort_unstable_by_key(|flow| (flow.name, flow.end));
        self.by_start = (0..self.flows.len()).collect();
        self.by_start.sort_unstable_by_key(|flow| (self.flows[*flow].name, self.flows[*flow].start));
    }

    /// The polls of a life that is over. None if they are not known. The life of a span begins with its first
    /// poll; that of a future right before it, at the latest if it is dropped.
    pub(super) fn of(&self, names: &TrackNames, name: (Key, Key), life: Place, is_dropped: bool) -> &[Poll] {
        let flow = self.with_start(names, name, life, if is_dropped { RIGHT_AFTER } else { 0 });
        let flow = flow.or_else(|| self.with_end(names, name, life));
        flow.map_or(&[], |flow| &self.all[flow.polls.clone()])
    }

    /// The first one that begins with a life, or at most so long after it.
    fn with_start(
        &self,
        names: &TrackNames,
        name: (Key, Key),
        (track, start, end): Place,
        after: i64,
    ) -> Option<&Flow> {
        let key = |flow: &usize| (self.flows[*flow].name, self.flows[*flow].start);
        let first = self.by_start.partition_point(|flow| key(flow) < (name, start));
        let last = (name, start.saturating_add(after));
        let near = self.by_start[first..].iter().take_while(|flow| key(flow) <= last).take(MOST_BESIDE);
        let process = names.process_of(track);
        let mut near = near.map(|flow| &self.flows[*flow]);
        near.find(|flow| flow.process == process && flow.end <= end)
    }

    /// The life of a future that is ready ends right after its last poll.
    fn with_end(&self, names: &TrackNames, name: (Key, Key), (track, start, end): Place) -> Option<&Flow> {
        let last = self.flows.partition_point(|flow| (flow.name, flow.end) <= (name, end));
        let process = names.process_of(track);
        let before = self.flows[..last].iter().rev().take(MOST_BESIDE);
        let mut before =
            before.take_while(|flow| flow.name == name && end.saturating_sub(flow.end) <= RIGHT_AFTER);
        before.find(|flow| flow.process == process && flow.start >= start)
    }
}

/// Whether a slice of a thread is one of the polls, or inside of one.
pub(super) fn is_inside(polls: &[Poll], slice: &Slice) -> bool {
    let (start, end) = (slice.start, slice.start.saturating_add(slice.duration));
    is_in(polls, &Poll { start, end, thread: slice.track }).is_some()
}

/// The number of the poll that another one is inside of.
pub(super) fn is_in(polls: &[Poll], inner: &Poll) -> Option<usize> {
    let before = polls.partition_point(|poll| poll.start <= inner.start).checked_sub(1)?;
    let outer = polls[before];
    (outer.thread == inner.thread && outer.end >= inner.end).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(track: u32, flow: u64, (start, end): (i64, i64), polls: &mut OwnPolls) {
        let event = Event::new(start, TrackId(track), EventKind::Begin);
        polls.event(&event);
        let kind = EventKind::Flow {
            id: flow,
            step: hairline_convert::FlowStep::Begin,
            to_next: false,
            lasts: false,
        };
        polls.event(&Event::new(start, TrackId(track), kind));
        polls.slice(&slice(track, (start, end)));
    }

    fn slice(track: u32, (start, end): (i64, i64)) -> Slice {
        let (name, duration) = (Key::OTHER, end - start);
        let (self_time, busy) = (duration, duration);
        Slice { track: TrackId(track), name, category: name, start, duration, self_time, busy, tag: 0 }
    }

    #[test]
    fn a_life_has_the_polls_of_the_flow_that_ends_right_before_it() {
        let mut polls = OwnPolls::default();
        poll(1, 7, (10, 20), &mut polls);
        poll(2, 8, (12, 22), &mut polls);
        poll(2, 7, (30, 40), &mut polls);
        poll(1, 8, (35, 39), &mut polls);
        polls.slice(&slice(1, (50, 60))); // without a flow
        polls.finish(&TrackNames::default(), |_, _| true);
        let of = |start, end, is_dropped| {
            let name = (Key::OTHER, Key::OTHER);
            let polls = polls.of(&TrackNames::default(), name, (TrackId(3), start, end), is_dropped);
            polls.iter().map(|poll| (poll.thread.0, poll.start, poll.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(5, 41, false), [(1, 10, 20), (2, 30, 40)]);
        assert_eq!(of(11, 40, false), [(2, 12, 22), (1, 35, 39)], "the other one begins before the life");
        assert_eq!(of(5, 39, false), [(2, 12, 22), (1, 35, 39)]);
        assert_eq!(of(5, 40 + RIGHT_AFTER + 1, false), []);
        assert_eq!(of(15, 41, false), []);
        assert_eq!(of(10, 1 << 40, false), [(1, 10, 20), (2, 30, 40)], "of a span, which is dropped later");
        assert_eq!(of(9, 1 << 40, true), [(1, 10, 20), (2, 30, 40)], "of a future, which is dropped later");
        assert_eq!(of(11, 1 << 40, true), [(2, 12, 22), (1, 35, 39)]);
    }
}
