//! The region's layout: what stands at which byte, and who may change it.
//!
//! This file is the ABI between the traced process, its writer thread and a tool of another
//! version that looks at the region after the process died. It holds no policy.
//!
//! ```text
//! 0          RegionHeader                  (512 bytes)
//! 512        free bitmap                   (1 bit a chunk, 64-bit words; 1 = free)
//! about_offset                             path of the output, then the head of its stream
//! chunks_offset (multiple of 4096)
//!            chunk 0   [ChunkHeader 64 bytes][payload ..........]
//!            chunk 1   ...                      chunk_size bytes each
//! ```
//!
//! All integers are little-endian and of fixed width. A zeroed chunk header means "free".
//!
//! # A chunk's life
//!
//! | from     | to       | who                              | ordering            | what the other side may conclude |
//! |----------|----------|----------------------------------|---------------------|----------------------------------|
//! | Free     | Writing  | the thread that cleared its bit in the bitmap | `state` Release | a reader that loads Writing (Acquire) sees the header's fields |
//! | Writing  | Writing  | the owner: a commit              | `commit` Release    | a reader that loads `commit` (Acquire) may read that many bytes of the payload; they never change again |
//! | Writing  | Complete | the owner                        | `state` Release     | a reader that loads Complete (Acquire), and `commit` after it, has the chunk's last commit |
//! | Complete | Free     | the drain, when it has taken all | `state` Release, then the bit is set with Release | the thread that clears the bit (Acquire) owns the chunk alone, and the drain has read all it will of its former life |
//!
//! In a region that overwrites ([`OVERFLOW_OVERWRITE`]) there is no drain, and a chunk that was taken once never has its
//! bit set again:
//!
//! | from     | to       | who                              | ordering            | what the other side may conclude |
//! |----------|----------|----------------------------------|---------------------|----------------------------------|
//! | Writing, Complete | the same, pinned | the window | compare-and-swap of the whole word, Acquire | the generation is the one it saw, and stays while the pin stands; `commit`, loaded after it, may be read up to |
//! | pinned   | not      | the window                       | `fetch_and` Release | it has read all it will |
//! | Complete | Free     | the thread that wants a chunk, of one that is not pinned | compare-and-swap, Acquire | it owns the chunk alone; window and former owner are done with it |
//!
//! # Payload
//!
//! `[context][recovery][records...]`. *Context* (its length is in the header) is what must stand in the
//! output before any fragment of this chunk if the fragment before it was of another sequence.
//! It is committed with the chunk's first record and is not itself a record.
//!
//! *Recovery* is what a reader needs only if it does not have the chunk before this one of its sequence: the begins of
//! the slices that were open where this chunk starts. Only a region that overwrites has any.

use core::sync::atomic;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// First bytes of a region.
pub const MAGIC: [u8; 8] = *b"HAIRLINE";

/// Grows when a reader of the old layout could no longer read the new one.
pub const ABI_VERSION: u32 = 2;

/// Bytes of [`RegionHeader`].
pub const REGION_HEADER_SIZE: usize = 512;

/// Bytes of [`ChunkHeader`]; a chunk's payload begins there.
pub const CHUNK_HEADER_SIZE: usize = size_of::<ChunkHeader>();

/// The least alignment of the first chunk, and of every region in memory. Where the system's pages are
/// larger, theirs.
pub const PAGE: usize = 4096;

/// Smallest and largest chunk, in bytes. The upper bound keeps every offset in an `i32`.
pub const CHUNK_SIZE_RANGE: core::ops::RangeInclusive<u32> = 4096..=(1 << 24);

/// The longest path and the longest head of a stream that a region holds, in bytes.
pub const MAX_PATH: usize = 4096;
/// See [`MAX_PATH`].
pub const MAX_PRELUDE: usize = 1 << 20;

/// As the output's length in a region's header: the output is no file.
pub const NO_FILE: u64 = u64::MAX;

