//! A region: the header, the free bitmap and the chunks. How a thread comes by a chunk is in `claim.rs`.

#![allow(unsafe_code)] // forms references into the mapping

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crate::abi::{
    ABI_VERSION, CHUNK_HEADER_SIZE, CHUNK_SIZE_RANGE, ChunkHeader, LossReason, MAGIC, MAX_PATH, MAX_PRELUDE,
    NO_FILE, OVERFLOW_DROP, OVERFLOW_OVERWRITE, PAGE, REGION_ACTIVE, REGION_CLOSED, RegionHeader,
};
use crate::backing::{Backing, BackingChoice, Memory, alignment};
use crate::error::RegionError;
use crate::ledger::step;
use crate::owner::Owner;
use crate::process;
use crate::sync::{AtomicU64, Ordering};
use crate::wait::Waiting;

/// What a region is made from.
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// Bytes of all chunks together; rounded down to whole chunks.
    pub buffer_size: u64,
    /// Bytes of one chunk, header included: a power of two, 4 KiB to 16 MiB.
    pub chunk_size: u32,
    /// Which memory to take.
    pub backing: BackingChoice,
    /// Whether the oldest chunk is overwritten when none is free, in place of being drained.
    pub overwrite: bool,
    /// For the header: the output's format, as the caller numbers them.
    pub format: u32,
    /// For the header: identifies the session.
    pub session: [u8; 16],
    /// For the header: clock multiplier and offset.
    pub clock: (u64, u64),
    /// For the header: the executable's name; cut to 63 bytes.
    pub process_name: String,
    /// What a tool must know that finds the region of a dead process.
    pub about: About,
}

/// What [`recover`](crate::recover) reads when the process cannot say it any more.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The output's path, absolute; empty where the output is no file. At most [`MAX_PATH`] bytes.
    pub output: PathBuf,
    /// What the output begins with. At most [`MAX_PRELUDE`] bytes.
    pub prelude: Vec<u8>,
    /// The trace's number for the process's own track.
    pub process_track: u64,
}

impl About {
    fn parts(&self) -> [&[u8]; 2] {
        [self.output.as_os_str().as_bytes(), &self.prelude]
    }
}

/// The ring of one session. Lives until the session and every chunk's owner have let go of it.
#[derive(Debug)]
pub struct Region {
    memory: Memory,
    chunk_size: u32,
    chunk_count: u32,
    bitmap_offset: usize,
    about_offset: usize,
    chunks_offset: usize,
    overwrite: bool,
    owners: Box<[Owner]>,
    /// Sequences so far. The header's number is for tools: other processes can write it.
    sequences: atomic::AtomicU32,
    /// Whether the region has its drain, or its window.
    has_reader: AtomicBool,
    waiting: Waiting,
}

const _: () = assert!(align_of::<RegionHeader>() <= PAGE);

