//! A region: the header, the free bitmap, the chunks and the tapes. How a chunk changes hands: `bitmap.rs`.

#![allow(unsafe_code)] // forms references into the mapping

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crate::abi::{
    ABI_VERSION, CHUNK_HEADER_SIZE, CHUNK_LOST_SIZE, ChunkHeader, MAGIC, MAX_PATH, MAX_PRELUDE, MAX_TAPE,
    NO_FILE, OVERFLOW_DROP, OVERFLOW_OVERWRITE, PAGE, REGION_ACTIVE, REGION_CLOSED, RegionHeader, TAPES,
};
use crate::backing::{Backing, Memory, alignment};
use crate::config::RegionConfig;
use crate::error::RegionError;
use crate::loss::LossReason;
use crate::owner::Owner;
use crate::step::step;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::uncancelled::Uncancelled;
use crate::wait::Waiting;
use crate::{platform, process};

/// The ring of one session. Shared by the session and by the owner of each chunk.
///
/// ```
/// use hairline_shm::{ChunkInfo, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small())?;
/// let info = ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() };
/// let chunk = region.claim(info, b"").unwrap();
/// assert_eq!((region.chunk_count(), region.free_chunks()), (16, 15));
/// assert_eq!(chunk.capacity(), region.payload_len());
/// drop(chunk); // complete: a drain reads it, and then it is free again
/// assert!(region.has_complete_chunk());
/// # Ok::<(), hairline_shm::RegionError>(())
/// ```
#[derive(Debug)]
pub struct Region {
    memory: Memory,
    chunk_size: u32,
    chunk_count: u32,
    // Not loom's atomics: under loom the memory is the heap, which is allocated at once.
    /// The number of chunks whose memory is allocated: those with the lowest numbers. The others are not
    /// touched.
    allocated: atomic::AtomicU32,
    /// The number of chunks up to which memory may be allocated: lower than `chunk_count` when the system
    /// had no more.
    limit: atomic::AtomicU32,
    /// The chunks that the system had no memory for.
    denied: atomic::AtomicU32,
    bitmap_offset: usize,
    about_offset: usize,
    chunks_offset: usize,
    tape_len: [usize; TAPES],
    has_tape: [AtomicBool; TAPES],
    overwrite: bool,
    owners: Box<[Owner]>,
    /// The number of sequences so far. The header's number is for tools, and other processes can write it.
    sequences: atomic::AtomicU32,
    /// Whether the region has a drain or a window.
    has_reader: AtomicBool,
    waiting: Waiting,
    frees: Frees,
}

/// The number of times that chunks became free. Here, since other processes can write the region's memory. In
/// a cache line of its own: the drain changes it with each chunk, and threads read the rest of the region.
#[derive(Debug)]
#[repr(align(64))]
struct Frees(AtomicU32);

const _: () = assert!(align_of::<RegionHeader>() <= PAGE);

/// Bytes of chunks whose memory is allocated at the start, which takes some 0.1 ms.
const FIRST: u32 = 256 << 10;

