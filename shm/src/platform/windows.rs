//! Windows. A region is a mapped file in the user's directory for temporary files.

use std::borrow::Cow;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, RawHandle};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_INVALID_PARAMETER, ERROR_LOCK_VIOLATION, FILETIME, WAIT_OBJECT_0,
};
use windows_sys::Win32::Security::Authentication::Identity::RtlGenRandom;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_OPEN_REPARSE_POINT, GetDiskFreeSpaceExW,
    GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_WRITE, MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFile, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};
use windows_sys::Win32::System::Threading::{
    FlushProcessWriteBuffers, GetCurrentProcess, GetProcessTimes, OpenProcess,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject, WaitOnAddress,
    WakeByAddressAll,
};

pub(crate) use super::plain::*;
use crate::platform::Shown;

/// The offset of the byte that a lock takes. Locks of Windows keep other processes from reading the bytes, so
/// it is one that no file has.
const LOCKED_BYTE: u32 = 0x4000_0000;

/// Returns the bytes of a page.
pub(crate) fn page_size() -> usize {
    let mut information = SYSTEM_INFO::default();
    // SAFETY: the call writes the struct.
    unsafe { GetSystemInfo(&raw mut information) };
    information.dwPageSize as usize
}

/// Returns the directory for the files of regions.
pub(crate) fn directory() -> PathBuf {
    std::env::temp_dir()
}

/// Returns a random number.
pub(crate) fn random() -> io::Result<u64> {
    let mut random = [0u8; 8];
    // SAFETY: the pointer and the length describe `random`.
    let is_random = unsafe { RtlGenRandom(random.as_mut_ptr().cast(), 8) };
    if is_random { Ok(u64::from_le_bytes(random)) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Creates a file. Its directory says who may access it: only the user may, in the user's own directory for
/// temporary files.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Opens a file for reading. No link is followed.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

/// Checks nothing: [`map`] allocates the whole file, or fails.
pub(crate) fn require_free(_file: &File, _len: usize) -> io::Result<()> {
    Ok(())
}

/// Returns the size of the file system at `directory`, in bytes.
pub(crate) fn size_of_file_system(directory: &Path) -> io::Result<u64> {
    use std::os::windows::ffi::OsStrExt;
    let path: Vec<u16> = directory.as_os_str().encode_wide().chain([0]).collect();
    let mut total = 0;
    let nothing = std::ptr::null_mut();
    // SAFETY: the path is NUL-terminated, and the call writes one number.
    match unsafe { GetDiskFreeSpaceExW(path.as_ptr(), nothing, &raw mut total, nothing) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(total),
    }
}

/// Maps the first `len` bytes of a file, shared.
#[allow(clippy::cast_possible_truncation)] // both halves of a number
pub(crate) fn map(file: &File, len: usize) -> io::Result<NonNull<u8>> {
    let (high, low) = ((len as u64 >> 32) as u32, len as u32);
    // SAFETY: an open handle; the null pointers stand for no name and for the usual rights. The view keeps
    // the mapping after its handle is closed.
    let base = unsafe {
        let none = std::ptr::null();
        let mapping =
            CreateFileMappingW(file.as_raw_handle(), none, PAGE_READWRITE, high, low, std::ptr::null());
        if mapping.is_null() {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, len).Value.cast());
        let base = base.ok_or_else(io::Error::last_os_error);
        CloseHandle(mapping);
        base
    };
    base
}

/// Unmaps what [`map`] has mapped.
///
/// # Safety
/// `base` is that of the mapping. No reference to it is left.
pub(crate) unsafe fn unmap(base: NonNull<u8>, _len: usize) {
    // SAFETY: by the contract.
    unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: base.as_ptr().cast() }) };
}

