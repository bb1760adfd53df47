//! The thread and the process of each track.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hairline_convert::{Track, TrackId, TrackKind};

use crate::rows::Rows;

/// The tracks of a trace.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    tracks: Vec<Described>,
    /// The first track of each thread and process. A trace may have several.
    threads: HashMap<(u64, u64), u32>,
    processes: HashMap<u64, u32>,
    /// The thread ids that several processes have.
    shared: HashSet<u64>,
    by_tid: HashMap<u64, u32>,
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
        match track.kind {
            TrackKind::Process { pid, .. } => {
                self.processes.entry(pid).or_insert(track.id.0);
            }
            TrackKind::Thread { pid, tid } => {
                self.threads.entry((pid, tid)).or_insert(track.id.0);
                if let Some(before) = self.by_tid.insert(tid, track.id.0)
                    && let Some(TrackKind::Thread { pid: other, .. }) = self.tracks[before as usize].kind
                    && ![0, pid].contains(&other)
                    && pid != 0
                {
                    self.shared.insert(tid);
                }
            }
            _ => {}
        }
        self.tracks[index] = Described {
            name: Arc::clone(&track.name),
            parent: track.parent,
            kind: Some(track.kind.clone()),
            owner: Owner::default(),
        };
        self.tracks[index].owner = self.find(track.id);
    }

    /// Finds all owners again, when all descriptions are known.
    pub(crate) fn finish(&mut self) {
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
                    owner.pid = Some(pid.cast_signed());
                    owner.is_itself |= depth == 0;
                    break;
                }
                Some(TrackKind::Thread { pid, tid }) => {
                    owner.tid = Some(tid.cast_signed());
                    owner.thread = self.threads.get(&(pid, tid)).copied();
                    owner.pid = (pid != 0).then_some(pid.cast_signed());
                    owner.is_itself |= depth == 0;
                    if owner.pid.is_some() {
                        break;
                    }
                }
                _ => {}
            }
            next = described.parent;
        }
        owner.process = owner.pid.and_then(|pid| self.processes.get(&pid.cast_unsigned()).copied());
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

    /// The thread id of a track's thread for a question about the scheduler, whose records do not distinguish equal
    /// thread ids of several processes.
    #[inline]
    pub(crate) fn own_tid(&self, track: TrackId) -> Option<u64> {
        let owner = self.of(track);
        let tid = owner.tid.filter(|_| owner.is_itself)?.cast_unsigned();
        (!self.shared.contains(&tid)).then_some(tid)
    }

    /// The thread of a process; that of any process if the process is unknown (0).
    pub(crate) fn of_thread(&self, pid: u64, tid: u64) -> Owner {
        match self.threads.get(&(pid, tid)) {
            Some(thread) => self.of(TrackId(*thread)),
            None => self.of_tid(tid),
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

    /// The tracks of all processes, one for each.
    pub(crate) fn all_processes(&self) -> Vec<u32> {
        in_order(self.processes.values())
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
