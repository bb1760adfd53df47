//! The tracks of the output. A description is written as late as possible, just before the first event on the
//! track, to have all properties.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hairline_formats::track_event::{CounterValue, EventType, SequenceId, TrackUuid};

use crate::pids::Pids;
use crate::shared_ids::{SHARED, SharedIds};
use crate::track_event::describe;
use crate::track_event::write::crossing::Crossing;
use crate::{Report, StringId, Track, TrackId, TrackKind};

/// The sequence of descriptions, and of events before the first thread.
pub(super) const GENERAL_SEQUENCE: SequenceId = SequenceId(1);

/// A track.
#[derive(Debug, Default)]
pub(super) struct OutputTrack {
    pub(super) uuid: TrackUuid,
    pub(super) class: TrackClass,
    /// The index of the thread's sequence; 0 is the general one.
    pub(super) sequence: usize,
    /// The category in the description of a counter.
    pub(super) category: Option<StringId>,
    /// The ends of open slices, the next one last.
    pub(super) ends: Vec<SliceEnd>,
    /// The slices of a thread that has complete ones which became begin and end.
    pub(super) crossing: Option<Box<Crossing>>,
    /// The description, until it is written.
    description: Option<Box<Track>>,
}

/// The begin and the end of an open slice.
#[derive(Debug)]
pub(super) struct SliceEnd {
    pub(super) begin: i64,
    pub(super) time: i64,
    /// The values of counters at the end.
    pub(super) counters: Box<[(TrackId, CounterValue)]>,
}

/// The class of a track decides the form of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TrackClass {
    #[default]
    Slices,
    States,
    Thread,
    Counter,
}

impl TrackClass {
    /// The type of the event that begins a slice.
    pub(super) fn begin(self) -> EventType {
        if self == Self::States { EventType::State } else { EventType::SliceBegin }
    }

    /// The type of the event that ends a slice.
    pub(super) fn end(self) -> EventType {
        if self == Self::States { EventType::State } else { EventType::SliceEnd }
    }
}

/// All tracks.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<OutputTrack>,
    uuids: HashSet<TrackUuid>,
    next: u64,
    shared: SharedIds,
    pids: Pids,
    /// The UUIDs of tracks beside threads.
    lanes: HashMap<(TrackId, usize), TrackUuid>,
}

/// The index of a track.
fn index(id: TrackId) -> usize {
    id.0 as usize
}

impl Tracks {
    /// The sequence of a thread that has one, is described, and has no slices to end. `None` for any other
    /// track.
    #[inline]
    pub(super) fn plain_thread(&self, id: TrackId) -> Option<usize> {
        let track = self.all.get(index(id))?;
        let is_plain = track.class == TrackClass::Thread
            && track.sequence != 0
            && track.ends.is_empty()
            && track.crossing.is_none()
            && track.description.is_none();
        is_plain.then_some(track.sequence)
    }

    /// Returns a track. Creates it if it was not described.
    #[inline]
    pub(super) fn get(&mut self, id: TrackId) -> &mut OutputTrack {
        if self.all.get(index(id)).is_none_or(|track| track.uuid == TrackUuid(0)) {
            self.make(id, TrackUuid(0));
        }
        &mut self.all[index(id)]
    }

    /// Creates a track with the UUID `source`, if no other has it.
    #[cold]
    fn make(&mut self, id: TrackId, source: TrackUuid) {
        if index(id) >= self.all.len() {
            self.all.resize_with(index(id) + 1, OutputTrack::default);
        }
        self.all[index(id)].uuid = self.new_uuid(source);
    }

    /// The UUID of a track beside a thread, and whether the track is new.
    pub(super) fn lane(&mut self, thread: TrackId, number: usize) -> (TrackUuid, bool) {
        if let Some(uuid) = self.lanes.get(&(thread, number)) {
            return (*uuid, false);
        }
        let uuid = self.new_uuid(TrackUuid(0));
        self.lanes.insert((thread, number), uuid);
        (uuid, true)
    }

