//! A chunk in the hands of the thread that writes it.
//!
//! Owning a chunk is owning a [`WriteChunk`]: claiming makes it, dropping it gives the chunk back.
//! Records go in by [`WriteChunk::append`], or, where every instruction counts, by plain stores below
//! [`WriteChunk::payload`] and one store of `commit`.

#![allow(unsafe_code)] // writes the payload

use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::{CHUNK_HEADER_SIZE, COMPLETED, ChunkHeader, ChunkInfo, Commit, FLAG_LAST, PINNED, State};
use crate::bitmap::Taken;
use crate::owner::Owner;
use crate::region::Region;
use crate::step::step;
use crate::sync::Ordering;

/// A chunk that only its holder writes.
///
/// No chunk has two of them, since a value that was moved to another thread is gone here:
///
/// ```compile_fail,E0382
/// use hairline_shm::{ChunkInfo, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small()).unwrap();
/// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
/// let other = std::thread::spawn(move || chunk.append(b"there", 1));
/// chunk.append(b"here", 1);
/// ```
///
/// And two threads cannot write through one:
///
/// ```compile_fail,E0499
/// use hairline_shm::{ChunkInfo, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small()).unwrap();
/// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| chunk.append(b"there", 1));
///     scope.spawn(|| chunk.append(b"here", 1));
/// });
/// ```
#[derive(Debug)]
pub struct WriteChunk {
    /// Of the whole mapping: the payload behind the header is written through it too.
    header: NonNull<ChunkHeader>,
    number: u32,
    /// The last commit. Where the next record goes is decided by this copy, never by the header's word, which other
    /// processes may have mapped: a wrong word there must not lead a store out of the chunk.
    commit: Commit,
    /// It was taken back from its idle holder: see `lease.rs`.
    is_recalled: bool,
    region: Arc<Region>,
}

// SAFETY: a chunk belongs to no thread. The header is all atomics, the payload is written by this value's
// holder only, and `region` keeps the memory mapped.
unsafe impl Send for WriteChunk {}

impl WriteChunk {
    /// The chunk of `region` that the caller has just taken: by its bit in the bitmap, or by its state in a
    /// region that overwrites.
    pub(crate) fn begin(region: Arc<Region>, taken: Taken, mut info: ChunkInfo, context: &[u8]) -> Self {
        let number = taken.number();
        // Before the first store into the chunk: this instruction waits for all stores before it, and the chunk's
        // lines are seldom in the cache yet.
        let claim = region.new_claim();
        assert!(context.len() < region.payload_len() as usize);
        #[allow(clippy::cast_possible_truncation)] // just compared with a u32
        let context_len = context.len() as u32;
        info.context_len = context_len;
        let start = Commit::new(context_len, 0);
        let header = region.header_ptr(number);
        let chunk = Self { header, number, commit: start, is_recalled: false, region };
        // SAFETY: in the payload by the assertion. `Taken` says that the caller owns the chunk: no reader of
        // this process looks at its payload before the store of Writing below.
        unsafe { chunk.payload().copy_from_nonoverlapping(context.as_ptr(), context.len()) };
        chunk.owner().set(info);
        let header = chunk.header();
        let start = start.0;
        header.sequence.store(info.sequence, Ordering::Relaxed);
        header.index.store(info.index, Ordering::Relaxed);
        header.tid.store(info.tid, Ordering::Relaxed);
        header.context_len.store(info.context_len, Ordering::Relaxed);
        header.recovery_len.store(0, Ordering::Relaxed);
        header.claim.store(claim, Ordering::Relaxed);
        header.flags.store(0, Ordering::Relaxed);
        header.commit.store(start, Ordering::Relaxed);
        header.drained.store(start, Ordering::Relaxed);
        header.taking.store(start, Ordering::Relaxed);
        header.batch.store(0, Ordering::Relaxed);
        step();
        let before = header.state.load(Ordering::Relaxed);
        // Release pairs with the Acquire of `ReadChunk::open`: who sees Writing sees the fields above.
        header.state.store(State::next_generation(before), Ordering::Release);
        chunk
    }

    /// This chunk's header.
    pub fn header(&self) -> &ChunkHeader {
        // SAFETY: the pointer is `Region::header_ptr`'s: in bounds, aligned, and mapped while `region` lives.
        // Every field of a header is an atomic, and valid whatever its bytes are.
        unsafe { self.header.as_ref() }
    }

    fn owner(&self) -> &Owner {
        self.region.owner(self.number)
    }

