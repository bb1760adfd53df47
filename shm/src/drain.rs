//! The drain: takes the committed bytes in the order of each sequence, and frees the chunks that are read to
//! their end.
//!
//! A pass lists the chunks that are not free and goes through them sequence by sequence. It reads chunk n + 1
//! of a sequence only after chunk n was Complete and taken to its end. If the predecessor of a chunk is not
//! on the list, because it was claimed behind the scan, the chunk waits for the next pass. So the output has
//! the bytes of each sequence in order and once, whatever the threads do meanwhile.
//!
//! The bytes go from the region to the output without a copy, as gathered slices. `drained` moves and a chunk
//! becomes free only after the output has taken the bytes, so an output that fails loses nothing. `ledger/`
//! says how recovery knows which bytes the output has.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::abi::ChunkInfo;
use crate::chunk::ReadChunk;
use crate::ledger::{Ledger, mark};
use crate::loss::LossReason;
use crate::region::Region;
use crate::sync::Ordering;

/// The target of the drained bytes.
///
/// ```
/// use std::io::{self, IoSlice};
///
/// use hairline_shm::Output;
///
/// /// Keeps at most 1 MiB.
/// struct Limited(Vec<u8>);
/// impl Output for Limited {
///     fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
///         parts.iter().for_each(|part| self.0.extend_from_slice(part));
///         Ok(())
///     }
///     fn room(&self) -> Option<u64> {
///         Some((1_u64 << 20).saturating_sub(self.0.len() as u64))
///     }
/// }
///
/// let mut out = Limited(Vec::new());
/// out.write_all_parts(&[IoSlice::new(b"a "), IoSlice::new(b"record")])?;
/// assert_eq!(out.room(), Some(1_048_568));
/// # Ok::<(), io::Error>(())
/// ```
pub trait Output {
    /// Writes all parts, in order, or none of them.
    ///
    /// # Errors
    /// If the bytes could not be stored. The caller then offers them again, or discards them.
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()>;

    /// The bytes that the output can take before it is full; `None` without a limit. If a single chunk has
    /// more bytes, it is offered all the same.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Called before each write of `bytes` bytes. Returns whether the output continues in another file, which
    /// now has the path of the previous one. The change is a batch without bytes
    /// ([`Region::announce_output`]).
    ///
    /// # Errors
    /// If the output cannot be written any more.
    fn next_file(&mut self, _bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Called when a sequence has ended and all of its bytes are written.
    fn sequence_ended(&mut self, _info: ChunkInfo) {}

    /// The number of bytes that were written to the output's file; `None` if the output is no file. Recovery
    /// cuts the file off at this length.
    fn file_len(&self) -> Option<u64> {
        None
    }
}

/// The most slices in one write: the kernel's limit for a gathered write.
const MAX_PARTS: usize = 1024;

/// The bytes after which a batch is written. Chunks become free after that.
const MAX_BATCH: usize = 1 << 20;

/// The most sequences whose records are counted separately.
const MAX_COUNTED: usize = 4096;

/// Stands for all further sequences in [`Drain::records_by_sequence`]. It bounds the memory for a program
/// with a million short-lived threads.
pub const OTHER_SEQUENCES: u32 = u32::MAX;

/// The results of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// The bytes that the output has taken, contexts included.
    pub bytes: u64,
    /// The event records in these bytes.
    pub records: u64,
    /// The number of chunks that were freed.
    pub freed: u32,
}