    /// The numbers of all tracks.
    pub(super) fn ids(&self) -> impl Iterator<Item = TrackId> + use<> {
        #[allow(clippy::cast_possible_truncation)] // created from numbers of 32 bits
        (0..self.all.len() as u32).map(TrackId)
    }

    /// Returns the UUID `source` if it is free, otherwise the next small number.
    fn new_uuid(&mut self, source: TrackUuid) -> TrackUuid {
        if source != TrackUuid(0) && self.uuids.insert(source) {
            return source;
        }
        loop {
            self.next += 1;
            let uuid = TrackUuid(self.next);
            if self.uuids.insert(uuid) {
                return uuid;
            }
        }
    }

    /// Sets the description of a track.
    pub(super) fn add(&mut self, track: &Track, report: &mut Report) {
        let renumbered = self.pids.not_idle(track, report);
        let track = renumbered.as_ref().unwrap_or(track);
        if index(track.id) >= self.all.len() || self.all[index(track.id)].uuid == TrackUuid(0) {
            self.make(track.id, TrackUuid(track.source_id));
        }
        report.add_many(SHARED, self.shared.add(track).into());
        let out = &mut self.all[index(track.id)];
        out.class = match track.kind {
            TrackKind::Thread { .. } => TrackClass::Thread,
            TrackKind::Counter(_) => TrackClass::Counter,
            TrackKind::States => TrackClass::States,
            _ => TrackClass::Slices,
        };
        // A track without a name and a parent needs no description.
        let is_bare =
            matches!(track.kind, TrackKind::Slices) && track.name.is_empty() && track.parent.is_none();
        let (pid, tid) = match track.kind {
            TrackKind::Process { pid, .. } => (pid, 0),
            TrackKind::Thread { pid, tid } => (pid, tid),
            _ => (0, 0),
        };
        report.add_many(WIDE_IDS, u64::from(i32::try_from(pid).is_err() || i32::try_from(tid).is_err()));
        out.description = (!is_bare).then(|| Box::new(Track { name: name(track, report), ..track.clone() }));
    }

    /// Writes the description of a track and its ancestors, if that is not done.
    #[inline]
    pub(super) fn describe(&mut self, out: &mut Vec<u8>, id: TrackId, categories: &[&str], time: u64) {
        if self.get(id).description.is_some() {
            self.describe_all(out, id, categories, time);
        }
    }

    #[cold]
    fn describe_all(&mut self, out: &mut Vec<u8>, id: TrackId, categories: &[&str], time: u64) {
        // The descriptions are removed first, so a cycle of parents ends. There may be any number of ancestors.
        let (mut branch, mut next) = (Vec::new(), Some(id));
        while let Some(description) = next.and_then(|id| self.get(id).description.take()) {
            next = description.parent;
            branch.push(description);
        }
        for (above, description) in branch.into_iter().enumerate().rev() {
            let parent = description.parent.map(|parent| self.get(parent).uuid);
            let uuids = (self.get(description.id).uuid, parent);
            let categories = if above == 0 { categories } else { &[] };
            describe(out, GENERAL_SEQUENCE, &description, uuids, categories, time);
        }
    }
}

/// What reports say of ids for which Perfetto's packets, or their importers, have no room.
const WIDE_IDS: &str = "process and thread ids beyond 31 bits, cut by importers";

/// The name of a track. A counter's name includes its id and series.
fn name(track: &Track, report: &mut Report) -> Arc<str> {
    let TrackKind::Counter(counter) = &track.kind else { return Arc::clone(&track.name) };
    let mut name = track.name.to_string();
    if counter.number != 0 {
        name += &format!(" id: {}", counter.number);
    }
    if !matches!(&*counter.series, "" | "value") {
        name += " ";
        name += &counter.series;
    }
    let is_longer = name.len() > track.name.len();
    report.add_many("series of counters became counters of their own", u64::from(is_longer));
    name.into()
}
