//! The memory under a region: a file in `/dev/shm`, a memfd, or the heap.
//!
//! | backing | outlives a kill | used                                     |
//! |---------|-----------------|------------------------------------------|
//! | file    | yes             | by default                               |
//! | memfd   | no              | where `/dev/shm` is absent, full or closed |
//! | heap    | no              | where neither is to be had; loom; tests  |
//!
//! A file is `fallocate`d, so that a full tmpfs is an error here and not a SIGBUS in the middle of an event.

#![allow(unsafe_code)] // mmap, the allocator, flock and geteuid

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::abi::PAGE;

/// Which memory to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackingChoice {
    /// The first of file, memfd, heap that can be had.
    #[default]
    Auto,
    /// A file in `/dev/shm` or nothing.
    File,
    /// A memfd or nothing.
    Memfd,
    /// The process's own heap.
    Heap,
}

/// Which memory was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file in `/dev/shm`, at this path until the region is closed.
    File(String),
    /// A memfd: gone with the process.
    Memfd,
    /// The heap: gone with the process.
    Heap,
}

/// Where regions' files stand.
pub(crate) const DIRECTORY: &str = "/dev/shm";

/// What their names begin with; the pid follows, and a random number.
const NAME: &str = "hairline-";

fn region_path(pid: u32, random: u64) -> String {
    format!("{DIRECTORY}/{NAME}{pid}-{random:016x}")
}

/// The pid in a file's name, if it is a region's.
#[cfg(not(loom))]
pub(crate) fn pid_in(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix(NAME)?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_random)
}

/// Zeroed memory, aligned as [`alignment`] says, given back on drop.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    backing: Backing,
    linked: bool,
    /// The process that made it: a forked child has the value too, and must leave the file alone.
    pid: u32,
}

// SAFETY: a mapping and an allocation belong to the process and not to a thread. `Region` says which thread
// may touch which byte (abi.rs).
unsafe impl Send for Memory {}
// SAFETY: as above. No method with `&self` changes a field. `release` and `leave_in_child` change the
// mapping by system calls, which several threads may make at once.
unsafe impl Sync for Memory {}

impl Memory {
    /// `len` bytes (a multiple of [`PAGE`], not 0) as `choice` says.
    pub(crate) fn new(choice: BackingChoice, len: usize) -> Result<Self, (&'static str, io::Error)> {
        assert!(len.is_multiple_of(PAGE) && len > 0);
        match choice {
            BackingChoice::File => Self::file(len).map_err(|e| ("a file in /dev/shm", e)),
            BackingChoice::Memfd => Self::memfd(len).map_err(|e| ("a memfd", e)),
            BackingChoice::Heap => Self::heap(len).map_err(|e| ("the heap", e)),
            BackingChoice::Auto => Self::file(len)
                .or_else(|_| Self::memfd(len))
                .or_else(|_| Self::heap(len))
                .map_err(|e| ("the heap", e)),
        }
    }

    fn file(len: usize) -> io::Result<Self> {
        let mut random = [0u8; 8];
        // SAFETY: the pointer and the length describe `random`.
        let n = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        if n != 8 {
            return Err(io::Error::last_os_error());
        }
        let path = region_path(std::process::id(), u64::from_le_bytes(random));
        let c_path = CString::new(path.as_str()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: `c_path` is NUL-terminated and outlives the call.
        let fd = unsafe { libc::open(c_path.as_ptr(), flags, 0o600) };
        let fd = owned(fd)?;
        let mapped = reserve(&fd, len).and_then(|()| map(&fd, len));
        match mapped {
            Ok(base) => Ok(Self::of(base, len, Backing::File(path), true)),
            Err(e) => {
                let _ = std::fs::remove_file(&path);
                Err(e)
            }
        }
    }

    fn memfd(len: usize) -> io::Result<Self> {
        // SAFETY: the name is a NUL-terminated literal.
        let fd = unsafe { libc::memfd_create(c"hairline".as_ptr(), libc::MFD_CLOEXEC) };
        let fd = owned(fd)?;
        reserve(&fd, len)?;
        Ok(Self::of(map(&fd, len)?, len, Backing::Memfd, false))
    }

    fn heap(len: usize) -> io::Result<Self> {
        // SAFETY: the layout's size is not zero: `new` asserts it.
        let base = NonNull::new(unsafe { alloc_zeroed(Self::layout(len)?) });
        let base = base.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self::of(base, len, Backing::Heap, false))
    }

