//! A chunk, for the thread that writes it.
//!
//! A thread owns a chunk while it has the [`WriteChunk`]. A claim creates the value; dropping it gives the
//! chunk back. [`WriteChunk::append`] writes records. The hot path writes through [`WriteChunk::payload`]
//! with plain stores, and commits with one more store.

#![allow(unsafe_code)] // writes the payload

use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::{CHUNK_HEADER_SIZE, COMPLETED, ChunkHeader, ChunkInfo, Commit, FLAG_LAST, State};
use crate::bitmap::Taken;
use crate::owner::Owner;
use crate::region::Region;
use crate::step::step;
use crate::sync::{Ordering, fence};

/// A chunk for its owner, the only thread that writes it.
///
/// No chunk has two of these values. A value that was moved to another thread is gone here:
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
/// Two threads cannot write through one value:
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
    /// Has the provenance of the whole mapping, since the payload is written through it too.
    header: NonNull<ChunkHeader>,
    number: u32,
    /// The last commit. This copy, and not the word in the header, decides where the next record is written.
    /// Other processes can map the header, and a wrong word there must not lead to a store outside of the
    /// chunk.
    commit: Commit,
    /// Whether the drain thread has recalled the chunk from its idle owner (`lease/`).
    is_recalled: bool,
    region: Arc<Region>,
}

// SAFETY: a chunk is not bound to a thread. The fields of the header are atomics, only the owner of this
// value writes the payload, and `region` keeps the memory mapped.
unsafe impl Send for WriteChunk {}

impl WriteChunk {
    /// Begins the chunk that the caller has just taken, with `context` at its start.
    pub(crate) fn begin(region: Arc<Region>, taken: Taken, mut info: ChunkInfo, context: &[u8]) -> Self {
        let number = taken.number();
        // Before the first store into the chunk: this instruction waits for all stores before it, and the
        // cache lines of the chunk are rarely in the cache yet.
        let claim = region.new_claim();
        assert!(context.len() < region.payload_len() as usize);
        #[allow(clippy::cast_possible_truncation)] // just compared with a u32
        let context_len = context.len() as u32;
        info.context_len = context_len;
        let start = Commit::new(context_len, 0);
        let header = region.header_ptr(number);
        let chunk = Self { header, number, commit: start, is_recalled: false, region };
        // SAFETY: in the payload by the assertion. `Taken` proves that the caller owns the chunk. No reader
        // of this process reads the payload before the store of Writing below.
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
        header.retractions.store(0, Ordering::Relaxed);
        header.flags.store(0, Ordering::Relaxed);
        header.commit.store(start, Ordering::Relaxed);
        header.drained.store(start, Ordering::Relaxed);
        header.taking.store(start, Ordering::Relaxed);
        header.batch.store(0, Ordering::Relaxed);
        step();
        let before = header.state.load(Ordering::Relaxed);
        // Release pairs with the Acquire in `ReadChunk::open`: a reader that sees Writing sees the fields
        // above.
        header.state.store(State::next_generation(before), Ordering::Release);
        chunk
    }

    /// The header of the chunk.
    #[must_use]
    pub fn header(&self) -> &ChunkHeader {
        // SAFETY: the pointer is from `Region::header_ptr`: in bounds, aligned, and mapped while `region`
        // lives. Every field of a header is an atomic, for which all bytes are valid.
        unsafe { self.header.as_ref() }
    }

    fn owner(&self) -> &Owner {
        self.region.owner(self.number)
    }

    /// The start of the payload. The owner may write [`capacity`](Self::capacity) bytes there, above the last
    /// commit.
    #[must_use]
    pub fn payload(&self) -> *mut u8 {
        // SAFETY: a chunk has at least 4 KiB, header included.
        unsafe { self.header.as_ptr().cast::<u8>().add(CHUNK_HEADER_SIZE) }
    }

