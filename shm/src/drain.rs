//! The drain: takes what is committed, in each sequence's order, and frees what is read to its end.
//!
//! A pass lists the chunks that are taken and goes through them sequence by sequence. In a sequence,
//! chunk n + 1 is touched only after chunk n was seen Complete and taken to its end; a chunk whose
//! predecessor was not on the list (it was claimed behind the scan's back) waits for the next pass. So the
//! output holds every sequence's bytes in order, each once, whatever the threads do meanwhile.
//!
//! The bytes go from the region to the output directly: gathered slices, no copy in between. Only
//! when the output has taken them does `drained` move and a chunk become free, so a failing output loses
//! nothing silently. How a tool that recovers the region knows what is already written: `ledger.rs`.

use std::collections::{HashMap, HashSet};
use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::abi::{ChunkInfo, LossReason};
use crate::chunk::ReadChunk;
use crate::ledger::{Ledger, mark};
use crate::region::Region;
use crate::sync::Ordering;

/// Where drained bytes go.
pub trait Output {
    /// Takes all the parts, in order, or none of them.
    ///
    /// # Errors
    /// When the bytes could not be stored; they are then offered again, or discarded, by the caller's choice.
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()>;

    /// Bytes that the output takes before it is full; None where it knows no limit. What is more than that is offered all the
    /// same, when nothing is left that is less.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Called before each write of so many bytes. Whether the output now goes on in another file, which stands at the path of the one
    /// before: a batch of its own, that takes nothing ([`Region::announce_output`]).
    ///
    /// # Errors
    /// When nothing can be written any more.
    fn turn(&mut self, _bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// A sequence has ended: all of it was written.
    fn sequence_ended(&mut self, _info: ChunkInfo) {}

    /// Bytes of the file that the output is, as far as it was written; None where it is none. After a crash the file
    /// counts as far as this, and what follows is cut off.
    fn file_len(&self) -> Option<u64> {
        None
    }
}

/// Slices handed to the output at once; the kernel's limit for one gathered write.
const MAX_PARTS: usize = 1024;

/// Bytes handed to the output at once, about: chunks become free again when it has taken them.
const MAX_BATCH: usize = 1 << 20;

/// Sequences whose records are counted each on its own.
const MAX_COUNTED: usize = 4096;

/// Stands for all further sequences in [`Drain::records_by_sequence`], so that a program of a million short-lived
/// threads does not pay for them in memory.
pub const OTHER_SEQUENCES: u32 = u32::MAX;

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Bytes handed to the output, contexts included.
    pub bytes: u64,
    /// Event records among them.
    pub records: u64,
    /// Chunks freed.
    pub freed: u32,
}

/// The one reader of a region, in the process that writes it.
#[derive(Debug)]
pub struct Drain {
    region: Arc<Region>,
    /// Next chunk index of each sequence that has begun and not ended.
    next_index: HashMap<u32, u32>,
    /// Event records of each sequence that the output has.
    records: HashMap<u32, u64>,
    /// Whose fragment is the last in the output.
    last_sequence: Option<u32>,
    ledger: Ledger,
    scan: Vec<(ChunkInfo, u32)>,
    /// Chunks whose headers contradicted themselves. They are neither read nor freed any more.
    damaged: HashSet<u32>,
}

struct Fragment {
    chunk: u32,
    info: ChunkInfo,
    records: u32,
    done: bool,
    last: bool,
}

impl Drain {
    /// The drain of `region`.
    ///
    /// # Panics
    /// When the region has one already: two would free each other's chunks. When it overwrites: see [`Window`](crate::Window).
    #[must_use]
    pub fn new(region: Arc<Region>) -> Self {
        assert!(!region.overwrites() && region.take_reader(), "a region has one drain");
        Self {
            region,
            next_index: HashMap::new(),
            records: HashMap::new(),
            last_sequence: None,
            ledger: Ledger::default(),
            scan: Vec::new(),
            damaged: HashSet::new(),
        }
    }

    /// The next fragment is led by its context again: something else was put into the output.
    pub fn forget_last_sequence(&mut self) {
        self.last_sequence = None;
    }

    /// Event records of each sequence that an output has taken so far; what was discarded is not among them. The first
    /// 4,096 sequences each have an entry; the others are summed in [`OTHER_SEQUENCES`].
    #[must_use]
    pub fn records_by_sequence(&self) -> &HashMap<u32, u64> {
        &self.records
    }

