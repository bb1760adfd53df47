//! The tracks of an FXT trace, and their identities.
//!
//! | track | identity | parent |
//! |---|---|---|
//! | process | koid | |
//! | thread | koids of process and thread | its process |
//! | counter | process, name, the argument's name, counter id | its process |
//! | async interval | name and id, independent of the process | |

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::fxt::read::intervals::Intervals;
use crate::kept_track::KeptTrack;
use crate::{Context, CounterTrack, Index, Strings, Text, Track, TrackId, TrackKind};

/// The limit for tracks, some 200 bytes each. Events on further tracks are skipped. No Linux has more threads
/// at once.
const MAX_TRACKS: usize = 1 << 22;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<KeptTrack>,
    processes: HashMap<u64, u32>,
    /// By their ids.
    threads: Index,
    counters: HashMap<Counter, u32>,
    /// Recent counters, by [`Counter::place`]: a search in the map takes as long as the rest of reading one.
    recent: RecentCounters,
    intervals: Intervals,
    /// Tracks whose description must be returned next.
    undescribed: VecDeque<u32>,
}

type RecentCounters = [Option<(Counter, u32)>; 1 << RECENT_BITS];
const RECENT_BITS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counter {
    process: u64,
    name: u64,
    series: u64,
    number: u64,
}

impl Counter {
    /// The place among the recent ones.
    #[inline]
    fn place(&self) -> usize {
        let mixed = self.process ^ self.name.rotate_left(16) ^ self.series.rotate_left(32) ^ self.number;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS)) as usize
    }
}

/// Assigns a number to the text if possible.
pub(super) fn numbered<'a>(text: Text<'a>, strings: &mut Strings) -> Text<'a> {
    Text { id: text.id.or_else(|| strings.number(text.text)), ..text }
}

/// Identifies a [`numbered`] text.
pub(super) fn key(text: Text<'_>) -> u64 {
    text.id.map_or_else(
        || {
            let mut hasher = DefaultHasher::new();
            text.text.hash(&mut hasher);
            hasher.finish() | 1 << 63
        },
        |id| u64::from(id.0),
    )
}

impl Tracks {
    /// Adds a track. Returns `None` if there are too many.
    fn add(&mut self, track: Track) -> Option<u32> {
        let slot = self.all.len() as u32; // at most MAX_TRACKS
        let has_room = self.all.len() < MAX_TRACKS;
        has_room.then(|| {
            self.all.push(track.into());
            slot
        })
    }

    /// As `add`, for a track to be described.
    fn add_new(&mut self, parent: Option<TrackId>, kind: TrackKind, name: &str, id: TrackId) -> Option<u32> {
        let slot = self.add(Track { parent, name: name.into(), ..Track::new(id, kind) })?;
        self.undescribed.push_back(slot);
        Some(slot)
    }

    /// The number of a track.
    #[inline]
    pub(super) fn id(&self, slot: u32) -> TrackId {
        self.all[slot as usize].id()
    }

    pub(super) fn process(&mut self, pid: u64, context: &mut Context) -> Option<u32> {
        if let Some(slot) = self.processes.get(&pid) {
            return Some(*slot);
        }
        let slot = self.add_new(None, TrackKind::process(pid), "", context.new_track())?;
        self.processes.insert(pid, slot);
        Some(slot)
    }

    pub(super) fn thread(&mut self, pid: u64, tid: u64, context: &mut Context) -> Option<u32> {
        if let Some(slot) = self.known_thread(pid, tid) {
            return Some(slot);
        }
        let process = self.process(pid, context)?;
        let (parent, kind) = (Some(self.id(process)), TrackKind::Thread { pid, tid });
        let slot = self.add_new(parent, kind, "", context.new_track())?;
        self.threads.insert(slot, |slot| self.all[slot as usize].thread());
        Some(slot)
    }

    fn known_thread(&self, pid: u64, tid: u64) -> Option<u32> {
        self.threads.find(&Some((pid, tid)), |slot| self.all[slot as usize].thread())
    }

    /// Sets the name of a process or a thread.
    pub(super) fn set_name(&mut self, slot: u32, name: Text<'_>) {
        let set = |track: &mut Track| {
            let is_new = *track.name != *name.text;
            if is_new {
                track.name = name.text.into();
            }
            is_new
        };
        if self.all[slot as usize].change(set) {
            self.describe(slot);
        }
    }

