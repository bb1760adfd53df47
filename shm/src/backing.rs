//! The memory under a region: a file, a memfd, or the heap. The file is in `/dev/shm`, or, on other systems
//! than Linux, in the directory for temporary files.
//!
//! | backing | outlives a kill | used                                         |
//! |---------|-----------------|----------------------------------------------|
//! | file    | yes             | by default                                   |
//! | memfd   | no              | if the directory is absent, full or closed, and in privileged programs |
//! | heap    | no              | if the system has neither; loom; tests       |
//!
//! The pages of a mapping are allocated by a system call before anything touches them. So a full tmpfs is an
//! error of that call, and not a SIGBUS in the middle of an event. A region allocates its pages step by step,
//! ahead of their use (`MADV_POPULATE_WRITE`): 512 MiB at once take some 0.3 s. A kernel before 5.14 cannot
//! do that, so there all pages are allocated at the start (`fallocate`).

#![allow(unsafe_code)] // mappings and the allocator

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::PAGE;
use crate::platform;

/// The memory to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackingChoice {
    /// The first of file, memfd and heap that the system has.
    #[default]
    Auto,
    /// A file in `/dev/shm`, or in the directory for temporary files.
    File,
    /// The first of memfd and heap that the system has: memory that no path leads to.
    Unnamed,
    /// A memfd, on Linux.
    Memfd,
    /// The heap of the process.
    Heap,
}

/// The memory that is used.
///
/// ```
/// use hairline_shm::{Backing, BackingChoice, Region, RegionConfig};
///
/// let config = RegionConfig { backing: BackingChoice::Memfd, ..RegionConfig::small() };
/// if let Ok(region) = Region::create(&config) { // an error if the system has none
///     assert!(matches!(region.backing(), Backing::Memfd));
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file in `/dev/shm`, or in the directory for temporary files. It has this path until the region is
    /// closed.
    File(String),
    /// A memfd. It ends with the process.
    Memfd,
    /// The heap. It ends with the process.
    Heap,
}

/// The start of the names of regions' files. The pid and a random number follow.
const NAME: &str = "hairline-";

/// Returns the folder in which regions have their files: `/dev/shm`, or on other systems than Linux that for
/// temporary files.
#[must_use]
pub fn folder() -> PathBuf {
    platform::directory()
}

fn region_path(pid: u32, random: u64) -> PathBuf {
    folder().join(format!("{NAME}{pid}-{random:016x}"))
}

/// The pid in the name of a region's file. `None` for other names.
#[cfg(not(loom))]
pub(crate) fn pid_in(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix(NAME)?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_random)
}

/// What failed, and how.
pub(crate) type Failure = (&'static str, io::Error);

/// Zeroed memory, aligned to [`alignment`] bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    backing: Backing,
    /// Whether the file has its name.
    linked: AtomicBool,
    /// Whether all pages were allocated at the start.
    is_whole: bool,
    /// Why there is no file, if there should be one: what failed.
    no_file: Option<Failure>,
    /// The process that created the memory. A forked child has the value too, and must not remove the file.
    pid: u32,
}

// SAFETY: a mapping and an allocation belong to the process, not to a thread. `abi.rs` says which thread may
// access which byte.
unsafe impl Send for Memory {}
// SAFETY: as above. No method with `&self` changes a field but the atomic one. `release` and `leave_in_child`
// change the mapping by system calls, which several threads may make at once.
unsafe impl Sync for Memory {}

