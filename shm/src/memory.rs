//! Memory of this process from the kernel, without an allocator and without a lock.

#![allow(unsafe_code)] // a function with a contract

use std::ptr::NonNull;

use crate::platform;

/// Maps zeroed memory that no other process has. Returns `None` if the system refuses that.
///
/// ```
/// use hairline_shm::{map_memory, unmap_memory};
///
/// let memory = map_memory(4096).unwrap();
/// // SAFETY: mapped with this length, and not used any more.
/// unsafe { unmap_memory(memory, 4096) };
/// ```
#[must_use]
pub fn map_memory(bytes: usize) -> Option<NonNull<u8>> {
    platform::map_private(bytes).ok()
}

/// Unmaps memory.
///
/// # Safety
/// It comes from [`map_memory`], with this length, and is not used any more.
pub unsafe fn unmap_memory(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: by the contract.
    unsafe { platform::unmap_private(memory, bytes) };
}

/// Gives memory back to the system, which has zeros afterwards. Returns false where the system does not do
/// that: then it is as before. Linux does it for whole pages, which may have more than 4 KiB.
///
/// # Safety
/// It is a part of memory from [`map_memory`]. The process has no reference to a byte in it that must not
/// become zero.
pub unsafe fn release_memory(memory: NonNull<u8>, bytes: usize) -> bool {
    // The system would round up.
    let is_whole = bytes.is_multiple_of(platform::page_size());
    // SAFETY: by the contract.
    is_whole && unsafe { platform::release_private(memory, bytes) }
}