impl Region {
    /// Creates a region with all chunks free. Until [`activate`](Region::activate) is called, recovery treats
    /// the region as empty.
    ///
    /// # Errors
    /// If a size is out of range, or the system has no memory for the region.
    pub fn create(config: &RegionConfig) -> Result<Arc<Self>, RegionError> {
        let chunk_size = config.chunk_size;
        let chunk_count = config.chunk_count()?;
        let out_of_range = RegionError::BufferSize {
            buffer: config.buffer_size,
            chunk: chunk_size,
            chunks: chunk_count.into(),
        };
        let bitmap_offset = size_of::<RegionHeader>().next_multiple_of(64);
        let bitmap_len = (chunk_count as usize).div_ceil(64) * size_of::<AtomicU64>();
        let about_offset = bitmap_offset + bitmap_len;
        let [path, prelude] = config.about.parts();
        if path.len() > MAX_PATH || prelude.len() > MAX_PRELUDE {
            return Err(RegionError::About { path: path.len(), prelude: prelude.len() });
        }
        let chunks_offset = (about_offset + path.len() + prelude.len()).next_multiple_of(alignment());
        let tape_len = config.tapes.map(|bytes| {
            if cfg!(loom) { 0 } else { (bytes.min(MAX_TAPE) as usize).next_multiple_of(alignment()) }
        });
        let needed = (chunk_count as usize)
            .checked_mul(chunk_size as usize)
            .and_then(|n| n.checked_add(chunks_offset));
        let needed = needed.ok_or(out_of_range)?.next_multiple_of(alignment());
        let at_start = (FIRST / chunk_size).clamp(1, chunk_count);
        let first = chunks_offset + at_start as usize * chunk_size as usize;
        let memory = Memory::new(config.backing, needed, tape_len.iter().sum(), first)
            .map_err(|(what, source)| RegionError::Memory { what, source })?;
        let owners = Owner::of_chunks(chunk_count).ok_or_else(|| RegionError::Memory {
            what: "the heap, for the owners of the chunks",
            source: io::ErrorKind::OutOfMemory.into(),
        })?;
        let allocated = if memory.is_whole() { chunk_count } else { at_start };
        let region = Self {
            memory,
            chunk_size,
            chunk_count,
            allocated: atomic::AtomicU32::new(allocated),
            limit: atomic::AtomicU32::new(chunk_count),
            denied: atomic::AtomicU32::new(0),
            bitmap_offset,
            about_offset,
            chunks_offset,
            tape_len,
            has_tape: Default::default(),
            overwrite: config.overwrite,
            owners,
            sequences: atomic::AtomicU32::new(0),
            has_reader: AtomicBool::new(false),
            waiting: Waiting::new(),
            frees: Frees(AtomicU32::new(0)),
        };
        region.initialise(config);
        Ok(Arc::new(region))
    }

    fn initialise(&self, config: &RegionConfig) {
        let mut header = RegionHeader::default();
        header.output_len = core::array::from_fn(|_| AtomicU64::new(NO_FILE));
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
        // A model creates a region for each interleaving, and nobody looks for the process of those.
        if !cfg!(loom) {
            header.process_start = process::own_start().into();
            let own = platform::namespaces();
            (header.pid_namespace, header.time_namespace) = (own.pids.into(), own.time.into());
        }
        header.session = config.session.map(Into::into);
        let name = config.process_name.as_bytes();
        let n = name.len().min(header.process_name.as_flattened().len() - 1);
        for (field, byte) in header.process_name.as_flattened_mut().iter_mut().zip(&name[..n]) {
            *field = (*byte).into();
        }
        let [path, prelude] = config.about.parts();
        header.about_offset = small(self.about_offset).into();
        header.path_len = small(path.len()).into();
        header.prelude_len = small(prelude.len()).into();
        header.process_track = config.about.process_track.into();
        for (number, len) in self.tape_len.into_iter().enumerate().filter(|(_, len)| *len > 0) {
            header.tape_offset[number] = (self.tape_offset(number) as u64).into();
            header.tape_len[number] = AtomicU64::new(len as u64);
        }
        let mut at = self.about_offset;
        for part in [path, prelude] {
            // SAFETY: `create` has reserved the bytes of both parts between the bitmap and the chunks. The
            // region is not shared yet.
            unsafe { self.at(at).copy_from_nonoverlapping(NonNull::from(&*part).cast(), part.len()) };
            at += part.len();
        }
        // SAFETY: the memory is page-aligned and at least a page long. The region is not shared yet.
        unsafe { self.memory.base().cast::<RegionHeader>().write(header) };
        #[cfg(loom)]
        self.initialise_loom_atomics();
        let words = (self.chunk_count as usize).div_ceil(64);
        for w in 0..words {
            let chunks_here = (self.chunk_count as usize - w * 64).min(64);
            self.bitmap(w).store(u64::MAX >> (64 - chunks_here), Ordering::Relaxed);
        }
        step();
        // The last store. Release: a reader that finds the magic number, after a kill or from another
        // process, finds everything above.
        self.header().magic.store(u64::from_le_bytes(MAGIC), Ordering::Release);
        step();
    }