    /// Sets the command line and the parent of a process.
    fn set_process(&mut self, slot: u32, emitted: &TrackKind) {
        let set = |track: &mut Track| {
            let is_new = track.kind != *emitted;
            if is_new {
                track.kind = emitted.clone();
            }
            is_new
        };
        if self.all[slot as usize].change(set) {
            self.describe(slot);
        }
    }

    fn describe(&mut self, slot: u32) {
        if !self.undescribed.contains(&slot) {
            self.undescribed.push_back(slot);
        }
    }

    /// The track of a counter. Both texts are [`numbered`].
    pub(super) fn counter(
        &mut self,
        pid: u64,
        name: Text<'_>,
        series: Text<'_>,
        number: u64,
        context: &mut Context,
    ) -> Option<TrackId> {
        let counter = Counter { process: pid, name: key(name), series: key(series), number };
        if let Some((_, slot)) = self.recent[counter.place()].filter(|(recent, _)| *recent == counter) {
            return Some(self.id(slot));
        }
        if let Some(slot) = self.counters.get(&counter).copied() {
            self.recent[counter.place()] = Some((counter, slot));
            return Some(self.id(slot));
        }
        let process = self.process(pid, context)?;
        let parent = Some(self.id(process));
        let kind = CounterTrack { number, series: series.text.into(), ..CounterTrack::default() };
        let kind = TrackKind::Counter(Box::new(kind));
        let slot = self.add_new(parent, kind, name.text, context.new_track())?;
        self.counters.insert(counter, slot);
        Some(self.id(slot))
    }

    /// The track of an interval at `time`. `opened` is the change in the number of open slices. The name is
    /// [`numbered`].
    pub(super) fn interval(
        &mut self,
        name: Text<'_>,
        id: u64,
        time: i64,
        opened: i32,
        context: &mut Context,
    ) -> Option<TrackId> {
        let key = (key(name), id);
        let slot = match self.intervals.find(key, time) {
            Some(slot) => slot,
            // Only a begin may reuse a track. An end or instant may belong to an earlier begin that follows
            // in the file.
            None => match (opened > 0).then(|| self.intervals.reuse(key, time)).flatten() {
                Some(slot) => {
                    self.all[slot as usize]
                        .change(|kept| kept.kind = TrackKind::Async { id, scope: Arc::clone(&kept.name) });
                    self.undescribed.push_back(slot);
                    slot
                }
                None => {
                    // The name distinguishes equal ids.
                    let kind = TrackKind::Async { id, scope: name.text.into() };
                    let slot = self.add_new(None, kind, name.text, context.new_track())?;
                    self.intervals.add(key, slot);
                    slot
                }
            },
        };
        self.intervals.passed(key, time, opened);
        Some(self.id(slot))
    }

    #[inline]
    pub(super) fn has_undescribed(&self) -> bool {
        !self.undescribed.is_empty()
    }

    /// Removes the next track to describe.
    #[inline]
    pub(super) fn undescribed(&mut self) -> Option<u32> {
        self.undescribed.pop_front()
    }

    pub(super) fn track(&self, slot: u32) -> Track {
        self.all[slot as usize].track()
    }

    /// Returns the known process or thread that equals a track of the packets. A new track is added as known.
    pub(super) fn adopt(&mut self, track: &Track) -> TrackId {
        let known = match track.kind {
            TrackKind::Process { pid, .. } => self.processes.get(&pid).copied(),
            TrackKind::Thread { pid, tid } => self.known_thread(pid, tid),
            _ => return track.id,
        };
        if let Some(slot) = known {
            if !track.name.is_empty() {
                self.set_name(slot, (&*track.name).into());
            }
            if let TrackKind::Process { command_line: emitted, .. } = &track.kind
                && !emitted.is_empty()
            {
                self.set_process(slot, &track.kind);
            }
            return self.id(slot);
        }
        let (id, parent, name, kind) = (track.id, track.parent, track.name.clone(), track.kind.clone());
        if let Some(slot) = self.add(Track { parent, name, ..Track::new(id, kind) }) {
            match track.kind {
                TrackKind::Thread { .. } => {
                    self.threads.insert(slot, |slot| self.all[slot as usize].thread())
                }
                TrackKind::Process { pid, .. } => self.processes.insert(pid, slot),
                _ => None,
            };
        }
        id
    }
}
