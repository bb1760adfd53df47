//! What the writer knows of threads between two changes of their states.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hairline_formats::fxt::ThreadState;

/// The limit for threads whose processor is remembered.
pub(super) const MOST_THREADS: usize = 1 << 20;

/// What is known between two changes.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    /// The processor on which each thread runs.
    pub(super) cpus: HashMap<u64, u32>,
    /// A thread that has left its processor. The next one may follow at the same time.
    pub(super) leaving: Option<Leaving>,
    /// The names of threads, which are written last: those with a track have theirs from there.
    pub(super) names: HashMap<u64, (Arc<str>, Option<u64>)>,
    /// The threads with a track that has a name.
    pub(super) with_track: HashSet<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) time: u64,
    pub(super) cpu: u16,
    pub(super) tid: u64,
    pub(super) state: ThreadState,
    pub(super) priority: Option<i32>,
}
