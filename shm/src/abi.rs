//! The layout of a region: each field, its offset, and the thread that may change it.
//!
//! This file is the ABI between the traced process, its drain thread, and a tool of another version that
//! reads the region after the process's death. It has no policy.
//!
//! ```text
//! 0          RegionHeader                  (512 bytes)
//! 512        free bitmap                   (1 bit a chunk, 64-bit words; 1 = free)
//! about_offset                             path of the output, then the head of its stream
//! chunks_offset (multiple of 4096)
//!            chunk 0   [ChunkHeader 64 bytes][payload ..........][events lost, 8 bytes]
//!            chunk 1   ...                      chunk_size bytes each
//! tape_offset                               tape_len bytes (`tape/`), and those of the second tape
//! ```
//!
//! All integers are little-endian and of fixed width. A zeroed chunk header means "free".
//!
//! # The life of a chunk
//!
//! | transition | by | ordering |
//! |---|---|---|
//! | 1. Free to Writing | the thread that cleared the chunk's bit in the bitmap | `state` Release |
//! | 2. commit, while Writing | the owner | `commit` Release |
//! | 3. Writing to Complete | the owner | `state` Release |
//! | 4. Complete to Free | the drain, after it has taken all bytes | `state` Release, then the bit Release |
//!
//! While Writing, the owner may also lower the commit (`turn.rs`): `commit` Release, then `retractions`
//! Release, then a fence, then other bytes above the commit. It does so only if no reader in its process
//! reads them.
//!
//! What the other side may conclude:
//!
//! 1. A reader that loads Writing (Acquire) sees the fields of the header.
//! 2. A reader that loads `commit` (Acquire) may read that many bytes of the payload. They never change
//!    again, unless the owner lowers the commit. In the owner's process `turn.rs` prevents that. A reader
//!    from outside loads `retractions` (Acquire) before the commit, and again after the copy.
//! 3. A reader that loads Complete (Acquire), and `commit` after it, has the last commit of the chunk.
//! 4. A thread that clears the bit (Acquire) owns the chunk alone. The drain has read all bytes of the last
//!    owner.
//!
//! In a region that overwrites ([`OVERFLOW_OVERWRITE`]) there is no drain. A chunk that was claimed once is
//! never free in the bitmap again:
//!
//! | transition | by | ordering |
//! |---|---|---|
//! | 5. Writing or Complete to the same, pinned | the window | compare-and-swap of the whole word, Acquire |
//! | 6. pinned to not pinned | the window | `fetch_and` Release |
//! | 7. Complete, not pinned, to Free | the thread that wants a chunk | compare-and-swap, Acquire |
//!
//! 5. The generation is the one that the window has seen, and stays while the chunk is pinned. The window
//!    loads `commit` afterwards, and may read up to it.
//! 6. The window has read all that it will read.
//! 7. The thread owns the chunk alone. The window and the last owner are done with it.
//!
//! # Payload
//!
//! `[context][recovery][records...]`. The *context* (its length is in the header) must precede a fragment of
//! this chunk in the output if the fragment before is of another sequence. It is committed with the first
//! record of the chunk, and is no record itself.
//!
//! The *recovery* is for a reader that does not have the chunk before this one of the sequence: the begins of
//! the slices that were open at the start of this chunk. Only a region that overwrites has any.

use core::sync::atomic;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The first bytes of a region.
pub const MAGIC: [u8; 8] = *b"HAIRLINE";

/// Grows with each layout that readers of the previous one cannot read.
pub const ABI_VERSION: u32 = 7;

/// Bytes of [`RegionHeader`].
pub const REGION_HEADER_SIZE: usize = 512;

/// Bytes of [`ChunkHeader`], and the offset of the payload in a chunk.
pub const CHUNK_HEADER_SIZE: usize = size_of::<ChunkHeader>();

/// Bytes at the end of each chunk, behind the payload: how many events the owners of the chunk have lost to a
/// full ring, a `u64`. Nothing resets the number: each owner adds to it, by a load and a store. So a thread
/// that loses events writes nothing that other threads write.
pub const CHUNK_LOST_SIZE: usize = 8;

