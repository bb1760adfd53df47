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

use crate::fxt::read::intervals::Intervals;
use crate::{Context, CounterTrack, StringId, Strings, Text, Track, TrackId, TrackKind};

/// The limit for tracks, some 100 bytes each. Events on further tracks are skipped.
const MAX_TRACKS: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<InputTrack>,
    processes: HashMap<u64, u32>,
    threads: HashMap<(u64, u64), u32>,
    counters: HashMap<Counter, u32>,
    intervals: Intervals,
    /// Tracks whose description must be returned next.
    undescribed: VecDeque<u32>,
}

#[derive(Debug)]
struct InputTrack {
    id: TrackId,
    parent: Option<TrackId>,
    kind: InputTrackKind,
    name: TrackName,
}

#[derive(Debug)]
enum InputTrackKind {
    Process { pid: u64, command_line: Vec<String> },
    Thread { pid: u64, tid: u64 },
    Counter { number: u64, series: TrackName },
    Async { id: u64 },
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Counter {
    process: u64,
    name: u64,
    series: u64,
    number: u64,
}

/// A name. Only one without a number is stored here.
#[derive(Debug, PartialEq)]
enum TrackName {
    Id(StringId),
    Own(Box<str>),
}

impl TrackName {
    fn new(text: Text<'_>) -> Self {
        text.id.map_or_else(|| Self::Own(text.text.into()), Self::Id)
    }

    fn get<'a>(&'a self, strings: &'a Strings) -> &'a str {
        match self {
            Self::Id(id) => strings.get(*id),
            Self::Own(text) => text,
        }
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
    fn add(
        &mut self,
        id: TrackId,
        parent: Option<TrackId>,
        kind: InputTrackKind,
        name: Text<'_>,
    ) -> Option<u32> {
        if self.all.len() == MAX_TRACKS {
            return None;
        }
        let slot = self.all.len() as u32; // at most MAX_TRACKS
        self.all.push(InputTrack { id, parent, kind, name: TrackName::new(name) });
        self.undescribed.push_back(slot);
        Some(slot)
    }

    /// The number of a track.
    #[inline]
    pub(super) fn id(&self, slot: u32) -> TrackId {
        self.all[slot as usize].id
    }

    pub(super) fn process(&mut self, pid: u64, context: &mut Context) -> Option<u32> {
        if let Some(slot) = self.processes.get(&pid) {
            return Some(*slot);
        }
        let slot = self.add(
            context.new_track(),
            None,
            InputTrackKind::Process { pid, command_line: Vec::new() },
            Text::default(),
        )?;
        self.processes.insert(pid, slot);
        Some(slot)
    }

    pub(super) fn thread(&mut self, pid: u64, tid: u64, context: &mut Context) -> Option<u32> {
        if let Some(slot) = self.threads.get(&(pid, tid)) {
            return Some(*slot);
        }
        let process = self.process(pid, context)?;
        let (id, parent) = (context.new_track(), Some(self.id(process)));
        let slot = self.add(id, parent, InputTrackKind::Thread { pid, tid }, Text::default())?;
        self.threads.insert((pid, tid), slot);
        Some(slot)
    }

    /// Sets the name of a process or a thread.
    pub(super) fn set_name(&mut self, slot: u32, name: Text<'_>) {
        let name = TrackName::new(name);
        let kept = &mut self.all[slot as usize];
        if kept.name != name {
            kept.name = name;
            self.describe(slot);
        }
    }

    fn set_command_line(&mut self, slot: u32, emitted: &[String]) {
        if let InputTrackKind::Process { command_line, .. } = &mut self.all[slot as usize].kind
            && command_line != emitted
        {
            *command_line = emitted.to_vec();
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
        if let Some(slot) = self.counters.get(&counter) {
            return Some(self.id(*slot));
        }
        let process = self.process(pid, context)?;
        let parent = Some(self.id(process));
        let kind = InputTrackKind::Counter { number, series: TrackName::new(series) };
        let slot = self.add(context.new_track(), parent, kind, name)?;
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
                    self.all[slot as usize].kind = InputTrackKind::Async { id };
                    self.undescribed.push_back(slot);
                    slot
                }
                None => {
                    let slot = self.add(context.new_track(), None, InputTrackKind::Async { id }, name)?;
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

    pub(super) fn track<'a>(&'a self, slot: u32, strings: &'a Strings) -> Track<'a> {
        let kept = &self.all[slot as usize];
        let name = kept.name.get(strings);
        let kind = match &kept.kind {
            InputTrackKind::Process { pid, command_line } => TrackKind::Process { pid: *pid, command_line },
            InputTrackKind::Thread { pid, tid } => TrackKind::Thread { pid: *pid, tid: *tid },
            InputTrackKind::Counter { number, series } => TrackKind::Counter(CounterTrack {
                number: *number,
                series: series.get(strings),
                ..CounterTrack::default()
            }),
            // The name distinguishes equal ids.
            InputTrackKind::Async { id } => TrackKind::Async { id: *id, scope: name },
        };
        Track { parent: kept.parent, name, ..Track::new(kept.id, kind) }
    }

    /// Returns the known process or thread that equals a track of the packets. A new track is added as known.
    pub(super) fn adopt(&mut self, track: &Track<'_>) -> TrackId {
        let known = match track.kind {
            TrackKind::Process { pid, .. } => self.processes.get(&pid),
            TrackKind::Thread { pid, tid } => self.threads.get(&(pid, tid)),
            _ => return track.id,
        };
        if let Some(&slot) = known {
            if !track.name.is_empty() {
                self.set_name(slot, track.name.into());
            }
            if let TrackKind::Process { command_line: emitted @ [_, ..], .. } = track.kind {
                self.set_command_line(slot, emitted);
            }
            return self.id(slot);
        }
        let (kind, name) = match track.kind {
            TrackKind::Process { pid, command_line } => {
                (InputTrackKind::Process { pid, command_line: command_line.to_vec() }, track.name)
            }
            TrackKind::Thread { pid, tid } => (InputTrackKind::Thread { pid, tid }, track.name),
            _ => return track.id,
        };
        if self.all.len() < MAX_TRACKS {
            let slot = self.all.len() as u32; // at most MAX_TRACKS
            self.all.push(InputTrack {
                id: track.id,
                parent: track.parent,
                kind,
                name: TrackName::new(name.into()),
            });
            match track.kind {
                TrackKind::Thread { pid, tid } => self.threads.insert((pid, tid), slot),
                TrackKind::Process { pid, .. } => self.processes.insert(pid, slot),
                _ => None,
            };
        }
        track.id
    }
}
