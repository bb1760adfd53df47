//! Which tracks there are.

use std::collections::{HashMap, VecDeque};

use hairline_formats::track_event::{CounterType, Unit};

use crate::context::Context;
use crate::json::read::numbers::{MadeIds, hash};
use crate::json::read::pending::Pending;
use crate::model::{CounterTrack, Track, TrackId, TrackKind};
use hairline_formats::trace_event_json::Id;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<InputTrack>,
    /// Places in `all`, by what tells tracks apart.
    places: HashMap<TrackKey, usize>,
    /// Tracks of intervals that are over, by what new ones must have in common with them.
    over: HashMap<u64, VecDeque<usize>>,
    made_ids: MadeIds,
    /// The last thread that was asked for, as it was asked for.
    last: Option<(Id<'static>, Id<'static>, usize)>,
}

/// What tells a track from others; longer keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TrackKey {
    Process(u64),
    Thread(u64, u64),
    /// Of the CPU time of a thread: its place.
    Time(usize),
    Everything,
    Other(u64),
}

#[derive(Debug)]
struct InputTrack {
    id: TrackId,
    kind: InputTrackKind,
    parent: Option<TrackId>,
    name: String,
    description: String,
    rank: Option<i32>,
}

#[derive(Debug)]
enum InputTrackKind {
    Process { pid: u64 },
    Thread { pid: u64, tid: u64 },
    Everything,
    Async { id: u64, scope: String, now: LiveInterval },
    Counter { number: u64, series: String },
    Time,
}

/// The interval that a track has at the moment.
#[derive(Clone, Copy, Debug)]
struct LiveInterval {
    key: TrackKey,
    /// What it has in common with others that may follow it on its track.
    kin: u64,
    /// Slices that are open.
    open: i32,
    until: i64,
}

/// Tracks above this number are given to the next interval once theirs is over: ids may be as many as intervals.
const MANY: usize = 1 << 12;

/// A counter, as its events tell of it.
#[derive(Debug, Hash)]
pub(super) struct Counter<'e> {
    pub(super) process: TrackId,
    pub(super) name: &'e str,
    /// 0 is none.
    pub(super) number: u64,
    pub(super) series: &'e str,
}

/// An interval, as its events tell of it.
#[derive(Debug, Hash)]
pub(super) struct Interval<'e> {
    /// None: it is one of the whole trace.
    pub(super) process: Option<TrackId>,
    pub(super) category: &'e str,
    pub(super) scope: &'e str,
    pub(super) id: u64,
}