impl Region {
    /// Makes a region whose chunks are all free. Who finds it after a crash takes it for one that recorded nothing, until
    /// [`activate`](Region::activate).
    ///
    /// # Errors
    /// When the sizes make no sense or the memory cannot be had.
    pub fn create(config: &RegionConfig) -> Result<Arc<Self>, RegionError> {
        let chunk_size = config.chunk_size;
        if !chunk_size.is_power_of_two() || !CHUNK_SIZE_RANGE.contains(&chunk_size) {
            return Err(RegionError::ChunkSize(chunk_size));
        }
        let chunks = config.buffer_size / u64::from(chunk_size);
        let out_of_range = RegionError::BufferSize { buffer: config.buffer_size, chunk: chunk_size, chunks };
        let chunk_count = match u32::try_from(chunks) {
            Ok(n @ 4..=0x100_0000) => n,
            _ => return Err(out_of_range),
        };
        let bitmap_offset = size_of::<RegionHeader>().next_multiple_of(64);
        let bitmap_len = (chunk_count as usize).div_ceil(64) * size_of::<AtomicU64>();
        let about_offset = bitmap_offset + bitmap_len;
        let [path, prelude] = config.about.parts();
        if path.len() > MAX_PATH || prelude.len() > MAX_PRELUDE {
            return Err(RegionError::About { path: path.len(), prelude: prelude.len() });
        }
        let chunks_offset = (about_offset + path.len() + prelude.len()).next_multiple_of(alignment());
        let len = (chunk_count as usize)
            .checked_mul(chunk_size as usize)
            .and_then(|n| n.checked_add(chunks_offset));
        let memory = Memory::new(config.backing, len.ok_or(out_of_range)?)
            .map_err(|(what, source)| RegionError::Memory { what, source })?;
        let region = Self {
            memory,
            chunk_size,
            chunk_count,
            bitmap_offset,
            about_offset,
            chunks_offset,
            overwrite: config.overwrite,
            owners: (0..chunk_count).map(|_| Owner::default()).collect(),
            sequences: atomic::AtomicU32::new(0),
            has_reader: AtomicBool::new(false),
            waiting: Waiting::new(),
        };
        region.initialise(config);
        Ok(Arc::new(region))
    }

    fn initialise(&self, config: &RegionConfig) {
        let mut header = RegionHeader::zeroed();
        header.abi_version = ABI_VERSION.into();
        header.header_size = small(size_of::<RegionHeader>()).into();
        header.chunk_size = self.chunk_size.into();
        header.chunk_count = self.chunk_count.into();
        header.chunk_header_size = small(CHUNK_HEADER_SIZE).into();
        header.bitmap_offset = small(self.bitmap_offset).into();
        header.chunks_offset = (self.chunks_offset as u64).into();
        header.format = config.format.into();
        header.overflow = (if config.overwrite { OVERFLOW_OVERWRITE } else { OVERFLOW_DROP }).into();
        header.pid = std::process::id().into();
        header.process_start = process::start_time(process::SELF).unwrap_or(0).into();
        header.pid_namespace = process::own_namespace().into();
        header.session = config.session.map(Into::into);
        (header.clock_multiplier, header.clock_offset) = (config.clock.0.into(), config.clock.1.into());
        let name = config.process_name.as_bytes();
        let n = name.len().min(header.process_name.len() - 1);
        for (field, byte) in header.process_name.iter_mut().zip(&name[..n]) {
            *field = (*byte).into();
        }
        let [path, prelude] = config.about.parts();
        header.about_offset = small(self.about_offset).into();
        header.path_len = small(path.len()).into();
        header.prelude_len = small(prelude.len()).into();
        header.process_track = config.about.process_track.into();
        let mut at = self.about_offset;
        for part in [path, prelude] {
            // SAFETY: `create` kept room for both parts between the bitmap and the chunks, where nothing else
            // is; the region is not shared yet.
            unsafe { self.at(at).copy_from_nonoverlapping(NonNull::from(part).cast(), part.len()) };
            at += part.len();
        }
        // SAFETY: the memory is at least a page, page-aligned, and ours alone: the region is not shared yet.
        unsafe { self.memory.base().cast::<RegionHeader>().write(header) };
        #[cfg(loom)]
        self.initialise_loom_atomics();
        let words = (self.chunk_count as usize).div_ceil(64);
        for w in 0..words {
            let chunks_here = (self.chunk_count as usize - w * 64).min(64);
            self.bitmap(w).store(u64::MAX >> (64 - chunks_here), Ordering::Relaxed);
        }
        step();
        // The last. Release: who finds the magic number, after a kill or from another process, finds all of
        // the above.
        self.header().magic.store(u64::from_le_bytes(MAGIC), Ordering::Release);
        step();
    }

