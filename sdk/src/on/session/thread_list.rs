//! The threads that have recorded in a session.

use hairline_formats::track_event::SequenceId;

use crate::on::base::lock::Mutex;
use crate::on::base::platform::process;
use crate::on::session::end::End;
use crate::summary::ThreadSummary;

/// Threads that the summary lists one by one. The list must not grow with every thread that ever recorded.
const MAX_LISTED: usize = 4096;

/// The threads that have recorded in a session.
#[derive(Debug, Default)]
pub(crate) struct ThreadList(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    /// Sequence and thread, of the first [`MAX_LISTED`] threads.
    listed: Vec<(SequenceId, process::Thread)>,
    /// Number of all further threads.
    unlisted: u64,
}

impl ThreadList {
    /// Adds a thread that begins to record on `sequence`.
    pub(crate) fn add(&self, sequence: SequenceId, thread: process::Thread) {
        let mut thread = Some(thread);
        let list = self.0.lock_unless_lost_with_room(|list| (&mut list.listed, 1));
        let Some(mut list) = list else { return };
        if list.listed.len() < MAX_LISTED {
            list.listed.extend(thread.take().map(|thread| (sequence, thread)));
        } else {
            list.unlisted += 1;
        }
        drop(list);
        drop(thread); // frees the thread's name outside of the lock
    }

    /// Returns whether a thread with this id has recorded.
    pub(crate) fn contains(&self, tid: u32) -> bool {
        self.0.lock_unless_lost().is_some_and(|list| list.listed.iter().any(|(_, thread)| thread.tid == tid))
    }

    /// Returns the summary of each listed thread, and one of all others together.
    pub(crate) fn summaries(&self, end: &End) -> Vec<ThreadSummary> {
        let (listed, unlisted) = self.copy();
        let records = |sequence: &SequenceId| end.records_by_sequence.get(&sequence.0).copied().unwrap_or(0);
        let mut summaries: Vec<_> = listed
            .iter()
            .map(|(sequence, thread)| ThreadSummary {
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

    /// Copies the list. Allocates before it takes the lock.
    fn copy(&self) -> (Vec<(SequenceId, process::Thread)>, u64) {
        let mut copy = Vec::new();
        loop {
            let list = self.0.lock();
            let len = list.listed.len();
            if len <= copy.capacity() {
                copy.extend(list.listed.iter().cloned());
                return (copy, list.unlisted);
            }
            drop(list);
            copy.reserve(len + len / 8);
        }
    }
}