    fn of(base: NonNull<u8>, len: usize, backing: Backing, linked: bool) -> Self {
        Self { base, len, backing, linked, pid: std::process::id() }
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

    /// Makes the pages of a range present, so that no event pays for a page fault. Best effort.
    pub(crate) fn populate(&self, pages: Range<usize>) {
        let (from, to) = (pages.start.min(self.len) & !(alignment() - 1), pages.end.min(self.len));
        if self.backing != Backing::Heap && from < to {
            // SAFETY: the range is inside this mapping; populating changes no byte of it. Kernels before 5.14 refuse,
            // harmlessly.
            unsafe {
                let start = self.base.as_ptr().add(from);
                libc::madvise(start.cast(), to - from, libc::MADV_POPULATE_WRITE);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Gives the memory from byte `from` on back to the system, as far as it is whole pages. What is stored
    /// there later goes into new private memory, and is never a SIGBUS, also where the file system is full by
    /// then. Best effort.
    ///
    /// The pages are replaced before they are freed: to free them while they are mapped would let a late
    /// store ask the full file system for a page again.
    ///
    /// # Safety
    /// The process has no reference to a byte from `from` on that may not become zero while the reference
    /// lives.
    pub(crate) unsafe fn release(&self, from: usize) {
        // SAFETY: by the contract.
        unsafe { self.release_by(from, page_size()) };
    }

    /// The same where a page has `page` bytes.
    ///
    /// # Safety
    /// As [`release`](Self::release).
    unsafe fn release_by(&self, from: usize, page: usize) {
        let Range { start, end } = self.whole_pages(from, page);
        let len = end.saturating_sub(start);
        if len == 0 {
            return;
        }
        // SAFETY: the range is a part of this memory, which stays mapped. No page of it has bytes of anybody
        // else (`whole_pages`). By the contract its bytes may become zero. `mremap` of no bytes makes a
        // second mapping of the same pages, which only this function knows, and unmaps again.
        unsafe {
            let start = self.base.as_ptr().add(start).cast();
            if self.backing == Backing::Heap {
                libc::madvise(start, len, libc::MADV_DONTNEED);
                return;
            }
            let alias = libc::mremap(start, 0, len, libc::MREMAP_MAYMOVE);
            let is_replaced = replace_by_private(start, len);
            if alias != libc::MAP_FAILED {
                if is_replaced {
                    libc::madvise(alias, len, libc::MADV_REMOVE);
                }
                libc::munmap(alias, len);
            }
        }
    }

    /// The bytes from `from` on whose pages, of `page` bytes each, are all of this memory. The system works
    /// on whole pages, and rounds a length up to them: that must not reach what follows in the heap. A
    /// mapping has all of its last page.
    fn whole_pages(&self, from: usize, page: usize) -> Range<usize> {
        let base = self.base.addr().get();
        let start = (base + from.min(self.len)).next_multiple_of(page) - base;
        let last = (base + self.len) / page * page;
        let end = if self.backing == Backing::Heap { last.saturating_sub(base) } else { self.len };
        start..end
    }

    /// In a forked child: lets no store of this process reach the parent's memory. What is stored from now on goes into private
    /// memory.
    ///
    /// # Safety
    /// The process has no reference to a byte of this memory that may not become zero while the reference
    /// lives.
    pub(crate) unsafe fn leave_in_child(&self) {
        if self.backing != Backing::Heap {
            // SAFETY: the whole of this mapping, which stays mapped. By the contract its bytes may become
            // zero.
            unsafe { replace_by_private(self.base.as_ptr().cast(), self.len) };
        }
    }

    /// Removes the file's name; the mapping stays until drop.
    pub(crate) fn unlink(&self) {
        if let Backing::File(path) = &self.backing
            && self.linked
            && self.pid == std::process::id()
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.backing == Backing::Heap {
            if let Ok(layout) = Self::layout(self.len) {
                // SAFETY: `base` came from `alloc_zeroed` with this layout: neither `len` nor the page size
                // has changed.
                unsafe { dealloc(self.base.as_ptr(), layout) };
            }
        } else {
            // SAFETY: `base` and `len` are those of the mmap. Mappings that have replaced parts of it lie in
            // the same range. Every chunk's owner holds the region that holds this value. A lease has a
            // pointer to a chunk only while the chunk lives (`Lease::set`).
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

/// The user whose files this process may take for its own.
#[cfg(not(loom))]
pub(crate) fn own_user() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// A file that is locked against others that lock it, for as long as this lives.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Locked(std::fs::File);

#[cfg(not(loom))]
impl Locked {
    /// Does not wait: `WouldBlock` when somebody else has it.
    pub(crate) fn new(file: std::fs::File) -> io::Result<Self> {
        // SAFETY: a call on an open descriptor.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
            0 => Ok(Self(file)),
            _ => Err(io::Error::last_os_error()),
        }
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
    /// To close it is not enough: a child that another thread starts just now has the open file too until it is another program.
    fn drop(&mut self) {
        // SAFETY: a call on an open descriptor.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Bytes of the file system that [`DIRECTORY`] is.
#[cfg(not(loom))]
pub(crate) fn directory_size() -> io::Result<u64> {
    let path = CString::new(DIRECTORY).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: a struct of integers, which may all be 0.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, and `stat` is for the call to write.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

/// Room for bytes that is given back to the system when it is dropped, whatever the allocator would do with it.
#[derive(Debug)]
pub(crate) struct Scratch {
    base: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: the mapping is this value's alone, and a mapping belongs to no thread.
unsafe impl Send for Scratch {}

impl Scratch {
    /// Room for `capacity` bytes, of which pages are taken as they are written.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), capacity.max(1), prot, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(p.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, capacity, len: 0 })
    }

    /// Appends; false, and nothing done, where there is no room.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.capacity - self.len {
            return false;
        }
        // SAFETY: in the mapping by the comparison. `bytes` is not of this mapping, which `&mut self` has
        // alone.
        unsafe { self.base.add(self.len).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        self.len += bytes.len();
        true
    }

    /// What was appended.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `push` has written the first `len` bytes, and nobody writes them while `&self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, to which no reference is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.capacity.max(1)) };
    }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call that returned `fd` succeeded, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn file_len(len: usize) -> io::Result<libc::off_t> {
    libc::off_t::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Alignment of a region in memory, and of its first chunk, in bytes: the pages of both the ABI and the
/// system.
pub(crate) fn alignment() -> usize {
    PAGE.max(page_size())
}

/// Bytes of the system's smallest page: 4 KiB on x86-64, 16 or 64 KiB on some others.
fn page_size() -> usize {
    // SAFETY: takes a number, and changes nothing.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE)
}

/// Bytes that [`reserve`] asks for at a time where a signal has interrupted it: some milliseconds, so that a
/// program with a timer's signal every few milliseconds gets on.
const RESERVE: usize = 4 << 20;

/// Tries for each of them. A signal that comes during each try makes the reservation fail.
const RESERVE_TRIES: usize = 100;

/// Gives the file `len` bytes that are really there. All at once, so that the system can use large pages; in
/// small pieces where signals interrupt that.
fn reserve(fd: &OwnedFd, len: usize) -> io::Result<()> {
    let is_interrupted =
        |done: &io::Result<()>| done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::Interrupted);
    let at_once = allocate(fd, 0, len);
    if !is_interrupted(&at_once) {
        return at_once;
    }
    (0..len).step_by(RESERVE).try_for_each(|from| {
        let attempt = |_| allocate(fd, from, (len - from).min(RESERVE));
        let mut attempts = (0..RESERVE_TRIES).map(attempt);
        attempts.find(|done| !is_interrupted(done)).unwrap_or(Err(io::ErrorKind::Interrupted.into()))
    })
}

fn allocate(fd: &OwnedFd, at: usize, len: usize) -> io::Result<()> {
    let (at, len) = (file_len(at)?, file_len(len)?);
    // SAFETY: a call on an open descriptor.
    match unsafe { libc::fallocate(fd.as_raw_fd(), 0, at, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts zeroed private memory in the place of a mapping, in one step for all threads. Returns whether the system did.
///
/// # Safety
/// The range is mapped by the caller. The process has no reference to a byte in it that may not become zero.
unsafe fn replace_by_private(start: *mut libc::c_void, len: usize) -> bool {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let flags = flags | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: by the contract.
    unsafe { libc::mmap(start, len, prot, flags, -1, 0) != libc::MAP_FAILED }
}

fn map(fd: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open descriptor, at an address of the kernel's choice.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
    if p == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(p.cast()).ok_or_else(io::Error::last_os_error)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The bytes of the memory, which were all 1, that are 0 now.
    fn zeroed(memory: &Memory) -> Vec<usize> {
        // SAFETY: zeroed when it was made, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts(memory.base.as_ptr(), memory.len) };
        (0..bytes.len()).filter(|at| bytes[*at] == 0).collect()
    }

    /// The kernel rounds what it is told up to whole pages: what follows in the heap is somebody else's.
    #[test]
    fn of_the_heap_only_pages_are_given_back_that_are_the_regions_own() {
        for page in [PAGE, 4 * PAGE, 16 * PAGE] {
            let memory = Memory::new(BackingChoice::Heap, 61 * PAGE).unwrap();
            // SAFETY: `len` bytes, which nobody else has.
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
        let memory = Memory::new(BackingChoice::Heap, 3 * PAGE).unwrap();
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
