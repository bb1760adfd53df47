//! The thread and the process of each track.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hairline_convert::{Track, TrackId, TrackKind};

use crate::rows::Rows;

/// The tracks of a trace.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    tracks: Vec<Described>,
    /// The first track of each thread. A trace may have several.
    threads: HashMap<(Home, u64), u32>,
    /// The first thread and process with these ids. Several processes may have one id, as in containers.
    by_ids: HashMap<(u64, u64), u32>,
    processes: HashMap<u64, u32>,
    /// The thread ids that several processes have.
    shared: HashSet<u64>,
    /// The processes that have threads.
    pids: HashSet<u64>,
    by_tid: HashMap<u64, u32>,
}

/// The process of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Home {
    Track(u32),
    /// A process that no track describes.
    Pid(u64),
}

/// A track, as its latest description says.
#[derive(Debug, Default)]
struct Described {
    name: Arc<str>,
    parent: Option<TrackId>,
    kind: Option<TrackKind>,
    owner: Owner,
}

/// Who a track belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The number of the thread's track.
    pub(crate) thread: Option<u32>,
    pub(crate) tid: Option<i64>,
    /// The number of the process's track.
    pub(crate) process: Option<u32>,
    pub(crate) pid: Option<i64>,
    /// Whether the track is that of the thread or process itself.
    is_itself: bool,
}

/// The columns of a table that say who a row belongs to.
pub(crate) struct OwnerColumns {
    pub(crate) thread: usize,
    pub(crate) tid: usize,
    pub(crate) thread_name: usize,
    pub(crate) process: usize,
    pub(crate) pid: usize,
    pub(crate) process_name: usize,
}

/// Tracks are not nested deeper, but changed descriptions may form a cycle.
const DEEPEST: usize = 64;

impl Owners {
    /// Stores the description of a track.
    pub(crate) fn set(&mut self, track: &Track) {
        let index = track.id.0 as usize;
        if self.tracks.len() <= index {
            self.tracks.resize_with(index + 1, Described::default);
        }
        self.tracks[index] = Described {
            name: Arc::clone(&track.name),
            parent: track.parent,
            kind: Some(track.kind.clone()),
            owner: Owner::default(),
        };
        self.add(track.id.0);
        self.tracks[index].owner = self.find(track.id);
    }

    fn add(&mut self, track: u32) {
        match self.kind(track) {
            Some(&TrackKind::Process { pid, .. }) => {
                self.processes.entry(pid).or_insert(track);
            }
            Some(&TrackKind::Thread { pid, tid }) => {
                let home = self.home(track, pid);
                self.threads.entry((home, tid)).or_insert(track);
                self.by_ids.entry((pid, tid)).or_insert(track);
                self.pids.insert(pid);
                if let Some(before) = self.by_tid.insert(tid, track)
                    && before != track
                    && let Some(&TrackKind::Thread { pid: other, .. }) = self.kind(before)
                    && home != self.home(before, other)
                    && other != 0
                    && pid != 0
                {
                    self.shared.insert(tid);
                }
            }
            _ => {}
        }
    }

    /// The process of a thread: that above its track, or the first one with its process id.
    fn home(&self, thread: u32, pid: u64) -> Home {
        let above = std::iter::successors(Some(thread), |track| {
            self.tracks.get(*track as usize)?.parent.map(|parent| parent.0)
        });
        let is_process = |track: &u32| matches!(self.kind(*track), Some(TrackKind::Process { .. }));
        let process = above.take(DEEPEST).find(is_process).or_else(|| self.processes.get(&pid).copied());
        process.map_or(Home::Pid(pid), Home::Track)
    }

    /// Whether a description changes what earlier rows say: the track has another one, or it is the first one
    /// of a process whose threads are known.
    pub(crate) fn is_changed_by(&self, track: &Track) -> bool {
        match self.tracks.get(track.id.0 as usize) {
            Some(Described { kind: Some(kind), name, parent, .. }) => {
                *name != track.name || *parent != track.parent || *kind != track.kind
            }
            _ => match track.kind {
                TrackKind::Process { pid, .. } => self.pids.contains(&pid),
                _ => false,
            },
        }
    }

    /// Finds all threads, processes and owners again, when all descriptions are known: a later description of
    /// a track may have another thread id or process id.
    pub(crate) fn finish(&mut self) {
        for found in [&mut self.shared, &mut self.pids] {
            found.clear();
        }
        (self.threads, self.by_ids, self.processes, self.by_tid) = Default::default();
        // Processes first, since threads look for theirs. The numbers of tracks have 32 bits.
        for is_process in [true, false] {
            for track in 0..self.tracks.len() as u32 {
                if matches!(self.kind(track), Some(TrackKind::Process { .. })) == is_process {
                    self.add(track);
                }
            }
        }
        for index in 0..self.tracks.len() as u32 {
            self.tracks[index as usize].owner = self.find(TrackId(index));
        }
    }

