//! The pool on real threads and in real children. All tests of the process share it.

#![allow(unsafe_code)] // the contracts of the pool and of leases, and children

use std::collections::HashSet;
use std::sync::Arc;

use super::*;
use crate::{ChunkInfo, Commit, Recall, Region, RegionConfig, WriteChunk};

fn claim() -> &'static Lease {
    claim_lease().expect("memory")
}

/// # Safety
/// As [`release_lease`].
unsafe fn release(leases: impl IntoIterator<Item = &'static Lease>) {
    // SAFETY: by the contract.
    leases.into_iter().for_each(|lease| unsafe { release_lease(lease) });
}

fn addresses(leases: &[&'static Lease]) -> HashSet<usize> {
    leases.iter().map(|lease| std::ptr::from_ref(*lease).addr()).collect()
}

#[test]
fn no_two_threads_have_the_same_lease_and_all_are_listed() {
    let leases: Vec<_> = (0..1000).map(|_| claim()).collect();
    let claimed = addresses(&leases);
    assert_eq!(claimed.len(), 1000);
    // SAFETY: only the addresses are used.
    let listed = unsafe { all_leases() }.filter(|lease| claimed.contains(&std::ptr::from_ref(*lease).addr()));
    assert_eq!(listed.count(), 1000);
    // SAFETY: claimed above and not used again.
    unsafe { release(leases) };
}

#[test]
fn threads_that_come_and_go_share_a_few_leases() {
    // More than the first page has. Other tests claim a few at the same time.
    let used: HashSet<usize> = (0..200)
        .flat_map(|_| {
            let leases: Vec<_> = (0..100).map(|_| claim()).collect();
            let claimed = addresses(&leases);
            // SAFETY: claimed above and not used again.
            unsafe { release(leases) };
            claimed
        })
        .collect();
    assert!(used.len() < 5000, "20,000 claims of 100 at a time took {} leases", used.len());
}

/// Claims all leases there are.
fn claim_all() -> Vec<&'static Lease> {
    std::iter::from_fn(|| claim_from(0)).map(|(_, lease)| lease).collect()
}

#[test]
fn a_thread_gets_a_lease_though_others_claim_all_of_the_page_that_it_mapped() {
    let mut others = claim_all();
    let mut pages_taken = 0;
    let lease = claim_or_map(|| {
        map_more()?;
        if pages_taken < 2 {
            pages_taken += 1;
            others.extend(claim_all());
        }
        Some(())
    });
    // SAFETY: claimed above and not used again.
    unsafe { release(others.into_iter().chain(lease)) };
    assert!(lease.is_some());
}

/// Whether the lease is like a new one.
fn is_as_new(lease: &Lease) -> bool {
    !lease.is_busy()
        && lease.chunk().is_null()
        && (lease.epoch(), lease.end_epoch(), lease.room(), lease.last()) == (0, 0, 0, 0)
        && lease.commit() == Commit::default()
        && !lease.settle()
}

/// The lease of a thread in the middle of an event. The drain thread has asked for its chunk.
fn in_an_event(region: &Arc<Region>) -> (&'static Lease, WriteChunk) {
    let lease = claim();
    let chunk = region.claim(ChunkInfo::default(), b"").expect("a chunk");
    // SAFETY: this thread plays the owner and the drain thread. The chunk outlives the use of the lease.
    unsafe { lease.set(&chunk, 2, 2, true) };
    lease.set_commit(Commit::new(7, 1));
    lease.set_room(99);
    assert!(lease.ask(&Recall { region, epoch: 2, idle_since: u64::MAX, empty_room: None }));
    lease.set_last(5);
    lease.set_busy(true);
    (lease, chunk)
}

#[test]
fn a_released_lease_is_like_a_new_one() {
    let region = Region::create(&RegionConfig::small()).unwrap();
    let (lease, chunk) = in_an_event(&region);
    lease.clear();
    lease.settle();
    drop(chunk);
    lease.give_up();
    // Checked before the release: after it, another test's thread may claim the lease at once.
    lease.reset();
    assert!(is_as_new(lease));
    // SAFETY: claimed above and not used again.
    unsafe { release_lease(lease) };
}

