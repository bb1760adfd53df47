//! The memory in which the leases of all threads are.
//!
//! It is never freed, so a lease can be read at any moment, whatever has become of its thread. It is mapped
//! with `MADV_WIPEONFORK`: a forked child finds it all zero, and a lease of zeros has no chunk. So a child
//! never writes into a chunk of its parent, also where no fork handler ran (`clone(2)`, `_Fork`). And the
//! child can tell: a claimed lease that says that it is not claimed is one that the parent had.
//!
//! ```text
//! page 0   [the process's mark][lease 1] ... [lease 63]
//! page 1   [lease 64] ...            each page is twice as large as the one before
//! ```
//!
//! No lock and no allocator is used, so a signal handler may claim a lease.

#![allow(unsafe_code)] // maps memory that holds atomics

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::Lease;

/// Leases of the first page: 4 KiB.
const FIRST: usize = 64;

/// Enough for 2^28 threads.
const PAGES: usize = 22;

/// Each page, once it is mapped.
static MAPPED: [AtomicPtr<Lease>; PAGES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PAGES];

/// A search for a free lease begins here. Only a hint: what it misses, a second search from 0 finds.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A lease that no other thread has, as new. `None` when no memory can be mapped.
///
/// The caller gives it back by [`release_lease`]. One that is not given back stays claimed for the rest of
/// the process.
#[must_use]
pub fn claim_lease() -> Option<&'static Lease> {
    let from = NEXT.load(Ordering::Relaxed);
    let (number, lease) =
        claim_from(from).or_else(|| claim_from(0)).or_else(|| map_more().and_then(claim_from))?;
    NEXT.store(number + 1, Ordering::Relaxed);
    Some(lease)
}

/// Gives a lease back, which must have no chunk any more.
///
/// # Safety
/// The caller has claimed the lease, and does not use it again.
pub unsafe fn release_lease(lease: &'static Lease) {
    lease.reset();
    // Release pairs with the Acquire in `claim_from`.
    lease.is_claimed.store(0, Ordering::Release);
    if let Some(number) = number_of(lease) {
        NEXT.fetch_min(number, Ordering::Relaxed);
    }
}

/// All leases that some thread has.
///
/// # Safety
/// The caller calls nothing but `ask` and `take` on them: see [`Lease::set`].
pub unsafe fn all_leases() -> impl Iterator<Item = &'static Lease> {
    pages().flat_map(<[Lease]>::iter).skip(1).filter(|lease| lease.is_claimed.load(Ordering::Relaxed) != 0)
}

/// Whether this process is a forked child in which [`start_pool_in_child`] was not called: the pool was
/// mapped by its parent, and is all zero here. Never true where the kernel cannot wipe memory at a fork
/// (Linux before 4.14).
#[must_use]
pub fn lost_to_fork() -> bool {
    pages().next().and_then(<[Lease]>::first).is_some_and(|mark| mark.is_claimed.load(Ordering::Relaxed) == 0)
}

/// In a forked child: the pool has no lease but `own`, which stays claimed. `own` is the lease of the thread
/// that forked: an event of that thread, which a signal handler has interrupted for the fork, may go on with
/// it. A lease that is not of the pool is left alone.
///
/// # Safety
/// This is a forked child, and no thread of it uses a lease that it claimed before this call, but `own`.
pub unsafe fn start_pool_in_child(own: Option<&'static Lease>) {
    let own = own.filter(|own| number_of(own).is_some());
    for lease in pages().flat_map(<[Lease]>::iter) {
        if own.is_some_and(|own| std::ptr::eq(own, lease)) {
            lease.clear();
            continue;
        }
        // Where the kernel did not wipe them: the lease of a thread that was in an event would be busy for
        // good, and lead to a chunk of the parent.
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

/// The pages that are mapped.
fn pages() -> impl Iterator<Item = &'static [Lease]> {
    MAPPED.iter().enumerate().map_while(|(number, page)| {
        let leases = page.load(Ordering::Acquire); // pairs with the Release in `map_more`
        // SAFETY: `map_more` alone stores here: a mapping of so many leases, page-aligned, which is never
        // unmapped once it is stored. All fields are atomics, and valid as zeros, which the mapping is when
        // it is made and when a fork has wiped it.
        (!leases.is_null()).then(|| unsafe { std::slice::from_raw_parts(leases, FIRST << number) })
    })
}

/// The pages that are mapped, each with the number of its first lease.
fn numbered_pages() -> impl Iterator<Item = (usize, &'static [Lease])> {
    pages().enumerate().map(|(page, leases)| (first_of(page), leases))
}

/// The number of a page's first lease.
const fn first_of(page: usize) -> usize {
    FIRST * ((1 << page) - 1)
}

/// The first free lease from `from` on, claimed, and its number. Lease 0 is the process's mark.
fn claim_from(from: usize) -> Option<(usize, &'static Lease)> {
    numbered_pages().find_map(|(first, leases)| {
        let skipped = from.max(1).saturating_sub(first).min(leases.len());
        let at = leases[skipped..].iter().position(|lease| {
            // Acquire pairs with the Release in `release_lease`: the thread before is done with it.
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

/// Maps one more page. Returns the number of its first lease. Two threads may map one each; the page of one
/// of them is unmapped again.
fn map_more() -> Option<usize> {
    let number = pages().count();
    let page = MAPPED.get(number)?;
    let len = (FIRST << number) * size_of::<Lease>();
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    wipe_on_fork(mapped, len);
    let leases = mapped.cast::<Lease>();
    if number == 0 {
        // SAFETY: at least one lease, zeroed, page-aligned, and nobody else's yet.
        unsafe { (*leases).is_claimed.store(1, Ordering::Relaxed) }; // the process's mark
    }
    // Release pairs with the Acquire in `pages`.
    if page.compare_exchange(std::ptr::null_mut(), leases, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: the mapping of just now, which nobody else has seen.
        unsafe { libc::munmap(mapped, len) };
    }
    Some(first_of(number))
}

/// Best effort: without it a child relies on the fork handlers.
fn wipe_on_fork(mapped: *mut libc::c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: a whole mapping that `map_more` has just made; the advice changes no byte in this process.
    unsafe {
        libc::madvise(mapped, len, libc::MADV_WIPEONFORK);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (mapped, len);
}

#[cfg(test)]
mod tests;
