//! The state of a JSON reader.

use std::collections::VecDeque;

use crate::flow_ids::FlowIds;
use crate::json::facts::Facts;
use crate::json::read::current::Current;
use crate::json::read::order::Order;
use crate::json::read::pending::Pending;
use crate::json::read::threads::Threads;
use crate::json::read::tracks::Tracks;
use crate::json::read::waiting::Held;
use crate::starts::LATE;
use crate::{Context, Detailed, Event, EventKind, Item, NoArguments, Report, TraceFormat};

/// What reports say of slices that [`rounded`](super::rounded) moves.
const ROUNDED: &str = "slices moved by the rounding of their clock, to end with or begin after another";

/// The state of a JSON reader, without its input.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) current: Current,
    pub(super) tracks: Tracks,
    pub(super) flows: FlowIds,
    pub(super) facts: Facts,
    pub(super) order: Order,
    pub(super) threads: Threads,
    pub(super) pending: VecDeque<Pending>,
    pub(super) report: Report,
    pub(super) position: u64,
    /// Whether there was an event with a phase, or what Hairline writes of a trace.
    pub(super) is_trace: bool,
}

impl State {
    /// Queues the next event that waited. Returns whether there was one.
    pub(super) fn next_held(&mut self) -> bool {
        let Some(Held { content, mut time, track, mut kind, position }) = self.order.next() else {
            return false;
        };
        (self.current, self.position) = (content, position);
        if let EventKind::Complete { duration } = kind {
            let end = time.saturating_add(duration);
            let ((begin, new_end), is_late) = self.threads.place(track, time, end);
            if (begin, new_end) != (time, end) {
                self.report.add(ROUNDED);
                (time, kind) = (begin, EventKind::Complete { duration: new_end.saturating_sub(begin) });
            }
            self.report.add_many(LATE, u64::from(is_late));
        }
        self.pending.push_back(Pending::Event(time, track, kind));
        true
    }

    pub(super) fn give<'s>(&'s self, pending: Pending, context: &'s Context) -> Item<'s> {
        let current = &self.current;
        match pending {
            Pending::Trace => Item::Trace(self.facts.trace()),
            Pending::Track(place) => Item::Track(self.tracks.get(place)),
            Pending::Foreign(what) => Item::Foreign { what, format: TraceFormat::Json, bytes: &current.own },
            Pending::Bare(time, track, kind) => Item::Event(Event::new(time, track, kind)),
            Pending::Event(time, track, kind) => Item::Event(Event {
                name: current.name.text(&context.strings),
                categories: current.categories.all(&context.strings),
                args: if current.args.is_none() { &NoArguments } else { &current.args },
                details: current.bound.is_some().then_some(current as &dyn Detailed),
                extra_counters: &current.samples,
                ..Event::new(time, track, kind)
            }),
        }
    }
}
