//! The state of a JSON reader.

use std::collections::VecDeque;

use crate::json::facts::Facts;
use crate::json::read::current::Current;
use crate::json::read::numbers::Flows;
use crate::json::read::pending::Pending;
use crate::json::read::starts::Starts;
use crate::json::read::tracks::Tracks;
use crate::{Context, Event, Item, NoArguments, Report, TraceFormat};

/// The state of a JSON reader, without its input.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) current: Current,
    pub(super) tracks: Tracks,
    pub(super) flows: Flows,
    pub(super) facts: Facts,
    pub(super) starts: Starts,
    pub(super) pending: VecDeque<Pending>,
    pub(super) report: Report,
    pub(super) position: u64,
}

impl State {
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
                flows: current.flows.as_slice(),
                ending_flows: current.ending_flows.as_slice(),
                extra_counters: &current.samples,
                ..Event::new(time, track, kind)
            }),
        }
    }
}
