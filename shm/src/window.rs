//! The window: what a region that overwrites holds at one moment, as pieces that follow each other.
//!
//! ```text
//! sequence 7:   chunk 4      5      6          what is left in the ring
//!             [overwritten] [c|r|records] [c|r|records....
//! pieces of 7:               c r records  records          r once, where chunk 4 would have said it
//! ```
//!
//! All chunks are listed, then copied: first those that are being written, which are pinned from the start, then the others,
//! the youngest first, each while it is pinned. So what threads overwrite meanwhile is the oldest; and of two chunks that follow
//! each other the later one is copied first, so that what it holds comes after the whole of the earlier one. Of a sequence, what
//! is left is the run of chunks that ends with its youngest: a chunk whose successor is missing would be followed by a hole.

use std::io;
use std::sync::Arc;

use crate::abi::{ChunkInfo, LossReason};
use crate::backing::Scratch;
use crate::chunk::{Damaged, ReadChunk};
use crate::region::Region;

/// The one reader of a region that overwrites, in the process that writes it.
#[derive(Debug)]
pub struct Window {
    region: Arc<Region>,
    bytes: Option<Scratch>,
    copies: Vec<Copied>,
    /// Chunks that were damaged when they were looked at last. Each was counted.
    damaged: Vec<u32>,
}

/// A chunk's bytes, taken out of the ring.
#[derive(Debug)]
struct Copied {
    info: ChunkInfo,
    recovery_len: u32,
    records: u32,
    start: usize,
    end: usize,
}

/// A chunk's claim and number.
type Listed = (u32, u32);

/// How often the ring is looked through for the chunk that a thread has just gone on in.
const LOOKS: usize = if cfg!(loom) { 2 } else { 8 };

/// What a look through the ring finds. Made with room for all chunks, so that the look allocates nothing.
struct Lists<'r> {
    /// The chunks that are complete.
    complete: Vec<Listed>,
    /// Those that are being written, pinned: one of each thread that records. So every such thread is in the window,
    /// however fast the others go round the ring.
    written: Vec<ReadChunk<'r>>,
    /// Sequences of complete chunks that go on; and those that have ended, or of which the chunk was seen that is being written.
    going_on: Vec<u32>,
    seen_to_the_end: Vec<u32>,
    /// Chunks whose headers contradict themselves.
    damaged: Vec<u32>,
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
        }
    }

    /// Looks again where a thread may have changed chunks behind the scan's back.
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
        for number in region.taken() {
            let chunk = match ReadChunk::open_pinned(region, number) {
                Ok(Some(chunk)) => chunk,
                Ok(None) => continue,
                Err(Damaged) => {
                    self.damaged.push(number);
                    continue;
                }
            };
            let sequence = chunk.info().sequence;
            if !chunk.is_complete() {
                self.seen_to_the_end.push(sequence);
                self.written.push(chunk);
                continue;
            }
            if chunk.is_last() {
                self.seen_to_the_end.push(sequence);
            } else {
                self.going_on.push(sequence);
            }
            self.complete.push((chunk.claim(), number));
        }
        self.seen_to_the_end.sort_unstable();
    }

    fn is_whole(&self) -> bool {
        self.going_on.iter().all(|sequence| self.seen_to_the_end.binary_search(sequence).is_ok())
    }
}

/// Bytes of one chunk, without what the piece before it has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'w> {
    /// Whose they are.
    pub info: ChunkInfo,
    /// What goes into the output.
    pub bytes: &'w [u8],
    /// Event records in it. Those of a recovery do not count.
    pub records: u32,
}

impl Window {
    /// The window of `region`.
    ///
    /// # Panics
    /// When the region has one already, or does not overwrite.
    #[must_use]
    pub fn new(region: Arc<Region>) -> Self {
        assert!(region.overwrites() && region.take_reader(), "a region that overwrites has one window");
        Self { region, bytes: None, copies: Vec::new(), damaged: Vec::new() }
    }

    /// Copies what the region holds now: as many bytes of memory as it has, until [`clear`](Self::clear). Threads go on
    /// recording; the chunk that is being copied is kept from them, some microseconds, and as long as the youngest chunk of
    /// each sequence.
    ///
    /// # Errors
    /// When there is no memory for the copy.
    pub fn take(&mut self) -> io::Result<()> {
        self.take_and(|| (), drop)
    }

    /// The same, and calls `hold` before it looks at the ring, and `release`, with what `hold` returned, when the chunks that are being
    /// written have been copied, and none of the others. Who keeps threads from recording something in between knows that it is
    /// not in the window, and soon lets them go on. In between nothing is allocated or freed.
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
        lists.fill(&region);
        let Lists { complete, written, damaged, .. } = &mut lists;
        // The youngest first: a thread may have gone on from one of them to another.
        written.sort_unstable_by_key(|chunk| std::cmp::Reverse(chunk.claim()));
        for chunk in written.iter_mut() {
            match chunk.refresh() {
                Ok(()) => self.copy(chunk, &mut bytes),
                Err(Damaged) => damaged.push(chunk.number()),
            }
        }
        written.clear(); // not pinned any more
        release(held);
        complete.sort_unstable_by(|a, b| b.cmp(a)); // the youngest first
        for (claim, number) in complete.drain(..) {
            match ReadChunk::open_pinned(&region, number) {
                Ok(Some(chunk)) if chunk.claim() == claim => self.copy(&chunk, &mut bytes),
                Ok(_) => {} // another one by now
                Err(Damaged) => damaged.push(number),
            }
        }
        self.set_damaged(lists.damaged);
        self.bytes = Some(bytes);
        self.keep_whole_runs();
        Ok(())
    }

    fn copy(&mut self, chunk: &ReadChunk<'_>, bytes: &mut Scratch) {
        let start = bytes.bytes().len();
        let has_room = self.copies.len() < self.copies.capacity();
        if !has_room || !bytes.push(chunk.committed()) {
            return; // more chunks than there are: none
        }
        self.copies.push(Copied {
            info: chunk.info(),
            recovery_len: chunk.recovery_len(),
            records: chunk.commit().records(),
            start,
            end: bytes.bytes().len(),
        });
    }

    /// Counts the chunks that were not damaged at the last look.
    fn set_damaged(&mut self, mut damaged: Vec<u32>) {
        damaged.sort_unstable();
        let new = damaged.iter().filter(|number| self.damaged.binary_search(number).is_err()).count();
        if new > 0 {
            self.region.count_lost(LossReason::Damaged, new as u64);
        }
        self.damaged = damaged;
    }

    /// Drops what stands before a hole.
    fn keep_whole_runs(&mut self) {
        self.copies.sort_unstable_by_key(|copied| (copied.info.sequence, copied.info.index));
        let mut next: Option<ChunkInfo> = None;
        let mut kept: Vec<Copied> = self.copies.drain(..).rev().collect();
        let mut broken = None;
        kept.retain(|Copied { info, .. }| {
            let of_run =
                next.is_none_or(|n| n.sequence != info.sequence || info.index.wrapping_add(1) == n.index);
            if !of_run {
                broken = Some(info.sequence);
            }
            next = Some(*info);
            broken != Some(info.sequence)
        });
        kept.reverse();
        self.copies = kept;
    }

    /// What was taken, sequence by sequence, each in its order.
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

    /// Gives the copy's memory back.
    pub fn clear(&mut self) {
        self.copies = Vec::new();
        self.bytes = None;
    }
}