    fn find(&self, track: TrackId) -> Owner {
        let mut owner = Owner::default();
        let mut next = Some(track);
        for depth in 0..DEEPEST {
            let Some(described) = next.and_then(|id| self.tracks.get(id.0 as usize)) else { break };
            match described.kind {
                Some(TrackKind::Process { pid, .. }) => {
                    owner.pid = owner.pid.or(Some(pid.cast_signed()));
                    owner.process = next.map(|process| process.0);
                    owner.is_itself |= depth == 0;
                    break;
                }
                // The innermost thread: one may lie under another.
                Some(TrackKind::Thread { pid, tid }) if owner.tid.is_none() => {
                    owner.tid = Some(tid.cast_signed());
                    let home = next.map(|thread| self.home(thread.0, pid));
                    owner.thread = home.and_then(|home| self.threads.get(&(home, tid)).copied());
                    owner.pid = (pid != 0).then_some(pid.cast_signed());
                    owner.is_itself |= depth == 0;
                }
                _ => {}
            }
            next = described.parent;
        }
        let by_id = |pid: i64| self.processes.get(&pid.cast_unsigned()).copied();
        owner.process = owner.process.or_else(|| owner.pid.and_then(by_id));
        owner
    }

    /// The owner of a track.
    #[inline]
    pub(crate) fn of(&self, track: TrackId) -> Owner {
        self.tracks.get(track.0 as usize).map_or(Owner::default(), |described| described.owner)
    }

    /// The thread with a thread id, if no thread of another process has it too.
    pub(crate) fn of_tid(&self, tid: u64) -> Owner {
        let thread = self.by_tid.get(&tid).filter(|_| !self.shared.contains(&tid));
        thread.map_or(Owner::default(), |thread| self.of(TrackId(*thread)))
    }

    /// The thread id of a track's thread for a question about the scheduler, whose records do not distinguish
    /// equal thread ids of several processes.
    #[inline]
    pub(crate) fn own_tid(&self, track: TrackId) -> Option<u64> {
        let owner = self.of(track);
        let tid = owner.tid.filter(|_| owner.is_itself)?.cast_unsigned();
        (!self.shared.contains(&tid)).then_some(tid)
    }

    /// The thread of a process; that of any process if the process is unknown (0).
    pub(crate) fn of_thread(&self, pid: u64, tid: u64) -> Owner {
        match self.by_ids.get(&(pid, tid)) {
            Some(thread) => self.of(TrackId(*thread)),
            None if pid == 0 => self.of_tid(tid),
            // A thread that no track describes: not that of another process with its thread id.
            None => Owner {
                tid: Some(tid.cast_signed()),
                pid: Some(pid.cast_signed()),
                process: self.processes.get(&pid).copied(),
                ..Owner::default()
            },
        }
    }

    /// The owner of a track with a number.
    pub(crate) fn of_track(&self, track: u32) -> Owner {
        self.of(TrackId(track))
    }

    /// The kind of a track.
    pub(crate) fn kind(&self, track: u32) -> Option<&TrackKind> {
        self.tracks.get(track as usize)?.kind.as_ref()
    }

    /// The name of a track; "" if it has none.
    pub(crate) fn name(&self, track: u32) -> &str {
        self.tracks.get(track as usize).map_or("", |described| &described.name)
    }

    /// The tracks of all threads, one for each.
    pub(crate) fn all_threads(&self) -> Vec<u32> {
        in_order(self.threads.values())
    }

    /// The tracks of all processes. Two of one id are two processes.
    pub(crate) fn all_processes(&self) -> Vec<u32> {
        let is_process = |track: &u32| matches!(self.kind(*track), Some(TrackKind::Process { .. }));
        (0..self.tracks.len() as u32).filter(is_process).collect()
    }

    /// The name of the first process that has one.
    pub(crate) fn first_process_name(&self) -> Option<String> {
        let names = self.all_processes().into_iter().map(|process| self.name(process));
        names.filter(|name| !name.is_empty()).map(str::to_owned).next()
    }

    /// Adds the columns of an owner to a row.
    pub(crate) fn put(&self, owner: Owner, rows: &mut Rows, columns: &OwnerColumns) {
        rows.opt_int(columns.tid, owner.tid);
        self.put_known(owner, None, rows, columns);
    }

    /// As `put`, for a row that has the thread id already. `name` is for a thread without a track.
    pub(crate) fn put_known(
        &self,
        owner: Owner,
        name: Option<&str>,
        rows: &mut Rows,
        columns: &OwnerColumns,
    ) {
        rows.opt_int(columns.thread, owner.thread.map(i64::from));
        match name.filter(|_| owner.thread.is_none()) {
            Some(name) => rows.text(columns.thread_name, name),
            None => self.put_name(owner.thread, rows, columns.thread_name),
        }
        rows.opt_int(columns.process, owner.process.map(i64::from));
        rows.opt_int(columns.pid, owner.pid);
        self.put_name(owner.process, rows, columns.process_name);
    }

