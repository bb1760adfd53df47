//! A chunk, for the drain or the window.

#![allow(unsafe_code)] // slices of the payload

use std::ptr::NonNull;

use crate::abi::{CHUNK_HEADER_SIZE, COMPLETED, ChunkHeader, ChunkInfo, Commit, PINNED, State};
use crate::owner::Owner;
use crate::region::Region;
use crate::step::step;
use crate::sync::Ordering;

/// Keeps other threads from taking a chunk of a region that overwrites. The owner of the chunk may go on
/// writing it.
#[derive(Debug)]
pub(crate) struct Pin<'r>(&'r ChunkHeader);

impl<'r> Pin<'r> {
    /// Pins the chunk. Returns `None` if the chunk is free, or was taken meanwhile.
    ///
    /// Returns [`Damaged`] if it is pinned already: the region has only one window, which pins a chunk once,
    /// so another process has set the bit.
    fn new(header: &'r ChunkHeader) -> Result<Option<Self>, Damaged> {
        let seen = header.state.load(Ordering::Relaxed);
        if State::of(seen) == State::Free {
            return Ok(None);
        }
        if seen & PINNED != 0 {
            return Err(Damaged);
        }
        // Compares the whole word: if the chunk was taken since the load, its generation differs. Acquire
        // pairs with the Release stores of Writing and Complete.
        let taken = header.state.compare_exchange(seen, seen | PINNED, Ordering::Acquire, Ordering::Relaxed);
        // Tries once more if the owner has just completed the chunk.
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
        // Release pairs with the Acquire in `Region::take_oldest`: the reads of the chunk happen before the
        // writes of its next owner.
        self.0.state.fetch_and(!PINNED, Ordering::Release);
    }
}

/// A chunk, for the drain or the window of its region.
///
/// Other processes can map the region and write into it. So each number of the header is loaded once, and
/// [`refresh`](Self::refresh) checks that the numbers stay inside the chunk before a slice is formed.
#[derive(Debug)]
pub(crate) struct ReadChunk<'r> {
    header: &'r ChunkHeader,
    payload: NonNull<u8>,
    size: u32,
    number: u32,
    owner: &'r Owner,
    /// From this process's own memory, not from the header.
    info: ChunkInfo,
    complete: bool,
    /// As of the last [`refresh`](Self::refresh), which has checked context_len <= drained <= commit <= size,
    /// in bytes.
    commit: Commit,
    drained: Commit,
    /// Keeps threads from overwriting the chunk, in a region without a drain.
    _pin: Option<Pin<'r>>,
}

