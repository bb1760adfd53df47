//! Linux: `perf_event_open`, `ioctl`, `mmap` and `read`.

#![allow(unsafe_code)] // system calls, and memory that the kernel writes

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{EventAttr, FLAG_CLOEXEC, ioctl, page};

/// What tells an open file from another one with its number: device and inode.
pub(crate) type Identity = (u64, u64);

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> Option<Identity> {
    file.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// Returns the calling thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap_or(0)
}

/// Opens an event of the thread `tid` or of all threads, on one processor or on all.
pub(crate) fn open(attr: &EventAttr, tid: Option<u32>, cpu: Option<u32>) -> io::Result<File> {
    let tid = match tid.map(libc::pid_t::try_from) {
        None => -1,
        Some(tid) => tid.map_err(|_| io::ErrorKind::InvalidInput)?,
    };
    let cpu = match cpu.map(libc::c_int::try_from) {
        None => -1,
        Some(cpu) => cpu.map_err(|_| io::ErrorKind::InvalidInput)?,
    };
    let no_group: libc::c_int = -1;
    // SAFETY: `attr` is a valid `perf_event_attr` of the size that it states, and the kernel only reads it.
    let fd = unsafe {
        let flags = libc::c_ulong::from(FLAG_CLOEXEC);
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attr), tid, cpu, no_group, flags)
    };
    match RawFd::try_from(fd) {
        // SAFETY: the kernel has just made the descriptor for this call, so nobody else owns it.
        Ok(fd) if fd >= 0 => above_stderr(unsafe { OwnedFd::from_raw_fd(fd) }).map(File::from),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the event with a descriptor above those of stdin, stdout and stderr. A program may have closed
/// these. If it opens them again by `dup2`, an event there would be gone, and the close of the event would
/// close the program's own file.
fn above_stderr(fd: OwnedFd) -> io::Result<OwnedFd> {
    // The standard library copies a descriptor to one above these three.
    if fd.as_raw_fd() > libc::STDERR_FILENO { Ok(fd) } else { fd.try_clone() }
}

#[allow(clippy::cast_lossless)] // the request is a c_ulong or a c_int, as the C library has it
fn control(fd: &File, request: u32, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these requests take a number and touch no memory of this process.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn enable(fd: &File) -> io::Result<()> {
    control(fd, ioctl::ENABLE, 0)
}

pub(crate) fn disable(fd: &File) -> io::Result<()> {
    control(fd, ioctl::DISABLE, 0)
}

pub(crate) fn set_output(fd: &File, ring: &File) -> io::Result<()> {
    control(fd, ioctl::SET_OUTPUT, ring.as_raw_fd())
}

pub(crate) fn set_filter(fd: &File, filter: &CStr) -> io::Result<()> {
    #[allow(clippy::cast_lossless)] // as above
    // SAFETY: the kernel reads the text up to its end, and keeps no pointer to it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), ioctl::SET_FILTER as _, filter.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads the values of an event. Returns their number.
pub(crate) fn read_words(fd: &File, words: &mut [u64]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most the size of `words`, and any bytes are valid numbers.
    let bytes = unsafe { libc::read(fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(words)) };
    usize::try_from(bytes).map(|bytes| bytes / 8).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn raw(fd: &File) -> i32 {
    fd.as_raw_fd()
}

/// The mapped pages of a ring: one with the positions, then the data.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    /// The bytes of the mapping.
    length: usize,
    data: usize,
    /// A power of two.
    size: usize,
    /// The process that has the mapping. The kernel leaves it out of forked children.
    pid: u32,
}

// SAFETY: the memory belongs to the value alone, and its positions are accessed by atomics.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps a ring with `size` bytes of data: a power of two, and at least a page.
    pub(crate) fn map(fd: &File, size: usize) -> io::Result<Self> {
        let page = page_size();
        if !size.is_power_of_two() || size < page {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let length = size.checked_add(page).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(start.cast()) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        let mut memory = Self { start, length, data: page, size, pid: std::process::id() };
        // Kernels before 4.1 leave both fields at 0: the data begin at the second page.
        let (data, stated) = (memory.word(page::DATA_OFFSET), memory.word(page::DATA_SIZE));
        let (data, stated) = (data.load(Ordering::Relaxed), stated.load(Ordering::Relaxed));
        if stated != 0 {
            let fits = stated == size as u64 && data.checked_add(stated) == Some(length as u64);
            memory.data = usize::try_from(data).ok().filter(|_| fits).ok_or(io::ErrorKind::InvalidData)?;
        }
        Ok(memory)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A field of the first page.
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` lives, `offset` is a constant inside of it and a
        // multiple of 8, and the kernel stores these fields as whole words.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The end of the records. They are visible: the load (Acquire) pairs with the barrier of the kernel's
    /// `perf_output_put_handle`, which stores the position behind the record.
    pub(crate) fn head(&self) -> u64 {
        self.word(page::DATA_HEAD).load(Ordering::Acquire)
    }

    /// The position up to which this process has read. Only it stores this field.
    pub(crate) fn tail(&self) -> u64 {
        self.word(page::DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Frees the room before `tail`. The store (Release) pairs with the kernel's load of the position in
    /// `__perf_output_begin`, after which it overwrites the room: all reads of it have happened.
    pub(crate) fn set_tail(&self, tail: u64) {
        self.word(page::DATA_TAIL).store(tail, Ordering::Release);
    }

    /// Copies the bytes from the position `from` on. They may go on at the start of the ring. At most as many
    /// as the ring has.
    pub(crate) fn copy(&self, from: u64, to: &mut [u8]) {
        let length = to.len().min(self.size);
        let at = (from & (self.size as u64 - 1)) as usize;
        let first = length.min(self.size - at);
        // SAFETY: `at + first` and `length - first` are at most the size of the data, which is mapped. The
        // kernel does not write between tail and head. `to` is memory of Rust, so it does not overlap.
        unsafe {
            let data = self.start.as_ptr().add(self.data);
            std::ptr::copy_nonoverlapping(data.add(at), to.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, to.as_mut_ptr().add(first), length - first);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return; // a forked child does not have the mapping, and may have another one there
        }
        // SAFETY: the mapping is this value's own, and nothing points into it after this.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Returns `CLOCK_BOOTTIME` - `CLOCK_MONOTONIC` of the kernel in ns: the time that the machine has been
/// suspended.
pub(crate) fn suspended() -> u64 {
    /// Two reads of clocks are less apart, unless the thread loses its processor between them.
    const BETWEEN_READS: u64 = 50_000;
    /// It hardly does so each time.
    const ATTEMPTS: usize = 8;
    let offsets = ["monotonic", "boottime"].map(namespace_offset);
    let monotonic = || read_clock(libc::CLOCK_MONOTONIC).wrapping_sub(offsets[0]);
    let boottime = || read_clock(libc::CLOCK_BOOTTIME).wrapping_sub(offsets[1]);
    let mut least = u64::MAX;
    for _ in 0..ATTEMPTS {
        let before = monotonic();
        least = least.min(boottime().saturating_sub(before));
        if monotonic().saturating_sub(before) < BETWEEN_READS {
            break;
        }
    }
    if least < BETWEEN_READS { 0 } else { least }
}

/// Returns what this process's time namespace adds to the kernel's `boottime` or `monotonic`, in ns;
/// wrapping.
pub(crate) fn namespace_offset(clock: &str) -> u64 {
    // The file has the offsets of the namespace that children get: hardly ever another one.
    let namespace = |file| std::fs::read_link(file).ok();
    let own = namespace("/proc/self/ns/time");
    if own.is_none() || own != namespace("/proc/self/ns/time_for_children") {
        return 0;
    }
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let of_clock = offsets.lines().find_map(|line| line.strip_prefix(clock));
    let mut numbers = of_clock.unwrap_or_default().split_whitespace().filter_map(|n| n.parse::<i64>().ok());
    let (seconds, nanoseconds) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds).cast_unsigned()
}

/// Returns the CPU time of this process, in ns.
#[cfg(test)]
pub(crate) fn process_time() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read_clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless)] // 32 bits on some systems
    let (seconds, nanoseconds) = (time.tv_sec as i64, time.tv_nsec as i64);
    seconds.cast_unsigned() * 1_000_000_000 + nanoseconds.cast_unsigned()
}

fn page_size() -> usize {
    // SAFETY: the argument is a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
