//! Which tracks there are.

use std::collections::{HashMap, VecDeque};

use hairline_formats::track_event::{CounterType, Unit};

use crate::context::Context;
use crate::json::read::numbers::{Made, hash};
use crate::json::read::pending::Ready;
use crate::model::{CounterTrack, Track, TrackId, TrackKind};
use hairline_formats::trace_event_json::Id;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<Known>,
    /// Places in `all`, by what tells tracks apart.
    places: HashMap<Key, usize>,
    /// Tracks of intervals that are over, by what new ones must have in common with them.
    over: HashMap<u64, VecDeque<usize>>,
    made: Made,
    /// The last thread that was asked for, as it was asked for.
    last: Option<(Id<'static>, Id<'static>, usize)>,
}

/// What tells a track from others; longer keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Process(u64),
    Thread(u64, u64),
    /// Of the CPU time of a thread: its place.
    Time(usize),
    Everything,
    Other(u64),
}

#[derive(Debug)]
struct Known {
    id: TrackId,
    kind: Kind,
    parent: Option<TrackId>,
    name: String,
    description: String,
    rank: Option<i32>,
}

#[derive(Debug)]
enum Kind {
    Process { pid: u64 },
    Thread { pid: u64, tid: u64 },
    Everything,
    Async { id: u64, scope: String, now: Lives },
    Counter { number: u64, series: String },
    Time,
}