    /// Creates loom's atomics: zeroed memory is no valid value of them.
    #[cfg(loom)]
    fn initialise_loom_atomics(&self) {
        for w in 0..(self.chunk_count as usize).div_ceil(64) {
            // SAFETY: inside the memory by the layout in `create`; not shared yet.
            unsafe { self.at(self.bitmap_offset).cast::<AtomicU64>().add(w).write(AtomicU64::new(0)) };
        }
        for i in 0..self.chunk_count {
            // SAFETY: as above.
            unsafe { self.header_ptr(i).as_ptr().write(ChunkHeader::default()) };
        }
    }

    /// Marks the session as started: the region is complete, and the output has its head. `output_len` is the
    /// length of the output, if it is a file. Call it before the first pass of the drain.
    pub fn activate(&self, output_len: Option<u64>) {
        let header = self.header();
        header.output_len[0].store(output_len.unwrap_or(NO_FILE), Ordering::Release);
        // Release: a reader that finds the region after a kill and sees Active sees everything above.
        header.state.store(REGION_ACTIVE, Ordering::Release);
    }

    /// Announces the next file of the output, which takes the place of the present one at the same path.
    ///
    /// `inode` and `len` are those of the next file. `number` is the number that the present file gets in its
    /// new name. Only the drain's [`Output`](crate::Output) may call this, in
    /// [`next_file`](crate::Output::next_file).
    pub fn announce_output(&self, inode: u64, len: u64, number: u64) {
        let header = self.header();
        let [next_inode, next_len, next_number, next_batch] = &header.next_output;
        // Wrapping: another process can have written any number.
        let batch = header.batches_done.load(Ordering::Relaxed).wrapping_add(1);
        // Batch 0 announces nothing while the other words change. A kill in between must not leave the number
        // of the last announcement beside the inode of the new file: recovery would take that inode for the
        // present output's.
        next_batch.store(0, Ordering::Release);
        step();
        for (word, value) in
            [(next_inode, inode), (next_len, len), (next_number, number), (next_batch, batch)]
        {
            word.store(value, Ordering::Release);
            step();
        }
    }

    /// Notes the time, in ns of the trace's clock. After a kill it is the last known time of the process.
    pub fn note_time(&self, now: u64) {
        self.header().last_look.store(now, Ordering::Relaxed);
    }

    /// Returns `true` at the first call only: to the writer of this tape of the region, if it has it.
    pub(crate) fn take_tape(&self, number: usize) -> bool {
        self.tape_len[number] > 0 && !self.has_tape[number].swap(true, Ordering::Relaxed)
    }

    /// Forgets the entries of a tape before this position, which [`Tape::end`](crate::Tape::end) has
    /// returned.
    pub fn forget_tape(&self, number: usize, to: u64) {
        self.header().tape_begin[number].fetch_max(to, Ordering::Release);
    }

    pub(crate) fn tape_len(&self, number: usize) -> usize {
        self.tape_len[number]
    }

    fn tape_offset(&self, number: usize) -> usize {
        self.memory.len() - self.tape_len[number..].iter().sum::<usize>()
    }

    /// The bytes of a tape at these places.
    pub(crate) fn tape_at(&self, number: usize, places: Range<usize>) -> NonNull<u8> {
        assert!(places.start <= places.end && places.end <= self.tape_len[number]);
        // SAFETY: in bounds by the assertion: the tapes are the last parts of the memory.
        unsafe { self.memory.base().add(self.tape_offset(number) + places.start) }
    }

