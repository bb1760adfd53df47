//! The parts of an event: its callsite, its arguments, its options, its track.

pub(crate) mod argument;
pub(crate) mod begun;
pub(crate) mod extras;
pub(crate) mod flow;
pub(crate) mod interval;
#[cfg(feature = "subscriber")]
mod named_flows;
pub(crate) mod nested;
pub(crate) mod on_track;
pub(crate) mod owned_arguments;
pub(crate) mod position;
#[cfg(feature = "serde")]
pub(crate) mod serialize;
pub(crate) mod text;
pub(crate) mod track;
pub(crate) mod tree;

use hairline_formats::Value;
use hairline_formats::track_event::{EventType, Priority};

use crate::on::callsite;
use crate::on::callsite::Callsite;
use crate::on::event::extras::{Extras, NewFlows};
use crate::on::event::on_track::TrackRef;
use crate::site::CallsiteKind;

/// An event that is about to be written.
pub(crate) struct Event<'a> {
    pub(crate) callsite: &'static Callsite,
    pub(crate) action: Action,
    /// The track, if it is not that of the thread.
    pub(crate) track: Option<TrackRef<'a>>,
    /// The values of the callsite's keys.
    pub(crate) values: &'a [Value<'a>],
    /// Further arguments, with names that the callsite does not have.
    pub(crate) named: &'a [(&'a str, Value<'a>)],
    pub(crate) extras: &'a Extras<'a>,
    pub(crate) log: Option<(Priority, &'a str)>,
    /// The time that the event must come after: the last time of its track.
    pub(crate) after: u64,
    /// The time of the event, if that is in the past.
    pub(crate) past: Option<u64>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin,
    End,
    Instant,
    Counter,
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The time in the trace, ns.
    pub(crate) now: u64,
    /// The time since the last event of the sequence, ns.
    pub(crate) delta: u64,
    /// The CPU time of the thread in ns, if it is recorded.
    pub(crate) cpu: Option<u64>,
    /// The flows that had not begun just before: [`Extras::new_flows`].
    pub(crate) new_flows: NewFlows,
}

impl Moment {
    /// Creates the time of an event whose record needs no other record.
    pub(crate) fn alone(now: u64, new_flows: NewFlows) -> Self {
        Self { now, delta: 0, cpu: None, new_flows }
    }

    /// Returns this time, moved to the next ns after `time` if it is not later than `time`.
    pub(crate) fn after(self, time: u64) -> Self {
        let wait = (time + 1).saturating_sub(self.now);
        Self { now: self.now + wait, delta: self.delta + wait, ..self }
    }
}

impl<'a> Event<'a> {
    /// Creates an event with these values and options.
    pub(crate) fn new(callsite: &'static Callsite, values: &'a [Value<'a>], extras: &'a Extras<'a>) -> Self {
        let action = match callsite.kind() {
            CallsiteKind::Scope => Action::Begin,
            CallsiteKind::Instant => Action::Instant,
            CallsiteKind::Counter => Action::Counter,
            CallsiteKind::End => Action::End,
        };
        Self {
            callsite,
            action,
            track: extras.track,
            values,
            named: &[],
            extras,
            log: None,
            after: 0,
            past: None,
        }
    }

    /// Returns the event with other values, which are fewer or shorter.
    pub(crate) fn with_values<'b>(
        &'b self,
        values: &'b [Value<'b>],
        named: &'b [(&'b str, Value<'b>)],
    ) -> Event<'b>
    where
        'a: 'b,
    {
        Event { values, named, ..*self }
    }

    /// Whether the event begins a slice on its own thread. The chunk writer reserves room for the end of such
    /// a slice.
    pub(crate) fn reserves_end(&self) -> bool {
        self.action == Action::Begin && self.track.is_none()
    }

    /// Iterates over the arguments: those of the callsite's keys, then those with names of their own. Null is
    /// omitted.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (ArgumentName<'a>, Value<'a>)> {
        let keyed = self.values.iter().zip(self.callsite.keys()).map(|(v, k)| (ArgumentName::Key(k), *v));
        let named = self.named.iter().map(|(name, value)| (ArgumentName::Text(name), *value));
        keyed.chain(named).filter(|(_, value)| *value != Value::Null)
    }

    /// Returns the type of the event in a TrackEvent packet.
    pub(crate) fn event_type(&self) -> EventType {
        match self.action {
            Action::Begin => EventType::SliceBegin,
            Action::End => EventType::SliceEnd,
            Action::Instant => EventType::Instant,
            Action::Counter => EventType::Counter,
        }
    }
}

/// The name of an argument.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentName<'a> {
    Key(&'static callsite::Key),
    Text(&'a str),
}

impl<'a> ArgumentName<'a> {
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Key(key) => key.name(),
            Self::Text(name) => name,
        }
    }
}
