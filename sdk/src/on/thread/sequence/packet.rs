//! Events and tracks as TrackEvent packets, of any kind.
//!
//! They are written in one of two voices: on a TrackEvent sequence, by the numbers of its strings and on its own clock;
//! or **in full**, so that the packet stands for itself. The second is for the packets that an FXT trace holds in
//! blobs, and for those that the writer thread adds.

use hairline_formats::track_event::{self as te, CounterValue, Name};
use hairline_formats::{Value, truncate_utf8};

use super::super::super::callsite::{Callsite, CounterOptions};
use super::super::super::extras::Correlation;
use super::super::super::process;
use super::super::super::track::{Place, Track, TrackRef};
use super::super::event::{Action, Event, Key, Moment};
use super::super::few::Few;
use super::super::message;
use super::super::{AsyncScope, MAX_NAME};
use crate::vocabulary::{Ordering, Unit};

/// How a packet names its strings and tells its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// By what its sequence said before.
    Sequence,
    /// In full, on the trace's own clock.
    Full,
}

/// What tells the track of a counter's differences from that of its values: a track is one or the other.
const DIFFERENCES: u64 = 1;

/// The number of a counter's track.
pub(crate) fn counter_track(event: &Event<'_>, incremental: bool) -> u64 {
    let name = counter_name(event);
    match event.track {
        None if event.extras.name.is_none() => message::counter_uuid(event.callsite.name()),
        None => message::counter_uuid(name),
        Some(track) => {
            message::counter_uuid_on(track.uuid() ^ if incremental { DIFFERENCES } else { 0 }, name)
        }
    }
}

pub(crate) fn counter_name<'a>(event: &Event<'a>) -> &'a str {
    cut(event.extras.name.unwrap_or(event.callsite.name()))
}