/// The least alignment of the first chunk, and of a region in memory. If the system's pages are larger, their
/// size is the alignment.
pub const PAGE: usize = 4096;

/// The smallest and the largest chunk, in bytes. With the upper bound each offset in a chunk fits an `i32`.
pub const CHUNK_SIZE_RANGE: core::ops::RangeInclusive<u32> = 4096..=(1 << 24);

/// The longest path of an output, in bytes.
pub const MAX_PATH: usize = 4096;
/// The longest head of a stream, in bytes.
pub const MAX_PRELUDE: usize = 1 << 20;

/// The number of tapes of a region.
pub const TAPES: usize = 3;

/// The longest tape, in bytes.
pub const MAX_TAPE: u32 = 64 << 20;

/// The length of the output in the header, if the output is no file.
pub const NO_FILE: u64 = u64::MAX;

/// State of a region: the session has not started recording.
pub const REGION_STARTING: u32 = 0;
/// State of a region: the session is recording.
pub const REGION_ACTIVE: u32 = 1;
/// State of a region: the session has ended and all bytes were drained.
pub const REGION_CLOSED: u32 = 2;

/// If no chunk is free, a thread drops and counts the event.
pub const OVERFLOW_DROP: u32 = 0;
/// If no chunk is free, a thread takes the oldest complete chunk.
pub const OVERFLOW_OVERWRITE: u32 = 1;

/// The start of a region.
///
/// The fields of core's atomic types are written once, before the region is shared, so the models of loom do
/// without them. They are atomics because other processes can map the region and change any byte: a plain
/// field must not change behind a reference.
///
/// Code outside of this crate reads some of the fields, and changes none:
///
/// ```compile_fail,E0616
/// use std::sync::atomic::Ordering;
///
/// let region = hairline_shm::Region::create(&hairline_shm::RegionConfig::small()).unwrap();
/// region.header().batches_done.store(7, Ordering::Relaxed);
/// ```
#[repr(C)]
#[derive(Debug, Default)]
pub struct RegionHeader {
    /// [`MAGIC`]. Stored last: 0 until the header is complete.
    pub(crate) magic: AtomicU64,
    /// [`ABI_VERSION`].
    pub(crate) abi_version: atomic::AtomicU32,
    /// [`REGION_HEADER_SIZE`] of the process that created the region.
    pub(crate) header_size: atomic::AtomicU32,
    /// Bytes of a chunk, header included.
    pub(crate) chunk_size: atomic::AtomicU32,
    /// The number of chunks.
    pub(crate) chunk_count: atomic::AtomicU32,
    /// Bytes of a chunk's header.
    pub(crate) chunk_header_size: atomic::AtomicU32,
    /// The offset of the free bitmap.
    pub(crate) bitmap_offset: atomic::AtomicU32,
    /// The offset of chunk 0.
    pub(crate) chunks_offset: atomic::AtomicU64,
    /// The format of the output, by the numbers of the caller (this crate knows no formats).
    pub(crate) format: atomic::AtomicU32,
    /// The behaviour when no chunk is free: [`OVERFLOW_DROP`] or [`OVERFLOW_OVERWRITE`].
    pub(crate) overflow: atomic::AtomicU32,
    /// The traced process, by its pid in `pid_namespace`.
    pub(crate) pid: atomic::AtomicU32,
    /// [`REGION_STARTING`], [`REGION_ACTIVE`] or [`REGION_CLOSED`].
    pub(crate) state: AtomicU32,
    /// Field 22 of `/proc/PID/stat`, as a process of `time_namespace` reads it. Together with the pid it
    /// identifies one process for ever.
    pub(crate) process_start: atomic::AtomicU64,
    /// The random number of the session.
    pub(crate) session: [atomic::AtomicU8; 16],
    /// The inode of the pid namespace of `pid`; 0 if not known.
    pub(crate) pid_namespace: atomic::AtomicU64,
    /// The uuid of the process's track in the trace (this crate knows no tracks).
    pub(crate) process_track: atomic::AtomicU64,
    /// Bytes that the output has taken from the drain.
    pub(crate) output_bytes: AtomicU64,
    /// The number of sequences so far, for tools.
    pub(crate) next_sequence: AtomicU32,
    /// The number of claims so far.
    pub(crate) claims: AtomicU32,
    /// The name of the executable, NUL-padded.
    pub(crate) process_name: [[atomic::AtomicU8; 32]; 2],
    /// The offset of the output's path. The head of the stream follows the path.
    pub(crate) about_offset: atomic::AtomicU32,
    /// Bytes of the path; 0 if the output is no file.
    pub(crate) path_len: atomic::AtomicU32,
    /// Bytes of the head.
    pub(crate) prelude_len: atomic::AtomicU32,
    reserved1: atomic::AtomicU32,
    /// The number of chunks that threads have tried to overwrite. Modulo the number of chunks: the next one
    /// to try.
    pub(crate) next_oldest: AtomicU64,
    /// The inode of the time namespace in which `process_start` was read; 0 if the system has none.
    pub(crate) time_namespace: atomic::AtomicU64,
    /// The offset of each tape (`tape/`), behind the chunks; 0 if the region has none.
    pub(crate) tape_offset: [atomic::AtomicU64; TAPES],
    /// Bytes of each tape: a position's place in it is the rest of a division by this.
    pub(crate) tape_len: [AtomicU64; TAPES],
    /// The number of lost events for each [`LossReason`](crate::LossReason). On its own cache lines. Until
    /// the region is closed, those in the chunks ([`CHUNK_LOST_SIZE`]) belong to the first one too.
    pub(crate) lost: [AtomicU64; 16],
    /// The last batch that the output has completely (`ledger/`). On a cache line that only the drain writes.
    pub(crate) batches_done: AtomicU64,
    /// The length of the output after batch n, in slot n & 1; [`NO_FILE`] if the output is no file.
    pub(crate) output_len: [AtomicU64; 2],
    /// The batch with the tail of the stream; 0 before that batch.
    pub(crate) tail_batch: AtomicU64,
    /// The time of the drain thread's last pass, in ns of the trace's clock; 0 before the first.
    pub(crate) last_look: AtomicU64,
    /// The next file of the output: its inode, its length, the number that the previous file gets, and the
    /// first batch in the new file. Until that batch is done, either file can be at the path of the output.
    pub(crate) next_output: [AtomicU64; 4],
    /// The position of each tape's oldest entry, and that after its newest one. They only grow.
    pub(crate) tape_begin: [AtomicU64; TAPES],
    pub(crate) tape_end: [AtomicU64; TAPES],
    reserved2: atomic::AtomicU64,
}