    /// loom's atomics are not valid as zeroed memory; each must be made.
    #[cfg(loom)]
    fn initialise_loom_atomics(&self) {
        for w in 0..(self.chunk_count as usize).div_ceil(64) {
            // SAFETY: inside the memory by the layout in `create`; not shared yet.
            unsafe { self.at(self.bitmap_offset).cast::<AtomicU64>().add(w).write(AtomicU64::new(0)) };
        }
        for i in 0..self.chunk_count {
            // SAFETY: as above.
            unsafe { self.header_ptr(i).as_ptr().write(ChunkHeader::zeroed()) };
        }
    }

    /// The session begins: the region says all of itself, and the output has its head. `output_len` is the file's
    /// length, if it is one. Call it before anything is drained.
    pub fn activate(&self, output_len: Option<u64>) {
        let header = self.header();
        header.output_len[0].store(output_len.unwrap_or(NO_FILE), Ordering::Release);
        // Release: who finds the region after a kill and sees Active sees all of the above.
        header.state.store(REGION_ACTIVE, Ordering::Release);
    }

    /// The output is about to go on in another file, which takes the place of the one before at the same path: its inode, its
    /// length, and the number that the one before gets. Only the drain's [`Output`](crate::Output) may say so, in
    /// [`turn`](crate::Output::turn).
    pub fn announce_output(&self, inode: u64, len: u64, number: u64) {
        let header = self.header();
        let [next_inode, next_len, next_number, next_batch] = &header.next_output;
        // Another process can write this number: no overflow.
        let batch = header.batches_done.load(Ordering::Relaxed).wrapping_add(1);
        // Nothing is announced while the other words change: a kill in between must not leave the old batch's
        // number beside the new file's inode, which recovery would take for the inode of the output of now.
        next_batch.store(0, Ordering::Release);
        step();
        for (word, value) in
            [(next_inode, inode), (next_len, len), (next_number, number), (next_batch, batch)]
        {
            word.store(value, Ordering::Release);
            step();
        }
    }

