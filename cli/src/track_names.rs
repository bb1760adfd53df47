//! The names of tracks.

use std::collections::{HashMap, HashSet};

use hairline_convert::{Track, TrackId, TrackKind};

/// The limit for async intervals that are found by their ids.
const MOST_ASYNC: usize = 1 << 20;

/// Tracks by number.
#[derive(Debug, Default)]
pub(crate) struct TrackNames {
    tracks: Vec<NamedTrack>,
    /// The tracks of threads, by thread id.
    by_tid: HashMap<u64, TrackId>,
    /// The thread ids that several processes have.
    shared: HashSet<u64>,
    /// The tracks of async intervals, by their ids. In FXT, the track that an interval's children are below has
    /// the interval's id, but the interval has records of its own.
    by_async_id: HashMap<u64, TrackId>,
    pub(crate) processes: u64,
    pub(crate) threads: u64,
}

#[derive(Debug, Default)]
struct NamedTrack {
    name: String,
    parent: Option<TrackId>,
    source_id: u64,
    kind: Owner,
    /// The process of a thread; 0 if unknown.
    pid: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    Process(u64),
    Thread(u64),
    #[default]
    Other,
}

impl TrackNames {
    /// Stores the description of a track.
    pub(crate) fn set(&mut self, track: &Track) {
        let index = track.id.0 as usize;
        if self.tracks.len() <= index {
            self.tracks.resize_with(index + 1, NamedTrack::default);
        }
        let named = &mut self.tracks[index];
        let (kind, count) = match track.kind {
            TrackKind::Process { pid, .. } => (Owner::Process(pid), Some(&mut self.processes)),
            TrackKind::Thread { tid, .. } => (Owner::Thread(tid), Some(&mut self.threads)),
            _ => (Owner::Other, None),
        };
        // A track may be described again.
        if let Some(count) = count.filter(|_| named.kind == Owner::Other) {
            *count += 1;
        }
        let pid = if let TrackKind::Thread { pid, .. } = track.kind { pid } else { 0 };
        let (parent, source_id) = (track.parent, track.source_id);
        *named = NamedTrack { name: track.name.to_string(), parent, source_id, kind, pid };
        if let TrackKind::Async { id: id @ 1.., .. } = track.kind
            && self.by_async_id.len() < MOST_ASYNC
        {
            self.by_async_id.insert(id, track.id);
        }
        if let Owner::Thread(tid) = kind
            && let Some(before) = self.by_tid.insert(tid, track.id)
            && ![0, pid].contains(&self.pid(before))
            && pid != 0
        {
            self.shared.insert(tid);
        }
    }

    /// The name of a track.
    pub(crate) fn name(&self, track: TrackId) -> String {
        let Some(named) = self.tracks.get(track.0 as usize) else { return format!("track {}", track.0) };
        match (named.kind, named.name.as_str()) {
            (Owner::Process(pid), "") => format!("process {pid}"),
            (Owner::Process(pid), name) => format!("{name} (process {pid})"),
            (Owner::Thread(tid), "") => format!("thread {tid}"),
            (Owner::Thread(tid), name) => format!("{name} ({tid})"),
            (Owner::Other, "") => format!("track {}", track.0),
            (Owner::Other, name) => format!("track {name}"),
        }
    }

    /// The track of the slices that those of a track are below, unless that is of a process or a thread.
    pub(crate) fn track_above(&self, track: TrackId) -> Option<TrackId> {
        let id = self.tracks.get(track.0 as usize)?.parent?;
        let parent = self.tracks.get(id.0 as usize).filter(|parent| parent.kind == Owner::Other)?;
        Some(self.by_async_id.get(&parent.source_id).copied().unwrap_or(id))
    }

    /// The thread id of a track, if it is that of a thread.
    pub(crate) fn tid(&self, track: TrackId) -> Option<u64> {
        match self.tracks.get(track.0 as usize)?.kind {
            Owner::Thread(tid) => Some(tid),
            _ => None,
        }
    }

    /// The thread id of a track, if no thread of another process has it too. Records of the scheduler do not
    /// tell such threads apart.
    pub(crate) fn own_tid(&self, track: TrackId) -> Option<u64> {
        self.tid(track).filter(|tid| !self.shared.contains(tid))
    }

    /// Also takes the thread ids for shared of which an earlier reading of the trace has shown it: a thread
    /// of another process may be described late.
    pub(crate) fn know_shared(&mut self, earlier: &Self) {
        self.shared.extend(&earlier.shared);
    }

    /// The number of thread ids that several processes have.
    pub(crate) fn shared(&self) -> u64 {
        self.shared.len() as u64
    }

    /// The process id of a thread's track; 0 if unknown.
    pub(crate) fn pid(&self, track: TrackId) -> u64 {
        self.tracks.get(track.0 as usize).map_or(0, |named| named.pid)
    }

    /// The track of a thread.
    pub(crate) fn thread(&self, tid: u64) -> Option<TrackId> {
        self.by_tid.get(&tid).copied()
    }

    /// The process of a track: the track itself or an ancestor.
    pub(crate) fn process_of(&self, track: TrackId) -> Option<TrackId> {
        // Tracks are not nested deeper, but changed descriptions may form a cycle.
        const DEEPEST: usize = 64;
        let named = |id: &TrackId| self.tracks.get(id.0 as usize);
        let mut above = std::iter::successors(Some(track), |id| named(id)?.parent).take(DEEPEST);
        above.find(|id| named(id).is_some_and(|named| matches!(named.kind, Owner::Process(_))))
    }
}
