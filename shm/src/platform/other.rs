//! Systems without shared memory, such as WebAssembly: the memory of a region is on the heap, and ends with
//! the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

pub(crate) use super::plain::*;
use crate::platform::Shown;

const PAGE: usize = 4096;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the page of the ABI: the size of the system's is not known.
pub(crate) fn page_size() -> usize {
    PAGE
}

/// Returns a directory that does not exist.
pub(crate) fn directory() -> PathBuf {
    "/dev/shm".into()
}

/// Is not supported.
pub(crate) fn random() -> io::Result<u64> {
    unsupported()
}

/// Is not supported.
pub(crate) fn create_file(_path: &Path) -> io::Result<File> {
    unsupported()
}

/// Is not supported.
pub(crate) fn open_file(_path: &Path) -> io::Result<File> {
    unsupported()
}

/// Is not supported.
pub(crate) fn require_free(_file: &File, _len: usize) -> io::Result<()> {
    unsupported()
}

/// Is not supported.
pub(crate) fn size_of_file_system(_directory: &Path) -> io::Result<u64> {
    unsupported()
}

/// Is not supported.
pub(crate) fn map(_file: &File, _len: usize) -> io::Result<NonNull<u8>> {
    unsupported()
}

/// Does nothing: nothing is mapped.
///
/// # Safety
/// None needed.
pub(crate) unsafe fn unmap(_base: NonNull<u8>, _len: usize) {}

/// Is not supported.
pub(crate) fn populate(_start: NonNull<u8>, _len: usize) -> io::Result<()> {
    unsupported()
}

/// Is not supported.
pub(crate) fn reserve(_file: &File, _at: usize, _len: usize) -> io::Result<()> {
    unsupported()
}

/// Does nothing.
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

fn layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.max(1), PAGE).ok()
}

/// Allocates `len` zeroed bytes by the system's allocator. The program's own could trace.
pub(crate) fn map_private(len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: the size is not zero.
    let memory = layout(len).and_then(|layout| NonNull::new(unsafe { System.alloc_zeroed(layout) }));
    memory.ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Frees what [`map_private`] has allocated.
///
/// # Safety
/// `base` and `len` are those of the allocation. No reference to it is left.
pub(crate) unsafe fn unmap_private(base: NonNull<u8>, len: usize) {
    if let Some(layout) = layout(len) {
        // SAFETY: by the contract.
        unsafe { System.dealloc(base.as_ptr(), layout) };
    }
}

/// Is not supported.
pub(crate) fn try_lock(_file: &File) -> io::Result<()> {
    unsupported()
}

/// Does nothing.
pub(crate) fn unlock(_file: &File) {}

/// Returns `false`: no file is trusted.
pub(crate) fn is_own(_metadata: &Metadata) -> bool {
    false
}

/// Returns `None`: users have no numbers.
pub(crate) fn user_of(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Returns `false`.
pub(crate) fn is_removed(_file: &File) -> bool {
    false
}

/// Is not supported.
pub(crate) fn read_exact_at(_file: &File, _bytes: &mut [u8], _offset: u64) -> io::Result<()> {
    unsupported()
}

/// Returns a path as a region's header has it.
pub(crate) fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    path.to_string_lossy().into_owned().into_bytes().into()
}

/// Returns the path of these bytes.
pub(crate) fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Returns `true`: the system shows no processes.
pub(crate) fn exists(_pid: u32) -> bool {
    true
}

/// Returns `false`: the system has no such call.
pub(crate) fn fence_all_threads() -> bool {
    false
}

/// Returns `None`: the system shows no processes.
pub(crate) fn shown_self() -> Option<Shown> {
    None
}

/// Returns `None`: the system shows no processes.
pub(crate) fn shown(_pid: u32) -> Option<Shown> {
    None
}

/// Sleeps for a moment, whether the word has this value or not: no call of the system waits for a word.
pub(crate) fn sleep_while(_word: &AtomicU32, _value: u32, longest: Duration) {
    std::thread::sleep(longest.min(Duration::from_micros(100)));
}

/// Does nothing: no sleep is longer than a moment.
pub(crate) fn wake_all(_word: &AtomicU32) {}
