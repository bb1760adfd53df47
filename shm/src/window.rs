//! The window: the content of a region that overwrites at one moment, as pieces without gaps.
//!
//! ```text
//! sequence 7:   chunk 4      5             6   the chunks in the ring (c: context, r: recovery)
//!             [overwritten] [c|r|records] [c|r|records....
//! pieces of 7:               c r records       records        r once, in place of chunk 4
//! ```
//!
//! All chunks are listed, then copied. The chunks that threads are writing come first; they are pinned from
//! the start. The others follow, the youngest first, and each is pinned while it is copied. So the chunks
//! that threads overwrite meanwhile are the oldest. Of two chunks that follow each other the later one is
//! copied first, so the earlier one is complete when it is copied. Of each sequence, the chunks after the
//! last gap are kept.

use std::io;
use std::sync::Arc;

use crate::abi::ChunkInfo;
use crate::backing::Scratch;
use crate::bitmap::from_youngest;
use crate::chunk::{Damaged, ReadChunk};
use crate::loss::LossReason;
use crate::region::Region;
use crate::runs::keep_whole_runs;

/// The only reader of a region that overwrites, in the process that writes the region.
///
/// ```
/// use hairline_shm::{ChunkInfo, Region, RegionConfig, Window};
///
/// let region = Region::create(&RegionConfig { overwrite: true, ..RegionConfig::small() })?;
/// let mut window = Window::new(region.clone());
/// let sequence = region.new_sequence();
/// for index in 0..20 {
///     let info = ChunkInfo { sequence, index, ..ChunkInfo::default() };
///     let mut chunk = region.claim(info, b"").unwrap(); // from the 17th on in the place of the oldest
///     assert!(chunk.append(&index.to_le_bytes(), 1));
/// }
/// window.take()?;
/// let kept: Vec<u32> = window.pieces().map(|piece| piece.info.index).collect();
/// assert_eq!(kept, (4..20).collect::<Vec<u32>>());
/// window.clear();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Window {
    region: Arc<Region>,
    bytes: Option<Scratch>,
    copies: Vec<Copied>,
    /// The chunks that were damaged at the last look, sorted. Each was counted.
    damaged: Vec<u32>,
}

/// A copy of one chunk. The bytes are in `Window::bytes`.
#[derive(Debug)]
struct Copied {
    info: ChunkInfo,
    recovery_len: u32,
    records: u32,
    start: usize,
    end: usize,
}

/// The claim and the number of a chunk.
type Listed = (u32, u32);

/// The most looks through the ring for the chunk that a thread has just claimed.
const LOOKS: usize = if cfg!(loom) { 2 } else { 8 };

/// The results of a look through the ring. They have room for all chunks, so a look does not allocate.
struct Lists<'r> {
    /// The complete chunks.
    complete: Vec<Listed>,
    /// The chunks that threads are writing, pinned: one for each thread that records. So each of these
    /// threads is in the window, even if the others overwrite the whole ring meanwhile.
    written: Vec<ReadChunk<'r>>,
    /// The sequences that have a complete chunk which is not their last one.
    going_on: Vec<u32>,
    /// The sequences whose last chunk was seen: they have ended, or it is the chunk that a thread is writing.
    seen_to_the_end: Vec<u32>,
    /// The chunks whose headers contradict themselves.
    damaged: Vec<u32>,
    /// The chunks that no thread had begun when they were read first.
    not_begun: Vec<u32>,
    /// Threads went round the whole ring during the look: one of them may have moved behind it.
    has_gone_round: bool,
}

impl<'r> Lists<'r> {
    fn with_room_for(region: &Region) -> Self {
        let chunks = region.chunk_count() as usize;
        Self {
            complete: Vec::with_capacity(chunks),
            written: Vec::with_capacity(chunks),
            going_on: Vec::with_capacity(chunks),
            seen_to_the_end: Vec::with_capacity(chunks),
            damaged: Vec::with_capacity(chunks),
            not_begun: Vec::with_capacity(chunks),
            has_gone_round: false,
        }
    }

