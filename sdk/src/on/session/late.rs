//! Ends of slices that their threads had no room for.
//!
//! They stand for themselves, in a chunk that the session keeps for them from its start, so they survive a kill as all else does. It is read
//! after all others: what a late end ends was committed before, and is in the trace before it. Where there is no such chunk, or no
//! room in it, they wait in memory for the next pass. A ring of few chunks has none to spare.

use std::sync::Arc;

use hairline_shm::{ChunkInfo, Region, WriteChunk};

use crate::on::base::platform::process;

/// The sequence of the chunk: the last in each pass, and in what is recovered.
const SEQUENCE: u32 = u32::MAX - 1;

/// With fewer chunks than this none is kept.
const FEW_CHUNKS: u32 = 8;

/// Bytes of ends that need no allocation.
pub(crate) const LATE_ROOM: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Late {
    region: Arc<Region>,
    chunk: Option<WriteChunk>,
    next: ChunkInfo,
    /// What is in memory, as it will stand in the trace, and how many ends that is.
    records: Vec<u8>,
    count: u64,
}

impl Late {
    pub(crate) fn new(region: &Arc<Region>) -> Self {
        let room = || Vec::with_capacity(LATE_ROOM);
        let next = ChunkInfo { sequence: SEQUENCE, tid: process::id(), ..ChunkInfo::default() };
        let region = Arc::clone(region);
        let mut late = Self { region, chunk: None, next, records: room(), count: 0 };
        if !late.region.overwrites() && late.region.chunk_count() >= FEW_CHUNKS {
            late.claim();
        }
        late
    }

    /// Whether there is a chunk for them.
    pub(crate) fn has_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    fn claim(&mut self) -> bool {
        if let Some(chunk) = self.region.claim(self.next, b"") {
            self.next.index += 1;
            self.chunk = Some(chunk); // the one before is complete by its drop
            return true;
        }
        false
    }

    /// The ends in memory, which need room for one more.
    pub(crate) fn in_memory(&mut self) -> &mut Vec<u8> {
        &mut self.records
    }

    /// Puts an end. Allocates nothing: the caller holds the lock, and has made room in memory.
    pub(crate) fn put(&mut self, record: &[u8]) {
        // In the order in which they came: after one in memory the next is there too.
        if !self.records.is_empty() || !self.append(record) {
            self.records.extend_from_slice(record);
            self.count += 1;
        }
    }

    /// The record goes into the chunk, or the next one.
    fn append(&mut self, record: &[u8]) -> bool {
        let Some(chunk) = &mut self.chunk else { return false };
        chunk.append(record, 1)
            || self.claim() && self.chunk.as_mut().is_some_and(|chunk| chunk.append(record, 1))
    }

    /// Puts the ends in memory into `taken`, whose room serves the next ones. Gives their number.
    pub(crate) fn take(&mut self, taken: &mut Vec<u8>) -> u64 {
        taken.clear();
        std::mem::swap(taken, &mut self.records);
        std::mem::take(&mut self.count)
    }
}