    /// Where the payload begins; [`WriteChunk::capacity`] bytes may be written there by the holder,
    /// above what is committed.
    pub fn payload(&self) -> *mut u8 {
        // SAFETY: a chunk has 4 KiB at least, header included.
        unsafe { self.header.as_ptr().cast::<u8>().add(CHUNK_HEADER_SIZE) }
    }

    /// Bytes of the payload.
    pub fn capacity(&self) -> u32 {
        self.region.payload_len()
    }

    /// Number of the chunk in its region.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The header's address, from which the payload may be written too.
    pub(crate) fn header_ptr(&self) -> NonNull<ChunkHeader> {
        self.header
    }

    /// What was committed so far.
    pub fn committed(&self) -> Commit {
        self.commit
    }

    /// The holder has committed records without [`append`](Self::append): `commit` is its last
    /// [`publish`](ChunkHeader::publish). False, and nothing done, if that is not between the last commit known here and
    /// the end of the payload.
    pub fn set_committed(&mut self, commit: Commit) -> bool {
        let is_valid = (self.commit.bytes()..=self.capacity()).contains(&commit.bytes());
        if is_valid {
            self.commit = commit;
        }
        is_valid
    }

    /// Writes `bytes` (whole records, `records` of which are events) and commits them. False, and nothing
    /// done, when there is no room.
    pub fn append(&mut self, bytes: &[u8], records: u32) -> bool {
        let commit = self.committed();
        let at = commit.bytes() as usize;
        if bytes.len() > self.capacity() as usize - at {
            return false;
        }
        #[cfg(loom)]
        self.header().guards[commit.records() as usize].with_mut(|p| {
            // SAFETY: loom checks that no other access is concurrent.
            unsafe { *p += 1 }
        });
        // SAFETY: in the payload by the comparison, and above every commit that this value has stored, so no
        // reader of this process looks there yet. `bytes` is not of the payload: only readers form slices of
        // that, below a commit.
        unsafe { self.payload().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        #[allow(clippy::cast_possible_truncation)] // fits the payload
        let grown = Commit(commit.0 + Commit::new(bytes.len() as u32, records).0);
        // SAFETY: this value is the chunk's holder. `grown` is above the last commit by the bytes that were
        // written just now, within the payload.
        unsafe { self.header().publish(grown) };
        self.commit = grown;
        true
    }

    /// Writes, as the chunk's first bytes after its context, what is of use only without the chunk before it. False, and
    /// nothing done, when there is no room, or something was written already.
    pub fn append_recovery(&mut self, bytes: &[u8]) -> bool {
        let header = self.header();
        let Ok(len) = u32::try_from(bytes.len()) else { return false };
        let context_len = self.owner().info().context_len;
        if self.committed() != Commit::new(context_len, 0) || len > self.capacity() - context_len {
            return false;
        }
        header.recovery_len.store(len, Ordering::Relaxed); // published by the commit
        self.append(bytes, 0)
    }

    /// Keeps `bytes` at offset `at` of the payload, above what is committed, for [`noted`](Self::noted). No reader sees
    /// them. Nothing is done where they would reach into what is committed or beyond the payload.
    pub fn note(&mut self, at: u32, bytes: &[u8]) {
        if self.is_above(at, bytes.len()) {
            // SAFETY: in the payload and above the last commit by the comparison; else as in `append`.
            unsafe { self.payload().add(at as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// What was kept at offset `at`, if nothing was written over it.
    pub fn noted<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        // SAFETY: in the payload by the comparison, where every byte is initialised: the memory was zeroed
        // when it was made. Above the last commit only the holder writes, which is this value.
        self.is_above(at, N)
            .then(|| unsafe { self.payload().add(at as usize).cast::<[u8; N]>().read_unaligned() })
    }

    fn is_above(&self, at: u32, len: usize) -> bool {
        at >= self.committed().bytes() && at as usize + len <= self.capacity() as usize
    }

    /// Copies what was committed so far into `out`, in place of what `out` held. Zeros where the region was
    /// closed meanwhile: so no slice of the chunk is given out.
    pub fn copy_committed(&self, out: &mut Vec<u8>) {
        let len = self.committed().bytes() as usize;
        out.clear();
        out.reserve(len);
        // SAFETY: `len` bytes are in the payload (`append` and `set_committed` compare), and initialised, as
        // the memory was zeroed when it was made. No thread writes below the last commit. `out` has room for
        // them.
        unsafe {
            self.payload().copy_to_nonoverlapping(out.as_mut_ptr(), len);
            out.set_len(len);
        }
    }

    /// The chunk was taken back ([`Lease::settle`](crate::Lease::settle)): it may be somebody else's by now, and is not touched any
    /// more.
    pub fn set_recalled(&mut self) {
        self.is_recalled = true;
    }

    /// Gives the chunk back as the last of its sequence.
    pub fn finish_sequence(self) {
        // Published by the state in `drop`.
        self.owner().set_last();
        self.header().flags.store(FLAG_LAST, Ordering::Relaxed);
    }
}

impl Drop for WriteChunk {
    fn drop(&mut self) {
        if !self.is_recalled {
            self.header().complete();
        }
    }
}

impl ChunkHeader {
    /// Nothing more is written into it.
    pub(crate) fn complete(&self) {
        // Release pairs with the Acquire of `ReadChunk::open`, and with that of the thread that takes the chunk to
        // overwrite it: who sees Complete sees the last commit and the flags.
        self.state.fetch_add(COMPLETED, Ordering::Release);
    }

    /// Commits: readers may read so much from now on.
    ///
    /// # Safety
    /// Only for the chunk's holder. `commit` must be no less than the last one and within the payload, and all the bytes
    /// below it must have been written.
    #[inline(always)]
    pub unsafe fn publish(&self, commit: Commit) {
        // Release pairs with the Acquire of `ReadChunk::refresh`: who sees this commit sees the bytes under it.
        self.commit.store(commit.0, Ordering::Release);
    }
}

/// A chunk of a region that overwrites, which nobody takes while this lives. Its owner may go on writing it.
#[derive(Debug)]
pub(crate) struct Pin<'r>(&'r ChunkHeader);

impl<'r> Pin<'r> {
    /// None when the chunk is free, or taken meanwhile. Damaged when it is pinned: not by this window, which
    /// is the only one, and has no other pin on it.
    fn new(header: &'r ChunkHeader) -> Result<Option<Self>, Damaged> {
        let seen = header.state.load(Ordering::Relaxed);
        if State::of(seen) == State::Free {
            return Ok(None);
        }
        if seen & PINNED != 0 {
            return Err(Damaged);
        }
        // Of the whole word: had the chunk been taken since, its generation would be another. Acquire pairs with the Release
        // stores of Writing and Complete.
        let taken = header.state.compare_exchange(seen, seen | PINNED, Ordering::Acquire, Ordering::Relaxed);
        // The owner may have completed the chunk just now: that is worth another look, once.
        let taken = taken.or_else(|now| {
            let completed = now == seen.wrapping_add(COMPLETED) && State::of(seen) == State::Writing;
            let again = if completed { now } else { seen };
            header.state.compare_exchange(again, again | PINNED, Ordering::Acquire, Ordering::Relaxed)
        });
        Ok(taken.ok().map(|_| Self(header)))
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire of `Region::take_oldest`: what was read of the chunk was read before its next
        // owner writes.
        self.0.state.fetch_and(!PINNED, Ordering::Release);
    }
}

/// A chunk as its region's own drain or window reads it.
///
/// Other processes can map the region and write into it. So each number of the header is loaded once, and
/// [`refresh`](Self::refresh) checks that the numbers lead nowhere but into the chunk before any slice is formed by them.
#[derive(Debug)]
pub(crate) struct ReadChunk<'r> {
    header: &'r ChunkHeader,
    payload: NonNull<u8>,
    size: u32,
    number: u32,
    owner: &'r Owner,
    /// What the owner knows, not what the header says.
    info: ChunkInfo,
    complete: bool,
    /// As of the last [`refresh`](Self::refresh): context_len <= drained <= commit <= size, in bytes.
    commit: Commit,
    drained: Commit,
    /// Keeps the bytes where they are in a region without a drain.
    _pin: Option<Pin<'r>>,
}

/// The numbers in a chunk's header contradict each other, or what the process knows of the chunk's owner:
/// something other than the owner and the drain has written them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl<'r> ReadChunk<'r> {
    /// Returns `None` when the chunk is free, or claimed but not yet begun. Nothing can be read before [`refresh`](Self::refresh).
    pub(crate) fn open(region: &'r Region, number: u32) -> Option<Self> {
        let header = region.chunk_header(number);
        // Acquire pairs with the Release stores of Writing and Complete.
        let state = State::of(header.state.load(Ordering::Acquire));
        (state != State::Free).then(|| Self::at(region, number, None))
    }

    /// The same in a region that overwrites, with its progress: nobody takes the chunk while this value
    /// lives.
    pub(crate) fn open_pinned(region: &'r Region, number: u32) -> Result<Option<Self>, Damaged> {
        let Some(pin) = Pin::new(region.chunk_header(number))? else { return Ok(None) };
        let mut chunk = Self::at(region, number, Some(pin));
        chunk.refresh()?;
        Ok(Some(chunk))
    }

    fn at(region: &'r Region, number: u32, pin: Option<Pin<'r>>) -> Self {
        // SAFETY: a chunk has 4 KiB at least, header included.
        let payload = unsafe { region.header_ptr(number).cast::<u8>().add(CHUNK_HEADER_SIZE) };
        let owner = region.owner(number);
        Self {
            header: region.chunk_header(number),
            payload,
            size: region.payload_len(),
            number,
            owner,
            info: owner.info(),
            complete: false,
            commit: Commit::default(),
            drained: Commit::default(),
            _pin: pin,
        }
    }

    pub(crate) fn info(&self) -> ChunkInfo {
        self.info
    }

    /// Loads the chunk's progress: first whether the owner is done, then how far it came. In this order a Complete chunk's commit
    /// is its last.
    pub(crate) fn refresh(&mut self) -> Result<(), Damaged> {
        self.complete = State::of(self.header.state.load(Ordering::Acquire)) == State::Complete;
        // Acquire pairs with the Release of the commit: the bytes under it may be read.
        let commit = Commit(self.header.commit.load(Ordering::Acquire));
        let drained = Commit(self.header.drained.load(Ordering::Relaxed)); // the drain's own last store, or the claim's
        let is_sound = self.header.info() == self.info
            && self.info.context_len <= drained.bytes()
            && drained.bytes() <= commit.bytes()
            && commit.bytes() <= self.size
            && drained.records() <= commit.records()
            && commit.records() <= self.size; // a record has a byte at least
        if !is_sound {
            return Err(Damaged);
        }
        (self.commit, self.drained) = (commit, drained);
        #[cfg(loom)]
        for guard in &self.header.guards[..self.commit.records() as usize] {
            guard.with(|p| {
                // SAFETY: loom checks that no write is concurrent.
                unsafe { *p }
            });
        }
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn is_last(&self) -> bool {
        self.owner.is_last()
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn commit(&self) -> Commit {
        self.commit
    }

    pub(crate) fn drained(&self) -> Commit {
        self.drained
    }

    /// Batch `number` is about to take what is committed. The order of the stores: `ledger.rs`.
    pub(crate) fn take(&self, number: u32) {
        self.header.batch.store(number, Ordering::Release);
        step();
        self.header.taking.store(self.commit.0, Ordering::Release);
        step();
    }

    /// The batch failed.
    pub(crate) fn untake(&self) {
        self.header.taking.store(self.drained.0, Ordering::Release);
        step();
    }

    /// The batch is in the output.
    pub(crate) fn set_drained(&self) {
        self.header.drained.store(self.commit.0, Ordering::Release);
        self.header.taking.store(self.commit.0, Ordering::Release); // where there was nothing to take
        step();
    }

    pub(crate) fn context(&self) -> &'r [u8] {
        self.slice(0, self.info.context_len)
    }

    /// Bytes after the context that are recovery.
    pub(crate) fn recovery_len(&self) -> u32 {
        self.header.recovery_len.load(Ordering::Relaxed).min(self.commit.bytes())
    }

    /// The chunk's place among all claims.
    pub(crate) fn claim(&self) -> u32 {
        self.header.claim.load(Ordering::Relaxed)
    }

    /// All that is committed.
    pub(crate) fn committed(&self) -> &[u8] {
        self.slice(0, self.commit.bytes())
    }

    /// What was committed and not yet drained.
    pub(crate) fn fresh(&self) -> &'r [u8] {
        self.slice(self.drained.bytes(), self.commit.bytes())
    }

    /// Bytes of the payload below the commit; an empty slice for a range that is not below it.
    fn slice(&self, from: u32, to: u32) -> &'r [u8] {
        if from > to || to > self.commit.bytes() {
            return &[];
        }
        // SAFETY: from <= to <= commit <= size, by the comparison above and the one of `refresh`, which are
        // on this value's own copies. So the range is in the payload, and mapped while `region` is borrowed;
        // every byte is initialised, as the memory was zeroed when it was made. The owner has stored the
        // commit, which was loaded with Acquire, and writes nothing below it until the chunk is free. The
        // drain frees it when it has dropped these slices (`Drain::batch`); in a region that overwrites the
        // pin keeps it, which `committed` borrows.
        //
        // Another process can raise the commit and change bytes below it at any time. What Rust promises for
        // a slice does not cover that. Nothing in this crate decides by the bytes, and it does not change
        // where the slice lies.
        unsafe { std::slice::from_raw_parts(self.payload.as_ptr().add(from as usize), (to - from) as usize) }
    }
}
