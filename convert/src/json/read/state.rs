//! The state of a JSON reader.

use std::collections::VecDeque;

use crate::flow_ids::FlowIds;
use crate::json::facts::Facts;
use crate::json::read::current::Current;
use crate::json::read::order::{Held, Order};
use crate::json::read::pending::Pending;
use crate::json::read::tracks::Tracks;
use crate::starts::{LATE, Starts};
use crate::ties::Ties;
use crate::{Context, Detailed, Event, EventKind, Item, NoArguments, Report, TraceFormat};

/// The state of a JSON reader, without its input.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) current: Current,
    pub(super) tracks: Tracks,
    pub(super) flows: FlowIds,
    pub(super) facts: Facts,
    pub(super) starts: Starts,
    pub(super) order: Order,
    /// The latest times of each thread, by track.
    pub(super) ties: Vec<Ties>,
    pub(super) pending: VecDeque<Pending>,
    pub(super) report: Report,
    pub(super) position: u64,
}

impl State {
    /// Queues the next event that waited. Returns whether there was one.
    pub(super) fn next_held(&mut self) -> bool {
        let Some(Held { content, time, track, kind }) = self.order.next() else { return false };
        self.current = content;
        if let EventKind::Complete { duration } = kind {
            self.report.add_many(LATE, u64::from(self.starts.is_late(track, time, duration)));
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