    /// Notes the trace's time, in ns: the last that is known if the process is killed.
    pub fn note_time(&self, now: u64) {
        self.header().last_look.store(now, Ordering::Relaxed);
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.memory.len());
        // SAFETY: in bounds by the assertion.
        unsafe { self.memory.base().add(offset) }
    }

    /// The header at the region's start.
    pub fn header(&self) -> &RegionHeader {
        // SAFETY: in bounds and aligned, as the memory is at least one page. `initialise` has written a
        // header there (under loom its atomics are valid in no other way). Every field is an atomic, and
        // valid whatever its bytes are: another process may change any of them, and `leave_in_child` makes
        // all of them zero.
        unsafe { self.memory.base().cast().as_ref() }
    }

    pub(crate) fn bitmap(&self, word: usize) -> &AtomicU64 {
        assert!(word * 64 < self.chunk_count as usize);
        // SAFETY: in bounds by the assertion and the layout in `create`, and 8-aligned.
        unsafe { self.at(self.bitmap_offset).cast::<AtomicU64>().add(word).as_ref() }
    }

    pub(crate) fn header_ptr(&self, chunk: u32) -> NonNull<ChunkHeader> {
        assert!(chunk < self.chunk_count);
        self.at(self.chunks_offset + chunk as usize * self.chunk_size as usize).cast()
    }

    /// The header of chunk number `chunk` (below [`Region::chunk_count`]).
    pub fn chunk_header(&self, chunk: u32) -> &ChunkHeader {
        // SAFETY: in bounds and aligned (`header_ptr`). Every field is an atomic, and valid whatever its
        // bytes are.
        unsafe { self.header_ptr(chunk).as_ref() }
    }

    /// Whose chunk number `chunk` is.
    pub(crate) fn owner(&self, chunk: u32) -> &Owner {
        &self.owners[chunk as usize]
    }

    /// The header at this address, if there is one in this region.
    pub(crate) fn header_at(&self, header: NonNull<ChunkHeader>) -> Option<&ChunkHeader> {
        let offset = header.addr().get().checked_sub(self.header_ptr(0).addr().get())?;
        let is_one = offset.is_multiple_of(self.chunk_size as usize);
        let number = u32::try_from(offset / self.chunk_size as usize).ok()?;
        (is_one && number < self.chunk_count).then(|| self.chunk_header(number))
    }

    /// Whether a full region overwrites its oldest chunk.
    pub fn overwrites(&self) -> bool {
        self.overwrite
    }

    /// Who waits for a chunk.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> u32 {
        self.chunk_count
    }

    /// Bytes of a chunk, header included.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Payload bytes of a chunk.
    pub fn payload_len(&self) -> u32 {
        self.chunk_size - small(CHUNK_HEADER_SIZE)
    }

    /// What memory the region stands in.
    pub fn backing(&self) -> &Backing {
        self.memory.backing()
    }

    /// Makes the pages of a range of the region's bytes present; some 4 GB/s. What lies beyond the end does not count.
    pub fn populate(&self, bytes: Range<usize>) {
        self.memory.populate(bytes);
    }

    /// Bytes of the whole region.
    #[allow(clippy::len_without_is_empty)] // there is no empty one
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// A number for a new sequence, unique in this region. The first is `1`.
    pub fn new_sequence(&self) -> u32 {
        self.header().next_sequence.fetch_add(1, Ordering::Relaxed);
        self.sequences.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Bytes that the output has taken in whole passes, and the chunks that are free: what changes while it takes any.
    pub fn taken_by_output(&self) -> (u64, u32) {
        (self.header().output_bytes.load(Ordering::Relaxed), self.free_chunks())
    }

    /// True for the first to ask.
    pub(crate) fn take_reader(&self) -> bool {
        !self.has_reader.swap(true, Ordering::Relaxed)
    }

    /// Adds to the count of events lost for `reason`.
    #[cold]
    pub fn count_lost(&self, reason: LossReason, n: u64) {
        self.header().lost[reason as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Events lost for `reason` so far.
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.header().lost[reason as usize].load(Ordering::Relaxed)
    }

    /// Says that everything was drained, removes the file's name and gives the chunks' memory back to the system. Owners of chunks may
    /// go on writing: into memory that nobody reads.
    ///
    /// # Safety
    /// While the call lasts, no pass of the region's [`Drain`](crate::Drain) is under way, and no take of its
    /// [`Window`](crate::Window).
    pub unsafe fn close(&self) {
        self.header().state.store(REGION_CLOSED, Ordering::Release);
        self.memory.unlink();
        // SAFETY: slices of payloads live in a pass and in a window's take only, which the contract excludes.
        // The other references into the chunks are to headers, which are all atomics, and may become zero.
        // The chunks' owners read and write payloads by pointers, and find zeros or what they have written
        // after this.
        unsafe { self.memory.release(self.chunks_offset) };
    }

    /// In a forked child: the region is the parent's. What this process still stores into it goes nowhere.
    ///
    /// # Safety
    /// As for [`close`](Self::close), in this process; which has one thread.
    pub unsafe fn leave_in_child(&self) {
        // SAFETY: as in `close`; the region's header and the bitmap are all atomics too.
        unsafe { self.memory.leave_in_child() };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.memory.unlink(); // not closed: the session never came to run
    }
}

/// A length that the layout keeps below 2^32.
#[allow(clippy::cast_possible_truncation)]
pub(crate) const fn small(n: usize) -> u32 {
    debug_assert!(n <= u32::MAX as usize);
    n as u32
}

impl RegionConfig {
    /// Sixteen chunks of 4 KiB on the heap: for tests and examples.
    #[must_use]
    pub fn small() -> Self {
        Self {
            buffer_size: 16 * 4096,
            chunk_size: 4096,
            backing: BackingChoice::Heap,
            overwrite: false,
            format: 0,
            session: [0; 16],
            clock: (0, 0),
            process_name: String::new(),
            about: About::default(),
        }
    }
}
