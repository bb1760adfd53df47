//! The threads that have recorded in a session.

use hairline_formats::track_event::{SequenceId, TrackUuid};

use crate::on::base::lock::Mutex;
use crate::on::base::memory::{List, SharedText};
use crate::on::base::platform;
use crate::on::base::platform::process;
use crate::on::session::end::End;
use crate::summary::ThreadSummary;

/// Threads that the summary lists one by one. The list must not grow with every thread that ever recorded.
const MAX_LISTED: usize = 4096;

/// The names that are read again at a time, so that ten thousand threads do not take the drain thread's time.
const NAMES_AT_A_TIME: usize = 256;

/// The threads that have recorded in a session.
#[derive(Debug, Default)]
pub(crate) struct ThreadList(Mutex<Threads>);

#[derive(Debug, Default)]
struct Threads {
    /// The first [`MAX_LISTED`] threads.
    listed: List<Listed>,
    /// Number of all further threads.
    unlisted: u64,
    /// The thread whose name is read next.
    next_name: usize,
}

/// A thread that has recorded.
#[derive(Clone, Debug)]
struct Listed {
    sequence: SequenceId,
    thread: process::Thread,
    track: TrackUuid,
    /// The system's name of the thread when it was last read; `None` if the system does not tell.
    system: Option<SharedText>,
    has_ended: bool,
    renamed: Renamed,
}

/// Whether a thread has another name than at its first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renamed {
    No,
    /// The trace does not have the name yet.
    New,
    Written,
}

/// The place of a thread in the list; `None` if it is not listed one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(Option<usize>);

/// A thread, and its track.
pub(crate) type Named = (process::Thread, TrackUuid);

impl Listed {
    /// Takes the system's name of the thread. Returns the names that are not used any more, to be freed.
    fn rename(&mut self, system: SharedText) -> Option<[SharedText; 2]> {
        if self.system.as_ref().is_none_or(|before| **before == *system) {
            return None;
        }
        self.renamed = Renamed::New;
        let before = self.system.replace(system.clone());
        Some([before?, std::mem::replace(&mut self.thread.name, system)])
    }
}

impl ThreadList {
    /// Adds the calling thread, which begins to record on `sequence` and its track. Returns its place in the
    /// list.
    pub(crate) fn add(&self, sequence: SequenceId, thread: process::Thread, track: TrackUuid) -> Place {
        let (system, has_ended, renamed) = (platform::system_name(), false, Renamed::No);
        let mut new = Some(Listed { sequence, thread, track, system, has_ended, renamed });
        let threads = self.0.lock_unless_lost_with_room(|threads| (&mut threads.listed, 1));
        let Some(mut threads) = threads else { return Place(None) };
        let place = Some(threads.listed.len()).filter(|place| *place < MAX_LISTED);
        match place {
            Some(_) => threads.listed.extend(new.take()),
            None => threads.unlisted += 1,
        }
        drop(threads);
        drop(new); // frees the thread's name outside of the lock
        Place(place)
    }

    /// Takes the last name of the calling thread, whose sequence ends: its id may be that of another thread
    /// from now on.
    pub(crate) fn end(&self, place: Place) {
        let Some(n) = place.0 else { return };
        let system = platform::system_name();
        let unused = self.with(|threads| {
            let listed = threads.listed.get_mut(n)?;
            listed.has_ended = true;
            listed.rename(system?)
        });
        drop(unused); // outside of the lock
    }

    /// Calls `f` under the lock. `None` in a forked child that has lost it.
    fn with<R>(&self, f: impl FnOnce(&mut Threads) -> R) -> Option<R> {
        self.0.lock_unless_lost().map(|mut threads| f(&mut threads))
    }

    /// Reads the names of threads again: of all, or of some more at each call.
    ///
    /// The files of names are open for a moment. Where the program could close one, and have another file
    /// with its number, only all names are read: at the end and for a window.
    fn read_names(&self, all: bool) {
        if !all && !platform::has_own_files() {
            return;
        }
        for (n, tid) in self.take_next(all) {
            let Some(name) = platform::system_name_of(tid) else { continue };
            // A thread that has ended meanwhile may not be the one that was asked.
            let unused = self
                .with(|threads| threads.listed.get_mut(n).filter(|listed| !listed.has_ended)?.rename(name));
            drop(unused); // outside of the lock
        }
    }

    /// Returns the places and ids of the threads whose names are to be read.
    fn take_next(&self, all: bool) -> Vec<(usize, u32)> {
        let most = if all { self.len() } else { NAMES_AT_A_TIME };
        let mut next = Vec::with_capacity(most); // not under the lock
        self.with(|threads| {
            let (first, len) = (threads.next_name, threads.listed.len());
            for n in (0..most.min(len)).map(|n| (first + n) % len) {
                let listed = &threads.listed[n];
                if !listed.has_ended && listed.system.is_some() {
                    next.push((n, listed.thread.tid));
                }
            }
            threads.next_name = first + most.min(len);
        });
        next
    }

    fn len(&self) -> usize {
        self.with(|threads| threads.listed.len()).unwrap_or(0)
    }

    /// Returns the threads that have a name which the trace does not have. The caller writes them.
    pub(crate) fn take_new_names(&self, all: bool) -> Vec<Named> {
        self.read_names(all);
        self.with_names(|listed| std::mem::replace(&mut listed.renamed, Renamed::Written) == Renamed::New)
    }

    /// Returns all threads that have another name than at their first event.
    pub(crate) fn all_new_names(&self) -> Vec<Named> {
        self.read_names(true);
        self.with_names(|listed| listed.renamed != Renamed::No)
    }

    fn with_names(&self, takes: impl Fn(&mut Listed) -> bool) -> Vec<Named> {
        let room = self.len();
        let mut named = Vec::with_capacity(room); // not under the lock
        self.with(|threads| {
            let renamed = threads.listed.iter_mut().take(room).filter(|listed| listed.renamed != Renamed::No);
            for listed in renamed {
                if takes(listed) {
                    named.push((listed.thread.clone(), listed.track));
                }
            }
        });
        named
    }

    /// Returns whether a thread with this id has recorded.
    pub(crate) fn contains(&self, tid: u32) -> bool {
        self.with(|threads| threads.listed.iter().any(|listed| listed.thread.tid == tid)).unwrap_or(false)
    }

    /// Returns the summary of each listed thread, and one of all others together.
    pub(crate) fn summaries(&self, end: &End) -> Vec<ThreadSummary> {
        let (listed, unlisted) = self.copy();
        let records = |sequence: &SequenceId| end.records_by_sequence.get(&sequence.0).copied().unwrap_or(0);
        let mut summaries: Vec<_> = listed
            .iter()
            .map(|Listed { sequence, thread, .. }| ThreadSummary {
                tid: thread.tid,
                name: thread.name.to_string(),
                records: records(sequence),
            })
            .collect();
        if unlisted > 0 {
            let records = end.records - summaries.iter().map(|t| t.records).sum::<u64>();
            summaries.push(ThreadSummary { tid: 0, name: format!("{unlisted} more threads"), records });
        }
        summaries
    }

    /// Copies the list.
    fn copy(&self) -> (Vec<Listed>, u64) {
        let room = self.len();
        let mut copy = Vec::with_capacity(room); // not under the lock
        let unlisted = self.with(|threads| {
            copy.extend(threads.listed.iter().take(room).cloned());
            threads.unlisted + (threads.listed.len() - copy.len()) as u64
        });
        (copy, unlisted.unwrap_or(0))
    }
}
