//! The tracks of the output. A description is written as late as possible, just before the first event on the
//! track, to have all properties.

use std::collections::HashSet;

use hairline_formats::track_event::{
    self as te, ChildOrdering, CounterType, CustomTrack, Process, ProcessTrack, SiblingMerge, ThreadTrack,
    Unit,
};

use crate::{CounterTrack, Report, StringId, Track, TrackId, TrackKind};

/// The sequence of descriptions, and of events before the first thread.
pub(super) const GENERAL_SEQUENCE: u32 = 1;

/// A track.
#[derive(Debug, Default)]
pub(super) struct OutputTrack {
    pub(super) uuid: u64,
    pub(super) class: TrackClass,
    /// The index of the thread's sequence; 0 is the general one.
    pub(super) sequence: usize,
    /// The category in the description of a counter.
    pub(super) category: Option<StringId>,
    /// The ends of open slices, the next one last.
    pub(super) ends: Vec<SliceEnd>,
    description: Option<Box<Description>>,
}

/// The begin and the end of an open slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceEnd {
    pub(super) begin: i64,
    pub(super) time: i64,
}

/// The class of a track decides the form of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TrackClass {
    #[default]
    Slices,
    Thread,
    Counter,
}

/// A description that is not written yet.
#[derive(Debug)]
struct Description {
    kind: OutputTrackKind,
    parent: Option<TrackId>,
    name: String,
    description: String,
    child_ordering: ChildOrdering,
    rank: i32,
    merge: SiblingMerge,
    merge_key: String,
}

#[derive(Debug)]
enum OutputTrackKind {
    Process { pid: u64, command_line: Vec<String> },
    Thread { pid: u64, tid: u64 },
    Custom,
    Counter { unit: Unit, unit_name: String, multiplier: i64, builtin: CounterType, share_key: String },
}

/// All tracks.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<OutputTrack>,
    uuids: HashSet<u64>,
    next: u64,
}

/// The index of a track.
fn index(id: TrackId) -> usize {
    id.0 as usize
}

impl Tracks {
    /// Returns a track. Creates it if it was not described.
    #[inline]
    pub(super) fn get(&mut self, id: TrackId) -> &mut OutputTrack {
        if self.all.get(index(id)).is_none_or(|track| track.uuid == 0) {
            self.make(id, 0);
        }
        &mut self.all[index(id)]
    }

    /// Creates a track with the UUID `source`, if no other has it.
    #[cold]
    fn make(&mut self, id: TrackId, source: u64) {
        if index(id) >= self.all.len() {
            self.all.resize_with(index(id) + 1, OutputTrack::default);
        }
        self.all[index(id)].uuid = self.new_uuid(source);
    }

    /// The numbers of all tracks.
    pub(super) fn ids(&self) -> impl Iterator<Item = TrackId> + use<> {
        #[allow(clippy::cast_possible_truncation)] // created from numbers of 32 bits
        (0..self.all.len() as u32).map(TrackId)
    }

    /// Returns the UUID `source` if it is free, otherwise the next small number.
    fn new_uuid(&mut self, source: u64) -> u64 {
        if source != 0 && self.uuids.insert(source) {
            return source;
        }
        loop {
            self.next += 1;
            if self.uuids.insert(self.next) {
                return self.next;
            }
        }
    }

    /// Sets the description of a track.
    pub(super) fn add(&mut self, track: &Track<'_>, report: &mut Report) {
        if index(track.id) >= self.all.len() || self.all[index(track.id)].uuid == 0 {
            self.make(track.id, track.source_id);
        }
        let out = &mut self.all[index(track.id)];
        out.class = match track.kind {
            TrackKind::Thread { .. } => TrackClass::Thread,
            TrackKind::Counter(_) => TrackClass::Counter,
            _ => TrackClass::Slices,
        };
        // A track without a name and a parent needs no description.
        let is_bare =
            matches!(track.kind, TrackKind::Slices) && track.name.is_empty() && track.parent.is_none();
        out.description = (!is_bare).then(|| Box::new(Description::of(track, report)));
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
        // The description is removed first, so a cycle of parents ends.
        let Some(description) = self.get(id).description.take() else { return };
        if let Some(parent) = description.parent {
            self.describe(out, parent, &[], time);
        }
        let parent = description.parent.map(|parent| self.get(parent).uuid);
        description.write(out, self.get(id).uuid, parent, categories, time);
    }
}

