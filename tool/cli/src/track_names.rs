//! The names of tracks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hairline_convert::{ByTrack, Index, Track, TrackId, TrackKind};

/// The limit for async intervals that are found by their ids.
const MOST_ASYNC: usize = 1 << 20;

/// Tracks by number.
#[derive(Debug, Default)]
pub(crate) struct TrackNames {
    tracks: ByTrack<NamedTrack>,
    /// The tracks of threads, by thread id.
    by_tid: Index,
    /// The tracks of processes, by process id.
    by_pid: HashMap<u64, TrackId>,
    /// The thread ids that several processes have.
    shared: HashSet<u64>,
    /// The tracks of async intervals, by their ids. In FXT, the track that an interval's children are below has
    /// the interval's id, but the interval has records of its own.
    by_async_id: HashMap<u64, TrackId>,
    pub(crate) processes: u64,
    pub(crate) threads: u64,
}

/// There may be millions.
#[derive(Debug, Default)]
struct NamedTrack {
    name: Arc<str>,
    parent: Option<TrackId>,
    kind: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Process(u64),
    Thread {
        tid: u64,
        /// The process; 0 if unknown.
        pid: u64,
    },
    Other {
        source_id: u64,
    },
}

impl Default for Owner {
    fn default() -> Self {
        Self::Other { source_id: 0 }
    }
}

impl Owner {
    fn is_other(&self) -> bool {
        matches!(self, Self::Other { .. })
    }
}

impl TrackNames {
    /// Stores the description of a track.
    pub(crate) fn set(&mut self, track: &Track) {
        let named = self.tracks.at(track.id);
        let mut name = Arc::clone(&track.name);
        let (kind, count) = match track.kind {
            TrackKind::Process { pid, ref command_line, .. } => {
                self.by_pid.insert(pid, track.id);
                // A process that only the kernel names has no other name.
                if let (true, Some(program)) = (name.is_empty(), command_line.first()) {
                    name = program.rsplit('/').next().unwrap_or(program).into();
                }
                (Owner::Process(pid), Some(&mut self.processes))
            }
            TrackKind::Thread { tid, pid } => (Owner::Thread { tid, pid }, Some(&mut self.threads)),
            _ => (Owner::Other { source_id: track.source_id }, None),
        };
        // A track may be described again.
        if let Some(count) = count.filter(|_| named.kind.is_other()) {
            *count += 1;
        }
        *named = NamedTrack { name, parent: track.parent, kind };
        if let TrackKind::Async { id: id @ 1.., .. } = track.kind
            && self.by_async_id.len() < MOST_ASYNC
        {
            self.by_async_id.insert(id, track.id);
        }
        if let Owner::Thread { tid, pid } = kind
            && let Some(before) = self.by_tid.insert(track.id.0, |track| tid_of(&self.tracks, TrackId(track)))
            && ![0, pid].contains(&self.pid(TrackId(before)))
            && pid != 0
        {
            self.shared.insert(tid);
        }
    }

    /// The name of a track.
    pub(crate) fn name(&self, track: TrackId) -> String {
        let Some(named) = self.tracks.get(track) else { return format!("track {}", track.0) };
        match (named.kind, &*named.name) {
            (Owner::Process(pid), "") => format!("process {pid}"),
            (Owner::Process(pid), name) => format!("{name} (process {pid})"),
            (Owner::Thread { tid, .. }, "") => format!("thread {tid}"),
            (Owner::Thread { tid, .. }, name) => format!("{name} ({tid})"),
            (Owner::Other { .. }, "") => format!("track {}", track.0),
            (Owner::Other { .. }, name) => format!("track {name}"),
        }
    }

    /// The name of a track, as in other runs of the program: without an id.
    pub(crate) fn name_without_id(&self, track: TrackId) -> String {
        let Some(named) = self.tracks.get(track) else { return "track".to_owned() };
        match (named.kind, &*named.name) {
            (Owner::Process(_), "") => "process".to_owned(),
            (Owner::Thread { .. }, "") => "thread".to_owned(),
            (Owner::Other { .. }, "") => "track".to_owned(),
            (_, name) => name.to_owned(),
        }
    }

    /// The track that a track is below.
    pub(crate) fn parent(&self, track: TrackId) -> Option<TrackId> {
        self.tracks.get(track)?.parent
    }

    /// The track of the slices that those of a track are below, unless that is of a process or a thread.
    pub(crate) fn track_above(&self, track: TrackId) -> Option<TrackId> {
        let id = self.tracks.get(track)?.parent?;
        let Owner::Other { source_id } = self.tracks.get(id)?.kind else { return None };
        Some(self.by_async_id.get(&source_id).copied().unwrap_or(id))
    }

    /// The thread id of a track, if it is that of a thread.
    pub(crate) fn tid(&self, track: TrackId) -> Option<u64> {
        tid_of(&self.tracks, track)
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
        match self.tracks.get(track).map(|named| named.kind) {
            Some(Owner::Thread { pid, .. }) => pid,
            _ => 0,
        }
    }

    /// The track of a thread.
    pub(crate) fn thread(&self, tid: u64) -> Option<TrackId> {
        self.by_tid.find(&Some(tid), |track| self.tid(TrackId(track))).map(TrackId)
    }

    /// The tracks of the process and of the thread of a sample. The process id is 0 if it is unknown.
    pub(crate) fn sampled(&self, (pid, tid): (u64, u64)) -> (Option<TrackId>, Option<TrackId>) {
        let is_its = |track: &TrackId| pid == 0 || [0, pid].contains(&self.pid(*track));
        let thread = self.thread(tid).filter(is_its);
        let process = thread.and_then(|thread| self.process_of(thread)).or_else(|| self.process(pid));
        (process, thread)
    }

    /// Whether several processes have a thread with this id. See [`own_tid`](Self::own_tid).
    pub(crate) fn is_shared(&self, tid: u64) -> bool {
        self.shared.contains(&tid)
    }

    /// The process id of a track: that of its process. `None` if it has none.
    pub(crate) fn process_id(&self, track: TrackId) -> Option<u64> {
        match self.tracks.get(self.process_of(track)?)?.kind {
            Owner::Process(pid) => Some(pid),
            _ => None,
        }
    }

    /// The track of a process.
    pub(crate) fn process(&self, pid: u64) -> Option<TrackId> {
        self.by_pid.get(&pid).copied()
    }

    /// The process of a track: the track itself or an ancestor.
    pub(crate) fn process_of(&self, track: TrackId) -> Option<TrackId> {
        // Tracks are not nested deeper, but changed descriptions may form a cycle.
        const DEEPEST: usize = 64;
        let named = |id: &TrackId| self.tracks.get(*id);
        let mut above = std::iter::successors(Some(track), |id| named(id)?.parent).take(DEEPEST);
        above.find(|id| named(id).is_some_and(|named| matches!(named.kind, Owner::Process(_))))
    }
}

fn tid_of(tracks: &ByTrack<NamedTrack>, track: TrackId) -> Option<u64> {
    match tracks.get(track)?.kind {
        Owner::Thread { tid, .. } => Some(tid),
        _ => None,
    }
}
