//! A thread's lease: how the thread claims it, and how the lease is released at the thread's end.
//!
//! ```text
//! NONE ── first contact with the cold path ──> a lease of the pool ── the thread ends ──> ENDED
//!                                               │          ^
//!                                               └─> FORKING┘   while this thread forks
//! ```
//!
//! `NONE`, `ENDED` and `FORKING` are leases that are always busy. So one check of the busy mark serves the
//! hot path for all of them.
//!
//! # The end of a thread
//!
//! The destructor of a key (on Unix a `pthread_key`) gives the thread's chunk back (`cold::thread_ended`) and
//! releases the lease. If it does not run (for an event in the last round of key destructors, or in a signal
//! handler after that), the lease stays claimed, and the memory of the thread's chunk writer is not freed:
//! some KiB for each such thread, and the session's region until the process ends. The events are in the
//! trace. The drain thread can still recall the chunk, like that of any idle thread.
//!
//! # A forked child
//!
//! The child finds its lease wiped. If the fork handlers ran (`fork.rs`), they have replaced the lease by a
//! new one. If they did not run (`clone(2)`, `_Fork`), [`own_lease`] detects the fork at the child's first
//! contact with the cold path. The child then records nothing from there on.

#![allow(unsafe_code)] // the pool

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hairline_shm::{Lease, claim_lease, lost_to_fork, release_lease, start_pool_in_child};

use crate::on::base::{hooks, platform};

/// The lease of a thread that has not reached the cold path yet. It looks like a lease that a fork has wiped,
/// so that [`own_lease`] needs one check for both.
pub(crate) static NONE: Lease = Lease::barred(false);
/// The lease of a thread that has ended, or whose end cannot be observed.
static ENDED: Lease = Lease::barred(true);
/// The lease of a thread that is forking.
static FORKING: Lease = Lease::barred(true);

fn is_same(lease: &'static Lease, sentinel: &'static Lease) -> bool {
    std::ptr::eq(lease, sentinel)
}

fn pointer(lease: &'static Lease) -> *mut Lease {
    std::ptr::from_ref(lease).cast_mut()
}

/// Loads the lease from a thread's slot.
#[inline(always)]
pub(crate) fn load_lease(slot: &AtomicPtr<Lease>) -> &'static Lease {
    // SAFETY: the slot holds one of the statics above or a lease of the pool, which is never freed.
    unsafe { &*slot.load(Ordering::Relaxed) }
}

/// Whether this is a lease of the pool, in the process that claimed it.
fn is_own(lease: &'static Lease) -> bool {
    ![&NONE, &ENDED, &FORKING].into_iter().any(|sentinel| is_same(lease, sentinel)) && !lease.is_wiped()
}

/// Whether the thread with this lease has ended, as far as this crate is concerned.
pub(crate) fn has_ended(lease: &'static Lease) -> bool {
    is_same(lease, &ENDED)
}

/// Returns the lease in `slot`, for the cold path. The first call on a thread claims it.
#[inline]
pub(crate) fn own_lease(slot: &AtomicPtr<Lease>) -> &'static Lease {
    let lease = load_lease(slot);
    if lease.is_wiped() { claim(slot, lease) } else { lease }
}

#[cold]
fn claim(slot: &AtomicPtr<Lease>, before: &'static Lease) -> &'static Lease {
    let is_parents = !is_same(before, &NONE);
    if is_parents || lost_to_fork() {
        if let Some(hooks) = hooks::get() {
            (hooks.in_unhandled_child)();
        }
        // SAFETY: this is a forked child whose leases were wiped, so no thread has a lease. The child records
        // nothing any more. So if two of its threads get here at once and get the same lease, neither ever
        // has a chunk.
        unsafe { start_pool_in_child(is_parents.then_some(before)) };
    }
    let own = claim_lease().filter(|own| {
        let is_registered = register_end(slot);
        if !is_registered {
            // SAFETY: claimed just now, and not used after this call.
            unsafe { release_lease(own) };
        }
        is_registered
    });
    let own = own.unwrap_or(&ENDED);
    // A signal handler may have interrupted this call, claimed a lease and recorded with it.
    match slot.compare_exchange(pointer(before), pointer(own), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => own,
        Err(_) => {
            if !is_same(own, &ENDED) {
                // SAFETY: claimed just now, and not used after this call.
                unsafe { release_lease(own) };
            }
            load_lease(slot)
        }
    }
}

/// Counts this thread's events as re-entrant from now on. This holds in the child of the fork too, whose
/// memory of the pool is wiped. Returns the lease to pass to [`end_fork`].
pub(crate) fn begin_fork(slot: &AtomicPtr<Lease>) -> &'static Lease {
    let before = load_lease(slot);
    slot.store(pointer(&FORKING), Ordering::Relaxed);
    before
}

/// Restores the lease after the fork, in the parent.
pub(crate) fn end_fork(slot: &AtomicPtr<Lease>, before: &'static Lease) {
    slot.store(pointer(before), Ordering::Relaxed);
}

/// Resets the lease after the fork, in the child: the thread claims its own lease at its next contact with
/// the cold path.
pub(crate) fn start_in_child(slot: &AtomicPtr<Lease>) {
    slot.store(pointer(&NONE), Ordering::Relaxed);
}

/// Releases the lease at the end of the thread, which has no chunk any more.
pub(crate) fn end(slot: &AtomicPtr<Lease>) {
    let lease = load_lease(slot);
    slot.store(pointer(&ENDED), Ordering::Relaxed);
    if is_own(lease) {
        // SAFETY: `claim` claimed it for this slot, which does not hold it any more.
        unsafe { release_lease(lease) };
    }
}

/// The key whose destructor runs at a thread's end, plus one; or one of the two values below.
static KEY: AtomicU32 = AtomicU32::new(NOT_MADE);
/// No thread has registered yet.
const NOT_MADE: u32 = 0;
/// The process ends, or this library is unloaded: no destructor runs any more, and no thread gets a lease.
const GONE: u32 = u32::MAX;

/// Registers [`ended`] to be called at this thread's end, with the thread's slot for its lease. Returns
/// whether that succeeded.
fn register_end(slot: &AtomicPtr<Lease>) -> bool {
    let Some(key) = key() else { return false };
    platform::set_value(key, std::ptr::from_ref(slot).cast())
}

fn key() -> Option<u32> {
    match KEY.load(Ordering::Acquire) {
        NOT_MADE => {}
        GONE => return None,
        key => return Some(key - 1),
    }
    let key = platform::create_key(ended)?;
    match KEY.compare_exchange(NOT_MADE, key + 1, Ordering::Release, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(first) => {
            platform::delete_key(key);
            (first != GONE).then(|| first - 1)
        }
    }
}

/// Deletes the key, so that [`ended`] is not called any more: the process ends, or this library is unloaded.
pub(crate) fn forget_key() {
    let key = KEY.swap(GONE, Ordering::AcqRel);
    if key != NOT_MADE && key != GONE {
        platform::delete_key(key - 1);
    }
}

extern "C" fn ended(slot: *mut std::ffi::c_void) {
    if let Some(hooks) = hooks::get() {
        (hooks.thread_ends)();
    }
    // SAFETY: `register_end` stored the slot of this thread: a thread-local without a destructor, whose
    // memory exists until the destructors of all keys have run.
    end(unsafe { &*slot.cast::<AtomicPtr<Lease>>() });
}