    /// Looks again if a thread may have moved to another chunk behind the look. Mostly it cannot: its next
    /// chunk is the oldest one, which is listed last.
    fn fill(&mut self, region: &'r Region) {
        for _ in 0..LOOKS {
            self.look(region);
            if self.is_whole() {
                break;
            }
        }
    }

    fn look(&mut self, region: &'r Region) {
        self.complete.clear();
        self.written.clear();
        self.going_on.clear();
        self.seen_to_the_end.clear();
        self.damaged.clear();
        self.not_begun.clear();
        let (first, chunks) = (region.next_oldest(), region.allocated_chunks());
        for number in from_youngest(first, chunks) {
            if !self.list(region, number) {
                self.not_begun.push(number);
            }
        }
        // A thread may have taken one of them before the look, and begun it since.
        for at in 0..self.not_begun.len() {
            self.list(region, self.not_begun[at]);
        }
        self.has_gone_round = region.next_oldest().wrapping_sub(first) >= u64::from(chunks);
        self.seen_to_the_end.sort_unstable();
    }

    /// Lists a chunk. Returns false if no thread has begun it.
    fn list(&mut self, region: &'r Region, number: u32) -> bool {
        if region.is_free(number) {
            return false;
        }
        let chunk = match ReadChunk::open_pinned(region, number) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return false,
            Err(Damaged) => {
                self.damaged.push(number);
                return true;
            }
        };
        let sequence = chunk.info().sequence;
        if !chunk.is_complete() {
            self.seen_to_the_end.push(sequence);
            self.written.push(chunk);
            return true;
        }
        if chunk.is_last() {
            self.seen_to_the_end.push(sequence);
        } else {
            self.going_on.push(sequence);
        }
        self.complete.push((chunk.claim(), number));
        true
    }

    fn is_whole(&self) -> bool {
        !self.has_gone_round
            && self.going_on.iter().all(|sequence| self.seen_to_the_end.binary_search(sequence).is_ok())
    }
}

/// The bytes of one chunk, without context and recovery if the piece before is of the same sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'w> {
    /// The owner of the chunk.
    pub info: ChunkInfo,
    /// The bytes for the output.
    pub bytes: &'w [u8],
    /// The event records in the bytes, without those of the recovery.
    pub records: u32,
}

impl Window {
    /// Creates the window of `region`.
    ///
    /// # Panics
    /// If the region has a window already, or does not overwrite.
    #[must_use]
    pub fn new(region: Arc<Region>) -> Self {
        assert!(region.overwrites() && region.take_reader(), "a region that overwrites has one window");
        Self { region, bytes: None, copies: Vec::new(), damaged: Vec::new() }
    }

    /// Copies the content of the region. The copy takes at most as much memory as the ring, until
    /// [`clear`](Self::clear).
    ///
    /// Threads go on recording. They cannot take the chunk that is being copied, for some microseconds, nor
    /// the chunks that were being written at the start, until those are copied.
    ///
    /// # Errors
    /// If there is no memory for the copy.
    pub fn take(&mut self) -> io::Result<()> {
        self.take_and(|| (), drop)
    }