impl Description {
    fn of(track: &Track<'_>, report: &mut Report) -> Self {
        let kind = match track.kind {
            TrackKind::Process { pid, command_line } => {
                OutputTrackKind::Process { pid, command_line: command_line.to_vec() }
            }
            TrackKind::Thread { pid, tid } => OutputTrackKind::Thread { pid, tid },
            TrackKind::Counter(counter) => OutputTrackKind::Counter {
                unit: counter.unit,
                unit_name: counter.unit_name.to_owned(),
                multiplier: counter.multiplier,
                builtin: counter.builtin,
                share_key: counter.y_axis_share_key.to_owned(),
            },
            _ => OutputTrackKind::Custom,
        };
        if let OutputTrackKind::Process { pid, .. } | OutputTrackKind::Thread { pid, .. } = kind {
            report.add_many("process ids beyond 32 bits, cut", u64::from(u32::try_from(pid).is_err()));
        }
        Self {
            kind,
            parent: track.parent,
            name: name(track, report),
            description: track.description.to_owned(),
            child_ordering: track.child_ordering,
            rank: track.rank.unwrap_or(0),
            merge: track.merge,
            merge_key: track.merge_key.to_owned(),
        }
    }

    // Longer ids are counted in the report.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn write(&self, out: &mut Vec<u8>, uuid: u64, parent_uuid: Option<u64>, categories: &[&str], time: u64) {
        let name = &*self.name;
        match &self.kind {
            OutputTrackKind::Process { pid, command_line } => {
                let mut cmdline: Vec<_> = command_line.iter().map(String::as_str).collect();
                let pid = *pid as i32;
                te::process_descriptor(
                    out,
                    GENERAL_SEQUENCE,
                    &ProcessTrack { uuid, pid, name, cmdline: &cmdline },
                );
                // Importers take the command line from the process tree, and its first word as the name.
                if let Some(first) = cmdline.first_mut() {
                    *first = if name.is_empty() { *first } else { name };
                    let process = Process { pid, parent: None, command_line: &cmdline };
                    te::process_tree(out, GENERAL_SEQUENCE, time, &process);
                }
            }
            OutputTrackKind::Thread { pid, tid } => {
                let (pid, tid) = (*pid as i32, tid.cast_signed());
                let parent_uuid = parent_uuid.unwrap_or(0);
                te::thread_descriptor(
                    out,
                    GENERAL_SEQUENCE,
                    &ThreadTrack { uuid, parent_uuid, pid, tid, name },
                );
            }
            OutputTrackKind::Counter { unit, unit_name, multiplier, builtin, share_key } => {
                let counter = te::CounterTrack {
                    unit: *unit,
                    unit_name: (!unit_name.is_empty()).then_some(unit_name),
                    multiplier: *multiplier,
                    builtin: *builtin,
                    categories,
                    y_axis_share_key: share_key,
                    ..te::CounterTrack::new(uuid, parent_uuid.unwrap_or(0), name)
                };
                te::counter_descriptor(out, GENERAL_SEQUENCE, &counter);
            }
            OutputTrackKind::Custom => {
                let track = CustomTrack {
                    uuid,
                    parent_uuid,
                    name,
                    description: &self.description,
                    child_ordering: self.child_ordering,
                    rank: self.rank,
                    merge: self.merge,
                    merge_key: &self.merge_key,
                };
                te::custom_descriptor(out, GENERAL_SEQUENCE, &track);
            }
        }
    }
}

/// The name of a track. A counter's name includes its id and series.
fn name(track: &Track<'_>, report: &mut Report) -> String {
    let mut name = track.name.to_owned();
    if let TrackKind::Counter(CounterTrack { number, series, .. }) = track.kind {
        if number != 0 {
            name += &format!(" id: {number}");
        }
        if !matches!(series, "" | "value") {
            name += " ";
            name += series;
        }
        let is_longer = name.len() > track.name.len();
        report.add_many("series of counters became counters of their own", u64::from(is_longer));
    }
    name
}