impl Memory {
    /// Makes memory of `needed` and `more` bytes, which are multiples of [`PAGE`]; `needed` is not 0. The
    /// first `first` bytes are allocated; the caller allocates the others by [`allocate`](Self::allocate)
    /// before it touches them.
    ///
    /// # Errors
    /// If the system does not have `needed` bytes at the moment. The error names the memory that failed.
    pub(crate) fn new(
        choice: BackingChoice,
        needed: usize,
        more: usize,
        first: usize,
    ) -> Result<Self, Failure> {
        assert!(needed.is_multiple_of(PAGE) && more.is_multiple_of(PAGE) && needed > 0 && first <= needed);
        let too_much = || ("the size of the memory", io::ErrorKind::OutOfMemory.into());
        let len = needed.checked_add(more).ok_or_else(too_much)?;
        match choice {
            BackingChoice::File => Self::file(len, needed, first).map_err(|(_, e)| ("a file in /dev/shm", e)),
            BackingChoice::Memfd => Self::memfd(len, first).map_err(|e| ("a memfd", e)),
            BackingChoice::Heap => Self::heap(len).map_err(|e| ("the heap", e)),
            BackingChoice::Unnamed => {
                Self::memfd(len, first).or_else(|_| Self::heap(len)).map_err(|e| ("the heap", e))
            }
            BackingChoice::Auto => Self::file(len, needed, first).or_else(|why| {
                let unnamed = Self::memfd(len, first).or_else(|_| Self::heap(len));
                let mut memory = unnamed.map_err(|e| ("the heap", e))?;
                memory.no_file = Some(why);
                Ok(memory)
            }),
        }
    }

    fn file(len: usize, needed: usize, first: usize) -> Result<Self, Failure> {
        let random = platform::random().map_err(|e| ("a random number (getrandom)", e))?;
        let path = region_path(std::process::id(), random);
        let invalid = |_| ("the path of /dev/shm", io::ErrorKind::InvalidInput.into()); // not Unicode
        let name = path.clone().into_os_string().into_string().map_err(invalid)?;
        let file = platform::create_file(&path).map_err(|e| ("a file in /dev/shm", e))?;
        let mapped = platform::require_free(&file, needed)
            .map_err(|e| ("the room in /dev/shm (fstatfs)", e))
            .and_then(|()| {
                Self::mapped(&file, len, first)
                    .map_err(|e| ("memory of /dev/shm (ftruncate, mmap, madvise, fallocate)", e))
            });
        match mapped {
            Ok(mut memory) => {
                (memory.backing, memory.linked) = (Backing::File(name), AtomicBool::new(true));
                Ok(memory)
            }
            Err(failure) => {
                drop(file);
                let _ = std::fs::remove_file(&path);
                Err(failure)
            }
        }
    }

    fn memfd(len: usize, first: usize) -> io::Result<Self> {
        let file = platform::memory_file()?;
        let memory = Self::mapped(&file, len, first)?;
        platform::seal_length(&file);
        Ok(memory)
    }