/// Why an event was not recorded. The number is the index in the header's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum LossReason {
    /// No free chunk: the writer thread could not keep up with the ring's size.
    BufferFull = 0,
    /// The event came while its own thread was writing one (a signal handler, an allocator that traces).
    Reentrant = 1,
    /// The record would not fit a whole chunk.
    TooLarge = 2,
    /// The event came from a thread whose writer had been torn down (a destructor that traces).
    ThreadExit = 3,
    /// The output could not be written; the records were committed but have no place to go.
    Output = 4,
    /// Not an event: an argument for which the record of its event has no place.
    Argument = 5,
    /// Not an event: a chunk whose header contradicts itself, as another process has written into it. Its records are not read.
    Damaged = 6,
}

/// Every reason, in the order of their numbers.
pub const LOSS_REASONS: [LossReason; 7] = [
    LossReason::BufferFull,
    LossReason::Reentrant,
    LossReason::TooLarge,
    LossReason::ThreadExit,
    LossReason::Output,
    LossReason::Argument,
    LossReason::Damaged,
];

impl LossReason {
    /// A short name in words, for summaries and traces.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BufferFull => "buffer full",
            Self::Reentrant => "re-entrant",
            Self::TooLarge => "too large",
            Self::ThreadExit => "thread exit",
            Self::Output => "output error",
            Self::Argument => "argument",
            Self::Damaged => "damaged chunk",
        }
    }
}

/// The session has not begun: what the region says of itself is not complete, and nothing was recorded.
pub const REGION_STARTING: u32 = 0;
/// The process still writes.
pub const REGION_ACTIVE: u32 = 1;
/// Everything was drained; nothing is to be recovered.
pub const REGION_CLOSED: u32 = 2;

/// In a region's header: an event for which no chunk is free is dropped and counted.
pub const OVERFLOW_DROP: u32 = 0;
/// In a region's header: the oldest chunk that nobody writes is overwritten.
pub const OVERFLOW_OVERWRITE: u32 = 1;