    /// Hands everything committed before the call to `output`, and much of what is committed meanwhile.
    ///
    /// # Errors
    /// What `output` said; what it did not take is still in the region.
    pub fn pass(&mut self, output: &mut dyn Output) -> io::Result<Pass> {
        let mut pass = Pass::default();
        let result = self.run(output, &mut pass);
        // Also when a later one of its writes failed: what the earlier ones took is in the output.
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

    /// Puts bytes into the output that come from no chunk.
    ///
    /// # Errors
    /// What `output` said.
    pub fn insert(&mut self, bytes: &[u8], output: &mut dyn Output) -> io::Result<()> {
        self.turn(bytes.len(), output)?;
        output.write_all_parts(&[IoSlice::new(bytes)])?;
        self.ledger.done(&self.region, output.file_len());
        Ok(())
    }

    /// Lets the output go on in another file.
    fn turn(&mut self, bytes: usize, output: &mut dyn Output) -> io::Result<()> {
        if output.turn(bytes as u64)? {
            self.ledger.done(&self.region, output.file_len());
        }
        Ok(())
    }

    /// [`insert`](Self::insert)s the stream's last bytes. What is drained after them is recorded by threads that have
    /// not yet seen the end.
    ///
    /// # Errors
    /// What `output` said.
    pub fn insert_tail(&mut self, bytes: &[u8], output: &mut dyn Output) -> io::Result<()> {
        self.turn(bytes.len(), output)?;
        self.region.header().tail_batch.store(self.ledger.next(), Ordering::Release);
        output.write_all_parts(&[IoSlice::new(bytes)]).inspect_err(|_| {
            self.region.header().tail_batch.store(0, Ordering::Release);
        })?;
        self.ledger.done(&self.region, output.file_len());
        Ok(())
    }

    /// A sequence has ended whose last chunk does not say so. Everything it committed was handed out by [`pass`](Self::pass).
    pub fn end_sequence(&mut self, info: ChunkInfo, output: &mut dyn Output) {
        if self.next_index.remove(&info.sequence).is_some() {
            output.sequence_ended(info);
        }
    }

    /// Frees what is committed without an output and counts its records as lost for [`LossReason::Output`].
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
        // The output has not heard of what goes nowhere: neither its records nor whose fragment came last.
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

    /// Takes fragments off `rest` until the output's parts are full, writes them, and frees what is done.
    fn batch(
        &mut self,
        rest: &mut &[(ChunkInfo, u32)],
        output: &mut dyn Output,
        pass: &mut Pass,
    ) -> io::Result<()> {
        let region = Arc::clone(&self.region);
        let mut parts: Vec<IoSlice<'_>> = Vec::new();
        let mut fragments: Vec<Fragment> = Vec::new();
        let mut chunks: Vec<ReadChunk<'_>> = Vec::new();
        // The batch's own idea of the state that is stored only when the output has taken it.
        let mut last_sequence = self.last_sequence;
        let mut expected: Option<(u32, u32)> = None;
        let mut bytes = 0;
        let room = output.room().and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX);
        while let Some(&(info, number)) = rest.first()
            && parts.len() + 2 <= MAX_PARTS
            && bytes < MAX_BATCH
        {
            let before = *rest;
            *rest = &rest[1..];
            let next = match expected {
                Some((sequence, next)) if sequence == info.sequence => next,
                _ => self.next_index.get(&info.sequence).copied().unwrap_or(0),
            };
            if info.index != next {
                expected = Some((info.sequence, next)); // its predecessor is missing or still being written
                continue;
            }
            let Some(mut chunk) = ReadChunk::open(&region, number) else { continue };
            if chunk.info() != info || chunk.refresh().is_err() {
                self.set_damaged(info, number);
                expected = Some((info.sequence, next.wrapping_add(1)));
                continue;
            }
            let fresh = chunk.fresh();
            if bytes > 0 && bytes + fresh.len() + info.context_len as usize > room {
                *rest = before;
                break;
            }
            if !fresh.is_empty() {
                if last_sequence != Some(info.sequence) && info.context_len > 0 {
                    parts.push(IoSlice::new(chunk.context()));
                    bytes += info.context_len as usize;
                }
                parts.push(IoSlice::new(fresh));
                bytes += fresh.len();
                last_sequence = Some(info.sequence);
            }
            let done = chunk.is_complete();
            expected = Some((info.sequence, if done { next.wrapping_add(1) } else { next }));
            if chunk.commit() == chunk.drained() && !done {
                continue; // nothing to settle, and its header stays in its owner's cache
            }
            let records = chunk.commit().records() - chunk.drained().records();
            fragments.push(Fragment { chunk: number, info, records, done, last: done && chunk.is_last() });
            chunks.push(chunk);
        }
        let bytes: usize = parts.iter().map(|p| p.len()).sum();
        if bytes > 0 {
            self.turn(bytes, output)?;
            let number = mark(self.ledger.next());
            chunks.iter().for_each(|chunk| chunk.take(number));
            if let Err(e) = output.write_all_parts(&parts) {
                chunks.iter().for_each(ReadChunk::untake);
                return Err(e);
            }
            self.ledger.done(&region, output.file_len());
        }
        drop(parts);
        self.last_sequence = last_sequence;
        let freed = pass.freed;
        for (fragment, chunk) in fragments.iter().zip(&chunks) {
            chunk.set_drained();
            self.settle(fragment, pass);
            if fragment.last {
                output.sequence_ended(fragment.info);
            }
        }
        if pass.freed != freed {
            region.chunks_freed();
        }
        pass.bytes += bytes as u64;
        Ok(())
    }

    /// A chunk whose header cannot be believed: how many records are in it is not known, so it counts as one.
    /// Its sequence, which the process itself knows, goes on in the chunks after it.
    fn set_damaged(&mut self, info: ChunkInfo, number: u32) {
        self.damaged.insert(number);
        self.next_index.insert(info.sequence, info.index.wrapping_add(1));
        self.region.count_lost(LossReason::Damaged, 1);
    }

    /// The output has this fragment.
    fn settle(&mut self, fragment: &Fragment, pass: &mut Pass) {
        let sequence = fragment.info.sequence;
        pass.records += u64::from(fragment.records);
        let counted = self.records.len() < MAX_COUNTED || self.records.contains_key(&sequence);
        let counted_as = if counted { sequence } else { OTHER_SEQUENCES };
        *self.records.entry(counted_as).or_default() += u64::from(fragment.records);
        if fragment.done {
            self.region.free(fragment.chunk);
            pass.freed += 1;
            if fragment.last {
                self.next_index.remove(&sequence);
            } else {
                self.next_index.insert(sequence, fragment.info.index.wrapping_add(1));
            }
        }
    }
}