/// The interval that a track has at the moment.
#[derive(Clone, Copy, Debug)]
struct Lives {
    key: Key,
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
pub(super) enum About<'e> {
    Name(&'e str),
    Description(&'e str),
    Rank(i32),
}

impl Tracks {
    pub(super) fn get(&self, place: usize) -> Track<'_> {
        let known = &self.all[place];
        let kind = match &known.kind {
            Kind::Process { pid } => TrackKind::Process { pid: *pid, command_line: &[] },
            Kind::Thread { pid, tid } => TrackKind::Thread { pid: *pid, tid: *tid },
            Kind::Everything => TrackKind::Slices,
            Kind::Async { id, scope, .. } => TrackKind::Async { id: *id, scope },
            Kind::Counter { number, series } => {
                TrackKind::Counter(CounterTrack { number: *number, series, ..CounterTrack::default() })
            }
            Kind::Time => TrackKind::Counter(CounterTrack {
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

    /// Processes and threads whose numbers were made up.
    pub(super) fn made(&self) -> u64 {
        self.made.count()
    }

    fn id(&self, place: usize) -> TrackId {
        self.all[place].id
    }

    fn find(&self, key: Key) -> Option<TrackId> {
        self.places.get(&key).map(|place| self.id(*place))
    }

    /// A new track, which is told of at once.
    fn add(&mut self, key: Key, kind: Kind, of: (Option<TrackId>, &str), to: &mut Told<'_>) -> usize {
        let place = self.all.len();
        let (parent, name) = of;
        let (id, name) = (to.context.new_track(), name.to_owned());
        self.all.push(Known { id, kind, parent, name, description: String::new(), rank: None });
        self.places.insert(key, place);
        to.ready.push_back(Ready::Track(place));
        place
    }

    /// A process; without a number it is 0.
    pub(super) fn process(&mut self, pid: Option<&Id<'_>>, to: &mut Told<'_>) -> TrackId {
        let (pid, name) = pid.map_or((0, None), |pid| self.made.number(pid, to.context));
        self.process_of(pid, name, to)
    }

    fn process_of(&mut self, pid: u64, name: Option<&str>, to: &mut Told<'_>) -> TrackId {
        let key = Key::Process(pid);
        self.find(key).unwrap_or_else(|| {
            let place = self.add(key, Kind::Process { pid }, (None, name.unwrap_or_default()), to);
            self.id(place)
        })
    }

    /// A thread; without a number it is its process's first.
    pub(super) fn thread(
        &mut self,
        pid: Option<&Id<'_>>,
        tid: Option<&Id<'_>>,
        to: &mut Told<'_>,
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

    fn thread_place(&mut self, pid: &Id<'_>, tid: &Id<'_>, to: &mut Told<'_>) -> usize {
        let (pid, process) = self.made.number(pid, to.context);
        let (tid, name) = self.made.number(tid, to.context);
        let key = Key::Thread(pid, tid);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let parent = self.process_of(pid, process, to);
        self.add(key, Kind::Thread { pid, tid }, (Some(parent), name.unwrap_or_default()), to)
    }

    /// The counter of a thread's CPU time.
    pub(super) fn time(&mut self, thread: TrackId, to: &mut Told<'_>) -> TrackId {
        let key = Key::Time(thread.0 as usize);
        self.find(key).unwrap_or_else(|| {
            let place = self.add(key, Kind::Time, (Some(thread), "thread_time"), to);
            self.id(place)
        })
    }

    /// The track of instants that concern everything.
    pub(super) fn everything(&mut self, to: &mut Told<'_>) -> TrackId {
        self.find(Key::Everything).unwrap_or_else(|| {
            let place = self.add(Key::Everything, Kind::Everything, (None, ""), to);
            self.id(place)
        })
    }

    pub(super) fn counter(&mut self, counter: &Counter<'_>, to: &mut Told<'_>) -> TrackId {
        let key = Key::Other(hash(counter));
        self.find(key).unwrap_or_else(|| {
            let kind = Kind::Counter { number: counter.number, series: counter.series.to_owned() };
            let place = self.add(key, kind, (Some(counter.process), counter.name), to);
            self.id(place)
        })
    }

    /// The track of an interval, on which something of this name happens: it has the name of the first event on it.
    pub(super) fn interval(
        &mut self,
        interval: &Interval<'_>,
        (name, time, opens): (&str, i64, i32),
        to: &mut Told<'_>,
    ) -> TrackId {
        let key = Key::Other(hash(interval));
        let place = self.places.get(&key).copied().unwrap_or_else(|| {
            let kin = hash((interval.process, interval.category, interval.scope, name));
            let now = Lives { key, kin, open: 0, until: time };
            self.reused(now).unwrap_or_else(|| {
                let scope = if interval.scope.is_empty() { interval.category } else { interval.scope };
                let kind = Kind::Async { id: interval.id, scope: scope.to_owned(), now };
                self.add(key, kind, (interval.process, name), to)
            })
        });
        self.passed(place, time, opens);
        self.id(place)
    }

    /// A track whose interval was over before this one, which is on it from now on.
    fn reused(&mut self, next: Lives) -> Option<usize> {
        let over = self.over.get_mut(&next.kin)?;
        let place = *over.front()?;
        match &mut self.all[place].kind {
            Kind::Async { now, .. } if now.until < next.until => *now = next,
            _ => return None,
        }
        over.pop_front();
        self.places.insert(next.key, place);
        Some(place)
    }

    /// Something happened on the track of an interval: so many more slices are open.
    fn passed(&mut self, place: usize, time: i64, opens: i32) {
        let are_many = self.all.len() > MANY;
        let Kind::Async { now, .. } = &mut self.all[place].kind else { return };
        now.open = now.open.saturating_add(opens);
        now.until = now.until.max(time);
        if are_many && opens < 0 && now.open == 0 {
            self.places.remove(&now.key);
            self.over.entry(now.kin).or_default().push_back(place);
        }
    }

    /// Something is said of a track, which is told of again if it is new.
    pub(super) fn about(&mut self, track: TrackId, about: &About<'_>, ready: &mut VecDeque<Ready>) {
        // Numbers grow.
        let Ok(place) = self.all.binary_search_by_key(&track, |known| known.id) else { return };
        let known = &mut self.all[place];
        let put = |text: &str, into: &mut String| {
            let is_new = text != into;
            text.clone_into(into);
            is_new
        };
        let is_new = match about {
            About::Name(name) => put(name, &mut known.name),
            About::Description(text) => put(text, &mut known.description),
            About::Rank(rank) => known.rank.replace(*rank) != Some(*rank),
        };
        if is_new && !ready.iter().any(|ready| matches!(ready, Ready::Track(told) if *told == place)) {
            ready.push_back(Ready::Track(place));
        }
    }
}

/// What a new track needs, and where it is told of.
#[derive(Debug)]
pub(super) struct Told<'c> {
    pub(super) context: &'c mut Context,
    pub(super) ready: &'c mut VecDeque<Ready>,
}

/// An id that is a number.
fn plain(id: &Id<'_>) -> Id<'static> {
    match id {
        Id::Number(number) => Id::Number(*number),
        Id::Negative(number) => Id::Negative(*number),
        Id::Text(_) => Id::Number(0),
    }
}