    /// The bytes of the payload.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.region.payload_len()
    }

    /// The number of events that the owners of this chunk have lost to a full ring, which
    /// [`Region::lost`](crate::Region::lost) adds up. Only the owner of the chunk changes it, by a load and a
    /// store.
    ///
    /// ```
    /// use std::sync::atomic::Ordering;
    ///
    /// use hairline_shm::{ChunkInfo, LossReason, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// region.count_lost(LossReason::BufferFull, 1);
    /// chunk.lost().store(2, Ordering::Relaxed);
    /// assert_eq!(region.lost(LossReason::BufferFull), 3);
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    #[must_use]
    pub fn lost(&self) -> &core::sync::atomic::AtomicU64 {
        self.region.lost_of(self.number)
    }

    /// The number of the chunk in its region.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The address of the header. The payload may be written through it too.
    pub(crate) fn header_ptr(&self) -> NonNull<ChunkHeader> {
        self.header
    }

    /// The last commit.
    #[must_use]
    pub fn committed(&self) -> Commit {
        self.commit
    }

    /// Sets the last commit, after the owner has committed records with [`publish`](ChunkHeader::publish) and
    /// not with [`append`](Self::append).
    ///
    /// Returns `false` and does nothing if `commit` is less than the last commit, or beyond the end of the
    /// payload.
    pub fn set_committed(&mut self, commit: Commit) -> bool {
        let is_valid = (self.commit.bytes()..=self.capacity()).contains(&commit.bytes());
        if is_valid {
            self.commit = commit;
        }
        is_valid
    }

    /// Writes `bytes`, which are whole records with `records` events, and commits them.
    ///
    /// Returns `false` and does nothing if the chunk has no room for them.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Commit, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// assert!(chunk.append(b"a record", 1));
    /// assert_eq!(chunk.committed(), Commit::new(8, 1));
    /// assert!(!chunk.append(&[0; 5000], 1)); // no room in a chunk of 4 KiB
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn append(&mut self, bytes: &[u8], records: u32) -> bool {
        let commit = self.committed();
        let at = commit.bytes() as usize;
        if bytes.len() > self.capacity() as usize - at {
            return false;
        }
        #[cfg(loom)]
        self.header().guards.0[commit.records() as usize].with_mut(|p| {
            // SAFETY: loom checks that no other access is concurrent.
            unsafe { *p += 1 }
        });
        // SAFETY: in the payload by the comparison. Above every commit that this value has stored, so no
        // reader of this process reads there yet. `bytes` is not a part of the payload: only readers form
        // slices of that, below a commit.
        unsafe { self.payload().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        #[allow(clippy::cast_possible_truncation)] // fits the payload
        let grown = Commit(commit.0 + Commit::new(bytes.len() as u32, records).0);
        // SAFETY: this value is the owner of the chunk. `grown` is the last commit and the bytes that were
        // just written, within the payload.
        unsafe { self.header().publish(grown) };
        self.commit = grown;
        true
    }

    /// Takes the records above `to` back, an earlier commit of this chunk. Returns `false` and does nothing
    /// if a reader has these records, or is about to read them.
    ///
    /// Readers from outside see the count of retractions grow.
    pub fn retract(&mut self, to: Commit) -> bool {
        let (last, header, owner) = (self.commit, self.header(), self.owner());
        let is_sound = owner.info().context_len <= to.bytes()
            && to.bytes() <= last.bytes()
            && to.records() <= last.records();
        let lower = || {
            // Release, as in `publish`. The reader's turn makes it visible to the readers of this process.
            header.commit.store(to.0, Ordering::Release);
            step();
            let retractions = header.retractions.load(Ordering::Relaxed).wrapping_add(1);
            // Release pairs with the Acquire fence after the first look in `looks.rs`: a reader from outside
            // that sees the new count sees the lower commit, or a later one.
            header.retractions.store(retractions, Ordering::Release);
            // Release pairs with the Acquire fence before the last look: a reader from outside that has seen
            // a byte written from here on sees the new count.
            fence(Ordering::Release);
            step();
        };
        let is_lowered = is_sound && owner.turn().retract(to, lower);
        if is_lowered {
            self.commit = to;
        }
        is_lowered
    }

    /// Writes the recovery: bytes right after the context that are needed only if the chunk before is
    /// missing.
    ///
    /// Returns `false` and does nothing if the chunk has no room for them, or has bytes after the context
    /// already.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"context;").unwrap();
    /// assert!(chunk.append_recovery(b"the strings so far;"));
    /// assert!(chunk.append(b"a record", 1));
    /// assert!(!chunk.append_recovery(b"too late;"));
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
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

    /// Stores `bytes` at offset `at` of the payload, for [`noted`](Self::noted). No reader sees them.
    ///
    /// Does nothing if the range is not between the last commit and the end of the payload.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// let at = chunk.capacity() - 4;
    /// chunk.note(at, b"note");
    /// assert_eq!(chunk.noted(at), Some(*b"note"));
    /// assert_eq!(chunk.committed().bytes(), 0); // no reader sees it
    /// assert_eq!(chunk.noted::<4>(at + 1), None); // beyond the end
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn note(&mut self, at: u32, bytes: &[u8]) {
        if self.is_above(at, bytes.len()) {
            // SAFETY: in the payload and above the last commit by the comparison. The rest as in `append`.
            unsafe { self.payload().add(at as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Reads the bytes that [`note`](Self::note) has stored at offset `at`. `None` if the range is not above
    /// the last commit.
    #[must_use]
    pub fn noted<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        // SAFETY: in the payload by the comparison. Every byte there is initialised: the memory was zeroed at
        // its creation. Above the last commit only the owner writes, which is this value.
        self.is_above(at, N)
            .then(|| unsafe { self.payload().add(at as usize).cast::<[u8; N]>().read_unaligned() })
    }

    fn is_above(&self, at: u32, len: usize) -> bool {
        at >= self.committed().bytes() && at as usize + len <= self.capacity() as usize
    }

    /// Copies the committed bytes to `out`, as many as fit. If the region was closed meanwhile, they are
    /// zeros: this is why the function copies and does not return a slice.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"context ").unwrap();
    /// assert!(chunk.append(b"a record", 1));
    /// let mut bytes = [0; 16];
    /// chunk.copy_committed(&mut bytes);
    /// assert_eq!(&bytes, b"context a record");
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn copy_committed(&self, out: &mut [u8]) {
        let len = out.len().min(self.committed().bytes() as usize);
        // SAFETY: `len` bytes are in the payload (`append` and `set_committed` compare). They are
        // initialised: the memory was zeroed at its creation. No thread writes below the last commit. `out`
        // has room for them.
        unsafe { self.payload().copy_to_nonoverlapping(out.as_mut_ptr(), len) };
    }

    /// Marks the chunk as recalled, after [`Lease::settle`](crate::Lease::settle) has returned `true`.
    /// Another thread may own it by now, so this value does not touch it again.
    pub fn set_recalled(&mut self) {
        self.is_recalled = true;
    }

    /// Gives the chunk back as the last of its sequence.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Drain, Output, Region, RegionConfig};
    /// # use std::io::{self, IoSlice};
    ///
    /// struct Ended(Vec<u32>);
    /// impl Output for Ended {
    ///     fn write_all_parts(&mut self, _: &[IoSlice<'_>]) -> io::Result<()> {
    ///         Ok(())
    ///     }
    ///     fn sequence_ended(&mut self, info: ChunkInfo) {
    ///         self.0.push(info.sequence);
    ///     }
    /// }
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let (mut drain, mut output) = (Drain::new(region.clone()), Ended(Vec::new()));
    /// let sequence = region.new_sequence();
    /// let mut chunk = region.claim(ChunkInfo { sequence, ..ChunkInfo::default() }, b"").unwrap();
    /// assert!(chunk.append(b"the last record", 1));
    /// chunk.finish_sequence();
    /// drain.pass(&mut output)?;
    /// assert_eq!(output.0, [sequence]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_sequence(self) {
        // Relaxed: published by the Release store of the state in `drop`.
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
    /// Gives the chunk back: the owner writes no more.
    pub(crate) fn complete(&self) {
        // Release pairs with the Acquire in `ReadChunk::open`, and with that in `Region::take_oldest`: a
        // thread that sees Complete sees the last commit and the flags.
        self.state.fetch_add(COMPLETED, Ordering::Release);
    }

    /// Commits: readers may read the payload up to `commit` from now on.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Commit, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// let commit = Commit::new(3, 1);
    /// // SAFETY: this thread owns the chunk, and writes the three bytes before it commits them.
    /// unsafe {
    ///     chunk.payload().copy_from_nonoverlapping(b"abc".as_ptr(), 3);
    ///     chunk.header().publish(commit);
    /// }
    /// assert!(chunk.set_committed(commit));
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    ///
    /// # Safety
    /// Only for the owner of the chunk. `commit` must be no less than the last one, which
    /// [`WriteChunk::retract`] may have lowered, and within the payload.
    /// All bytes below it must have been written.
    #[inline(always)]
    pub unsafe fn publish(&self, commit: Commit) {
        // Release pairs with the Acquire in `ReadChunk::refresh`: a reader that sees this commit sees the
        // bytes below it.
        self.commit.store(commit.0, Ordering::Release);
    }
}
