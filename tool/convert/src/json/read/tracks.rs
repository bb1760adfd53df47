//! The tracks of a JSON trace.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hairline_formats::track_event::{CounterType, Unit};

use crate::json::read::numbers::{MadeIds, hash};
use crate::json::read::pending::Pending;
use crate::kept_track::KeptTrack;
use crate::{Context, CounterTrack, Index, Track, TrackId, TrackKind};
use hairline_formats::trace_event_json::Id;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<InputTrack>,
    /// The indices of threads in `all`, by their ids.
    threads: Index,
    /// The indices of other tracks.
    indices: HashMap<TrackKey, usize>,
    /// The indices of tracks whose interval is over, by the hash of name and category. New intervals reuse
    /// them.
    over: HashMap<u64, VecDeque<usize>>,
    made_ids: MadeIds,
    /// The ids of the latest thread, and its index.
    last: Option<(Id<'static>, Id<'static>, usize)>,
    /// The latest process.
    last_process: Option<(u64, TrackId)>,
}

/// Identifies a track. Longer identities are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TrackKey {
    Process(u64),
    /// The CPU time of the thread with this number.
    Time(usize),
    Everything,
    Other(u64),
}

#[derive(Debug)]
struct InputTrack {
    track: KeptTrack,
    /// The interval of an async track. Boxed, because most tracks are threads.
    now: Option<Box<LiveInterval>>,
}

/// The interval that occupies a track now.
#[derive(Debug)]
struct LiveInterval {
    key: TrackKey,
    /// The hash of name and category. An interval with the same hash may reuse the track.
    kin: u64,
    /// The number of open slices, less that of ends without a begin.
    open: i32,
    /// The least of it.
    least: i32,
    /// The ends that made it so, by time: their begins may follow. The latest [`MOST_EARLY`] times.
    early: Vec<(i64, u32)>,
    until: i64,
}

/// The begin of such an end is seldom far behind it.
const MOST_EARLY: usize = 16;

/// With more tracks than this, a track is reused when its interval is over, because a trace may have as many
/// ids as intervals.
const MANY: usize = 1 << 12;

/// The identity of a counter.
#[derive(Debug, Hash)]
pub(super) struct Counter<'e> {
    pub(super) process: TrackId,
    pub(super) name: &'e str,
    /// The counter's id, or 0.
    pub(super) number: u64,
    pub(super) series: &'e str,
}

/// The identity of an interval.
#[derive(Debug, Hash)]
pub(super) struct Interval<'e> {
    /// `None` for an interval of the whole trace.
    pub(super) process: Option<TrackId>,
    pub(super) category: &'e str,
    pub(super) scope: &'e str,
    pub(super) id: u64,
}

