//! The free bitmap, and how a chunk changes hands.
//!
//! The bitmap has one bit for each chunk, 1 = free. Only the bits of chunks count whose memory is allocated:
//! the others are not looked at until [`Region::grow`] has allocated it. To take a chunk, a thread clears the
//! lowest set bit with one `fetch_and`. The thread that sees the bit set in the returned value owns the
//! chunk. Other threads try the next bit; no thread waits. So a quiet program touches few pages, and a busy
//! thread gets the chunk that the drain freed last, which is still in the cache.
//!
//! A region that overwrites has no drain. When no chunk is free, a thread takes the next chunk in ring order
//! that is Complete and not pinned. That is the oldest chunk, apart from those that slow threads still write.

use std::ops::Range;

use crate::abi::{PINNED, State};
use crate::region::{Region, small};
use crate::step::step;
use crate::sync::{Ordering, fence};

/// The number of a chunk that the caller owns alone. Only this file makes one, when a chunk changes hands,
/// and `WriteChunk::begin` consumes it. So no chunk has two `WriteChunk`s.
#[derive(Debug)]
pub(crate) struct Taken(u32);

impl Taken {
    /// The chunk's number.
    pub(crate) fn number(&self) -> u32 {
        self.0
    }
}

/// The moment of a look that found no free chunk: the number of times that chunks had become free until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullSince(u32);

/// The numbers of the chunks of a ring that overwrites, from the youngest to the next one that is
/// overwritten. A thread that moves to another chunk while a reader follows this order takes one that the
/// reader still comes to, unless threads go round the whole ring meanwhile.
///
/// The reader sees the thread there, if it has seen the next owner in the thread's earlier chunk: the thread
/// stores Writing in the new chunk before it completes the earlier one (Release), which the next owner takes
/// (Acquire) and begins (Release), which the reader loads (Acquire).
pub(crate) fn from_youngest(next_oldest: u64, count: u32) -> impl Iterator<Item = u32> {
    #[allow(clippy::cast_possible_truncation)] // below the count
    let from = (next_oldest % u64::from(count.max(1))) as u32;
    (0..from).rev().chain((from..count).rev())
}

impl Region {
    /// Takes the free chunk with the lowest number.
    pub(crate) fn take_lowest_free(&self) -> Option<Taken> {
        let chunks = self.allocated_chunks();
        for w in words(chunks) {
            let word = self.bitmap(w);
            let free = word.load(Ordering::Relaxed);
            if free == 0 {
                continue; // the usual case while no drain runs, so nothing more is computed for such words
            }
            let chunks_here = chunks_in(w, chunks); // other processes can set bits that stand for no chunk
            let mut candidates = free & chunks_here;
            while candidates != 0 {
                let bit = candidates & candidates.wrapping_neg();
                // Acquire pairs with the Release in `free`: the drain's last read of the payload, and its
                // store of Free, happen before the new owner's first write.
                let before = word.fetch_and(!bit, Ordering::Acquire);
                if before & bit != 0 {
                    return Some(Taken(small(w * 64) + bit.trailing_zeros()));
                }
                candidates = before & !bit & chunks_here;
            }
        }
        None
    }

    /// Takes the next chunk in ring order that is complete and not pinned. Only in a region that overwrites.
    pub(crate) fn take_oldest(&self) -> Option<Taken> {
        if !self.overwrites() {
            return None;
        }
        let chunks = self.allocated_chunks();
        (0..chunks).find_map(|_| {
            let ticket = self.header().next_oldest.fetch_add(1, Ordering::Relaxed);
            #[allow(clippy::cast_possible_truncation)] // below the number of chunks
            let chunk = (ticket % u64::from(chunks)) as u32;
            let state = &self.chunk_header(chunk).state;
            let seen = state.load(Ordering::Relaxed);
            let free = State::Free.in_generation_of(seen);
            // Acquire pairs with the Release of Complete (`ChunkHeader::complete`) and with that of the end
            // of a pin (`Pin::drop`): the last owner and the last reader are done before the new owner's
            // first write.
            let is_mine = State::of(seen) == State::Complete
                && seen & PINNED == 0
                && state.compare_exchange(seen, free, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if is_mine {
                // Pairs with the fence before the second look in `looks.rs`: a reader from outside that
                // copied bytes of the new owner finds another state afterwards. The Acquire above does not
                // order the store of its own compare-and-swap before later stores.
                fence(Ordering::Release);
            }
            is_mine.then_some(Taken(chunk))
        })
    }

    /// The number of chunks that threads have tried to overwrite.
    pub(crate) fn next_oldest(&self) -> u64 {
        // Relaxed: the content of a chunk is read by the chunk's own `state`.
        self.header().next_oldest.load(Ordering::Relaxed)
    }

    /// Frees a Complete chunk that was read to its end.
    pub(crate) fn free(&self, chunk: u32) {
        let header = self.chunk_header(chunk);
        let state = header.state.load(Ordering::Relaxed);
        // From this store on the other fields of the header mean nothing. The next claim sets them.
        header.state.store(State::Free.in_generation_of(state), Ordering::Release);
        step();
        // Release pairs with the Acquire in `take_lowest_free`.
        self.bitmap(chunk as usize / 64).fetch_or(1 << (chunk % 64), Ordering::Release);
        step();
        self.count_freed();
    }

    /// Counts that chunks have become free, after they have.
    pub(crate) fn count_freed(&self) {
        // Release pairs with the Acquire in `full_since`.
        self.frees().fetch_add(1, Ordering::Release);
    }

    /// Looks for a free chunk. Returns `None` if some chunk was free at some moment of the call, or can be
    /// allocated; always in a region that overwrites.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Drain, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// assert_eq!(region.full_since(), None);
    /// let claim = || region.claim(ChunkInfo { sequence: region.new_sequence(), ..Default::default() }, b"");
    /// let mut chunks: Vec<_> = std::iter::from_fn(claim).collect();
    /// let full = region.full_since().unwrap();
    /// assert!(region.is_full_since(full));
    ///
    /// chunks.pop(); // complete
    /// # struct Output;
    /// # impl hairline_shm::Output for Output {
    /// #     fn write_all_parts(&mut self, _: &[std::io::IoSlice<'_>]) -> std::io::Result<()> { Ok(()) }
    /// # }
    /// # let mut output = Output;
    /// Drain::new(region.clone()).pass(&mut output)?;
    /// assert!(!region.is_full_since(full));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn full_since(&self) -> Option<FullSince> {
        // Before the look. Acquire pairs with the Release in `count_freed`: a look after a number finds the
        // chunks that are counted in it, so what the look misses changes the number later.
        let frees = self.frees().load(Ordering::Acquire);
        (!self.has_free_chunk()).then_some(FullSince(frees))
    }

