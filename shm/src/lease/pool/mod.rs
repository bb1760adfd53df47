//! The memory for the leases of all threads.
//!
//! The memory is never freed, so the drain thread can read a lease at any moment, also after the end of its
//! thread. On Linux a fork wipes it (`MADV_WIPEONFORK`): a forked child finds zeros, and a lease of zeros has
//! no chunk. So a child never writes into a chunk of its parent, also if no fork handler ran (`clone(2)`,
//! `_Fork`). The child can also detect the fork: a lease that a thread has claimed, and that is not claimed
//! in memory, is one of the parent.
//!
//! ```text
//! page 0   [the process's mark][lease 1] ... [lease 63]
//! page 1   [lease 64] ...            each page is twice as large as the one before
//! ```
//!
//! The pool uses no lock and no allocator, so a signal handler may claim a lease.

#![allow(unsafe_code)] // maps memory that holds atomics

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::lease::Lease;
use crate::platform;

/// Leases of the first page: 4 KiB.
const FIRST: usize = 64;

/// The most pages: enough for 2^28 threads.
const PAGES: usize = 22;

/// The pages; null until a page is mapped.
static MAPPED: [AtomicPtr<Lease>; PAGES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PAGES];

/// The lease at which a search for a free one starts. Only a hint: a second search starts at 0.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Claims a lease that no other thread has. Returns `None` if no memory can be mapped.
///
/// The caller gives the lease back with [`release_lease`]. Otherwise it stays claimed until the process ends.
///
/// ```
/// use hairline_shm::{claim_lease, release_lease};
///
/// let lease = claim_lease().unwrap();
/// assert!(!lease.is_wiped() && lease.chunk().is_null());
/// // SAFETY: this code has claimed the lease, and does not use it again.
/// unsafe { release_lease(lease) };
/// ```
#[must_use]
pub fn claim_lease() -> Option<&'static Lease> {
    claim_or_map(map_more)
}

/// Claims a lease. Calls `map` for one more page while none is free: other threads may claim all leases of a
/// new page before this thread looks at it.
fn claim_or_map(mut map: impl FnMut() -> Option<()>) -> Option<&'static Lease> {
    loop {
        let from = NEXT.load(Ordering::Relaxed);
        if let Some((number, lease)) = claim_from(from).or_else(|| claim_from(0)) {
            NEXT.store(number + 1, Ordering::Relaxed);
            return Some(lease);
        }
        map()?;
    }
}

/// Gives a lease back. It must have no chunk.
///
/// # Safety
/// The caller has claimed the lease and does not use it again.
pub unsafe fn release_lease(lease: &'static Lease) {
    lease.reset();
    // Release pairs with the Acquire in `claim_from`.
    lease.is_claimed.store(0, Ordering::Release);
    if let Some(number) = number_of(lease) {
        NEXT.fetch_min(number, Ordering::Relaxed);
    }
}

/// The leases that threads have claimed.
///
/// # Safety
/// The caller calls only `ask`, `take` and `interrupt` on them: see [`Lease::set`].
pub unsafe fn all_leases() -> impl Iterator<Item = &'static Lease> {
    pages().flat_map(<[Lease]>::iter).skip(1).filter(|lease| lease.is_claimed.load(Ordering::Relaxed) != 0)
}

/// Whether this process is a forked child in which [`start_pool_in_child`] was not called: the parent has
/// mapped the pool, and all bytes are zero here. Always `false` if the kernel cannot wipe memory at a fork
/// (Linux before 4.14).
#[must_use]
pub fn lost_to_fork() -> bool {
    pages().next().and_then(<[Lease]>::first).is_some_and(|mark| mark.is_claimed.load(Ordering::Relaxed) == 0)
}