    /// Maps `len` bytes of the empty file, the first of them allocated.
    fn mapped(file: &File, len: usize, first: usize) -> io::Result<Self> {
        file.set_len(len as u64)?;
        let mut memory = Self::of(platform::map(file, len)?, len, Backing::Memfd);
        match memory.allocate(0..first) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                reserve(file, len)?;
                memory.is_whole = true;
            }
            allocated => allocated?,
        }
        Ok(memory)
    }

    fn heap(len: usize) -> io::Result<Self> {
        // SAFETY: the layout's size is not zero: `new` asserts it.
        let base = NonNull::new(unsafe { alloc_zeroed(Self::layout(len)?) });
        let base = base.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut memory = Self::of(base, len, Backing::Heap);
        memory.is_whole = true;
        Ok(memory)
    }

    fn of(base: NonNull<u8>, len: usize, backing: Backing) -> Self {
        Self {
            base,
            len,
            backing,
            linked: AtomicBool::new(false),
            is_whole: false,
            no_file: None,
            pid: std::process::id(),
        }
    }

    fn layout(len: usize) -> io::Result<Layout> {
        Layout::from_size_align(len, alignment()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Why there is no file, if [`BackingChoice::Auto`] found none.
    pub(crate) fn no_file(&self) -> Option<&Failure> {
        self.no_file.as_ref()
    }

    /// Whether all pages are allocated, or need no allocation.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Allocates the pages of a range and makes them present, at some 4 GB/s, so that no store to them can
    /// fail or pay for a page fault. Takes no lock of this crate: several threads may allocate the same
    /// range.
    ///
    /// # Errors
    /// If the system has no more memory. The error is `InvalidInput` on kernels before 5.14.
    pub(crate) fn allocate(&self, pages: Range<usize>) -> io::Result<()> {
        let (from, to) = (pages.start.min(self.len) & !(alignment() - 1), pages.end.min(self.len));
        if self.backing == Backing::Heap || from >= to {
            return Ok(());
        }
        // SAFETY: the range is inside of this mapping.
        let start = unsafe { self.base.add(from) };
        let populate = || platform::populate(start, to - from);
        unless_interrupted(populate)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Gives the whole pages from byte `from` on back to the system. Ignores errors. Later stores go into new
    /// private memory, and never cause a SIGBUS, even if the file system is full by then.
    ///
    /// # Safety
    /// The process has no reference to a byte from `from` on that must not become zero.
    pub(crate) unsafe fn release(&self, from: usize) {
        // SAFETY: by the contract.
        unsafe { self.release_by(from, platform::page_size()) };
    }

    /// As [`release`](Self::release), with pages of `page` bytes.
    ///
    /// # Safety
    /// As [`release`](Self::release).
    unsafe fn release_by(&self, from: usize, page: usize) {
        let Range { start, end } = self.whole_pages(from, page);
        let len = end.saturating_sub(start);
        if len == 0 {
            return;
        }
        // SAFETY: the range is a part of this memory, which stays mapped. Its pages have no other bytes
        // (`whole_pages`). By the contract its bytes may become zero.
        unsafe {
            let start = self.base.add(start);
            if self.backing == Backing::Heap {
                platform::release_private(start, len);
            } else {
                platform::release(start, len);
            }
        }
    }

    /// The range from `from` on of the pages, of `page` bytes each, that have no bytes of other memory.
    ///
    /// The system works on whole pages and rounds a length up. In the heap that must not reach the next
    /// allocation. A mapping has all of its last page.
    fn whole_pages(&self, from: usize, page: usize) -> Range<usize> {
        let base = self.base.addr().get();
        let start = (base + from.min(self.len)).next_multiple_of(page) - base;
        let last = (base + self.len) / page * page;
        let end = if self.backing == Backing::Heap { last.saturating_sub(base) } else { self.len };
        start..end
    }

    /// Detaches a forked child from the memory of its parent. Later stores go into private memory.
    ///
    /// # Safety
    /// The process has no reference to a byte of this memory that must not become zero.
    pub(crate) unsafe fn leave_in_child(&self) {
        if self.backing != Backing::Heap {
            // SAFETY: the range is this whole mapping, which stays mapped. By the contract its bytes may
            // become zero.
            unsafe { platform::replace_by_private(self.base, self.len) };
        }
    }

    /// Removes the file. The mapping stays until drop. Windows removes no file that is mapped: there the drop
    /// removes it.
    pub(crate) fn unlink(&self) {
        if let Backing::File(path) = &self.backing
            && self.linked.load(Ordering::Relaxed)
            && self.pid == std::process::id()
            && std::fs::remove_file(path).is_ok()
        {
            self.linked.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.backing == Backing::Heap {
            if let Ok(layout) = Self::layout(self.len) {
                // SAFETY: `base` is from `alloc_zeroed` with this layout: neither `len` nor the page size has
                // changed.
                unsafe { dealloc(self.base.as_ptr(), layout) };
            }
        } else {
            // SAFETY: `base` and `len` are those of the mmap. Mappings that have replaced parts of it are in
            // the same range. The owner of each chunk has the region, which has this value. A lease has a
            // pointer to a chunk only while the chunk lives (`Lease::set`).
            unsafe { platform::unmap(self.base, self.len) };
            self.unlink();
        }
    }
}

/// A file with an exclusive lock, which ends when the value is dropped.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Locked(std::fs::File);

#[cfg(not(loom))]
impl Locked {
    /// Locks the file. Does not wait: the error is `WouldBlock` if another process has the lock.
    pub(crate) fn new(file: std::fs::File) -> io::Result<Self> {
        platform::try_lock(&file)?;
        Ok(Self(file))
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for Locked {
    type Target = std::fs::File;
    fn deref(&self) -> &std::fs::File {
        &self.0
    }
}

#[cfg(not(loom))]
impl Drop for Locked {
    /// Unlocks. Closing the file is not enough: a child that another thread is just starting has the open
    /// file too, until it executes its program.
    fn drop(&mut self) {
        platform::unlock(&self.0);
    }
}

/// A buffer whose memory goes back to the system when it is dropped. An allocator could keep it.
#[derive(Debug)]
pub(crate) struct Scratch {
    base: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: only this value uses the mapping, and a mapping is not bound to a thread.
unsafe impl Send for Scratch {}

impl Scratch {
    /// Creates a buffer for `capacity` bytes. The system allocates its pages when they are written.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        let base = platform::map_private(capacity.max(1))?;
        Ok(Self { base, capacity, len: 0 })
    }

    /// Appends bytes. Returns `false` and does nothing if there is no room for them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.capacity - self.len {
            return false;
        }
        // SAFETY: in the mapping by the comparison. `bytes` is not a part of this mapping, which `&mut self`
        // borrows exclusively.
        unsafe { self.base.add(self.len).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        self.len += bytes.len();
        true
    }

    /// The bytes that were appended.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `push` has written the first `len` bytes, and cannot write while `&self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` has made. No reference to it is left.
        unsafe { platform::unmap_private(self.base, self.capacity.max(1)) };
    }
}

/// The alignment of a region in memory, and of its first chunk, in bytes: the larger of the ABI's and the
/// system's page.
pub(crate) fn alignment() -> usize {
    PAGE.max(platform::page_size())
}

/// The bytes of one request in [`reserve`] after a signal has interrupted it. A request takes some
/// milliseconds, so it succeeds in a program that gets a timer signal every few milliseconds.
const RESERVE: usize = 4 << 20;

/// The most tries for each request. It fails if a signal comes during each of them.
const RESERVE_TRIES: usize = 100;

/// Reserves `len` bytes for the file, in one request, so that the system can use large pages. If a signal
/// interrupts it, in many small requests.
fn reserve(file: &File, len: usize) -> io::Result<()> {
    let at_once = platform::reserve(file, 0, len);
    if !is_interrupted(&at_once) {
        return at_once;
    }
    let mut parts = (0..len).step_by(RESERVE);
    parts.try_for_each(|from| unless_interrupted(|| platform::reserve(file, from, (len - from).min(RESERVE))))
}

fn is_interrupted(done: &io::Result<()>) -> bool {
    done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::Interrupted)
}

/// Calls `attempt` until no signal interrupts it, at most [`RESERVE_TRIES`] times.
fn unless_interrupted(attempt: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let mut attempts = (0..RESERVE_TRIES).map(|_| attempt());
    attempts.find(|done| !is_interrupted(done)).unwrap_or(Err(io::ErrorKind::Interrupted.into()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The offsets of the bytes that are 0 now. All were 1 before.
    fn zeroed(memory: &Memory) -> Vec<usize> {
        // SAFETY: the memory was zeroed at its creation, and only this test has it.
        let bytes = unsafe { std::slice::from_raw_parts(memory.base.as_ptr(), memory.len) };
        (0..bytes.len()).filter(|at| bytes[*at] == 0).collect()
    }

    /// The kernel rounds a length up to whole pages, and the bytes that follow in the heap are of other
    /// allocations.
    #[test]
    fn of_the_heap_only_pages_are_given_back_that_are_the_regions_own() {
        for page in [PAGE, 4 * PAGE, 16 * PAGE] {
            let memory = Memory::new(BackingChoice::Heap, 61 * PAGE, 0, 0).unwrap();
            // SAFETY: `len` bytes, which only this test has.
            unsafe { memory.base.write_bytes(1, memory.len) };
            // SAFETY: there is no reference to it.
            unsafe { memory.release_by(PAGE, page) };
            let (start, end) = (memory.base.addr().get(), memory.base.addr().get() + memory.len);
            let first = (start + PAGE).next_multiple_of(page);
            let expected = first - start..end / page * page - start;
            assert_eq!(zeroed(&memory), expected.collect::<Vec<_>>(), "pages of {page} bytes");
        }
    }

    #[test]
    fn memory_that_has_no_whole_page_is_left_as_it_is() {
        let memory = Memory::new(BackingChoice::Heap, 3 * PAGE, 0, 0).unwrap();
        // SAFETY: as above.
        unsafe { memory.base.write_bytes(1, memory.len) };
        // SAFETY: there is no reference to it.
        unsafe {
            memory.release_by(PAGE, 16 * PAGE);
            memory.release_by(4 * PAGE, PAGE);
        }
        assert_eq!(zeroed(&memory), []);
    }
}
