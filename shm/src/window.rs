//! The window: what a region that overwrites holds at one moment, as pieces that follow each other.
//!
//! ```text
//! sequence 7:   chunk 4      5      6          what is left in the ring
//!             [overwritten] [c|r|records] [c|r|records....
//! pieces of 7:               c r records  records          r once, where chunk 4 would have said it
//! ```
//!
//! All chunks are listed, then copied, the youngest first, each while it is pinned. So what threads overwrite meanwhile is the
//! oldest; and a chunk that was still being written when its copy was made has no successor in the window: one that is on the
//! list was copied before it, when it held nothing later than what the copy holds. Of a sequence, what is left is the run of
//! chunks that ends with its youngest: a chunk whose successor is missing would be followed by a hole.

use std::sync::Arc;

use crate::abi::ChunkInfo;
use crate::chunk::ReadChunk;
use crate::region::Region;

/// The one reader of a region that overwrites, in the process that writes it.
#[derive(Debug)]
pub struct Window {
    region: Arc<Region>,
    bytes: Vec<u8>,
    copies: Vec<Copied>,
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
        Self { region, bytes: Vec::new(), copies: Vec::new() }
    }

    /// Copies what the region holds now: as many bytes of memory as it has, until [`clear`](Self::clear). Threads go on
    /// recording; the chunk that is being copied is kept from them, some microseconds.
    pub fn take(&mut self) {
        self.clear();
        let mut listed: Vec<(u32, u32)> = self.region.taken().filter_map(|n| self.claim_of(n)).collect();
        listed.sort_unstable_by(|a, b| b.cmp(a)); // the youngest first
        for (claim, number) in listed {
            // It may be another one by now.
            let chunk = ReadChunk::open_pinned(&self.region, number).filter(|chunk| chunk.claim() == claim);
            if let Some(chunk) = chunk {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(chunk.committed());
                self.copies.push(Copied {
                    info: chunk.info(),
                    recovery_len: chunk.recovery_len(),
                    records: chunk.commit().records(),
                    start,
                    end: self.bytes.len(),
                });
            }
        }
        self.keep_whole_runs();
    }

    fn claim_of(&self, number: u32) -> Option<(u32, u32)> {
        Some((ReadChunk::open_pinned(&self.region, number)?.claim(), number))
    }

    /// Drops what stands before a hole.
    fn keep_whole_runs(&mut self) {
        self.copies.sort_unstable_by_key(|copied| (copied.info.sequence, copied.info.index));
        let mut next: Option<ChunkInfo> = None;
        let mut kept: Vec<Copied> = self.copies.drain(..).rev().collect();
        let mut broken = None;
        kept.retain(|Copied { info, .. }| {
            let of_run = next.is_none_or(|n| n.sequence != info.sequence || info.index + 1 == n.index);
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
        self.copies.iter().map(move |copied| {
            let Copied { info, recovery_len, records, start, end } = *copied;
            let goes_on = before.replace(info.sequence) == Some(info.sequence);
            let said = if goes_on { info.context_len as usize + recovery_len as usize } else { 0 };
            Piece { info, bytes: &self.bytes[(start + said).min(end)..end], records }
        })
    }

    /// Gives the copy's memory back.
    pub fn clear(&mut self) {
        self.copies = Vec::new();
        self.bytes = Vec::new();
    }
}