/// The only reader of a region, in the process that writes the region.
///
/// ```
/// use hairline_shm::{ChunkInfo, Drain, LossReason, Output, Region, RegionConfig};
/// # use std::io::{self, IoSlice};
/// # struct Bytes(Vec<u8>);
/// # impl Output for Bytes {
/// #     fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
/// #         parts.iter().for_each(|p| self.0.extend_from_slice(p));
/// #         Ok(())
/// #     }
/// # }
///
/// let region = Region::create(&RegionConfig::small())?;
/// let (mut drain, mut out) = (Drain::new(region.clone()), Bytes(Vec::new()));
/// drain.insert(b"head;", &mut out)?;
///
/// let sequence = region.new_sequence();
/// let mut chunk = region.claim(ChunkInfo { sequence, ..ChunkInfo::default() }, b"").unwrap();
/// assert!(chunk.append(b"one;", 1));
/// assert_eq!(drain.pass(&mut out)?.bytes, 4);
/// assert!(chunk.append(b"two;", 1));
/// drop(chunk);
/// assert_eq!(drain.pass(&mut out)?.freed, 1); // the rest of the chunk, which is complete
/// assert_eq!((&out.0[..], drain.records_by_sequence()[&sequence]), (&b"head;one;two;"[..], 2));
///
/// let mut chunk = region.claim(ChunkInfo { sequence, index: 1, ..ChunkInfo::default() }, b"").unwrap();
/// assert!(chunk.append(b"three;", 1));
/// assert_eq!(drain.discard().records, 1); // the output is full: nothing is lost uncounted
/// assert_eq!(region.lost(LossReason::Output), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Drain {
    region: Arc<Region>,
    /// The index of the next chunk, for each sequence that has begun and not ended.
    next_index: BTreeMap<u32, u32>,
    /// The event records that the output has, for each sequence.
    records: BTreeMap<u32, u64>,
    /// The sequence of the last fragment in the output.
    last_sequence: Option<u32>,
    ledger: Ledger,
    scan: Vec<Listed>,
    /// Chunks whose headers contradict themselves. They are neither read nor freed.
    damaged: BTreeSet<u32>,
}

/// The owner and the number of a chunk.
type Listed = (ChunkInfo, u32);

/// The bytes that a batch takes of one chunk.
struct Fragment<'r> {
    chunk: ReadChunk<'r>,
    /// Whether the chunk is complete, so that the batch takes it to its end.
    is_done: bool,
}

/// The chunks whose bytes are written together, and the state of the drain after the write.
struct Batch<'r> {
    parts: Vec<IoSlice<'r>>,
    bytes: usize,
    /// The bytes that the output can take.
    room: usize,
    fragments: Vec<Fragment<'r>>,
    last_sequence: Option<u32>,
    /// The present sequence, and the index of the chunk that must come next.
    expected: Option<(u32, u32)>,
}

impl<'r> Batch<'r> {
    fn new(room: Option<u64>, last_sequence: Option<u32>) -> Self {
        Self {
            parts: Vec::new(),
            bytes: 0,
            room: room.and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX),
            fragments: Vec::new(),
            last_sequence,
            expected: None,
        }
    }

    fn is_full(&self) -> bool {
        self.parts.len() + 2 > MAX_PARTS || self.bytes >= MAX_BATCH
    }

    /// Whether the output has room for a chunk. The first chunk of a batch is always taken.
    fn has_room(&self, chunk: &ReadChunk<'r>) -> bool {
        self.bytes == 0 || self.bytes + chunk.fresh().len() + chunk.context().len() <= self.room
    }

    /// Takes the fresh bytes of a chunk, which is the one with index `index` of its sequence.
    fn push(&mut self, chunk: ReadChunk<'r>, index: u32) {
        let (fresh, sequence) = (chunk.fresh(), chunk.info().sequence);
        if !fresh.is_empty() {
            let context = chunk.context();
            if self.last_sequence != Some(sequence) && !context.is_empty() {
                self.parts.push(IoSlice::new(context));
                self.bytes += context.len();
            }
            self.parts.push(IoSlice::new(fresh));
            self.bytes += fresh.len();
            self.last_sequence = Some(sequence);
        }
        let is_done = chunk.is_complete();
        self.expected = Some((sequence, if is_done { index.wrapping_add(1) } else { index }));
        // Without new bytes the chunk's header is not stored to, and stays in the cache of its owner.
        if chunk.commit() != chunk.drained() || is_done {
            self.fragments.push(Fragment { chunk, is_done });
        }
    }
}

impl Drain {
    /// Creates the drain of `region`.
    ///
    /// # Panics
    /// If the region has a drain already: two would free each other's chunks. If the region overwrites: it
    /// needs a [`Window`](crate::Window).
    #[must_use]
    pub fn new(region: Arc<Region>) -> Self {
        assert!(!region.overwrites() && region.take_reader(), "a region has one drain");
        Self {
            region,
            next_index: BTreeMap::new(),
            records: BTreeMap::new(),
            last_sequence: None,
            ledger: Ledger::default(),
            scan: Vec::new(),
            damaged: BTreeSet::new(),
        }
    }

