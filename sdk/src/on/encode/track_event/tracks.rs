//! The tracks that events lie on, described as TrackEvent packets: before the first event on them, from the root down.

use hairline_formats::track_event as te;

use crate::on::base::few::Few;
use crate::on::base::platform::process;
use crate::on::callsite::CounterOptions;
use crate::on::encode::cut;
use crate::on::encode::track_event::message;
use crate::on::event::interval::Interval;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::{Track, TrackKind};
use crate::on::event::{Action, Event};
use crate::vocabulary::{Ordering, Unit};

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

fn counter_name<'a>(event: &Event<'a>) -> &'a str {
    cut(event.extras.name.unwrap_or(event.callsite.name()))
}

/// Descriptions, as far as there is need of them.
pub(crate) struct Descriptions<'o, F> {
    pub(crate) out: &'o mut Vec<u8>,
    pub(crate) sequence: u32,
    pub(crate) epoch: u32,
    /// For an FXT trace, where a plain interval is no track until something is put on it that FXT has no records for.
    pub(crate) in_blob: bool,
    /// Whether the track with this number is still to be described.
    pub(crate) is_new: F,
}

impl<F: FnMut(u64) -> bool> Descriptions<'_, F> {
    /// Those that the event needs.
    pub(crate) fn put_for(&mut self, event: &Event<'_>, incremental: bool) {
        match event.track {
            Some(TrackRef::Track(track)) => self.put_branch(track),
            // By its begin.
            Some(TrackRef::Async(scope))
                if scope.is_recorded_in(self.epoch) && !(self.in_blob && scope.is_plain()) => {}
            Some(TrackRef::Async(scope)) => self.put_async(event, scope),
            None => self.put_branch(&Track::process()), // a counter of the process
        }
        if event.action == Action::Counter && (self.is_new)(counter_track(event, incremental)) {
            self.put_counter(event, incremental);
        }
    }

    /// An async interval's track: described with its begin, and again by whoever finds that this went missing. One with a
    /// name of its own is not remembered, since there may be a great many.
    fn put_async(&mut self, event: &Event<'_>, scope: &Interval) {
        match scope.parent_track() {
            Some(parent) => self.put_branch(parent),
            None => self.put_branch(&Track::process()),
        }
        // An interval that FXT has records for is no track until another one is put below it.
        if let Some(above) = scope.parent_interval_in(self.epoch).filter(|above| above.is_plain)
            && (self.is_new)(above.uuid)
        {
            self.put_interval(above.uuid, above.parent_uuid, above.name);
        }
        let own = event.extras.name.filter(|_| event.action == Action::Begin);
        if !scope.shares_lane() || (self.is_new)(scope.uuid()) {
            let name = own.unwrap_or(scope.callsite().name());
            self.put_interval(scope.uuid(), scope.parent_uuid_in(self.epoch), name);
        }
    }

    fn put_interval(&mut self, uuid: u64, parent_uuid: u64, name: &str) {
        let track = te::CustomTrack {
            uuid,
            parent_uuid: Some(parent_uuid),
            name: cut(name),
            ..te::CustomTrack::default()
        };
        te::custom_descriptor(self.out, self.sequence, &track);
    }

    /// The track and all above it.
    fn put_branch(&mut self, track: &Track) {
        // From the leaf to the root, of which there are at most a few dozen; a track that is known has known parents.
        let mut branch: Vec<Track> = Vec::new();
        let mut next = Some(track.clone());
        while let Some(track) = next.filter(|t| (self.is_new)(t.uuid())) {
            next = track.parent();
            branch.push(track);
        }
        branch.iter().rev().for_each(|track| self.put_track(track));
    }

    fn put_track(&mut self, track: &Track) {
        match track.kind() {
            TrackKind::Process => {
                let name = process::name();
                let process = te::ProcessTrack {
                    uuid: track.uuid(),
                    pid: process::id().cast_signed(),
                    name: cut(&name),
                    cmdline: &[],
                };
                te::process_descriptor(self.out, self.sequence, &process);
            }
            TrackKind::Thread(thread) => put_thread(self.out, self.sequence, track.uuid(), thread),
            TrackKind::Named(named) => {
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
                te::custom_descriptor(self.out, self.sequence, &custom);
            }
        }
    }

    fn put_counter(&mut self, event: &Event<'_>, incremental: bool) {
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
        te::counter_descriptor(self.out, self.sequence, &track);
    }
}

/// A thread's own track.
pub(crate) fn put_thread(out: &mut Vec<u8>, sequence: u32, uuid: u64, thread: &process::Thread) {
    let track = te::ThreadTrack {
        uuid,
        parent_uuid: process::track_uuid(),
        pid: process::id().cast_signed(),
        tid: i64::from(thread.tid),
        name: cut(&thread.name),
    };
    te::thread_descriptor(out, sequence, &track);
}