/// Runs `body` in a child that `make` starts. Returns its result.
fn in_child(make: impl FnOnce() -> libc::c_long, body: impl FnOnce() -> bool) -> bool {
    let child = make();
    if child == 0 {
        let code = i32::from(!body());
        // SAFETY: ends the process.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: `status` is valid, and the pid is that of this process's child.
    unsafe { libc::waitpid(libc::pid_t::try_from(child).expect("a pid"), &raw mut status, 0) };
    status == 0
}

/// Forks with a bare system call, which runs no fork handler.
#[cfg(target_os = "linux")]
fn clone() -> libc::c_long {
    // SAFETY: the child only reads its own memory and ends.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_without_fork_handlers_finds_the_pool_empty() {
    let lease = claim();
    lease.set_commit(Commit::new(7, 1));
    assert!(!lost_to_fork());
    let is_well = in_child(clone, || {
        let is_wiped = lost_to_fork() && lease.commit() == Commit::default();
        // SAFETY: this is the only thread of the child, and it only counts the leases.
        let left = unsafe {
            start_pool_in_child(Some(lease));
            all_leases().count()
        };
        is_wiped && !lost_to_fork() && left == 1
    });
    assert!(is_well);
    // SAFETY: claimed above and not used again.
    unsafe { release_lease(lease) };
}

/// Makes forks keep the pool, as Linux before 4.14 does, which has no `MADV_WIPEONFORK`.
#[cfg(target_os = "linux")]
fn keep_on_fork() -> bool {
    pages().all(|page| {
        let start = page.as_ptr().cast_mut().cast();
        // SAFETY: a mapping of the pool. The advice changes no byte in this process.
        unsafe { libc::madvise(start, size_of_val(page), libc::MADV_KEEPONFORK) == 0 }
    })
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_whose_pool_was_not_wiped_has_new_leases_too() {
    let region = Region::create(&RegionConfig::small()).unwrap();
    let own = claim();
    let others: Vec<_> = (0..3).map(|_| in_an_event(&region)).collect();
    // The other tests need the wipe. So a child asks the kernel to keep the pool, and the grandchild is the
    // one under test.
    let is_well = in_child(clone, || {
        // Puts back the leases that the wipe has removed.
        // SAFETY: this is the only thread of the child.
        unsafe { start_pool_in_child(Some(own)) };
        if !keep_on_fork() {
            return false;
        }
        for (lease, chunk) in &others {
            lease.is_claimed.store(1, Ordering::Relaxed);
            // SAFETY: as in `in_an_event`.
            unsafe { lease.set(chunk, 2, 2, true) };
            lease.set_commit(Commit::new(7, 1));
            lease.set_room(99);
            lease.ask(&Recall { region: &region, epoch: 2, idle_since: u64::MAX, empty_room: None });
            lease.set_last(5);
            lease.set_busy(true);
        }
        in_child(clone, || {
            let is_kept = others.iter().all(|(lease, _)| lease.is_busy() && !lease.chunk().is_null());
            // SAFETY: as above.
            unsafe { start_pool_in_child(Some(own)) };
            // As many threads as the parent had claim a lease, and two more.
            let claimed: [Option<&Lease>; 5] = std::array::from_fn(|_| claim_lease());
            let are_new = claimed.iter().all(|lease| lease.is_some_and(is_as_new));
            is_kept && are_new && others.iter().all(|(lease, _)| is_as_new(lease))
        })
    });
    assert!(is_well);
    for (lease, mut chunk) in others {
        if lease.settle() {
            chunk.set_recalled();
        }
        lease.give_up();
        // SAFETY: claimed above and not used again.
        unsafe { release_lease(lease) };
    }
    // SAFETY: as above.
    unsafe { release_lease(own) };
}

/// A thread that has not recorded yet has a `Lease::barred`, which must stay as it is.
#[test]
#[cfg(target_os = "linux")]
fn a_lease_that_is_not_of_the_pool_is_not_changed_in_a_child() {
    static NONE: Lease = Lease::barred(false);
    let before = claim(); // so that there is a pool
    let is_well = in_child(clone, || {
        // SAFETY: this is the only thread of the child.
        unsafe { start_pool_in_child(Some(&NONE)) };
        NONE.is_wiped() && !lost_to_fork()
    });
    assert!(is_well);
    // SAFETY: claimed above and not used again.
    unsafe { release_lease(before) };
}
