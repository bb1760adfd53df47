//! What an event is: its callsite, its arguments, its options, its track.

pub(crate) mod argument;
pub(crate) mod extras;
pub(crate) mod flow;
pub(crate) mod interval;
pub(crate) mod kept;
pub(crate) mod nested;
pub(crate) mod on_track;
pub(crate) mod position;
#[cfg(feature = "serde")]
pub(crate) mod serialize;
pub(crate) mod text;
pub(crate) mod track;
pub(crate) mod tree;

use hairline_formats::Value;
use hairline_formats::track_event::{EventType, Priority};

use crate::on::callsite;
use crate::on::callsite::{Callsite, Kind};
use crate::on::event::extras::Extras;
use crate::on::event::on_track::TrackRef;

/// An event before it is written.
pub(crate) struct Event<'a> {
    pub(crate) callsite: &'static Callsite,
    pub(crate) action: Action,
    /// Its track, if it is not the thread's own.
    pub(crate) track: Option<TrackRef<'a>>,
    /// The values of the callsite's keys.
    pub(crate) values: &'a [Value<'a>],
    /// Further arguments, with names of their own.
    pub(crate) named: &'a [(&'a str, Value<'a>)],
    pub(crate) extras: &'a Extras<'a>,
    pub(crate) log: Option<(Priority, &'a str)>,
    /// The time that it must come after: its track's last.
    pub(crate) after: u64,
    /// When it happened, if that is some time ago.
    pub(crate) past: Option<u64>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin,
    End,
    Instant,
    Counter,
}

/// When something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The trace's time.
    pub(crate) now: u64,
    /// ns since the sequence's last event.
    pub(crate) delta: u64,
    /// CPU time of the thread, if that is recorded.
    pub(crate) cpu: Option<u64>,
}

impl Moment {
    /// The same, but not before the ns after `time`.
    pub(crate) fn after(self, time: u64) -> Self {
        let wait = (time + 1).saturating_sub(self.now);
        Self { now: self.now + wait, delta: self.delta + wait, ..self }
    }
}

impl<'a> Event<'a> {
    /// What a macro without options records.
    pub(crate) fn new(callsite: &'static Callsite, values: &'a [Value<'a>], extras: &'a Extras<'a>) -> Self {
        let action = match callsite.kind() {
            Kind::Scope => Action::Begin,
            Kind::Instant => Action::Instant,
            Kind::Counter => Action::Counter,
            Kind::End => Action::End,
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

    /// The same, of fewer or shorter values.
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

    /// Whether it begins a slice on its own thread, whose end has its room kept.
    pub(crate) fn keeps_end(&self) -> bool {
        self.action == Action::Begin && self.track.is_none()
    }

    /// Its arguments: those of the callsite's keys, and those with names of their own. Null is left out.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (Key<'a>, Value<'a>)> {
        let keyed = self.values.iter().zip(self.callsite.keys()).map(|(v, k)| (Key::Of(k), *v));
        let named = self.named.iter().map(|(name, value)| (Key::Named(name), *value));
        keyed.chain(named).filter(|(_, value)| *value != Value::Null)
    }

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
pub(crate) enum Key<'a> {
    Of(&'static callsite::Key),
    Named(&'a str),
}

impl<'a> Key<'a> {
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Of(key) => key.name(),
            Self::Named(name) => name,
        }
    }
}