    /// As [`take`](Self::take), and calls `hold` before the look at the ring. It calls `release` with the
    /// result of `hold` when the chunks that threads were writing are copied, and before the others are.
    ///
    /// If the caller keeps threads from recording an event between the two, that event is not in the window.
    /// Between the two calls nothing is allocated or freed.
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// use hairline_shm::{Region, RegionConfig, Window};
    ///
    /// let region = Region::create(&RegionConfig { overwrite: true, ..RegionConfig::small() })?;
    /// let (mut window, held) = (Window::new(region), Cell::new(0));
    /// let hold = || held.set(held.get() + 1); // for example, locks the tracks
    /// window.take_and(hold, |()| held.set(held.get() - 1))?;
    /// assert_eq!(held.get(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_and<G>(&mut self, hold: impl FnOnce() -> G, release: impl FnOnce(G)) -> io::Result<()> {
        self.clear();
        let region = Arc::clone(&self.region);
        let mut bytes = Scratch::new(region.chunk_count() as usize * region.payload_len() as usize)?;
        let mut lists = Lists::with_room_for(&region);
        self.copies.reserve(region.chunk_count() as usize);
        let held = hold();
        self.copy_written(&region, &mut lists, &mut bytes);
        release(held);
        self.copy_complete(&region, lists, bytes);
        Ok(())
    }

    // What follows is not generic, so that it is compiled in this crate alone.

    /// Looks at the ring, and copies the chunks that threads are writing.
    fn copy_written<'r>(&mut self, region: &'r Region, lists: &mut Lists<'r>, bytes: &mut Scratch) {
        lists.fill(region);
        let Lists { written, damaged, .. } = lists;
        // The youngest first: two of them can be of one thread that has claimed its next chunk.
        written.sort_unstable_by_key(|chunk| std::cmp::Reverse(chunk.claim()));
        for chunk in written.iter_mut() {
            match chunk.refresh() {
                Ok(()) => self.copy(chunk, bytes),
                Err(Damaged) => damaged.push(chunk.number()),
            }
        }
        written.clear(); // ends the pins
    }

    /// Copies the other chunks, and sorts the copies by sequence.
    fn copy_complete(&mut self, region: &Region, lists: Lists<'_>, mut bytes: Scratch) {
        let Lists { mut complete, mut damaged, .. } = lists;
        complete.sort_unstable_by(|a, b| b.cmp(a)); // the youngest first
        for (claim, number) in complete {
            match ReadChunk::open_pinned(region, number) {
                Ok(Some(chunk)) if chunk.claim() == claim => self.copy(&chunk, &mut bytes),
                Ok(_) => {} // overwritten meanwhile
                Err(Damaged) => damaged.push(number),
            }
        }
        self.set_damaged(damaged);
        self.bytes = Some(bytes);
        let place = |copied: &Copied| (copied.info.sequence, copied.info.index);
        self.copies.sort_unstable_by_key(place);
        keep_whole_runs(&mut self.copies, place);
    }

    fn copy(&mut self, chunk: &ReadChunk<'_>, bytes: &mut Scratch) {
        let start = bytes.bytes().len();
        let has_room = self.copies.len() < self.copies.capacity();
        if !has_room || !bytes.push(chunk.committed()) {
            return; // cannot happen: there is room for all chunks
        }
        self.copies.push(Copied {
            info: chunk.info(),
            recovery_len: chunk.recovery_len(),
            records: chunk.commit().records(),
            start,
            end: bytes.bytes().len(),
        });
    }

    /// Counts the chunks that were not yet damaged at the last look.
    fn set_damaged(&mut self, mut damaged: Vec<u32>) {
        damaged.sort_unstable();
        let new = damaged.iter().filter(|number| self.damaged.binary_search(number).is_err()).count();
        if new > 0 {
            self.region.count_lost(LossReason::Damaged, new as u64);
        }
        self.damaged = damaged;
    }

    /// The pieces of the copy, sequence by sequence, each in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut before = None;
        let bytes = self.bytes.as_ref().map_or(&[][..], Scratch::bytes);
        self.copies.iter().map(move |copied| {
            let Copied { info, recovery_len, records, start, end } = *copied;
            let goes_on = before.replace(info.sequence) == Some(info.sequence);
            let said = if goes_on { info.context_len as usize + recovery_len as usize } else { 0 };
            Piece { info, bytes: &bytes[(start + said).min(end)..end], records }
        })
    }

    /// Frees the memory of the copy.
    pub fn clear(&mut self) {
        self.copies = Vec::new();
        self.bytes = None;
    }
}
