//! How a thread comes by a chunk, and how a chunk becomes free again.
//!
//! The bitmap has one bit a chunk, 1 = free. A claim clears the lowest set bit it finds with one
//! `fetch_and`; whoever sees the bit set in the value that comes back has won. Losing means trying the next
//! bit; nobody waits. So a quiet program touches few pages, and a busy thread gets back the chunk that
//! the drain freed last, cache-warm.
//!
//! A region that overwrites has no drain. When no chunk is free any more, a claim takes the next one in ring order that is
//! Complete and not pinned: the oldest, but for those that slow threads still write.

use std::sync::Arc;
use std::time::Instant;

use crate::abi::{ChunkInfo, PINNED, State};
use crate::chunk::WriteChunk;
use crate::ledger::step;
use crate::region::{Region, small};
use crate::sync::{Ordering, fence};

/// The number of a chunk that the caller owns alone. Made in this file only, at the moment at which a chunk
/// changes hands, and used up by `WriteChunk::begin`: so no two [`WriteChunk`]s are of one chunk.
#[derive(Debug)]
pub(crate) struct Taken(u32);

impl Taken {
    pub(crate) fn number(&self) -> u32 {
        self.0
    }
}

impl Region {
    /// Takes the lowest free chunk, with `context` at its start; in a region that overwrites, if there is none, the oldest.
    /// None when all are taken; when all are being written.
    ///
    /// `info.context_len` is set from `context`, which must be shorter than the payload.
    pub fn claim(self: &Arc<Self>, info: ChunkInfo, context: &[u8]) -> Option<WriteChunk> {
        assert!(context.len() < self.payload_len() as usize); // before a chunk is taken, which a panic would lose
        let chunk = self.take_lowest_free().or_else(|| self.take_oldest())?;
        Some(WriteChunk::begin(Arc::clone(self), chunk, info, context))
    }

    fn take_lowest_free(&self) -> Option<Taken> {
        for w in 0..(self.chunk_count() as usize).div_ceil(64) {
            let word = self.bitmap(w);
            let free = word.load(Ordering::Relaxed);
            if free == 0 {
                continue; // most words while nobody drains: nothing more is worked out for them
            }
            let chunks_here = self.chunks_in(w); // other processes can set bits that stand for no chunk
            let mut candidates = free & chunks_here;
            while candidates != 0 {
                let bit = candidates & candidates.wrapping_neg();
                // Acquire pairs with the Release of `free`: the drain's last read of the payload, and its store of
                // Free, stay before the winner's first write.
                let before = word.fetch_and(!bit, Ordering::Acquire);
                if before & bit != 0 {
                    return Some(Taken(small(w * 64) + bit.trailing_zeros()));
                }
                candidates = before & !bit & chunks_here;
            }
        }
        None
    }

    /// The number of a claim.
    pub(crate) fn new_claim(&self) -> u32 {
        self.header().claims.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes the next chunk in ring order that nobody writes or reads.
    fn take_oldest(&self) -> Option<Taken> {
        if !self.overwrites() {
            return None;
        }
        (0..self.chunk_count()).find_map(|_| {
            let ticket = self.header().next_oldest.fetch_add(1, Ordering::Relaxed);
            #[allow(clippy::cast_possible_truncation)] // below the number of chunks
            let chunk = (ticket % u64::from(self.chunk_count())) as u32;
            let state = &self.chunk_header(chunk).state;
            let seen = state.load(Ordering::Relaxed);
            let free = State::Free.in_generation_of(seen);
            // Acquire pairs with the Release of Complete and with that of the pin's end: its last owner and whoever read
            // it are done before the winner's first write.
            let is_mine = State::of(seen) == State::Complete
                && seen & PINNED == 0
                && state.compare_exchange(seen, free, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if is_mine {
                // Before the first byte that is written: who reads from outside and finds other bytes finds another state after
                // them (`recover/glance.rs`). The Acquire above orders nothing after its own store.
                fence(Ordering::Release);
            }
            is_mine.then_some(Taken(chunk))
        })
    }

    /// The bits of a word of the bitmap that stand for chunks.
    fn chunks_in(&self, word: usize) -> u64 {
        let chunks = (self.chunk_count() as usize - word * 64).min(64);
        u64::MAX >> (64 - chunks)
    }

    /// Numbers of the chunks that are not free, in no more than one word of doubt: a chunk claimed or
    /// freed meanwhile may or may not be among them.
    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> + '_ {
        (0..(self.chunk_count() as usize).div_ceil(64)).flat_map(move |w| {
            // Relaxed: what the chunk holds is learnt from its own `state` and `commit`.
            let mut taken = !self.bitmap(w).load(Ordering::Relaxed) & self.chunks_in(w);
            std::iter::from_fn(move || {
                let bit = taken.trailing_zeros();
                taken &= taken.wrapping_sub(1);
                (bit < 64).then(|| small(w * 64) + bit)
            })
        })
    }

    /// Whether there was a chunk at some moment of the call that its thread is done with, and the drain is not.
    pub fn has_complete_chunk(&self) -> bool {
        // Relaxed: what is done about it looks again.
        let is_complete =
            |chunk| State::of(self.chunk_header(chunk).state.load(Ordering::Relaxed)) == State::Complete;
        self.taken().any(is_complete)
    }

    /// Whether there was a free chunk at some moment of the call, or there may be one to overwrite.
    pub fn has_free_chunk(&self) -> bool {
        self.overwrites()
            || (0..(self.chunk_count() as usize).div_ceil(64))
                .any(|w| self.bitmap(w).load(Ordering::Relaxed) & self.chunks_in(w) != 0)
    }

    /// Waits until a chunk is free; somebody else may have it before the caller. False: the time has come, or nobody may wait.
    /// `wake` is to wake the drain, for which the thread then counts as one that [waits](Self::is_waited_for).
    pub fn wait_for_chunk(&self, until: Instant, wake: impl FnOnce()) -> bool {
        self.waiting().wait(until, wake, || self.has_free_chunk())
    }

    /// Whether somebody waits for a chunk, at some moment of the call.
    pub fn is_waited_for(&self) -> bool {
        self.waiting().has_threads()
    }

    /// Whether [`wait_for_chunk`](Self::wait_for_chunk) would wait: not after somebody's time was over, until the drain has
    /// freed a chunk; not after [`end_waits`](Self::end_waits).
    pub fn may_wait(&self) -> bool {
        self.waiting().may_wait()
    }

    /// Nobody waits from now on: nothing is drained any more.
    pub fn end_waits(&self) {
        self.waiting().end();
    }

    /// Wakes who waits for a chunk: some were freed.
    pub(crate) fn chunks_freed(&self) {
        self.waiting().freed();
    }

    /// Number of free chunks at some moment of the call.
    pub fn free_chunks(&self) -> u32 {
        (0..(self.chunk_count() as usize).div_ceil(64))
            .map(|w| (self.bitmap(w).load(Ordering::Relaxed) & self.chunks_in(w)).count_ones())
            .sum()
    }

    /// Gives a Complete chunk, read to its end, back to the free ones.
    pub(crate) fn free(&self, chunk: u32) {
        let header = self.chunk_header(chunk);
        let state = header.state.load(Ordering::Relaxed);
        // What else the header says is void with this store, and said anew at the next claim.
        header.state.store(State::Free.in_generation_of(state), Ordering::Release);
        step();
        // Release pairs with the Acquire of `take_lowest_free`.
        self.bitmap(chunk as usize / 64).fetch_or(1 << (chunk % 64), Ordering::Release);
    }
}
