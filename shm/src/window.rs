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

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use crate::abi::ChunkInfo;
use crate::backing::Scratch;
use crate::chunk::ReadChunk;
use crate::region::Region;

/// The one reader of a region that overwrites, in the process that writes it.
#[derive(Debug)]
pub struct Window {
    region: Arc<Region>,
    bytes: Option<Scratch>,
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

/// A chunk's claim and number.
type Listed = (u32, u32);

/// How often the ring is looked through for the chunk that a thread has just gone on in.
const LOOKS: usize = if cfg!(loom) { 2 } else { 8 };

/// All chunks that are complete; and, pinned, those that are being written, one of each thread that records. So every such
/// thread is in the window, however fast the others go round the ring.
fn list(region: &Region) -> (Vec<Listed>, Vec<ReadChunk<'_>>) {
    for _ in 1..LOOKS {
        let (listed, pinned, is_whole) = look(region);
        if is_whole {
            return (listed, pinned);
        }
    }
    let (listed, pinned, _) = look(region);
    (listed, pinned)
}

/// The same, and whether it is so: a thread may have changed chunks behind the scan's back.
fn look(region: &Region) -> (Vec<Listed>, Vec<ReadChunk<'_>>, bool) {
    let (mut listed, mut pinned) = (Vec::new(), Vec::new());
    // Sequences that go on, and those of which the chunk was seen that is being written.
    let (mut going_on, mut written, mut ended) = (HashSet::new(), HashSet::new(), HashSet::new());
    for number in region.taken() {
        let Some(chunk) = ReadChunk::open_pinned(region, number) else { continue };
        let sequence = chunk.info().sequence;
        if !chunk.is_complete() {
            written.insert(sequence);
            pinned.push(chunk);
            continue;
        }
        if chunk.is_last() {
            ended.insert(sequence);
        } else {
            going_on.insert(sequence);
        }
        listed.push((chunk.claim(), number));
    }
    let is_whole = going_on.iter().all(|sequence| written.contains(sequence) || ended.contains(sequence));
    (listed, pinned, is_whole)
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
        Self { region, bytes: None, copies: Vec::new() }
    }

    /// Copies what the region holds now: as many bytes of memory as it has, until [`clear`](Self::clear). Threads go on
    /// recording; the chunk that is being copied is kept from them, some microseconds, and as long as the youngest chunk of
    /// each sequence.
    ///
    /// # Errors
    /// When there is no memory for the copy.
    pub fn take(&mut self) -> io::Result<()> {
        self.take_and(|| ())
    }

    /// The same, and calls `meanwhile` when the chunks that are being written have been copied, and none of the others. Who
    /// keeps threads from recording something until then knows that it is not in the window, and soon lets them go on.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_and(&mut self, meanwhile: impl FnOnce()) -> io::Result<()> {
        self.clear();
        let region = Arc::clone(&self.region);
        let mut bytes = Scratch::new(region.chunk_count() as usize * region.payload_len() as usize)?;
        let (mut listed, mut pinned) = list(&region);
        // The youngest first: a thread may have gone on from one of them to another.
        pinned.sort_unstable_by_key(|chunk| std::cmp::Reverse(chunk.claim()));
        for chunk in &mut pinned {
            if chunk.refresh().is_ok() {
                self.copy(chunk, &mut bytes);
            }
        }
        drop(pinned);
        meanwhile();
        listed.sort_unstable_by(|a, b| b.cmp(a)); // the youngest first
        for (claim, number) in listed {
            // It may be another one by now.
            if let Some(chunk) =
                ReadChunk::open_pinned(&region, number).filter(|chunk| chunk.claim() == claim)
            {
                self.copy(&chunk, &mut bytes);
            }
        }
        self.bytes = Some(bytes);
        self.keep_whole_runs();
        Ok(())
    }

    fn copy(&mut self, chunk: &ReadChunk<'_>, bytes: &mut Scratch) {
        let start = bytes.bytes().len();
        if !bytes.push(chunk.committed()) {
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