/// The owner of a chunk, and the chunk's place in its sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkInfo {
    /// The sequence: the number of the chunk writer in its session.
    pub sequence: u32,
    /// The index of the chunk in its sequence, from 0.
    pub index: u32,
    /// The thread that writes the chunk.
    pub tid: u32,
    /// Bytes of context at the start of the payload.
    pub context_len: u32,
}

/// Flag of a chunk: it is the last one of its sequence.
pub const FLAG_LAST: u32 = 1;

/// The header of a chunk. The payload follows it.
///
/// Only the owner of the chunk and the drain change the fields, because the drain reads the payload by them.
/// Other code cannot change the state of a chunk:
///
/// ```compile_fail,E0616
/// use std::sync::atomic::Ordering;
///
/// let region = hairline_shm::Region::create(&hairline_shm::RegionConfig::small()).unwrap();
/// region.chunk_header(0).state.store(2, Ordering::Relaxed);
/// ```
///
/// The header is one cache line. The owner stores `commit` after each record. The drain loads it and stores
/// `drained` once a pass.
#[repr(C, align(64))]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct ChunkHeader {
    /// [`State`] in the low 2 bits, then the bit [`PINNED`], then a generation that grows with each claim.
    pub(crate) state: AtomicU32,
    /// [`ChunkInfo::sequence`]. Does not change from Writing to Free, and neither do the other fields of
    /// [`ChunkInfo`].
    pub(crate) sequence: AtomicU32,
    /// The bytes that readers may read, a [`Commit`]. Only the owner stores it.
    pub(crate) commit: AtomicU64,
    /// The bytes that the output has, a [`Commit`]. Only the drain stores it.
    pub(crate) drained: AtomicU64,
    /// [`ChunkInfo::index`].
    pub(crate) index: AtomicU32,
    /// [`ChunkInfo::tid`].
    pub(crate) tid: AtomicU32,
    /// [`FLAG_LAST`].
    pub(crate) flags: AtomicU32,
    /// [`ChunkInfo::context_len`].
    pub(crate) context_len: AtomicU32,
    /// The bytes that the output has after the present batch, a [`Commit`]; else equal to `drained`. Only the
    /// drain stores it.
    pub(crate) taking: AtomicU64,
    /// The low half of the number of the last batch that took bytes of this chunk. Only the drain stores it.
    pub(crate) batch: AtomicU32,
    /// Bytes of recovery after the context. The owner stores it before `commit`.
    pub(crate) recovery_len: AtomicU32,
    /// The number of claims in the region before this one. A younger chunk has a larger number.
    pub(crate) claim: AtomicU32,
    /// How often the owner has lowered `commit`. Readers from outside compare it before and after a copy.
    pub(crate) retractions: AtomicU32,
    /// Under loom each record has a cell that stands for its bytes. A read that is not ordered after the
    /// write makes the model fail.
    #[cfg(loom)]
    pub(crate) guards: Guards,
    /// Under loom: stands for a byte of the payload, for the model of a reader from outside.
    #[cfg(loom)]
    pub byte: AtomicU32,
}

