//! Late ends: ends of slices whose threads have no room for them.
//!
//! A late end is a record that needs no context. The session claims a chunk for late ends at its start, so
//! that they survive a kill. The drain reads that chunk after all others: the begin of a late end was
//! committed before the end, so the trace has it before the end. If the session has no such chunk, or no
//! chunk with room, late ends wait in memory for the next pass. A ring of less than [`FEW_CHUNKS`] chunks has
//! none to spare.

use std::sync::Arc;

use hairline_shm::{ChunkInfo, Region, WriteChunk};

use crate::on::base::lock::Mutex;
use crate::on::base::memory::Bytes;
use crate::on::base::platform::process;
use crate::on::encode::stream;
use crate::on::event::Event;
use crate::options::Format;

/// The sequence of the chunk: the last in each pass, and in a recovered trace.
const SEQUENCE: u32 = u32::MAX - 1;

/// A ring of less chunks keeps none for late ends.
const FEW_CHUNKS: u32 = 8;

/// Bytes of late ends that need no allocation.
pub(crate) const LATE_ROOM: usize = 16 << 10;

/// The late ends of a session.
#[derive(Debug)]
pub(crate) struct LateEnds {
    queue: Mutex<Queue>,
    /// Buffers for the encoding of one end, so that it allocates nothing.
    buffers: Mutex<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    record: Bytes,
    scratch: Bytes,
}

/// Encoded late ends.
#[derive(Debug)]
struct Queue {
    region: Arc<Region>,
    chunk: Option<WriteChunk>,
    next_chunk: ChunkInfo,
    /// The ends in memory, in the bytes of the trace, and their number.
    records: Bytes,
    count: u64,
}

impl LateEnds {
    /// Claims a chunk of `region` for late ends, if the region drains and has at least [`FEW_CHUNKS`].
    pub(crate) fn new(region: &Arc<Region>) -> Self {
        let room = || Bytes::with_capacity(LATE_ROOM);
        Self {
            queue: Mutex::new(Queue::new(region)),
            buffers: Mutex::new(Buffers { record: room(), scratch: room() }),
        }
    }

    /// Writes the end of a slice on a track at time `now`. Returns the number of arguments that the end
    /// omits.
    pub(crate) fn write(&self, event: &Event<'_>, format: Format, now: u64) -> u64 {
        // The record is encoded outside of the queue's lock: an argument's value may come from the program's
        // code.
        let mut buffers = self.take_buffers();
        let Buffers { record, scratch } = &mut buffers;
        record.clear();
        let omitted = stream::put_late_end(format, record, scratch, event, now);
        let queue = self.queue.lock_unless_lost_with_room(|queue| (&mut queue.records, record.len()));
        if let Some(mut queue) = queue {
            queue.push(record);
        }
        self.return_buffers(buffers);
        omitted
    }

    /// Moves the ends in memory to `taken`, and keeps the memory of `taken` for further ends. Returns their
    /// number.
    pub(crate) fn take(&self, taken: &mut Bytes) -> u64 {
        taken.clear();
        let mut queue = self.queue.lock();
        std::mem::swap(taken, &mut queue.records);
        std::mem::take(&mut queue.count)
    }

    /// Returns whether late ends have a chunk.
    pub(crate) fn has_chunk(&self) -> bool {
        self.queue.lock().chunk.is_some()
    }

    fn take_buffers(&self) -> Buffers {
        let buffers = self.buffers.lock_unless_lost().map(|mut buffers| std::mem::take(&mut *buffers));
        buffers.unwrap_or_default()
    }

    fn return_buffers(&self, mut buffers: Buffers) {
        if let Some(mut place) = self.buffers.lock_unless_lost() {
            std::mem::swap(&mut *place, &mut buffers);
        }
        // The buffers of another thread that wrote an end at the same time: freed outside of the lock.
        drop(buffers);
    }
}

impl Queue {
    fn new(region: &Arc<Region>) -> Self {
        let next_chunk = ChunkInfo { sequence: SEQUENCE, tid: process::id(), ..ChunkInfo::default() };
        let records = Bytes::with_capacity(LATE_ROOM);
        let region = Arc::clone(region);
        let mut queue = Self { region, chunk: None, next_chunk, records, count: 0 };
        if !queue.region.overwrites() && queue.region.chunk_count() >= FEW_CHUNKS {
            queue.claim();
        }
        queue
    }

    /// Claims the next chunk. Returns whether a chunk was free. Makes no system call: the caller holds the
    /// lock.
    fn claim(&mut self) -> bool {
        if let Some(chunk) = self.region.claim_allocated(self.next_chunk) {
            self.next_chunk.index += 1;
            self.chunk = Some(chunk); // the drop of the chunk before completes that chunk
            return true;
        }
        false
    }

    /// Adds an end. Allocates nothing: the caller holds the lock, and has made room in `records`.
    fn push(&mut self, record: &[u8]) {
        // Ends stay in their order: while memory holds one, the next goes there too.
        if !self.records.is_empty() || !self.append(record) {
            self.records.extend_from_slice(record);
            self.count += 1;
        }
    }

    /// Appends the record to the chunk, or to the next one. Returns whether a chunk had room.
    fn append(&mut self, record: &[u8]) -> bool {
        let Some(chunk) = &mut self.chunk else { return false };
        chunk.append(record, 1)
            || self.claim() && self.chunk.as_mut().is_some_and(|chunk| chunk.append(record, 1))
    }
}
