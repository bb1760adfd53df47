//! The owner of each chunk, in the private memory of the process.
//!
//! The header of a chunk has the same numbers, for recovery. But other processes can map the region and write
//! into it. A wrong number in a header could make the drain wait for a chunk that does not exist, or count
//! sequences without end. So the process's own readers use this copy. A header with other numbers is damaged.
//!
//! The owner of a chunk stores the copy together with the fields of the header. A reader loads both after the
//! same state. The pairs of `lib.rs` order both, so all accesses are Relaxed.

#![allow(unsafe_code)] // zeroed memory

#[cfg(not(loom))]
use std::alloc::{Layout, alloc_zeroed};
#[cfg(not(loom))]
use std::ptr::NonNull;

// Not loom's atomics: the models watch the header's fields, which are stored and loaded beside these.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::abi::ChunkInfo;
use crate::turn::Turn;

/// The owner of one chunk.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub(crate) struct Owner {
    sequence: AtomicU32,
    index: AtomicU32,
    tid: AtomicU32,
    context_len: AtomicU32,
    is_last: AtomicBool,
    turn: Turn,
}

impl Owner {
    /// Creates the owners of `chunks` chunks, which is not 0. The system allocates their pages when they are
    /// written: a ring may have many chunks that are never used. `None` if the process may have no more memory.
    #[cfg(not(loom))]
    pub(crate) fn of_chunks(chunks: u32) -> Option<Box<[Self]>> {
        let len = chunks as usize;
        let layout = Layout::array::<Self>(len).ok()?;
        // SAFETY: the size is not 0.
        let owners = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast::<Self>();
        // SAFETY: an allocation of the global allocator for that many owners. All fields are atomics, for
        // which zeros are valid.
        Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(owners.as_ptr(), len)) })
    }

    /// Creates the owners of `chunks` chunks.
    #[cfg(loom)]
    pub(crate) fn of_chunks(chunks: u32) -> Option<Box<[Self]>> {
        Some((0..chunks).map(|_| Self::default()).collect())
    }

    /// Whose turn it is at the end of the chunk.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Sets the owner, at a claim.
    pub(crate) fn set(&self, info: ChunkInfo) {
        self.sequence.store(info.sequence, Ordering::Relaxed);
        self.index.store(info.index, Ordering::Relaxed);
        self.tid.store(info.tid, Ordering::Relaxed);
        self.context_len.store(info.context_len, Ordering::Relaxed);
        self.is_last.store(false, Ordering::Relaxed);
        self.turn.reset(info.context_len);
    }

    /// The argument of the last [`set`](Self::set). Valid from Writing to Free.
    pub(crate) fn info(&self) -> ChunkInfo {
        ChunkInfo {
            sequence: self.sequence.load(Ordering::Relaxed),
            index: self.index.load(Ordering::Relaxed),
            tid: self.tid.load(Ordering::Relaxed),
            context_len: self.context_len.load(Ordering::Relaxed),
        }
    }

    /// Marks the chunk as the last one of its sequence.
    pub(crate) fn set_last(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether the chunk is the last one of its sequence. Valid while the chunk is Complete.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed)
    }
}