    /// Allocates the memory of these places. Returns `false` if the system has no more.
    pub(crate) fn allocate_tape(&self, number: usize, places: Range<u64>) -> bool {
        let at = |place: u64| {
            self.tape_offset(number) + usize::try_from(place).map_or(self.tape_len[number], |at| at)
        };
        self.memory.allocate(at(places.start)..at(places.end)).is_ok()
    }

    /// Whether all memory was allocated at the start.
    pub(crate) fn is_whole(&self) -> bool {
        self.memory.is_whole()
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.memory.len());
        // SAFETY: in bounds by the assertion.
        unsafe { self.memory.base().add(offset) }
    }

    /// The header at the region's start.
    pub fn header(&self) -> &RegionHeader {
        // SAFETY: in bounds and aligned, as the memory is at least one page. `initialise` has written a
        // header there, which loom's atomics need. Every field is an atomic, for which all bytes are valid:
        // another process may change any of them, and `leave_in_child` makes all of them zero.
        unsafe { self.memory.base().cast().as_ref() }
    }

    pub(crate) fn bitmap(&self, word: usize) -> &AtomicU64 {
        assert!(word * 64 < self.chunk_count as usize);
        // SAFETY: in bounds by the assertion and the layout in `create`, and 8-aligned.
        unsafe { self.at(self.bitmap_offset).cast::<AtomicU64>().add(word).as_ref() }
    }

    /// All words of the bitmap.
    #[inline]
    pub(crate) fn bitmap_words(&self) -> &[AtomicU64] {
        // SAFETY: `create` has reserved as many words there, 8-aligned. All bytes are valid for an atomic.
        unsafe {
            let words = self.memory.base().add(self.bitmap_offset).cast::<AtomicU64>();
            std::slice::from_raw_parts(words.as_ptr(), (self.chunk_count as usize).div_ceil(64))
        }
    }

    pub(crate) fn header_ptr(&self, chunk: u32) -> NonNull<ChunkHeader> {
        assert!(chunk < self.chunk_count);
        self.at(self.chunks_offset + chunk as usize * self.chunk_size as usize).cast()
    }

    /// The header of chunk number `chunk` (below [`Region::chunk_count`]).
    pub fn chunk_header(&self, chunk: u32) -> &ChunkHeader {
        // SAFETY: in bounds and aligned (`header_ptr`). Every field is an atomic, for which all bytes are
        // valid.
        unsafe { self.header_ptr(chunk).as_ref() }
    }

    /// The owner of chunk number `chunk`.
    pub(crate) fn owner(&self, chunk: u32) -> &Owner {
        &self.owners[chunk as usize]
    }

    /// The chunk header at this address, if it is one of this region.
    pub(crate) fn header_at(&self, header: NonNull<ChunkHeader>) -> Option<&ChunkHeader> {
        let offset = header.addr().get().checked_sub(self.header_ptr(0).addr().get())?;
        let is_one = offset.is_multiple_of(self.chunk_size as usize);
        let number = u32::try_from(offset / self.chunk_size as usize).ok()?;
        (is_one && number < self.chunk_count).then(|| self.chunk_header(number))
    }

    /// Whether threads overwrite the oldest chunk when no chunk is free.
    #[inline]
    pub fn overwrites(&self) -> bool {
        self.overwrite
    }

    /// The threads that wait for a chunk.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    #[inline]
    pub(crate) fn frees(&self) -> &AtomicU32 {
        &self.frees.0
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> u32 {
        self.chunk_count
    }

    /// Bytes of a chunk, header included.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Payload bytes of a chunk.
    pub fn payload_len(&self) -> u32 {
        self.chunk_size - small(CHUNK_HEADER_SIZE + CHUNK_LOST_SIZE)
    }

    /// The number of events that the owners of the chunk have lost to a full ring. Not loom's atomic: nothing
    /// depends on its order.
    pub(crate) fn lost_of(&self, chunk: u32) -> &atomic::AtomicU64 {
        let at = self.chunk_size as usize - CHUNK_LOST_SIZE;
        // SAFETY: in the chunk, 8-aligned like its header, and an atomic, for which all bytes are valid. No
        // payload reaches there.
        unsafe { self.header_ptr(chunk).cast::<u8>().add(at).cast().as_ref() }
    }

    /// The number of events that the owners of all chunks have lost to a full ring. In a region that
    /// overwrites, the ring is never full.
    fn lost_by_owners(&self) -> u64 {
        let chunks = if self.overwrite { 0 } else { self.allocated_chunks() };
        (0..chunks)
            // The memory of a chunk that was never claimed is not touched.
            .filter(|chunk| self.chunk_header(*chunk).state.load(Ordering::Relaxed) != 0)
            .fold(0, |sum, chunk| sum.saturating_add(self.lost_of(chunk).load(Ordering::Relaxed)))
    }

    /// The memory that the region uses.
    pub fn backing(&self) -> &Backing {
        self.memory.backing()
    }

    /// Why the region has no file although one was asked for (`BackingChoice::Auto`): what the system
    /// refused, and its error.
    pub fn no_file(&self) -> Option<(&'static str, &io::Error)> {
        self.memory.no_file().map(|(what, e)| (*what, e))
    }

    /// Allocates memory for the next chunks: those of `bytes` bytes, and at least one. Takes some 0.3 ms for
    /// each MiB. Returns whether there are new chunks, from this thread or from another one.
    ///
    /// When the system has no more memory, the region stays as it is, and never tries again.
    ///
    /// ```
    /// use hairline_shm::{BackingChoice, Region, RegionConfig};
    ///
    /// let (buffer_size, backing) = (4 << 20, BackingChoice::File); // the heap is allocated at once
    /// let region = Region::create(&RegionConfig { buffer_size, backing, ..RegionConfig::small() })?;
    /// let before = region.allocated_chunks();
    /// assert!(before < region.chunk_count()); // memory is allocated when it is needed
    /// assert!(region.grow(1 << 20));
    /// assert!(region.allocated_chunks() > before);
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn grow(&self, bytes: u32) -> bool {
        // Acquire: see `allocated_chunks`.
        let (from, limit) = (self.allocated.load(Ordering::Acquire), self.limit.load(Ordering::Relaxed));
        if from >= limit {
            return false;
        }
        let to = from.saturating_add((bytes / self.chunk_size).max(1)).min(limit);
        let offset = |chunk: u32| self.chunks_offset + chunk as usize * self.chunk_size as usize;
        let _uncancelled = Uncancelled::new(); // `fallocate`, on kernels that cannot populate
        // Another thread may allocate the same chunks at the same time, which does no harm.
        if self.memory.allocate(offset(from)..offset(to)).is_err() {
            let allocated = self.allocated_chunks();
            self.limit.fetch_min(allocated, Ordering::Relaxed);
            self.denied.store(self.chunk_count - allocated, Ordering::Relaxed);
            return allocated > from;
        }
        // Release pairs with the Acquire in `allocated_chunks`.
        self.allocated.fetch_max(to, Ordering::Release);
        self.count_freed(); // if another thread's memory was denied meanwhile, the ring may have been full
        true
    }

    /// The number of chunks whose memory is allocated. Only these have a free bit that counts, and a header
    /// that may be read.
    #[inline]
    pub fn allocated_chunks(&self) -> u32 {
        // Acquire pairs with the Release in `grow`: the allocation happens before the first use.
        self.allocated.load(Ordering::Acquire)
    }

    /// The number of chunks that are not allocated, but can be.
    #[inline]
    pub(crate) fn chunks_to_come(&self) -> u32 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.allocated_chunks())
    }

    /// The number of chunks that the region never got, because the system had no memory for them.
    pub fn chunks_denied(&self) -> u32 {
        self.denied.load(Ordering::Relaxed)
    }

    /// Bytes of the whole region.
    #[allow(clippy::len_without_is_empty)] // no region is empty
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns a number for a new sequence, unique in this region. The first is 1.
    pub fn new_sequence(&self) -> u32 {
        self.header().next_sequence.fetch_add(1, Ordering::Relaxed);
        self.sequences.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Counts the next claim. Returns the number of claims before it.
    pub(crate) fn new_claim(&self) -> u32 {
        self.header().claims.fetch_add(1, Ordering::Relaxed)
    }

    /// The bytes that the output has taken in whole passes, and the number of free chunks. One of the two
    /// changes when the output takes bytes.
    pub fn taken_by_output(&self) -> (u64, u32) {
        (self.header().output_bytes.load(Ordering::Relaxed), self.free_chunks())
    }

    /// Returns `true` at the first call only: to the region's one drain or window.
    pub(crate) fn take_reader(&self) -> bool {
        !self.has_reader.swap(true, Ordering::Relaxed)
    }

    /// Counts `n` events as lost for `reason`.
    #[cold]
    pub fn count_lost(&self, reason: LossReason, n: u64) {
        self.header().lost[reason as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// The number of events lost for `reason` so far.
    pub fn lost(&self, reason: LossReason) -> u64 {
        let header = self.header();
        let counted = header.lost[reason as usize].load(Ordering::Relaxed);
        if reason != LossReason::BufferFull || header.state.load(Ordering::Acquire) == REGION_CLOSED {
            return counted;
        }
        counted.saturating_add(self.lost_by_owners()) // other processes can change the numbers
    }

    /// Marks the region as drained, removes its file and gives the memory of the chunks back to the system.
    /// The owners of chunks may go on writing; no thread reads those bytes.
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// // SAFETY: the region has neither a drain nor a window.
    /// unsafe { region.close() };
    /// assert!(chunk.append(b"a late record", 1)); // no thread reads it
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    ///
    /// # Safety
    /// During the call, no pass of the region's [`Drain`](crate::Drain) and no take of its
    /// [`Window`](crate::Window) runs.
    pub unsafe fn close(&self) {
        self.limit.fetch_min(self.allocated_chunks(), Ordering::Relaxed); // it grows no more
        if self.header().state.swap(REGION_CLOSED, Ordering::AcqRel) != REGION_CLOSED {
            // The numbers in the chunks are gone with their memory. In this order, because a kill in between
            // must not count them twice: recovery then has too few.
            self.count_lost(LossReason::BufferFull, self.lost_by_owners());
        }
        self.memory.unlink();
        // SAFETY: slices of payloads exist only during a pass and during a window's take, which the contract
        // excludes. The other references into the chunks are to headers. Those are all atomics, and may
        // become zero. The owners of chunks read and write payloads by pointers; they find zeros, or the
        // bytes that they wrote after this.
        unsafe { self.memory.release(self.chunks_offset) };
    }

    /// Detaches a forked child from its parent's region. The later stores of this process go into private
    /// memory.
    ///
    /// # Safety
    /// As for [`close`](Self::close), in this process, which has one thread.
    pub unsafe fn leave_in_child(&self) {
        self.limit.fetch_min(self.allocated_chunks(), Ordering::Relaxed); // it grows no more
        self.waiting.end(); // nobody frees a chunk here
        // SAFETY: as in `close`. The header and the bitmap of the region are all atomics too.
        unsafe { self.memory.leave_in_child() };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.memory.unlink(); // not closed yet if the session failed to start
    }
}

/// Converts a length that the layout keeps below 2^32.
#[allow(clippy::cast_possible_truncation)]
pub(crate) const fn small(n: usize) -> u32 {
    debug_assert!(n <= u32::MAX as usize);
    n as u32
}
