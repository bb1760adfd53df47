//! Whose each chunk is, in memory of the process's own.
//!
//! A chunk's header says it too, for whoever recovers the region. But other processes can map the region and
//! write into it. Were the header believed, a wrong number there would make the drain wait for a chunk that
//! never comes, or count a sequence for each number that somebody makes up. So the process's own readers go
//! by this copy, and a header that says something else is damaged.
//!
//! The chunk's owner stores the copy together with the header's fields, and a reader loads both after the
//! same state: the pairs of `lib.rs` order them alike, so all accesses are Relaxed.

// Not loom's atomics: the models watch the header's fields, which are stored and loaded beside these.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::abi::ChunkInfo;

/// The owner of one chunk.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    sequence: AtomicU32,
    index: AtomicU32,
    tid: AtomicU32,
    context_len: AtomicU32,
    is_last: AtomicBool,
}

impl Owner {
    /// The chunk is claimed.
    pub(crate) fn set(&self, info: ChunkInfo) {
        self.sequence.store(info.sequence, Ordering::Relaxed);
        self.index.store(info.index, Ordering::Relaxed);
        self.tid.store(info.tid, Ordering::Relaxed);
        self.context_len.store(info.context_len, Ordering::Relaxed);
        self.is_last.store(false, Ordering::Relaxed);
    }

    /// What [`set`](Self::set) was given. True from Writing to Free.
    pub(crate) fn info(&self) -> ChunkInfo {
        ChunkInfo {
            sequence: self.sequence.load(Ordering::Relaxed),
            index: self.index.load(Ordering::Relaxed),
            tid: self.tid.load(Ordering::Relaxed),
            context_len: self.context_len.load(Ordering::Relaxed),
        }
    }

    /// The chunk is its sequence's last.
    pub(crate) fn set_last(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether the chunk is its sequence's last. True once the chunk is Complete.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed)
    }
}