/// What is said of a track besides its events.
#[derive(Debug)]
pub(super) enum TrackFact<'e> {
    Name(&'e str),
    Description(&'e str),
    Rank(i32),
}

impl Tracks {
    pub(super) fn get(&self, place: usize) -> Track<'_> {
        let known = &self.all[place];
        let kind = match &known.kind {
            InputTrackKind::Process { pid } => TrackKind::Process { pid: *pid, command_line: &[] },
            InputTrackKind::Thread { pid, tid } => TrackKind::Thread { pid: *pid, tid: *tid },
            InputTrackKind::Everything => TrackKind::Slices,
            InputTrackKind::Async { id, scope, .. } => TrackKind::Async { id: *id, scope },
            InputTrackKind::Counter { number, series } => {
                TrackKind::Counter(CounterTrack { number: *number, series, ..CounterTrack::default() })
            }
            InputTrackKind::Time => TrackKind::Counter(CounterTrack {
                unit: Unit::TimeNs,
                builtin: CounterType::ThreadTimeNs,
                ..CounterTrack::default()
            }),
        };
        Track {
            parent: known.parent,
            name: &known.name,
            description: &known.description,
            rank: known.rank,
            ..Track::new(known.id, kind)
        }
    }

    /// Processes and threads whose numbers were made_ids up.
    pub(super) fn made_ids(&self) -> u64 {
        self.made_ids.count()
    }

    fn id(&self, place: usize) -> TrackId {
        self.all[place].id
    }

    fn find(&self, key: TrackKey) -> Option<TrackId> {
        self.places.get(&key).map(|place| self.id(*place))
    }

    /// A new track, which is told of at once.
    fn add(
        &mut self,
        key: TrackKey,
        kind: InputTrackKind,
        of: (Option<TrackId>, &str),
        to: &mut NewTracks<'_>,
    ) -> usize {
        let place = self.all.len();
        let (parent, name) = of;
        let (id, name) = (to.context.new_track(), name.to_owned());
        self.all.push(InputTrack { id, kind, parent, name, description: String::new(), rank: None });
        self.places.insert(key, place);
        to.pending.push_back(Pending::Track(place));
        place
    }

    /// A process; without a number it is 0.
    pub(super) fn process(&mut self, pid: Option<&Id<'_>>, to: &mut NewTracks<'_>) -> TrackId {
        let (pid, name) = pid.map_or((0, None), |pid| self.made_ids.number(pid, to.context));
        self.process_of(pid, name, to)
    }

    fn process_of(&mut self, pid: u64, name: Option<&str>, to: &mut NewTracks<'_>) -> TrackId {
        let key = TrackKey::Process(pid);
        self.find(key).unwrap_or_else(|| {
            let place = self.add(key, InputTrackKind::Process { pid }, (None, name.unwrap_or_default()), to);
            self.id(place)
        })
    }

    /// A thread; without a number it is its process's first.
    pub(super) fn thread(
        &mut self,
        pid: Option<&Id<'_>>,
        tid: Option<&Id<'_>>,
        to: &mut NewTracks<'_>,
    ) -> TrackId {
        let pid = pid.unwrap_or(&Id::Number(0));
        let tid = tid.unwrap_or(pid);
        match &self.last {
            Some((last_pid, last_tid, place)) if last_pid == pid && last_tid == tid => self.id(*place),
            _ => {
                let place = self.thread_place(pid, tid, to);
                if !matches!((pid, tid), (Id::Text(_), _) | (_, Id::Text(_))) {
                    self.last = Some((plain(pid), plain(tid), place));
                }
                self.id(place)
            }
        }
    }

    fn thread_place(&mut self, pid: &Id<'_>, tid: &Id<'_>, to: &mut NewTracks<'_>) -> usize {
        let (pid, process) = self.made_ids.number(pid, to.context);
        let (tid, name) = self.made_ids.number(tid, to.context);
        let key = TrackKey::Thread(pid, tid);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let parent = self.process_of(pid, process, to);
        self.add(key, InputTrackKind::Thread { pid, tid }, (Some(parent), name.unwrap_or_default()), to)
    }

    /// The counter of a thread's CPU time.
    pub(super) fn time(&mut self, thread: TrackId, to: &mut NewTracks<'_>) -> TrackId {
        let key = TrackKey::Time(thread.0 as usize);
        self.find(key).unwrap_or_else(|| {
            let place = self.add(key, InputTrackKind::Time, (Some(thread), "thread_time"), to);
            self.id(place)
        })
    }

    /// The track of instants that concern everything.
    pub(super) fn everything(&mut self, to: &mut NewTracks<'_>) -> TrackId {
        self.find(TrackKey::Everything).unwrap_or_else(|| {
            let place = self.add(TrackKey::Everything, InputTrackKind::Everything, (None, ""), to);
            self.id(place)
        })
    }

    pub(super) fn counter(&mut self, counter: &Counter<'_>, to: &mut NewTracks<'_>) -> TrackId {
        let key = TrackKey::Other(hash(counter));
        self.find(key).unwrap_or_else(|| {
            let kind = InputTrackKind::Counter { number: counter.number, series: counter.series.to_owned() };
            let place = self.add(key, kind, (Some(counter.process), counter.name), to);
            self.id(place)
        })
    }

    /// The track of an interval, on which something of this name happens: it has the name of the first event on it.
    pub(super) fn interval(
        &mut self,
        interval: &Interval<'_>,
        (name, time, opens): (&str, i64, i32),
        to: &mut NewTracks<'_>,
    ) -> TrackId {
        let key = TrackKey::Other(hash(interval));
        let place = self.places.get(&key).copied().unwrap_or_else(|| {
            let kin = hash((interval.process, interval.category, interval.scope, name));
            let now = LiveInterval { key, kin, open: 0, until: time };
            self.reused(now).unwrap_or_else(|| {
                let scope = if interval.scope.is_empty() { interval.category } else { interval.scope };
                let kind = InputTrackKind::Async { id: interval.id, scope: scope.to_owned(), now };
                self.add(key, kind, (interval.process, name), to)
            })
        });
        self.passed(place, time, opens);
        self.id(place)
    }

    /// A track whose interval was over before this one, which is on it from now on.
    fn reused(&mut self, next: LiveInterval) -> Option<usize> {
        let over = self.over.get_mut(&next.kin)?;
        let place = *over.front()?;
        match &mut self.all[place].kind {
            InputTrackKind::Async { now, .. } if now.until < next.until => *now = next,
            _ => return None,
        }
        over.pop_front();
        self.places.insert(next.key, place);
        Some(place)
    }

    /// Something happened on the track of an interval: so many more slices are open.
    fn passed(&mut self, place: usize, time: i64, opens: i32) {
        let are_many = self.all.len() > MANY;
        let InputTrackKind::Async { now, .. } = &mut self.all[place].kind else { return };
        now.open = now.open.saturating_add(opens);
        now.until = now.until.max(time);
        if are_many && opens < 0 && now.open == 0 {
            self.places.remove(&now.key);
            self.over.entry(now.kin).or_default().push_back(place);
        }
    }

    /// Something is said of a track, which is told of again if it is new.
    pub(super) fn about(&mut self, track: TrackId, about: &TrackFact<'_>, pending: &mut VecDeque<Pending>) {
        // Numbers grow.
        let Ok(place) = self.all.binary_search_by_key(&track, |known| known.id) else { return };
        let known = &mut self.all[place];
        let put = |text: &str, into: &mut String| {
            let is_new = text != into;
            text.clone_into(into);
            is_new
        };
        let is_new = match about {
            TrackFact::Name(name) => put(name, &mut known.name),
            TrackFact::Description(text) => put(text, &mut known.description),
            TrackFact::Rank(rank) => known.rank.replace(*rank) != Some(*rank),
        };
        if is_new && !pending.iter().any(|pending| matches!(pending, Pending::Track(told) if *told == place))
        {
            pending.push_back(Pending::Track(place));
        }
    }
}

/// What a new track needs, and where it is told of.
#[derive(Debug)]
pub(super) struct NewTracks<'c> {
    pub(super) context: &'c mut Context,
    pub(super) pending: &'c mut VecDeque<Pending>,
}

/// An id that is a number.
fn plain(id: &Id<'_>) -> Id<'static> {
    match id {
        Id::Number(number) => Id::Number(*number),
        Id::Negative(number) => Id::Negative(*number),
        Id::Text(_) => Id::Number(0),
    }
}