/// What stands at the start of a region.
///
/// Fields of core's atomics are written once, before the region is shared, and of no interest to loom. They
/// are atomics since other processes can map the region and change any byte of it: behind a reference no
/// plain field may change.
///
/// Code outside of this crate reads some of them, and changes none:
///
/// ```compile_fail,E0616
/// use std::sync::atomic::Ordering;
///
/// let region = hairline_shm::Region::create(&hairline_shm::RegionConfig::small()).unwrap();
/// region.header().batches_done.store(7, Ordering::Relaxed);
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct RegionHeader {
    /// [`MAGIC`], stored last: 0 as long as the header is not complete.
    pub(crate) magic: AtomicU64,
    /// [`ABI_VERSION`].
    pub(crate) abi_version: atomic::AtomicU32,
    /// [`REGION_HEADER_SIZE`] of the writer.
    pub(crate) header_size: atomic::AtomicU32,
    /// Bytes from one chunk to the next.
    pub(crate) chunk_size: atomic::AtomicU32,
    /// Number of chunks.
    pub(crate) chunk_count: atomic::AtomicU32,
    /// Bytes of a chunk's header.
    pub(crate) chunk_header_size: atomic::AtomicU32,
    /// Where the free bitmap begins.
    pub(crate) bitmap_offset: atomic::AtomicU32,
    /// Where chunk 0 begins.
    pub(crate) chunks_offset: atomic::AtomicU64,
    /// The output's format, as the writer numbers them (this crate knows none).
    pub(crate) format: atomic::AtomicU32,
    /// What happens when no chunk is free: [`OVERFLOW_DROP`] or [`OVERFLOW_OVERWRITE`].
    pub(crate) overflow: atomic::AtomicU32,
    /// The traced process.
    pub(crate) pid: atomic::AtomicU32,
    /// [`REGION_STARTING`], [`REGION_ACTIVE`] or [`REGION_CLOSED`].
    pub(crate) state: AtomicU32,
    /// Field 22 of `/proc/PID/stat`: with the pid it names one process for good.
    pub(crate) process_start: atomic::AtomicU64,
    /// Identifies the session.
    pub(crate) session: [atomic::AtomicU8; 16],
    /// Clock parameters at the start: ns = (ticks * multiplier >> 64) + offset; multiplier 0: ticks are ns.
    pub(crate) clock_multiplier: atomic::AtomicU64,
    /// See `clock_multiplier`.
    pub(crate) clock_offset: atomic::AtomicU64,
    /// Bytes that the drain has handed to the output.
    pub(crate) output_bytes: AtomicU64,
    /// Next sequence id to give out.
    pub(crate) next_sequence: AtomicU32,
    /// Claims so far.
    pub(crate) claims: AtomicU32,
    /// Executable's name, NUL-padded.
    pub(crate) process_name: [atomic::AtomicU8; 64],
    /// Where the output's path begins; the stream's head follows it.
    pub(crate) about_offset: atomic::AtomicU32,
    /// Bytes of the path; 0 where the output is no file.
    pub(crate) path_len: atomic::AtomicU32,
    /// Bytes of the stream's head.
    pub(crate) prelude_len: atomic::AtomicU32,
    reserved1: atomic::AtomicU32,
    /// The trace's number for the process's own track (this crate knows no tracks).
    pub(crate) process_track: atomic::AtomicU64,
    /// Inode of the pid namespace in which `pid` counts; 0 if not known.
    pub(crate) pid_namespace: atomic::AtomicU64,
    /// Chunks that were looked at so far to be overwritten: the next one is this, modulo their number.
    pub(crate) next_oldest: AtomicU64,
    reserved2: [atomic::AtomicU64; 5],
    /// Events not recorded, by [`LossReason`]. On cache lines of their own.
    pub(crate) lost: [AtomicU64; 16],
    /// The last batch that the output has whole: `ledger.rs`. On a cache line of the drain's own.
    pub(crate) batches_done: AtomicU64,
    /// The output's length after batch n, in slot n & 1; [`NO_FILE`] where it is no file.
    pub(crate) output_len: [AtomicU64; 2],
    /// The batch that is the stream's tail; 0 before.
    pub(crate) tail_batch: AtomicU64,
    /// The trace's time when the drain looked last, in ns; 0 before.
    pub(crate) last_look: AtomicU64,
    /// The file in which the output goes on from a batch on: its inode, its length before that batch, the number that the file before
    /// it gets, the batch. The file at the output's path is this one or the one before it, until the batch is done.
    pub(crate) next_output: [AtomicU64; 4],
    reserved3: [atomic::AtomicU64; 7],
}

/// What a sequence's chunk says of itself, beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkInfo {
    /// The thread writer's number in its session.
    pub sequence: u32,
    /// Place of this chunk in its sequence, from 0.
    pub index: u32,
    /// The thread that writes.
    pub tid: u32,
    /// Bytes at the payload's start that are context.
    pub context_len: u32,
}

/// The owner's last chunk: its sequence ends here.
pub const FLAG_LAST: u32 = 1;