/// A property of a track from a metadata event.
#[derive(Debug)]
pub(super) enum TrackFact<'e> {
    Name(&'e str),
    Description(&'e str),
    Rank(i32),
}

impl Tracks {
    pub(super) fn get(&self, index: usize) -> Track {
        self.all[index].track.track()
    }

    /// The count of processes and threads with a text id.
    pub(super) fn made_ids(&self) -> u64 {
        self.made_ids.count()
    }

    fn id(&self, index: usize) -> TrackId {
        self.all[index].track.id()
    }

    fn find(&self, key: TrackKey) -> Option<TrackId> {
        self.indices.get(&key).map(|index| self.id(*index))
    }

    /// Adds a track and queues its description. Returns its index.
    fn add(
        &mut self,
        key: TrackKey,
        kind: TrackKind,
        about: (Option<TrackId>, &str),
        to: &mut NewTracks<'_>,
    ) -> usize {
        let index = self.push(kind, about, to);
        self.indices.insert(key, index);
        index
    }

    fn push(
        &mut self,
        kind: TrackKind,
        (parent, name): (Option<TrackId>, &str),
        to: &mut NewTracks<'_>,
    ) -> usize {
        let index = self.all.len();
        // A text of no bytes has its own place in memory too, but for the default.
        let name = if name.is_empty() { Arc::default() } else { name.into() };
        let track = Track { parent, name, ..Track::new(to.context.new_track(), kind) };
        self.all.push(InputTrack { track: track.into(), now: None });
        to.pending.push_back(Pending::Track(index));
        index
    }

    /// The track of a process. Without an id it is process 0.
    pub(super) fn process(&mut self, pid: Option<&Id<'_>>, to: &mut NewTracks<'_>) -> TrackId {
        let (pid, name) = pid.map_or((0, None), |pid| self.made_ids.number(pid, to.context));
        self.process_of(pid, name, to)
    }

    fn process_of(&mut self, pid: u64, name: Option<&str>, to: &mut NewTracks<'_>) -> TrackId {
        if let Some((last, track)) = self.last_process
            && last == pid
        {
            return track;
        }
        let key = TrackKey::Process(pid);
        let track = self.find(key).unwrap_or_else(|| {
            let index = self.add(key, TrackKind::process(pid), (None, name.unwrap_or_default()), to);
            self.id(index)
        });
        self.last_process = Some((pid, track));
        track
    }

    /// The track of a thread. Without a thread id it is the main thread.
    pub(super) fn thread(
        &mut self,
        pid: Option<&Id<'_>>,
        tid: Option<&Id<'_>>,
        to: &mut NewTracks<'_>,
    ) -> TrackId {
        let pid = pid.unwrap_or(&Id::Number(0));
        let tid = tid.unwrap_or(pid);
        match &self.last {
            Some((last_pid, last_tid, index)) if last_pid == pid && last_tid == tid => self.id(*index),
            _ => {
                let index = self.thread_index(pid, tid, to);
                if !matches!((pid, tid), (Id::Text(_), _) | (_, Id::Text(_))) {
                    self.last = Some((plain(pid), plain(tid), index));
                }
                self.id(index)
            }
        }
    }

    fn thread_index(&mut self, pid: &Id<'_>, tid: &Id<'_>, to: &mut NewTracks<'_>) -> usize {
        let (pid, process) = self.made_ids.number(pid, to.context);
        let (tid, name) = self.made_ids.number(tid, to.context);
        let ids =
            |all: &[InputTrack], place: u32| all.get(place as usize).and_then(|known| known.track.thread());
        if let Some(index) = self.threads.find(&Some((pid, tid)), |place| ids(&self.all, place)) {
            return index as usize;
        }
        let parent = self.process_of(pid, process, to);
        let about = (Some(parent), name.unwrap_or_default());
        let index = self.push(TrackKind::Thread { pid, tid }, about, to);
        self.threads.insert(index as u32, |place| ids(&self.all, place)); // as many as numbers of tracks
        index
    }

    /// The counter track for a thread's CPU time.
    pub(super) fn time(&mut self, thread: TrackId, to: &mut NewTracks<'_>) -> TrackId {
        let key = TrackKey::Time(thread.0 as usize);
        self.find(key).unwrap_or_else(|| {
            let (unit, builtin) = (Unit::TimeNs, CounterType::ThreadTimeNs);
            let counter = CounterTrack { unit, builtin, ..CounterTrack::default() };
            let kind = TrackKind::Counter(Box::new(counter));
            let index = self.add(key, kind, (Some(thread), "thread_time"), to);
            self.id(index)
        })
    }

    /// The track for instants of global scope.
    pub(super) fn everything(&mut self, to: &mut NewTracks<'_>) -> TrackId {
        self.find(TrackKey::Everything).unwrap_or_else(|| {
            let index = self.add(TrackKey::Everything, TrackKind::Slices, (None, ""), to);
            self.id(index)
        })
    }

    pub(super) fn counter(&mut self, counter: &Counter<'_>, to: &mut NewTracks<'_>) -> TrackId {
        let key = TrackKey::Other(hash(counter));
        self.find(key).unwrap_or_else(|| {
            let (number, series) = (counter.number, counter.series.into());
            let kind = CounterTrack { number, series, ..CounterTrack::default() };
            let kind = TrackKind::Counter(Box::new(kind));
            let index = self.add(key, kind, (Some(counter.process), counter.name), to);
            self.id(index)
        })
    }

    /// The track of an interval. Its name is that of its first event. Also returns whether the event begins a
    /// slice whose end stands before it in the file.
    pub(super) fn interval(
        &mut self,
        interval: &Interval<'_>,
        (name, time, opens): (&str, i64, i32),
        to: &mut NewTracks<'_>,
    ) -> (TrackId, bool) {
        let key = TrackKey::Other(hash(interval));
        let index = self.indices.get(&key).copied().unwrap_or_else(|| {
            let kin = hash((interval.process, interval.category, interval.scope, name));
            let now = || LiveInterval { key, kin, open: 0, least: 0, early: Vec::new(), until: time };
            self.reused(now()).unwrap_or_else(|| {
                let scope = if interval.scope.is_empty() { interval.category } else { interval.scope };
                let kind = TrackKind::Async { id: interval.id, scope: scope.into() };
                let index = self.add(key, kind, (interval.process, name), to);
                self.all[index].now = Some(Box::new(now()));
                index
            })
        });
        let is_after_end = self.passed(index, time, opens);
        (self.id(index), is_after_end)
    }

    /// Reuses the track of an interval that ended before this one begins. Returns its index.
    fn reused(&mut self, next: LiveInterval) -> Option<usize> {
        let key = next.key;
        let over = self.over.get_mut(&next.kin)?;
        let index = *over.front()?;
        match &mut self.all[index].now {
            Some(now) if now.until < next.until => **now = next,
            _ => return None,
        }
        over.pop_front();
        self.indices.insert(key, index);
        Some(index)
    }

    /// Records an event on an interval's track. `opens` is the change in the number of open slices. Returns
    /// whether it begins a slice right after an end of its time that had no begin.
    fn passed(&mut self, index: usize, time: i64, opens: i32) -> bool {
        let are_many = self.all.len() > MANY;
        let Some(now) = &mut self.all[index].now else { return false };
        let is_least = now.open <= now.least && opens != 0;
        let at = now.early.iter().position(|(at, _)| is_least && *at == time);
        let is_after_end = opens > 0 && at.is_some();
        match at {
            Some(at) if is_after_end => {
                now.least = now.least.saturating_add(1);
                now.early[at].1 -= 1;
                if now.early[at].1 == 0 {
                    now.early.remove(at);
                }
            }
            Some(at) => now.early[at].1 = now.early[at].1.saturating_add(1),
            None if is_least && opens < 0 => {
                if now.early.len() == MOST_EARLY {
                    now.early.remove(0);
                }
                now.early.push((time, 1));
            }
            None => {}
        }
        if is_least && opens < 0 {
            now.least = now.open.saturating_sub(1);
        }
        now.open = now.open.saturating_add(opens);
        now.until = now.until.max(time);
        if are_many && opens < 0 && now.open == 0 {
            self.indices.remove(&now.key);
            self.over.entry(now.kin).or_default().push_back(index);
        }
        is_after_end
    }

    /// Sets a property of a track. Queues the description again if the property changed.
    pub(super) fn about(&mut self, track: TrackId, about: &TrackFact<'_>, pending: &mut VecDeque<Pending>) {
        // Tracks are sorted by number.
        let Ok(index) = self.all.binary_search_by_key(&track, |known| known.track.id()) else { return };
        let put = |text: &str, into: &mut Arc<str>| {
            let is_new = *text != **into;
            *into = text.into();
            is_new
        };
        let is_new = self.all[index].track.change(|known| match about {
            TrackFact::Name(name) => put(name, &mut known.name),
            TrackFact::Description(text) => put(text, &mut known.description),
            TrackFact::Rank(rank) => known.rank.replace(*rank) != Some(*rank),
        });
        if is_new
            && !pending.iter().any(|pending| matches!(pending, Pending::Track(queued) if *queued == index))
        {
            pending.push_back(Pending::Track(index));
        }
    }
}

/// The context for numbers of new tracks, and the queue for their descriptions.
#[derive(Debug)]
pub(super) struct NewTracks<'c> {
    pub(super) context: &'c mut Context,
    pub(super) pending: &'c mut VecDeque<Pending>,
}

/// The id if it is a number.
fn plain(id: &Id<'_>) -> Id<'static> {
    match id {
        Id::Number(number) => Id::Number(*number),
        Id::Negative(number) => Id::Negative(*number),
        Id::Text(_) => Id::Number(0),
    }
}