/// Maps `len` zeroed bytes, not shared.
pub(crate) fn map_private(len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: new memory, at an address that the system chooses.
    let base =
        unsafe { VirtualAlloc(std::ptr::null(), len.max(1), MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)
}

/// Unmaps what [`map_private`] has mapped.
///
/// # Safety
/// As [`unmap`].
pub(crate) unsafe fn unmap_private(base: NonNull<u8>, _len: usize) {
    // SAFETY: by the contract.
    unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
}

/// Does nothing: the file of a mapping is allocated when it gets its length.
pub(crate) fn populate(_start: NonNull<u8>, _len: usize) -> io::Result<()> {
    Ok(())
}

/// Does nothing, as [`populate`].
pub(crate) fn reserve(_file: &File, _at: usize, _len: usize) -> io::Result<()> {
    Ok(())
}

/// Does nothing: the system does not replace a part of a mapping in one step.
///
/// # Safety
/// None needed.
pub(crate) unsafe fn release(_start: NonNull<u8>, _len: usize) {}

/// Does nothing.
///
/// # Safety
/// None needed.
pub(crate) unsafe fn release_private(_start: NonNull<u8>, _len: usize) -> bool {
    false
}

/// Does nothing: there is no fork.
///
/// # Safety
/// None needed.
pub(crate) unsafe fn replace_by_private(_start: NonNull<u8>, _len: usize) -> bool {
    false
}

/// Does nothing: there is no fork.
pub(crate) fn wipe_on_fork(_mapping: NonNull<u8>, _len: usize) {}

fn locked_byte() -> OVERLAPPED {
    let mut at = OVERLAPPED::default();
    at.Anonymous.Anonymous.OffsetHigh = LOCKED_BYTE;
    at
}

/// Locks the file. Does not wait: the error is `WouldBlock` if another process has the lock.
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    let mut at = locked_byte();
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: an open handle, and a struct that lives for the call.
    if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) } != 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    Err(if e.raw_os_error() == Some(ERROR_LOCK_VIOLATION.cast_signed()) {
        io::ErrorKind::WouldBlock.into()
    } else {
        e
    })
}

/// Unlocks the file.
pub(crate) fn unlock(file: &File) {
    let mut at = locked_byte();
    // SAFETY: as in `try_lock`.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut at) };
}

/// Returns `true`: the directory says who may have put the file there.
pub(crate) fn is_own(_metadata: &Metadata) -> bool {
    true
}

/// Returns `None`: users have no numbers.
pub(crate) fn user_of(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Whether the file has no name any more.
pub(crate) fn is_removed(file: &File) -> bool {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: an open handle, and the call writes the struct.
    let is_known = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) } != 0;
    is_known && information.nNumberOfLinks == 0
}

/// Reads the bytes at an offset.
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => (bytes, offset) = (&mut bytes[n..], offset + n as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Returns a path as a region's header has it: in UTF-8. Recovery does not find a path that has none.
pub(crate) fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    path.to_string_lossy().into_owned().into_bytes().into()
}

/// Returns the path of these bytes.
pub(crate) fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Makes all threads of this process pass a fence during the call. The system interrupts those that run.
pub(crate) fn fence_all_threads() -> bool {
    // SAFETY: touches no memory of this process.
    unsafe { FlushProcessWriteBuffers() };
    true
}

/// Returns how the system shows this process. The start is in units of 100 ns.
pub(crate) fn shown_self() -> Option<Shown> {
    // SAFETY: a handle that always means this process.
    shown_by(unsafe { GetCurrentProcess() })
}

/// Returns how the system shows a process; `None` if this user may not ask.
pub(crate) fn shown(pid: u32) -> Option<Shown> {
    // SAFETY: takes numbers.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid) };
    if process.is_null() {
        return None;
    }
    let shown = shown_by(process);
    // SAFETY: opened above.
    unsafe { CloseHandle(process) };
    shown
}

fn shown_by(process: RawHandle) -> Option<Shown> {
    let [mut start, mut end, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: an open handle, and the calls write four times.
    unsafe {
        let is_known =
            GetProcessTimes(process, &raw mut start, &raw mut end, &raw mut kernel, &raw mut user) != 0;
        let start = u64::from(start.dwHighDateTime) << 32 | u64::from(start.dwLowDateTime);
        is_known.then(|| Shown { has_ended: WaitForSingleObject(process, 0) == WAIT_OBJECT_0, start })
    }
}

/// Returns `false` only if no process has the pid.
pub(crate) fn exists(pid: u32) -> bool {
    // SAFETY: takes numbers.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        return io::Error::last_os_error().raw_os_error() != Some(ERROR_INVALID_PARAMETER.cast_signed());
    }
    // SAFETY: opened above.
    unsafe { CloseHandle(process) };
    true
}

/// Sleeps while the word has this value, for `longest` at most.
pub(crate) fn sleep_while(word: &AtomicU32, value: u32, longest: Duration) {
    let milliseconds = u32::try_from(longest.as_millis()).unwrap_or(u32::MAX).max(1);
    // SAFETY: the word and the value live during the call, and have four bytes.
    unsafe { WaitOnAddress(word.as_ptr().cast(), (&raw const value).cast(), 4, milliseconds) };
}

/// Wakes all threads that sleep at the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word lives during the call.
    unsafe { WakeByAddressAll(word.as_ptr().cast()) };
}