    /// Returns whether no chunk has become free since a look found none. It takes one load, where a look takes
    /// one for each 64 chunks.
    #[inline]
    pub fn is_full_since(&self, look: FullSince) -> bool {
        // Relaxed: the next look orders what it reads. The number comes again after 2^32 chunks, while this
        // thread would have to lose no event.
        self.frees().load(Ordering::Relaxed) == look.0
    }

    /// Whether the chunk is free, and not claimed.
    pub(crate) fn is_free(&self, chunk: u32) -> bool {
        // Relaxed: as above.
        self.bitmap(chunk as usize / 64).load(Ordering::Relaxed) & (1 << (chunk % 64)) != 0
    }

    /// The numbers of the chunks that are not free. A chunk that is claimed or freed during the call may be
    /// among them or not.
    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> + '_ {
        let chunks = self.allocated_chunks();
        words(chunks).flat_map(move |w| {
            // Relaxed: the content of a chunk is read by the chunk's own `state` and `commit`.
            let mut taken = !self.bitmap(w).load(Ordering::Relaxed) & chunks_in(w, chunks);
            std::iter::from_fn(move || {
                let bit = taken.trailing_zeros();
                taken &= taken.wrapping_sub(1);
                (bit < 64).then(|| small(w * 64) + bit)
            })
        })
    }

    /// Whether some chunk was complete and not yet freed at some moment of the call.
    pub fn has_complete_chunk(&self) -> bool {
        // Relaxed: the caller's next pass loads the state again.
        let is_complete =
            |chunk| State::of(self.chunk_header(chunk).state.load(Ordering::Relaxed)) == State::Complete;
        self.taken().any(is_complete)
    }

    /// Whether some chunk was free at some moment of the call, or could be allocated. Always true in a region
    /// that overwrites.
    pub fn has_free_chunk(&self) -> bool {
        if self.overwrites() || self.chunks_to_come() > 0 {
            return true;
        }
        let chunks = self.allocated_chunks() as usize;
        let (whole, bits) = (chunks / 64, self.bitmap_words());
        for word in bits.iter().take(whole) {
            if word.load(Ordering::Relaxed) != 0 {
                return true;
            }
        }
        let rest = (1_u64 << (chunks % 64)) - 1; // none if all words are whole
        bits.get(whole).is_some_and(|word| word.load(Ordering::Relaxed) & rest != 0)
    }

    /// The number of free chunks at some moment of the call, with those that can still be allocated.
    pub fn free_chunks(&self) -> u32 {
        self.chunks_to_come() + self.free_allocated_chunks()
    }

    /// The number of free chunks at some moment of the call whose memory is allocated.
    pub fn free_allocated_chunks(&self) -> u32 {
        self.free_bits().map(u64::count_ones).sum()
    }

    /// The words of the bitmap, without the bits that do not count.
    fn free_bits(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = self.allocated_chunks();
        words(chunks).map(move |w| self.bitmap(w).load(Ordering::Relaxed) & chunks_in(w, chunks))
    }
}

/// The numbers of the words that have the bits of this many chunks.
fn words(chunks: u32) -> Range<usize> {
    0..(chunks as usize).div_ceil(64)
}

/// The bits of a word of the bitmap that stand for the first `chunks` chunks.
fn chunks_in(word: usize, chunks: u32) -> u64 {
    let chunks = (chunks as usize - word * 64).min(64);
    u64::MAX >> (64 - chunks)
}
