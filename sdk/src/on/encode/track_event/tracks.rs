//! The descriptions of tracks, as TrackEvent packets. A track is described before its first event, and after
//! its parent.

use hairline_formats::track_event as te;
use hairline_formats::track_event::{SequenceId, TrackUuid};

use crate::on::base::few::Few;
use crate::on::base::memory::{Bytes, List};
use crate::on::base::platform::process;
use crate::on::encode::cut;
use crate::on::encode::sequence::Describer;
use crate::on::encode::track_event::message;
use crate::on::event::interval::Interval;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::{Track, TrackKind};
use crate::on::event::{Action, Event};
use crate::site::CounterOptions;
use crate::vocabulary::{Ordering, Unit};

/// Distinguishes incremental counter tracks from absolute ones. A track has one of the two kinds for its
/// whole life.
const INCREMENTAL: u64 = 1;

/// Returns the uuid of a counter's track.
pub(crate) fn counter_track(event: &Event<'_>, incremental: bool) -> TrackUuid {
    let name = counter_name(event);
    match event.track {
        None if event.extras.name.is_none() => message::counter_uuid(event.callsite.name()),
        None => message::counter_uuid(name),
        Some(track) => {
            let TrackUuid(uuid) = track.uuid();
            message::counter_uuid_on(TrackUuid(uuid ^ if incremental { INCREMENTAL } else { 0 }), name)
        }
    }
}

fn counter_name<'a>(event: &Event<'a>) -> &'a str {
    cut(event.extras.name.unwrap_or(event.callsite.name()))
}

/// What a plain interval is: one that belongs to the process and nothing else, and has its callsite's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainIntervals {
    /// Records of FXT. The interval becomes a track with the first event on it that FXT has no record for.
    Records,
    /// Tracks from their begin on.
    Tracks,
}

/// Writes the descriptions of new tracks.
pub(crate) struct Descriptions<'o, F> {
    pub(crate) out: &'o mut Bytes,
    pub(crate) by: Describer,
    pub(crate) plain_intervals: PlainIntervals,
    /// Whether the track with this uuid needs a description.
    pub(crate) is_new: F,
}

impl<F: FnMut(TrackUuid) -> bool> Descriptions<'_, F> {
    /// Writes the descriptions that the event needs.
    pub(crate) fn put_for(&mut self, event: &Event<'_>, incremental: bool) {
        match event.track {
            Some(TrackRef::Track(track)) => self.put_branch(track),
            // Its begin has described it.
            Some(TrackRef::Async(scope)) if scope.is_recorded_in(self.by.epoch) && !self.is_record(scope) => {
            }
            Some(TrackRef::Async(scope)) => self.put_async(event, scope),
            None => self.put_process(), // a counter of the process
        }
        if event.action == Action::Counter && (self.is_new)(counter_track(event, incremental)) {
            self.put_counter(event, incremental);
        }
    }

    /// Whether FXT has records for the interval, so that its begin has described no track.
    fn is_record(&self, interval: &Interval) -> bool {
        self.plain_intervals == PlainIntervals::Records && interval.is_plain()
    }

    /// Describes the track of an async interval. That happens at its begin, and at a later event if the begin
    /// was lost. The sequence does not remember tracks with a name of their own, since there may be very
    /// many.
    fn put_async(&mut self, event: &Event<'_>, scope: &Interval) {
        match scope.parent_track() {
            Some(parent) => self.put_branch(parent),
            None => self.put_process(),
        }
        if scope.is_nested {
            self.put_lane_of_parent(scope);
            return;
        }
        // An interval that FXT has records for becomes a track when another interval is below it.
        if let Some(above) = scope.parent_interval_in(self.by.epoch).filter(|above| above.is_plain)
            && (self.is_new)(above.uuid)
        {
            self.put_interval(above.uuid, above.parent_uuid, above.callsite.name());
        }
        // A lane that is shared has the name of its callsite, also where its slices have names of their own.
        let own = event.extras.name.filter(|_| event.action == Action::Begin && !scope.shares_lane());
        if !scope.shares_lane() || (self.is_new)(scope.uuid()) {
            let name = own.unwrap_or(scope.callsite().name());
            self.put_interval(scope.uuid(), scope.parent_uuid_in(self.by.epoch), name);
        }
    }

    /// Describes the lane of a parent interval. A lane that is not shared has the name that the begin on it
    /// has described.
    fn put_lane_of_parent(&mut self, scope: &Interval) {
        if let Some(lane) = scope.parent_interval_in(self.by.epoch).filter(|lane| lane.shares_lane)
            && (self.is_new)(lane.uuid)
        {
            self.put_interval(lane.uuid, lane.parent_uuid, lane.callsite.name());
        }
    }

    fn put_interval(&mut self, uuid: TrackUuid, parent_uuid: TrackUuid, name: &str) {
        let track = te::CustomTrack {
            uuid,
            parent_uuid: Some(parent_uuid),
            name: cut(name),
            ..te::CustomTrack::default()
        };
        te::custom_descriptor(self.out, self.by.sequence, &track);
    }

    /// Describes the track of the process.
    fn put_process(&mut self) {
        if (self.is_new)(process::track_uuid()) {
            self.put_process_track();
        }
    }

    /// Describes the track and all its ancestors.
    fn put_branch(&mut self, track: &Track) {
        // From the leaf to the root: at most a few dozen tracks. A described track has described ancestors.
        let mut branch: List<Track> = List::new();
        let mut next = Some(track.clone());
        while let Some(track) = next.filter(|t| (self.is_new)(t.track_uuid())) {
            next = track.parent();
            branch.push(track);
        }
        branch.iter().rev().for_each(|track| self.put_track(track));
    }

    fn put_track(&mut self, track: &Track) {
        match track.kind() {
            TrackKind::Process => self.put_process_track(),
            TrackKind::Thread(thread) => put_thread(self.out, self.by.sequence, track.track_uuid(), thread),
            TrackKind::Named(named) => {
                let custom = te::CustomTrack {
                    uuid: track.track_uuid(),
                    parent_uuid: named.parent.as_ref().map(Track::track_uuid),
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
                te::custom_descriptor(self.out, self.by.sequence, &custom);
            }
        }
    }

    fn put_process_track(&mut self) {
        let process = te::ProcessTrack {
            uuid: process::track_uuid(),
            pid: self.by.pid.cast_signed(),
            name: cut(process::name()),
            cmdline: &[],
        };
        te::process_descriptor(self.out, self.by.sequence, &process);
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
        te::counter_descriptor(self.out, self.by.sequence, &track);
    }
}

/// Describes the track of a thread.
pub(crate) fn put_thread(out: &mut Bytes, sequence: SequenceId, uuid: TrackUuid, thread: &process::Thread) {
    let track = te::ThreadTrack {
        uuid,
        parent_uuid: process::track_uuid(),
        pid: thread.pid.cast_signed(),
        tid: i64::from(thread.tid),
        name: cut(&thread.name),
    };
    te::thread_descriptor(out, sequence, &track);
}