/// The cells of a chunk's first records.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Guards(pub(crate) [loom::cell::UnsafeCell<u64>; 4]);

#[cfg(loom)]
impl Default for Guards {
    fn default() -> Self {
        Self(core::array::from_fn(|_| loom::cell::UnsafeCell::new(0)))
    }
}

/// Bit in a `state` word: the window reads the chunk, and no thread may take it.
pub(crate) const PINNED: u32 = 4;
/// The lowest bit of the generation in a `state` word.
const GENERATION: u32 = 8;

/// The generation in a `state` word.
#[cfg_attr(not(feature = "recovery"), allow(dead_code))]
pub(crate) fn generation(word: u32) -> u32 {
    word / GENERATION
}

/// The difference from Writing to Complete. Adding it keeps a pin.
pub(crate) const COMPLETED: u32 = State::Complete as u32 - State::Writing as u32;

/// The state of a chunk.
///
/// ```
/// use hairline_shm::State;
///
/// let writing = State::next_generation(0); // a thread has claimed the chunk
/// assert_eq!(State::of(writing), State::Writing);
/// let complete = State::Complete.in_generation_of(writing);
/// assert_eq!(State::of(complete), State::Complete);
/// assert_ne!(State::next_generation(complete), writing); // the chunk has another owner
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The chunk has no owner. Its bit in the bitmap is set or about to be set.
    Free = 0,
    /// One thread writes the chunk.
    Writing = 1,
    /// The owner has given the chunk back. The drain takes the rest and frees it.
    Complete = 2,
}

impl State {
    /// The state in a `state` word. An unknown number, which another process has written, counts as free.
    #[must_use]
    pub fn of(word: u32) -> Self {
        match word & 3 {
            1 => Self::Writing,
            2 => Self::Complete,
            _ => Self::Free,
        }
    }

    /// The word for this state with the generation of `previous`.
    #[must_use]
    pub fn in_generation_of(self, previous: u32) -> u32 {
        (previous & !3) | self as u32
    }

    /// The word for Writing, one generation after `previous`.
    #[must_use]
    pub fn next_generation(previous: u32) -> u32 {
        (previous & !(GENERATION - 1)).wrapping_add(GENERATION) | Self::Writing as u32
    }
}

/// A `commit` word: the bytes of the payload that are written, and the event records in them.
///
/// The bytes are the low half, the records the high half. One addition raises both, so the count of records
/// costs a chunk writer nothing.
///
/// ```
/// use hairline_shm::Commit;
///
/// let (before, record) = (Commit::new(100, 3), Commit::new(24, 1));
/// let after = Commit(before.0 + record.0); // one addition
/// assert_eq!((after.bytes(), after.records()), (124, 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit(pub u64);

impl Commit {
    /// A commit of `bytes` bytes with `records` records, or the difference between two commits.
    #[must_use]
    pub const fn new(bytes: u32, records: u32) -> Self {
        Self(bytes as u64 | (records as u64) << 32)
    }