/// The numbers in a chunk's header contradict each other, or this process's own copy of the owner. Another
/// process has written them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl<'r> ReadChunk<'r> {
    /// Opens a chunk. Returns `None` if it is free, or claimed and not yet begun. It is empty until
    /// [`refresh`](Self::refresh).
    pub(crate) fn open(region: &'r Region, number: u32) -> Option<Self> {
        let header = region.chunk_header(number);
        // Acquire pairs with the Release stores of Writing (`WriteChunk::begin`) and Complete
        // (`ChunkHeader::complete`).
        let state = State::of(header.state.load(Ordering::Acquire));
        (state != State::Free).then(|| Self::at(region, number, None))
    }

    /// Opens, pins and refreshes a chunk of a region that overwrites. No thread takes the chunk while this
    /// value lives.
    pub(crate) fn open_pinned(region: &'r Region, number: u32) -> Result<Option<Self>, Damaged> {
        let Some(pin) = Pin::new(region.chunk_header(number))? else { return Ok(None) };
        let mut chunk = Self::at(region, number, Some(pin));
        chunk.refresh()?;
        Ok(Some(chunk))
    }

    fn at(region: &'r Region, number: u32, pin: Option<Pin<'r>>) -> Self {
        // SAFETY: a chunk has at least 4 KiB, header included.
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

    /// Loads the progress of the chunk: first the state, then the commit. In this order the commit of a
    /// Complete chunk is its last one.
    pub(crate) fn refresh(&mut self) -> Result<(), Damaged> {
        self.complete = State::of(self.header.state.load(Ordering::Acquire)) == State::Complete;
        // Acquire pairs with the Release in `ChunkHeader::publish`: the bytes below the commit may be read.
        let load = || Commit(self.header.commit.load(Ordering::Acquire));
        // Relaxed: this thread's own last store, or that of the claim, which the load of the state has made
        // visible.
        let drained = Commit(self.header.drained.load(Ordering::Relaxed));
        let seen = load();
        // Of a complete chunk, nothing is taken back. Bytes up to `drained` were read in an earlier turn.
        let needs_turn = !self.complete && seen != drained;
        let commit = if needs_turn { self.owner.turn().read(load) } else { seen };
        let is_sound = self.header.info() == self.info
            && self.info.context_len <= drained.bytes()
            && drained.bytes() <= commit.bytes()
            && commit.bytes() <= self.size
            && drained.records() <= commit.records()
            && commit.records() <= self.size; // a record has at least one byte
        if !is_sound {
            return Err(Damaged);
        }
        (self.commit, self.drained) = (commit, drained);
        #[cfg(loom)]
        for guard in &self.header.guards.0[..self.commit.records() as usize] {
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

    /// Notes in the header that batch `number` takes the bytes up to the commit. `ledger/` explains the
    /// order.
    pub(crate) fn take(&self, number: u32) {
        self.header.batch.store(number, Ordering::Release);
        step();
        self.header.taking.store(self.commit.0, Ordering::Release);
        step();
    }

    /// Takes the note back, after the write of the batch has failed.
    pub(crate) fn untake(&self) {
        self.header.taking.store(self.drained.0, Ordering::Release);
        step();
    }

    /// Notes that the output has the bytes up to the commit.
    pub(crate) fn set_drained(&self) {
        self.header.drained.store(self.commit.0, Ordering::Release);
        // `taking` differs from `commit` if the batch had no bytes to write.
        self.header.taking.store(self.commit.0, Ordering::Release);
        step();
    }

    pub(crate) fn context(&self) -> &'r [u8] {
        self.slice(0, self.info.context_len)
    }

    /// The bytes of recovery after the context.
    pub(crate) fn recovery_len(&self) -> u32 {
        self.header.recovery_len.load(Ordering::Relaxed).min(self.commit.bytes())
    }

    /// The number of claims in the region before the one of this chunk.
    pub(crate) fn claim(&self) -> u32 {
        self.header.claim.load(Ordering::Relaxed)
    }

    /// The committed bytes.
    pub(crate) fn committed(&self) -> &[u8] {
        self.slice(0, self.commit.bytes())
    }

    /// The bytes that are committed and not yet drained.
    pub(crate) fn fresh(&self) -> &'r [u8] {
        self.slice(self.drained.bytes(), self.commit.bytes())
    }

    /// A range of the payload. Empty if the range is not below the commit.
    fn slice(&self, from: u32, to: u32) -> &'r [u8] {
        if from > to || to > self.commit.bytes() {
            return &[];
        }
        // SAFETY: from <= to <= commit <= size, by the comparison above and the one in `refresh`, both on
        // this value's own copies. So the range is in the payload, and mapped while `region` is borrowed.
        // Every byte is initialised: the memory was zeroed at its creation. The owner has stored the commit,
        // which was loaded with Acquire, and writes nothing below it until the chunk is free (`turn.rs`). The
        // drain frees the chunk after it has dropped these slices (`Drain::batch`). In a region that
        // overwrites the pin keeps the chunk, and `committed` borrows the pin.
        //
        // Another process can raise the commit and change bytes below it at any time. Rust's rules for a
        // slice do not cover that. No code in this crate branches on the bytes, and they do not change the
        // bounds of the slice.
        unsafe { std::slice::from_raw_parts(self.payload.as_ptr().add(from as usize), (to - from) as usize) }
    }
}
