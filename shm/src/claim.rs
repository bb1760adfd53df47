//! Claims a chunk for a thread, and lets a thread wait for one.

use std::sync::Arc;
use std::time::Instant;

use crate::abi::ChunkInfo;
use crate::bitmap::Taken;
use crate::chunk::WriteChunk;
use crate::region::Region;

/// Bytes of chunks that a thread allocates if no chunk is free.
const STEP: u32 = 256 << 10;

impl Region {
    /// Claims the free chunk with the lowest number, and writes `context` at its start. If no chunk is free,
    /// allocates a few more, which takes less than 0.1 ms. If all are allocated, a region that overwrites
    /// gives its oldest complete chunk.
    ///
    /// Returns `None` if no chunk is free; in a region that overwrites, if threads write all of them.
    ///
    /// `info.context_len` is set to the length of `context`.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let sequence = region.new_sequence();
    /// let context = b"the thread's name, its clock"; // bytes that must precede the records
    /// let chunk = region.claim(ChunkInfo { sequence, index: 0, ..ChunkInfo::default() }, context).unwrap();
    /// assert_eq!(chunk.committed().bytes() as usize, context.len());
    /// drop(chunk);
    /// let next = region.claim(ChunkInfo { sequence, index: 1, ..ChunkInfo::default() }, context).unwrap();
    /// assert_eq!(next.number(), 1); // chunk 0 is not drained yet
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    ///
    /// # Panics
    /// If `context` is not shorter than the payload.
    pub fn claim(self: &Arc<Self>, info: ChunkInfo, context: &[u8]) -> Option<WriteChunk> {
        // Checked here, since a panic after the chunk is taken would lose the chunk.
        assert!(context.len() < self.payload_len() as usize);
        let chunk = self.take_lowest_free().or_else(|| self.take_new()).or_else(|| self.take_oldest())?;
        Some(WriteChunk::begin(Arc::clone(self), chunk, info, context))
    }

    /// As [`claim`](Self::claim) without a context, but allocates no chunk, so it makes no system call.
    pub fn claim_allocated(self: &Arc<Self>, info: ChunkInfo) -> Option<WriteChunk> {
        let chunk = self.take_lowest_free().or_else(|| self.take_oldest())?;
        Some(WriteChunk::begin(Arc::clone(self), chunk, info, b""))
    }

    /// Allocates further chunks and takes one of them.
    #[cold]
    fn take_new(&self) -> Option<Taken> {
        while self.grow(STEP) {
            let taken = self.take_lowest_free();
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Waits until a chunk is free. Another thread may claim that chunk before the caller does.
    ///
    /// `wake` is called to wake the drain thread, after this thread is counted in
    /// [`is_waited_for`](Self::is_waited_for).
    ///
    /// Returns `false` if `until` has passed, or if no thread [may wait](Self::may_wait).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let claim = || region.claim(ChunkInfo { sequence: region.new_sequence(), ..Default::default() }, b"");
    /// let chunks: Vec<_> = std::iter::from_fn(claim).collect();
    /// assert_eq!((chunks.len(), region.has_free_chunk()), (16, false));
    ///
    /// let mut was_woken = false;
    /// let until = Instant::now() + Duration::from_millis(1);
    /// assert!(!region.wait_for_chunk(until, || was_woken = true)); // no drain frees a chunk
    /// assert!(was_woken);
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn wait_for_chunk(&self, until: Instant, wake: impl FnOnce()) -> bool {
        self.waiting().wait(until, wake, || self.has_free_chunk())
    }

    /// Whether a thread waited for a chunk at some moment of the call.
    pub fn is_waited_for(&self) -> bool {
        self.waiting().has_threads()
    }

    /// Whether [`wait_for_chunk`](Self::wait_for_chunk) would wait. It does not from the moment at which the
    /// time of one thread has passed until the drain frees a chunk, and not after
    /// [`end_waits`](Self::end_waits).
    pub fn may_wait(&self) -> bool {
        self.waiting().may_wait()
    }

    /// Ends all waits, now and later: the region is drained no longer.
    pub fn end_waits(&self) {
        self.waiting().end();
    }

    /// Wakes the threads that wait for a chunk, after the drain has freed some.
    pub(crate) fn chunks_freed(&self) {
        self.waiting().freed();
    }
}