/// Stands before each chunk's payload.
///
/// Its fields are changed through the chunk's owner and the drain only: what they say is what the drain reads
/// by. The state of a chunk is not for others to change:
///
/// ```compile_fail,E0616
/// use std::sync::atomic::Ordering;
///
/// let region = hairline_shm::Region::create(&hairline_shm::RegionConfig::small()).unwrap();
/// region.chunk_header(0).state.store(2, Ordering::Relaxed);
/// ```
///
/// One cache line: the owner stores `commit` after each record; the drain loads it, and stores
/// `drained`, once a pass.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ChunkHeader {
    /// [`State`] in the low 2 bits, then [`PINNED`], above it a generation that grows with each claim.
    pub(crate) state: AtomicU32,
    /// [`ChunkInfo::sequence`]; like the other fields below stable from Writing to Free.
    pub(crate) sequence: AtomicU32,
    /// What readers may read, see [`Commit`]. Only the chunk's owner stores it.
    pub(crate) commit: AtomicU64,
    /// What the output already has, in the same form. Only the drain stores it.
    pub(crate) drained: AtomicU64,
    /// [`ChunkInfo::index`].
    pub(crate) index: AtomicU32,
    /// [`ChunkInfo::tid`].
    pub(crate) tid: AtomicU32,
    /// [`FLAG_LAST`].
    pub(crate) flags: AtomicU32,
    /// [`ChunkInfo::context_len`].
    pub(crate) context_len: AtomicU32,
    /// What the batch in hand takes, in the form of `commit`; else what `drained` says. Only the drain stores it.
    pub(crate) taking: AtomicU64,
    /// Low half of the number of the last batch that took something. Only the drain stores it.
    pub(crate) batch: AtomicU32,
    /// Bytes after the context that are recovery. Like `commit` they are the owner's, who stores them before it.
    pub(crate) recovery_len: AtomicU32,
    /// How many claims there were before this one in the region: the younger chunk has the larger number.
    pub(crate) claim: AtomicU32,
    reserved: atomic::AtomicU32,
    /// Under loom the payload's bytes are guarded by cells, one a record, so that a read that is
    /// not ordered after its write fails the model.
    #[cfg(loom)]
    pub(crate) guards: [loom::cell::UnsafeCell<u64>; 4],
}

/// In a chunk's `state` word: the window reads it, and nobody may take it.
pub(crate) const PINNED: u32 = 4;
/// One generation, in a chunk's `state` word.
const GENERATION: u32 = 8;

/// The generation in a `state` word.
pub(crate) fn generation(word: u32) -> u32 {
    word / GENERATION
}

/// From Writing to Complete, as an addition, which leaves a pin as it is.
pub(crate) const COMPLETED: u32 = State::Complete as u32 - State::Writing as u32;

/// A chunk's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Nobody's; its bit in the bitmap is set or about to be.
    Free = 0,
    /// One thread writes it.
    Writing = 1,
    /// Its owner has given it back; the drain may take the rest and free it.
    Complete = 2,
}

impl State {
    /// The state in a `state` word; an unknown number (foreign memory) reads as free.
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

/// A chunk's `commit` word: payload bytes in the low half, event records among them in the high half.
///
/// Both grow by one addition, so counting the records costs a writer nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit(pub u64);

impl Commit {
    /// `bytes` more, `records` more.
    #[must_use]
    pub const fn new(bytes: u32, records: u32) -> Self {
        Self(bytes as u64 | (records as u64) << 32)
    }

    /// Payload bytes that may be read.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the low half is meant
    pub const fn bytes(self) -> u32 {
        self.0 as u32
    }