    fn put_name(&self, track: Option<u32>, rows: &mut Rows, column: usize) {
        match track {
            Some(track) => rows.keyed(column, track, || self.name(track)),
            None => rows.opt_text(column, None),
        }
    }

    /// Adds the name of a track that is not that of a thread or process itself.
    pub(crate) fn put_track_name(&self, track: TrackId, owner: Owner, rows: &mut Rows, column: usize) {
        self.put_name((!owner.is_itself).then_some(track.0), rows, column);
    }
}

fn in_order<'t>(tracks: impl Iterator<Item = &'t u32>) -> Vec<u32> {
    let mut all: Vec<u32> = tracks.copied().collect();
    all.sort_unstable();
    all
}

/// The [`OwnerColumns`] of a table.
macro_rules! owner_columns {
    ($table:ident) => {
        crate::owners::OwnerColumns {
            thread: crate::schema::$table::thread,
            tid: crate::schema::$table::tid,
            thread_name: crate::schema::$table::thread_name,
            process: crate::schema::$table::process,
            pid: crate::schema::$table::pid,
            process_name: crate::schema::$table::process_name,
        }
    };
}
pub(crate) use owner_columns;

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u32, pid: u64, tid: u64) -> Track {
        Track::new(TrackId(id), TrackKind::Thread { pid, tid })
    }

    #[test]
    fn a_thread_that_is_described_again_is_one_thread() {
        let mut owners = Owners::default();
        owners.set(&thread(0, 0, 7));
        owners.set(&thread(0, 3, 7));
        owners.set(&Track::new(TrackId(1), TrackKind::process(2)));
        owners.set(&Track::new(TrackId(1), TrackKind::process(3)));
        owners.finish();
        assert_eq!((owners.all_threads(), owners.all_processes()), (vec![0], vec![1]));
        assert_eq!(owners.of_tid(7), owners.of(TrackId(0)), "no other process has it");
        assert_eq!((owners.of(TrackId(0)).pid, owners.of(TrackId(0)).process), (Some(3), Some(1)));
    }

    /// Of a trace that is read once, rows are written before.
    #[test]
    fn a_description_that_changes_earlier_rows_is_noticed() {
        let mut owners = Owners::default();
        let named = |name: &str| Track { name: name.into(), ..thread(0, 1, 7) };
        assert!(!owners.is_changed_by(&named("a")), "its first one");
        owners.set(&named("a"));
        assert!(!owners.is_changed_by(&named("a")) && owners.is_changed_by(&named("b")));
        assert!(
            owners.is_changed_by(&Track::new(TrackId(1), TrackKind::process(1))),
            "the process of a thread"
        );
        assert!(!owners.is_changed_by(&Track::new(TrackId(1), TrackKind::process(2))));
    }

    #[test]
    fn a_thread_without_a_track_is_not_that_of_another_process() {
        let mut owners = Owners::default();
        owners.set(&thread(0, 1, 7));
        owners.set(&Track::new(TrackId(1), TrackKind::process(2)));
        owners.finish();
        let other = owners.of_thread(2, 7);
        assert_eq!((other.thread, other.pid, other.process), (None, Some(2), Some(1)));
        assert_eq!(owners.of_thread(0, 7).thread, Some(0), "of any process");
    }

    #[test]
    fn a_thread_under_another_one_is_itself() {
        let mut owners = Owners::default();
        owners.set(&thread(0, 1, 7));
        owners.set(&Track { parent: Some(TrackId(0)), ..thread(1, 2, 8) });
        owners.set(&Track { parent: Some(TrackId(1)), ..Track::new(TrackId(2), TrackKind::Slices) });
        owners.finish();
        for track in [1, 2] {
            let owner = owners.of(TrackId(track));
            assert_eq!((owner.tid, owner.pid, owner.thread), (Some(8), Some(2), Some(1)), "{track}");
        }
    }

    /// As in two containers.
    #[test]
    fn two_processes_with_one_id_keep_their_threads_apart() {
        let mut owners = Owners::default();
        for (process, name) in [(0, "web"), (2, "db")] {
            let track = Track::new(TrackId(process), TrackKind::process(1));
            owners.set(&Track { name: name.into(), ..track });
            let thread = Track { parent: Some(TrackId(process)), ..thread(process + 1, 1, 1) };
            owners.set(&Track { name: format!("main of {name}").into(), ..thread });
        }
        for _ in 0..2 {
            for (thread, process) in [(1, 0), (3, 2)] {
                let owner = owners.of(TrackId(thread));
                assert_eq!((owner.thread, owner.process, owner.pid), (Some(thread), Some(process), Some(1)));
                assert_eq!(
                    owners.own_tid(TrackId(thread)),
                    None,
                    "records of the scheduler do not tell them apart"
                );
            }
            assert_eq!((owners.all_threads(), owners.all_processes()), (vec![1, 3], vec![0, 2]));
            owners.finish();
        }
    }
}
