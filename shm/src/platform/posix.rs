//! The functions that `linux.rs` and `unix.rs` share.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Returns the bytes of the system's smallest page: 4 KiB on x86-64, 16 or 64 KiB on some others.
pub(crate) fn page_size() -> usize {
    // SAFETY: takes a number and changes nothing.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Returns the file with a descriptor above those of stdin, stdout and stderr. A program may have closed
/// these. Then the lowest free descriptor is one of them, and what the program prints would get into the
/// file.
pub(super) fn above_stderr(file: File) -> io::Result<File> {
    // The standard library copies a descriptor to one above these three.
    if file.as_raw_fd() > libc::STDERR_FILENO { Ok(file) } else { file.try_clone() }
}

/// Creates a file that only this user may access. No link at the path is followed.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // `create_new` is O_EXCL; the standard library adds O_CLOEXEC.
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).and_then(above_stderr)
}

/// Opens a file for reading. No link is followed, and the open of a FIFO does not wait.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .and_then(above_stderr)
}

/// Returns an error if the file system of the file has less than `len` bytes left. A region needs them sooner
/// or later, and another kind of memory may have them.
pub(crate) fn require_free(file: &File, len: usize) -> io::Result<()> {
    // SAFETY: a struct of integers, for which zeros are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and the call writes to `stat`.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A file system without a limit says that it has no blocks at all.
    let is_enough = stat.f_blocks == 0 || bytes(stat.f_bavail, stat.f_frsize) >= len as u64;
    if is_enough { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOSPC)) }
}

/// Returns the size of the file system at `directory`, in bytes.
pub(crate) fn size_of_file_system(directory: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: a struct of integers, for which zeros are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, and the call writes to `stat`.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes(stat.f_blocks, stat.f_frsize))
}

/// Returns the bytes of so many blocks. Their types differ from system to system.
#[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)] // of other systems' types
fn bytes(blocks: libc::fsblkcnt_t, each: libc::c_ulong) -> u64 {
    u64::try_from(blocks).unwrap_or(0).saturating_mul(u64::try_from(each).unwrap_or(0))
}

/// Maps the first `len` bytes of a file, shared.
pub(crate) fn map(file: &File, len: usize) -> io::Result<NonNull<u8>> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open descriptor, at an address that the kernel chooses.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    mapped(p)
}

/// Maps `len` zeroed bytes, not shared.
pub(crate) fn map_private(len: usize) -> io::Result<NonNull<u8>> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping at an address that the kernel chooses.
    mapped(unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) })
}

fn mapped(p: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if p == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(p.cast()).ok_or_else(io::Error::last_os_error)
}

/// Unmaps what [`map`] has mapped.
///
/// # Safety
/// `base` and `len` are those of the mapping. No reference to it is left.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len: usize) {
    // SAFETY: by the contract.
    unsafe { libc::munmap(base.as_ptr().cast(), len) };
}

/// Unmaps what [`map_private`] has mapped.
///
/// # Safety
/// As [`unmap`].
pub(crate) unsafe fn unmap_private(base: NonNull<u8>, len: usize) {
    // SAFETY: by the contract.
    unsafe { unmap(base, len) };
}

/// Replaces a mapping by zeroed private memory, in one step for all threads, with one more flag. Returns
/// whether the system did so.
///
/// # Safety
/// The range is a mapping of the caller. The process has no reference to a byte in it that must not become
/// zero.
pub(super) unsafe fn replace(start: NonNull<u8>, len: usize, flag: libc::c_int) -> bool {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    let flags = flags | libc::MAP_FIXED | flag;
    // SAFETY: by the contract.
    unsafe { libc::mmap(start.as_ptr().cast(), len, prot, flags, -1, 0) != libc::MAP_FAILED }
}

/// Locks the file. Does not wait: the error is `WouldBlock` if another process has the lock.
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    // SAFETY: a call on an open descriptor.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Unlocks the file.
pub(crate) fn unlock(file: &File) {
    // SAFETY: a call on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// Whether the file belongs to the user of this process. Only such files are trusted.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    // SAFETY: takes no argument and cannot fail.
    metadata.uid() == unsafe { libc::geteuid() }
}

/// The number of the file's user.
pub(crate) fn user_of(metadata: &Metadata) -> Option<u32> {
    Some(metadata.uid())
}

/// Whether the file has no name any more.
pub(crate) fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

/// Reads the bytes at an offset. The position of the file does not matter.
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Returns a path as a region's header has it.
pub(crate) fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    path.as_os_str().as_bytes().into()
}

/// Returns the path of these bytes.
pub(crate) fn path_of(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// Returns `false` only if no process of this pid namespace has the pid.
pub(crate) fn exists(pid: u32) -> bool {
    match libc::pid_t::try_from(pid) {
        Ok(0) => true, // kill(2) takes 0 for the caller's process group
        Ok(pid) => {
            // SAFETY: takes numbers, and sends no signal.
            let outcome = unsafe { libc::kill(pid, 0) };
            outcome == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
        }
        Err(_) => false, // above every pid
    }
}