    /// Event records in them.
    #[must_use]
    pub const fn records(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl ChunkHeader {
    /// A free chunk's header. Elsewhere that is zeroed memory; loom's atomics must be made.
    #[cfg(loom)]
    pub(crate) fn zeroed() -> Self {
        Self {
            state: AtomicU32::new(0),
            sequence: AtomicU32::new(0),
            commit: AtomicU64::new(0),
            drained: AtomicU64::new(0),
            index: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            context_len: AtomicU32::new(0),
            taking: AtomicU64::new(0),
            batch: AtomicU32::new(0),
            recovery_len: AtomicU32::new(0),
            claim: AtomicU32::new(0),
            reserved: atomic::AtomicU32::new(0),
            guards: core::array::from_fn(|_| loom::cell::UnsafeCell::new(0)),
        }
    }

    /// State and generation, for the model of a reader from outside.
    #[cfg(loom)]
    pub fn look(&self) -> (State, u32) {
        let word = self.state.load(Ordering::Relaxed);
        (State::of(word), generation(word))
    }

    /// The fields that its owner set at the claim. True from Writing to Free.
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
    /// [`MAGIC`], in a region.
    #[must_use]
    pub fn magic(&self) -> [u8; 8] {
        self.magic.load(Ordering::Relaxed).to_le_bytes()
    }

    /// The traced process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// The executable's name, NUL-padded.
    #[must_use]
    pub fn process_name(&self) -> [u8; 64] {
        core::array::from_fn(|i| self.process_name[i].load(Ordering::Relaxed))
    }

    /// Where chunk 0 begins, in bytes from the region's start.
    #[must_use]
    pub fn chunks_offset(&self) -> u64 {
        self.chunks_offset.load(Ordering::Relaxed)
    }

    /// Bytes that the drain has handed to the output.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.output_bytes.load(Ordering::Relaxed)
    }

    /// A header with every field zero.
    pub(crate) fn zeroed() -> Self {
        Self {
            magic: AtomicU64::new(0),
            abi_version: atomic::AtomicU32::default(),
            header_size: atomic::AtomicU32::default(),
            chunk_size: atomic::AtomicU32::default(),
            chunk_count: atomic::AtomicU32::default(),
            chunk_header_size: atomic::AtomicU32::default(),
            bitmap_offset: atomic::AtomicU32::default(),
            chunks_offset: atomic::AtomicU64::default(),
            format: atomic::AtomicU32::default(),
            overflow: atomic::AtomicU32::default(),
            pid: atomic::AtomicU32::default(),
            state: AtomicU32::new(0),
            process_start: atomic::AtomicU64::default(),
            session: core::array::from_fn(|_| Default::default()),
            clock_multiplier: atomic::AtomicU64::default(),
            clock_offset: atomic::AtomicU64::default(),
            output_bytes: AtomicU64::new(0),
            next_sequence: AtomicU32::new(0),
            claims: AtomicU32::new(0),
            process_name: core::array::from_fn(|_| Default::default()),
            about_offset: atomic::AtomicU32::default(),
            path_len: atomic::AtomicU32::default(),
            prelude_len: atomic::AtomicU32::default(),
            reserved1: atomic::AtomicU32::default(),
            process_track: atomic::AtomicU64::default(),
            pid_namespace: atomic::AtomicU64::default(),
            next_oldest: AtomicU64::new(0),
            reserved2: core::array::from_fn(|_| Default::default()),
            lost: core::array::from_fn(|_| AtomicU64::new(0)),
            batches_done: AtomicU64::new(0),
            output_len: core::array::from_fn(|_| AtomicU64::new(NO_FILE)),
            tail_batch: AtomicU64::new(0),
            last_look: AtomicU64::new(0),
            next_output: core::array::from_fn(|_| AtomicU64::new(0)),
            reserved3: core::array::from_fn(|_| Default::default()),
        }
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
    assert!(offset_of!(RegionHeader, output_bytes) == 96);
    assert!(offset_of!(RegionHeader, about_offset) == 176);
    assert!(offset_of!(RegionHeader, process_track) == 192);
    assert!(offset_of!(RegionHeader, pid_namespace) == 200);
    assert!(offset_of!(RegionHeader, lost) == 256);
    assert!(offset_of!(RegionHeader, batches_done) == 384);
    assert!(offset_of!(RegionHeader, output_len) == 392);
    assert!(offset_of!(RegionHeader, tail_batch) == 408);
    assert!(offset_of!(RegionHeader, last_look) == 416);
    assert!(offset_of!(RegionHeader, next_output) == 424);
    assert!(size_of::<ChunkHeader>() == 64 && align_of::<ChunkHeader>() == 64);
    assert!(offset_of!(ChunkHeader, state) == 0);
    assert!(offset_of!(ChunkHeader, commit) == 8);
    assert!(offset_of!(ChunkHeader, drained) == 16);
    assert!(offset_of!(ChunkHeader, context_len) == 36);
    assert!(offset_of!(ChunkHeader, taking) == 40);
    assert!(offset_of!(ChunkHeader, batch) == 48);
    assert!(offset_of!(ChunkHeader, recovery_len) == 52);
    assert!(offset_of!(ChunkHeader, claim) == 56);
    assert!(cfg!(target_endian = "little"), "the region's ABI is little-endian");
};