    /// The event records of each sequence that the output has taken so far, without those that were
    /// discarded. The first 4,096 sequences have an entry each. [`OTHER_SEQUENCES`] is the sum of the others.
    #[must_use]
    pub fn records_by_sequence(&self) -> &BTreeMap<u32, u64> {
        &self.records
    }

    /// Writes all bytes that were committed before the call to `output`, and many of those committed during
    /// the call.
    ///
    /// # Errors
    /// Those of `output`. The bytes that it did not take are still in the region.
    pub fn pass(&mut self, output: &mut dyn Output) -> io::Result<Pass> {
        let mut pass = Pass::default();
        let result = self.run(output, &mut pass);
        // Also after an error: the output has the bytes of the writes before it.
        self.region.header().output_bytes.fetch_add(pass.bytes, Ordering::Relaxed);
        result.map(|()| pass)
    }

    fn run(&mut self, output: &mut dyn Output, pass: &mut Pass) -> io::Result<()> {
        self.list_taken();
        let scan = std::mem::take(&mut self.scan);
        let mut rest = scan.as_slice();
        let mut result = Ok(());
        while !rest.is_empty() && result.is_ok() {
            result = self.batch(&mut rest, output, pass);
        }
        self.scan = scan;
        result
    }

    /// Writes bytes to the output that are not from a chunk.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn insert(&mut self, bytes: &[u8], output: &mut dyn Output) -> io::Result<()> {
        self.change_files(bytes.len(), output)?;
        output.write_all_parts(&[IoSlice::new(bytes)])?;
        self.ledger.done(&self.region, output.file_len());
        Ok(())
    }

    /// Lets the output continue in another file before a write of `bytes` bytes.
    fn change_files(&mut self, bytes: usize, output: &mut dyn Output) -> io::Result<()> {
        if output.next_file(bytes as u64)? {
            self.ledger.done(&self.region, output.file_len());
        }
        Ok(())
    }

    /// [`insert`](Self::insert)s the tail of the stream. Bytes that are drained after it are of threads that
    /// have not yet seen the end of the session.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn insert_tail(&mut self, bytes: &[u8], output: &mut dyn Output) -> io::Result<()> {
        self.change_files(bytes.len(), output)?;
        self.region.header().tail_batch.store(self.ledger.next(), Ordering::Release);
        output.write_all_parts(&[IoSlice::new(bytes)]).inspect_err(|_| {
            self.region.header().tail_batch.store(0, Ordering::Release);
        })?;
        self.ledger.done(&self.region, output.file_len());
        Ok(())
    }

    /// Ends a sequence whose last chunk is not marked as the last one. [`pass`](Self::pass) has written all
    /// of its bytes.
    pub fn end_sequence(&mut self, info: ChunkInfo, output: &mut dyn Output) {
        if self.next_index.remove(&info.sequence).is_some() {
            output.sequence_ended(info);
        }
    }

    /// Frees the committed bytes without an output, and counts their records as lost for
    /// [`LossReason::Output`].
    pub fn discard(&mut self) -> Pass {
        struct Nowhere(Option<u64>);
        impl Output for Nowhere {
            fn write_all_parts(&mut self, _: &[IoSlice<'_>]) -> io::Result<()> {
                Ok(())
            }
            fn file_len(&self) -> Option<u64> {
                self.0
            }
        }
        let mut nowhere = Nowhere(self.ledger.output_len(&self.region));
        // The output does not have the discarded bytes, so its records and its last sequence stay as they
        // were.
        let (taken, last_sequence) = (self.records.clone(), self.last_sequence);
        let mut pass = Pass::default();
        let _ = self.run(&mut nowhere, &mut pass); // takes everything
        (self.records, self.last_sequence) = (taken, last_sequence);
        if pass.records > 0 {
            self.region.count_lost(LossReason::Output, pass.records);
        }
        pass
    }

    fn list_taken(&mut self) {
        self.scan.clear();
        for number in self.region.taken() {
            if self.damaged.contains(&number) {
                continue;
            }
            if let Some(chunk) = ReadChunk::open(&self.region, number) {
                self.scan.push((chunk.info(), number));
            }
        }
        self.scan.sort_unstable_by_key(|(info, _)| (info.sequence, info.index));
    }

    /// Takes chunks off `rest` until the batch is full, writes their bytes, and frees the chunks that are
    /// done.
    fn batch(&mut self, rest: &mut &[Listed], output: &mut dyn Output, pass: &mut Pass) -> io::Result<()> {
        let region = Arc::clone(&self.region);
        let mut batch = Batch::new(output.room(), self.last_sequence);
        while let Some((listed, after)) = rest.split_first()
            && !batch.is_full()
            && self.add(&region, *listed, &mut batch)
        {
            *rest = after;
        }
        self.write(&batch, output)?;
        self.last_sequence = batch.last_sequence;
        pass.bytes += batch.bytes as u64;
        drop(batch.parts); // a chunk must not be freed while a slice of it lives
        let freed = pass.freed;
        for fragment in &batch.fragments {
            self.settle(fragment, output, pass);
        }
        if pass.freed != freed {
            region.chunks_freed();
        }
        Ok(())
    }

    /// Adds a chunk to the batch, if it is the next one of its sequence. Returns `false` if the chunk must
    /// wait for the next batch, because the output has no room for it.
    fn add<'r>(&mut self, region: &'r Region, (info, number): Listed, batch: &mut Batch<'r>) -> bool {
        let next = match batch.expected {
            Some((sequence, next)) if sequence == info.sequence => next,
            _ => self.next_index.get(&info.sequence).copied().unwrap_or(0),
        };
        if info.index != next {
            batch.expected = Some((info.sequence, next)); // the predecessor is missing or not complete
            return true;
        }
        let Some(mut chunk) = ReadChunk::open(region, number) else { return true };
        if chunk.info() != info || chunk.refresh().is_err() {
            self.set_damaged(info, number);
            batch.expected = Some((info.sequence, next.wrapping_add(1)));
            return true;
        }
        let has_room = batch.has_room(&chunk);
        if has_room {
            batch.push(chunk, next);
        }
        has_room
    }

    /// Writes the bytes of a batch, in the order of stores that `ledger/` needs.
    fn write(&mut self, batch: &Batch<'_>, output: &mut dyn Output) -> io::Result<()> {
        if batch.bytes == 0 {
            return Ok(());
        }
        self.change_files(batch.bytes, output)?;
        let number = mark(self.ledger.next());
        batch.fragments.iter().for_each(|fragment| fragment.chunk.take(number));
        if let Err(e) = output.write_all_parts(&batch.parts) {
            batch.fragments.iter().for_each(|fragment| fragment.chunk.untake());
            return Err(e);
        }
        self.ledger.done(&self.region, output.file_len());
        Ok(())
    }

    /// Marks a chunk with a contradictory header as damaged. The number of its records is not known, so one
    /// is counted. The sequence, which is known from this process's own memory, continues in the chunks after
    /// it.
    fn set_damaged(&mut self, info: ChunkInfo, number: u32) {
        self.damaged.insert(number);
        self.next_index.insert(info.sequence, info.index.wrapping_add(1));
        self.region.count_lost(LossReason::Damaged, 1);
    }

    /// Records that the output has a fragment, and frees its chunk if that is done.
    fn settle(
        &mut self,
        Fragment { chunk, is_done }: &Fragment<'_>,
        output: &mut dyn Output,
        pass: &mut Pass,
    ) {
        let info = chunk.info();
        let records = u64::from(chunk.commit().records() - chunk.drained().records());
        let is_last = *is_done && chunk.is_last();
        chunk.set_drained();
        pass.records += records;
        let counted = self.records.len() < MAX_COUNTED || self.records.contains_key(&info.sequence);
        let counted_as = if counted { info.sequence } else { OTHER_SEQUENCES };
        *self.records.entry(counted_as).or_default() += records;
        if *is_done {
            self.region.free(chunk.number());
            pass.freed += 1;
            if is_last {
                self.next_index.remove(&info.sequence);
            } else {
                self.next_index.insert(info.sequence, info.index.wrapping_add(1));
            }
        }
        if is_last {
            output.sequence_ended(info);
        }
    }
}