/// A name as long as names may be.
pub(crate) fn cut(name: &str) -> &str {
    truncate_utf8(name, MAX_NAME)
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

    fn key<'a>(&self, key: Key<'a>) -> Name<'a> {
        match (key, self.voice) {
            (Key::Of(key), Voice::Sequence) => Name::Iid(u64::from(key.id())),
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

/// Describes the tracks that the event needs, from the root down, as far as `is_new` says so of their numbers. `in_blob`:
/// for an FXT trace, where a plain interval is no track until something is put on it that FXT has no records for.
pub(crate) fn put_tracks(
    out: &mut Vec<u8>,
    sequence: u32,
    event: &Event<'_>,
    incremental: bool,
    (epoch, in_blob): (u32, bool),
    mut is_new: impl FnMut(u64) -> bool,
) {
    match event.track {
        Some(TrackRef::Track(track)) => put_branch(out, sequence, track, &mut is_new),
        // By its begin.
        Some(TrackRef::Async(scope)) if scope.is_recorded_in(epoch) && !(in_blob && scope.is_plain()) => {}
        Some(TrackRef::Async(scope)) => put_async(out, sequence, event, (scope, epoch), &mut is_new),
        None => put_branch(out, sequence, &Track::process(), &mut is_new), // a counter of the process
    }
    if event.action == Action::Counter && is_new(counter_track(event, incremental)) {
        put_counter(out, sequence, event, incremental);
    }
}

/// An async interval's track: described with its begin, and again by whoever finds that this went missing. One with a
/// name of its own is not remembered, since there may be a great many.
fn put_async(
    out: &mut Vec<u8>,
    sequence: u32,
    event: &Event<'_>,
    (scope, epoch): (&AsyncScope, u32),
    is_new: &mut impl FnMut(u64) -> bool,
) {
    match scope.parent() {
        Some(parent) => put_branch(out, sequence, parent, is_new),
        None => put_branch(out, sequence, &Track::process(), is_new),
    }
    // An interval that FXT has records for is no track until another one is put below it.
    if let Some(above) = scope.above_in(epoch).filter(|above| above.is_plain)
        && is_new(above.uuid)
    {
        put_interval(out, sequence, above.uuid, above.parent_uuid, above.name);
    }
    let own = event.extras.name.filter(|_| event.action == Action::Begin);
    if !scope.shares_lane() || is_new(scope.uuid()) {
        put_interval(
            out,
            sequence,
            scope.uuid(),
            scope.parent_uuid_in(epoch),
            own.unwrap_or(scope.callsite().name()),
        );
    }
}

fn put_interval(out: &mut Vec<u8>, sequence: u32, uuid: u64, parent_uuid: u64, name: &str) {
    let track = te::CustomTrack {
        uuid,
        parent_uuid: Some(parent_uuid),
        name: cut(name),
        ..te::CustomTrack::default()
    };
    te::custom_descriptor(out, sequence, &track);
}

/// The track and all above it.
fn put_branch(out: &mut Vec<u8>, sequence: u32, track: &Track, is_new: &mut impl FnMut(u64) -> bool) {
    // From the leaf to the root, of which there are at most a few dozen; a track that is known has known parents.
    let mut branch: Vec<Track> = Vec::new();
    let mut next = Some(track.clone());
    while let Some(track) = next.filter(|t| is_new(t.uuid())) {
        next = track.parent();
        branch.push(track);
    }
    branch.iter().rev().for_each(|track| put_track(out, sequence, track));
}

fn put_track(out: &mut Vec<u8>, sequence: u32, track: &Track) {
    match track.place() {
        Place::Process => {
            let name = process::name();
            let process = te::ProcessTrack {
                uuid: track.uuid(),
                pid: process::id().cast_signed(),
                name: cut(&name),
                cmdline: &[],
            };
            te::process_descriptor(out, sequence, &process);
        }
        Place::Thread(thread) => {
            let thread = te::ThreadTrack {
                uuid: track.uuid(),
                parent_uuid: process::track_uuid(),
                pid: process::id().cast_signed(),
                tid: i64::from(thread.tid),
                name: cut(&thread.name),
            };
            te::thread_descriptor(out, sequence, &thread);
        }
        Place::Named(named) => {
            let custom = te::CustomTrack {
                uuid: track.uuid(),
                parent_uuid: named.parent.as_ref().map(Track::uuid),
                name: cut(&named.name),
                description: cut(&named.description),
                child_ordering: match named.ordering {
                    Ordering::Unspecified => te::ChildOrdering::Unspecified,
                    Ordering::Lexicographic => te::ChildOrdering::Lexicographic,
                    Ordering::Chronological => te::ChildOrdering::Chronological,
                    Ordering::Explicit => te::ChildOrdering::Explicit,
                },
                rank: named.rank,
                ..te::CustomTrack::default()
            };
            te::custom_descriptor(out, sequence, &custom);
        }
    }
}

fn put_counter(out: &mut Vec<u8>, sequence: u32, event: &Event<'_>, incremental: bool) {
    let CounterOptions { unit, multiplier, .. } = event.callsite.site().counter;
    let parent = event.track.map_or_else(process::track_uuid, TrackRef::uuid);
    let (unit, unit_name) = match unit {
        Unit::None => (te::Unit::Unspecified, None),
        Unit::Nanoseconds => (te::Unit::TimeNs, None),
        Unit::Count => (te::Unit::Count, None),
        Unit::Bytes => (te::Unit::SizeBytes, None),
        Unit::Named(name) => (te::Unit::Unspecified, Some(cut(name))),
    };
    let mut categories = Few::<_, 4>::new("");
    event.callsite.categories().for_each(|category| categories.push(cut(category)));
    let track = te::CounterTrack {
        categories: categories.as_slice(),
        unit,
        unit_name,
        multiplier,
        is_incremental: incremental,
        ..te::CounterTrack::new(counter_track(event, incremental), parent, counter_name(event))
    };
    te::counter_descriptor(out, sequence, &track);
}

/// Where the callsite is.
pub(crate) fn location(callsite: &'static Callsite) -> te::SourceLocation<'static> {
    let site = callsite.site();
    te::SourceLocation { file: cut(site.file), function: cut(site.module), line: site.line }
}