    /// The bytes of the payload that may be read.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the low half is meant
    pub const fn bytes(self) -> u32 {
        self.0 as u32
    }

    /// The event records in these bytes.
    #[must_use]
    pub const fn records(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl ChunkHeader {
    /// The state, the generation and the number of retractions, for the model of a reader from outside.
    #[cfg(loom)]
    pub fn look(&self) -> (State, u32, u32) {
        let word = self.state.load(Ordering::Relaxed);
        (State::of(word), generation(word), self.retractions.load(Ordering::Relaxed))
    }

    /// The commit, for the model of a reader from outside.
    #[cfg(loom)]
    pub fn commit(&self) -> Commit {
        Commit(self.commit.load(Ordering::Relaxed))
    }

    /// The fields that the owner set at the claim. Valid from Writing to Free.
    pub fn info(&self) -> ChunkInfo {
        ChunkInfo {
            sequence: self.sequence.load(Ordering::Relaxed),
            index: self.index.load(Ordering::Relaxed),
            tid: self.tid.load(Ordering::Relaxed),
            context_len: self.context_len.load(Ordering::Relaxed),
        }
    }
}

impl RegionHeader {
    /// [`MAGIC`], if the region is complete.
    #[must_use]
    pub fn magic(&self) -> [u8; 8] {
        self.magic.load(Ordering::Relaxed).to_le_bytes()
    }

    /// The traced process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// The name of the executable, NUL-padded.
    #[must_use]
    pub fn process_name(&self) -> [u8; 64] {
        core::array::from_fn(|i| self.process_name[i / 32][i % 32].load(Ordering::Relaxed))
    }

    /// The offset of chunk 0 in the region, in bytes.
    #[must_use]
    pub fn chunks_offset(&self) -> u64 {
        self.chunks_offset.load(Ordering::Relaxed)
    }

    /// Bytes that the output has taken from the drain.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.output_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(not(loom))]
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<RegionHeader>() == REGION_HEADER_SIZE);
    assert!(offset_of!(RegionHeader, chunk_size) == 16);
    assert!(offset_of!(RegionHeader, chunks_offset) == 32);
    assert!(offset_of!(RegionHeader, pid) == 48);
    assert!(offset_of!(RegionHeader, state) == 52);
    assert!(offset_of!(RegionHeader, pid_namespace) == 80);
    assert!(offset_of!(RegionHeader, process_track) == 88);
    assert!(offset_of!(RegionHeader, output_bytes) == 96);
    assert!(offset_of!(RegionHeader, next_sequence) == 104);
    assert!(offset_of!(RegionHeader, about_offset) == 176);
    assert!(offset_of!(RegionHeader, time_namespace) == 200);
    assert!(offset_of!(RegionHeader, tape_offset) == 208);
    assert!(offset_of!(RegionHeader, lost) == 256);
    assert!(offset_of!(RegionHeader, batches_done) == 384);
    assert!(offset_of!(RegionHeader, output_len) == 392);
    assert!(offset_of!(RegionHeader, tail_batch) == 408);
    assert!(offset_of!(RegionHeader, last_look) == 416);
    assert!(offset_of!(RegionHeader, next_output) == 424);
    assert!(offset_of!(RegionHeader, tape_begin) == 456);
    assert!(size_of::<ChunkHeader>() == 64 && align_of::<ChunkHeader>() == 64);
    assert!(offset_of!(ChunkHeader, state) == 0);
    assert!(offset_of!(ChunkHeader, commit) == 8);
    assert!(offset_of!(ChunkHeader, drained) == 16);
    assert!(offset_of!(ChunkHeader, context_len) == 36);
    assert!(offset_of!(ChunkHeader, taking) == 40);
    assert!(offset_of!(ChunkHeader, batch) == 48);
    assert!(offset_of!(ChunkHeader, recovery_len) == 52);
    assert!(offset_of!(ChunkHeader, claim) == 56);
    assert!(offset_of!(ChunkHeader, retractions) == 60);
    assert!(cfg!(target_endian = "little"), "the region's ABI is little-endian");
};
