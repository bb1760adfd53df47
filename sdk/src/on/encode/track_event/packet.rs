//! Events of any kind as TrackEvent packets.
//!
//! A packet of a TrackEvent sequence refers to the sequence's interned data, and its time is a difference to
//! the event before. A **self-contained** packet has its strings and its time in full. The packets in the
//! blobs of an FXT trace are self-contained, and so are those that the drain thread adds.

use hairline_formats::Value;
use hairline_formats::track_event as te;
use hairline_formats::track_event::{CounterValue, Name, SequenceId};

use crate::on::base::few::Few;
use crate::on::base::memory::Bytes;
use crate::on::callsite::Callsite;
use crate::on::encode::cut;
use crate::on::encode::sequence::State;
use crate::on::encode::track_event::location::{location, tag_iid};
use crate::on::encode::track_event::message;
use crate::on::encode::track_event::tracks::counter_track;
use crate::on::event::extras::FlowUse;
use crate::on::event::on_track::TrackRef;
use crate::on::event::{Action, ArgumentName, Event, Moment};
use crate::vocabulary::Correlation;

/// Whether a packet refers to the interned data of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interning {
    /// It has ids of strings, and the time since the sequence's last event.
    Interned,
    /// It has strings in full, and its time is on the trace's own clock.
    SelfContained,
}

/// The parts of an event's packet that do not come from the event.
pub(crate) struct Packet<'a> {
    pub(crate) sequence: SequenceId,
    pub(crate) interning: Interning,
    /// The increment of an incremental counter.
    pub(crate) counter: Option<CounterValue>,
    /// The place in the source.
    pub(crate) location: Option<te::Location<'a>>,
    /// The interned id of the log message's body.
    pub(crate) body_iid: u64,
    /// The CPU time of the thread, in ns.
    pub(crate) cpu: Option<u64>,
    pub(crate) at: &'a Moment,
}

/// Returns the CPU time that the event's packet has: only slices on the track of their own thread have one.
pub(crate) fn cpu_time(event: &Event<'_>, at: &Moment) -> Option<u64> {
    at.cpu.filter(|_| event.track.is_none() && matches!(event.action, Action::Begin | Action::End))
}

impl<'a> Packet<'a> {
    /// A self-contained packet of a sequence.
    pub(crate) fn self_contained(state: &State, event: &Event<'_>, at: &'a Moment) -> Self {
        Self {
            sequence: state.number,
            interning: Interning::SelfContained,
            counter: None,
            location: state.is_located(event).then(|| te::Location::At(location(event.callsite))),
            body_iid: 1,
            cpu: cpu_time(event, at),
            at,
        }
    }

    /// Writes the event.
    pub(crate) fn put(&self, out: &mut Bytes, event: &Event<'_>) {
        let extras = event.extras;
        let has_name = matches!(event.action, Action::Begin | Action::Instant);
        let categories = if has_name { self.categories(event) } else { Few::new(Name::Iid(0)) };
        let mut flows = Few::<_, 4>::new(0);
        let mut ending = Few::<_, 4>::new(0);
        for (flow, flow_use) in extras.flows(self.at.new_flows) {
            if flow_use == FlowUse::End { ending.push(flow.id()) } else { flows.push(flow.id()) }
        }
        let cpu = self.cpu.map(u64::cast_signed);
        let packet = te::Event {
            clock_id: event.past.map(|_| te::fields::clock::BOOTTIME),
            needs_state: self.interning == Interning::Interned,
            categories: categories.as_slice(),
            name: self.name(event).filter(|_| has_name),
            track_uuid: match event.action {
                Action::Counter => Some(counter_track(event, self.counter.is_some())),
                _ => event.track.map(TrackRef::uuid),
            },
            counter: self.counter.or_else(|| match event.action {
                Action::Counter => event.values.first().and_then(message::counter_value),
                _ => None,
            }),
            extra_counters: cpu.as_slice(),
            flow_ids: flows.as_slice(),
            terminating_flow_ids: ending.as_slice(),
            correlation: extras.correlation.map(|c| match c {
                Correlation::Id(id) => te::Correlation::Id(id),
                Correlation::Name(name) => te::Correlation::Name(Name::Text(cut(name))),
            }),
            location: self.location,
            log: event.log.map(|(priority, _)| self.log_message(event.callsite, priority)),
            ..te::Event::new(self.sequence, event.event_type(), self.time(event))
        };
        // Written one by one: a list of them would be many bytes of stack.
        te::event_with(out, &packet, |out| {
            let arguments = event.arguments().filter(|_| event.action != Action::Counter);
            for (key, value) in arguments.filter(|(_, value)| *value != Value::Null) {
                te::put_named(out, self.key(key), &self.value(value));
            }
        });
    }

    fn categories(&self, event: &Event<'_>) -> Few<Name<'static>, 4> {
        let mut categories = Few::new(Name::Iid(0));
        match self.interning {
            Interning::SelfContained => {
                event.callsite.categories().for_each(|c| categories.push(Name::Text(cut(c))));
            }
            Interning::Interned => {
                let ids = event.callsite.category_ids();
                ids.as_slice().iter().for_each(|id| categories.push(Name::Iid(id.iid())));
            }
        }
        categories
    }

    fn name<'e>(&self, event: &Event<'e>) -> Option<Name<'e>> {
        let callsite = event.callsite;
        match (event.extras.name, self.interning) {
            (Some(name), _) => Some(Name::Text(cut(name))),
            (None, _) if callsite.name().is_empty() => None,
            (None, Interning::SelfContained) => Some(Name::Text(cut(callsite.name()))),
            (None, Interning::Interned) => Some(Name::Iid(callsite.name_id().iid())),
        }
    }

    fn log_message(&self, callsite: &'static Callsite, priority: te::Priority) -> te::LogMessage {
        te::LogMessage {
            body_iid: self.body_iid,
            priority,
            source_location_iid: match self.interning {
                Interning::Interned => tag_iid(callsite),
                Interning::SelfContained => 0,
            },
        }
    }

    fn time(&self, event: &Event<'_>) -> u64 {
        match (event.past, self.interning) {
            (Some(past), _) => past,
            (None, Interning::SelfContained) => self.at.now,
            (None, Interning::Interned) => self.at.delta,
        }
    }

    fn key<'e>(&self, key: ArgumentName<'e>) -> Name<'e> {
        match (key, self.interning) {
            (ArgumentName::Key(key), Interning::Interned) => Name::Iid(key.id().iid()),
            (key, _) => Name::Text(cut(key.name())),
        }
    }

    fn value<'e>(&self, value: Value<'e>) -> Value<'e> {
        match value {
            Value::Interned { text, .. } if self.interning == Interning::SelfContained => Value::Str(text),
            value => value,
        }
    }
}