/// Resets the pool in a forked child: all leases are free, except `own`, which stays claimed.
///
/// `own` is the lease of the thread that forked. If a signal handler forked in the middle of an event, that
/// event continues with it. A lease that is not of the pool is not changed.
///
/// # Safety
/// This is a forked child. Of the leases that were claimed before this call, its threads use only `own`.
pub unsafe fn start_pool_in_child(own: Option<&'static Lease>) {
    let own = own.filter(|own| number_of(own).is_some());
    for lease in pages().flat_map(<[Lease]>::iter) {
        if own.is_some_and(|own| std::ptr::eq(own, lease)) {
            lease.clear();
            continue;
        }
        // For kernels that do not wipe the memory: the lease of a thread that was in an event would stay busy
        // for ever, and point to a chunk of the parent.
        lease.reset();
        lease.is_claimed.store(0, Ordering::Relaxed);
    }
    if let Some(mark) = pages().next().and_then(<[Lease]>::first) {
        mark.is_claimed.store(1, Ordering::Relaxed);
    }
    if let Some(own) = own {
        own.is_claimed.store(1, Ordering::Relaxed);
    }
    NEXT.store(0, Ordering::Relaxed);
}

/// The mapped pages.
fn pages() -> impl Iterator<Item = &'static [Lease]> {
    MAPPED.iter().enumerate().map_while(|(number, page)| {
        let leases = page.load(Ordering::Acquire); // pairs with the Release in `map_more`
        // SAFETY: only `map_more` stores here: a page-aligned mapping of that many leases, which is never
        // unmapped after the store. All fields are atomics, for which zeros are valid: the mapping has zeros
        // at its creation, and after a fork has wiped it.
        (!leases.is_null()).then(|| unsafe { std::slice::from_raw_parts(leases, FIRST << number) })
    })
}

/// The mapped pages, each with the number of its first lease.
fn numbered_pages() -> impl Iterator<Item = (usize, &'static [Lease])> {
    pages().enumerate().map(|(page, leases)| (first_of(page), leases))
}

/// The number of the first lease of a page.
const fn first_of(page: usize) -> usize {
    FIRST * ((1 << page) - 1)
}

/// Claims the first free lease from number `from` on. Returns its number too. Lease 0 is the mark of the
/// process.
fn claim_from(from: usize) -> Option<(usize, &'static Lease)> {
    numbered_pages().find_map(|(first, leases)| {
        let skipped = from.max(1).saturating_sub(first).min(leases.len());
        let at = leases[skipped..].iter().position(|lease| {
            // Acquire pairs with the Release in `release_lease`: the previous thread is done with the lease.
            lease.is_claimed.load(Ordering::Relaxed) == 0
                && lease.is_claimed.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        Some((first + skipped + at, &leases[skipped + at]))
    })
}

/// The number of a lease.
fn number_of(lease: &'static Lease) -> Option<usize> {
    numbered_pages().find_map(|(first, leases)| {
        let bytes = std::ptr::from_ref(lease).addr().checked_sub(leases.as_ptr().addr())?;
        (bytes < size_of_val(leases)).then_some(first + bytes / size_of::<Lease>())
    })
}

/// Maps one more page. Returns `None` if it cannot be mapped. If two threads do this at once, one of the two
/// pages is unmapped again.
fn map_more() -> Option<()> {
    let number = pages().count();
    let page = MAPPED.get(number)?;
    let len = (FIRST << number) * size_of::<Lease>();
    let mapped = platform::map_private(len).ok()?;
    platform::wipe_on_fork(mapped, len);
    let leases = mapped.as_ptr().cast::<Lease>();
    if number == 0 {
        // SAFETY: zeroed memory for at least one lease, page-aligned, and not shared yet.
        unsafe { (*leases).is_claimed.store(1, Ordering::Relaxed) }; // the process's mark
    }
    // Release pairs with the Acquire in `pages`.
    if page.compare_exchange(std::ptr::null_mut(), leases, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: the mapping that was just made, which no other thread has seen.
        unsafe { platform::unmap_private(mapped, len) };
    }
    Some(())
}

#[cfg(test)]
mod tests;
