//! Events as TrackEvent packets, of any kind.
//!
//! They are written in one of two voices: on a TrackEvent sequence, by the numbers of its strings and on its own clock;
//! or **in full**, so that the packet stands for itself. The second is for the packets that an FXT trace holds in
//! blobs, and for those that the writer thread adds.

use hairline_formats::Value;
use hairline_formats::track_event as te;
use hairline_formats::track_event::{CounterValue, Name};

use crate::on::base::few::Few;
use crate::on::callsite::Callsite;
use crate::on::encode::cut;
use crate::on::encode::track_event::message;
use crate::on::encode::track_event::tracks::counter_track;
use crate::on::event::extras::Correlation;
use crate::on::event::on_track::TrackRef;
use crate::on::event::{Action, ArgumentName, Event, Moment};

/// How a packet names its strings and tells its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// By what its sequence said before.
    Sequence,
    /// In full, on the trace's own clock.
    Full,
}

/// What varies of an event's packet beside the event itself.
pub(crate) struct Packet<'a> {
    pub(crate) sequence: u32,
    pub(crate) voice: Voice,
    pub(crate) epoch: u32,
    /// The counter's value, where it is the difference to the one before.
    pub(crate) counter: Option<CounterValue>,
    /// Where in the source it is.
    pub(crate) location: Option<te::Location<'a>>,
    /// The number of the log message's body.
    pub(crate) body_iid: u64,
    pub(crate) at: &'a Moment,
}

impl Packet<'_> {
    /// Writes the event.
    pub(crate) fn put(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let full = self.voice == Voice::Full;
        let (callsite, extras) = (event.callsite, event.extras);
        let names_itself = matches!(event.action, Action::Begin | Action::Instant);
        let mut categories = Few::<_, 4>::new(Name::Iid(0));
        if names_itself && full {
            callsite.categories().for_each(|c| categories.push(Name::Text(cut(c))));
        } else if names_itself {
            callsite
                .category_ids()
                .as_slice()
                .iter()
                .for_each(|id| categories.push(Name::Iid(u64::from(*id))));
        }
        let name = match extras.name {
            Some(name) => Some(Name::Text(cut(name))),
            None if callsite.name().is_empty() => None,
            None if full => Some(Name::Text(cut(callsite.name()))),
            None => Some(Name::Iid(u64::from(callsite.name_id()))),
        };
        let arguments = event.action != Action::Counter && event.arguments().next().is_some();
        let mut none = None;
        let annotations = if arguments {
            let few = none.insert(Few::<_>::new((Name::Iid(0), Value::Null)));
            event.arguments().for_each(|(key, value)| few.push((self.key(key), self.value(value))));
            few.as_slice()
        } else {
            &[]
        };
        let mut flows = Few::<_, 4>::new(0);
        let mut ending = Few::<_, 4>::new(0);
        for (flow, ends) in extras.flows(self.epoch) {
            if ends { ending.push(flow.id()) } else { flows.push(flow.id()) }
        }
        let cpu = self.at.cpu.map(u64::cast_signed);
        let event = te::Event {
            clock_id: event.past.map(|_| te::fields::clock::BOOTTIME),
            needs_state: !full,
            categories: categories.as_slice(),
            name: name.filter(|_| names_itself),
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
            log: event.log.map(|(priority, _)| te::LogMessage {
                body_iid: self.body_iid,
                priority,
                source_location_iid: match self.location {
                    Some(te::Location::Iid(iid)) => iid,
                    _ => 0,
                },
            }),
            annotations,
            ..te::Event::new(self.sequence, event.event_type(), self.time(event))
        };
        te::event(out, &event);
    }

    fn time(&self, event: &Event<'_>) -> u64 {
        match (event.past, self.voice) {
            (Some(past), _) => past,
            (None, Voice::Full) => self.at.now,
            (None, Voice::Sequence) => self.at.delta,
        }
    }

    fn key<'a>(&self, key: ArgumentName<'a>) -> Name<'a> {
        match (key, self.voice) {
            (ArgumentName::Key(key), Voice::Sequence) => Name::Iid(u64::from(key.id())),
            (key, _) => Name::Text(cut(key.name())),
        }
    }

    /// The value, as this voice can say it.
    fn value<'a>(&self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Interned { text, .. } if self.voice == Voice::Full => Value::Str(text),
            value => value,
        }
    }
}

/// Where the callsite is.
pub(crate) fn location(callsite: &'static Callsite) -> te::SourceLocation<'static> {
    let site = callsite.site();
    te::SourceLocation { file: cut(site.file), function: cut(site.module), line: site.line }
}
