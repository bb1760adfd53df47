//! A thread's lease: how the thread comes by it, and how it gives it back at its end.
//!
//! ```text
//! NONE ── first contact with the cold path ──> a lease of the pool ── the thread ends ──> ENDED
//!                                               │          ^
//!                                               └─> FORKING┘   while this thread forks
//! ```
//!
//! `NONE`, `ENDED` and `FORKING` are leases that are busy for good. So the hot path has one look, at the busy
//! mark, for all of them.
//!
//! # The end
//!
//! Two things tell a thread's end, in this order: the destructor of a thread-local (`cold::Owner`), which
//! gives the chunk back; and the destructor of a `pthread_key`, which gives back the lease, and the chunk of
//! a thread whose first event came after its thread-locals were gone. Where neither comes (the last round of
//! key destructors, a signal handler after it), the lease stays claimed, and what the thread's writer holds is not
//! freed: some KiB for each such thread, and the session's region until the process ends. The events are in the
//! trace. The drain thread can still take the chunk back, as that of any idle thread.
//!
//! # A forked child
//!
//! It finds its lease wiped. Where the fork handlers ran (`fork.rs`) they have put a new one in its place.
//! Where they did not (`clone(2)`, `_Fork`), the child finds that out here, at its first contact with the
//! cold path, and is silent from then on.

#![allow(unsafe_code)] // pthread keys, and the pool

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hairline_shm::{Lease, claim_lease, lost_to_fork, release_lease, start_pool_in_child};

use crate::on::base::hooks;

/// The lease of a thread that has not been here yet. It looks like one that a fork has wiped: [`own_lease`]
/// has one look for both.
pub(crate) static NONE: Lease = Lease::barred(false);
/// The lease of a thread that has ended, or could not be told of its end.
static ENDED: Lease = Lease::barred(true);
/// The lease of a thread that forks.
static FORKING: Lease = Lease::barred(true);

fn is(lease: &'static Lease, sentinel: &'static Lease) -> bool {
    std::ptr::eq(lease, sentinel)
}

fn pointer(lease: &'static Lease) -> *mut Lease {
    std::ptr::from_ref(lease).cast_mut()
}

/// The lease in a thread's place for it.
#[inline(always)]
pub(crate) fn lease_at(place: &AtomicPtr<Lease>) -> &'static Lease {
    // SAFETY: the place holds one of the statics above or a lease of the pool, which is never freed.
    unsafe { &*place.load(Ordering::Relaxed) }
}

/// Whether it is a lease of the pool, in the process that claimed it.
fn is_own(lease: &'static Lease) -> bool {
    ![&NONE, &ENDED, &FORKING].into_iter().any(|sentinel| is(lease, sentinel)) && !lease.is_wiped()
}

/// Whether the thread has ended, as far as this crate is concerned.
pub(crate) fn has_ended(lease: &'static Lease) -> bool {
    is(lease, &ENDED)
}

/// The lease in `place`, for the cold path: claimed at the first call on a thread.
#[inline]
pub(crate) fn own_lease(place: &AtomicPtr<Lease>) -> &'static Lease {
    let lease = lease_at(place);
    if lease.is_wiped() { claim(place, lease) } else { lease }
}

#[cold]
fn claim(place: &AtomicPtr<Lease>, before: &'static Lease) -> &'static Lease {
    let is_parents = !is(before, &NONE);
    if is_parents || lost_to_fork() {
        if let Some(hooks) = hooks::get() {
            (hooks.in_unannounced_child)();
        }
        // SAFETY: a forked child, whose leases were wiped: no thread has one. It is silent for good, so where
        // two of its threads come here at once and get one lease, neither ever has a chunk.
        unsafe { start_pool_in_child(is_parents.then_some(before)) };
    }
    let own = claim_lease().filter(|own| {
        let is_told = is_told_of_end(place);
        if !is_told {
            // SAFETY: claimed just now, and dropped.
            unsafe { release_lease(own) };
        }
        is_told
    });
    let own = own.unwrap_or(&ENDED);
    // A signal handler that came in between has claimed one already, and recorded with it.
    match place.compare_exchange(pointer(before), pointer(own), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => own,
        Err(_) => {
            if !is(own, &ENDED) {
                // SAFETY: claimed just now, and dropped.
                unsafe { release_lease(own) };
            }
            lease_at(place)
        }
    }
}

/// From now on this thread's events count as re-entrant, in the child of a fork too, whose memory of the pool
/// is wiped. Returns what [`end_fork`] is to be given.
pub(crate) fn begin_fork(place: &AtomicPtr<Lease>) -> &'static Lease {
    let before = lease_at(place);
    place.store(pointer(&FORKING), Ordering::Relaxed);
    before
}

/// The fork is over, in the parent.
pub(crate) fn end_fork(place: &AtomicPtr<Lease>, before: &'static Lease) {
    place.store(pointer(before), Ordering::Relaxed);
}

/// The fork is over, in the child: the thread gets a lease of its own at the next contact.
pub(crate) fn start_in_child(place: &AtomicPtr<Lease>) {
    place.store(pointer(&NONE), Ordering::Relaxed);
}

/// The thread ends: it has no chunk any more.
pub(crate) fn end(place: &AtomicPtr<Lease>) {
    let lease = lease_at(place);
    place.store(pointer(&ENDED), Ordering::Relaxed);
    if is_own(lease) {
        // SAFETY: claimed by `claim` for this place, where it is no more.
        unsafe { release_lease(lease) };
    }
}

/// The key whose destructor tells a thread's end, and one more.
static KEY: AtomicU32 = AtomicU32::new(NOT_MADE);
const NOT_MADE: u32 = 0;
/// The process ends, or this library is unloaded: no thread is told of its end any more, and none gets a
/// lease.
const GONE: u32 = u32::MAX;

/// Arranges that [`ended`] is called at this thread's end, with the thread's place for its lease. Returns whether
/// it will be.
fn is_told_of_end(place: &AtomicPtr<Lease>) -> bool {
    let Some(key) = key() else { return false };
    // SAFETY: a key that `key` made, which is deleted only when the process ends or this library is unloaded.
    // Only `ended` follows the value, on this thread.
    unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(place).cast()) == 0 }
}

fn key() -> Option<libc::pthread_key_t> {
    match KEY.load(Ordering::Acquire) {
        NOT_MADE => {}
        GONE => return None,
        key => return Some(key - 1),
    }
    let mut key = 0;
    // SAFETY: the key is for the call to write, and the destructor a function of this library; `forget_key`
    // deletes the key before the library is unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(NOT_MADE, key + 1, Ordering::Release, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(first) => {
            // SAFETY: the key of just now, which nobody else knows.
            unsafe { libc::pthread_key_delete(key) };
            (first != GONE).then(|| first - 1)
        }
    }
}

/// The process ends, or this library is unloaded: [`ended`] must not be called any more.
pub(crate) fn forget_key() {
    let key = KEY.swap(GONE, Ordering::AcqRel);
    if key != NOT_MADE && key != GONE {
        // SAFETY: a key that `key` made.
        unsafe { libc::pthread_key_delete(key - 1) };
    }
}

extern "C" fn ended(place: *mut libc::c_void) {
    if let Some(hooks) = hooks::get() {
        (hooks.thread_ends)();
    }
    // SAFETY: `is_told_of_end` gave the place of this thread: a thread-local without a destructor, whose memory is
    // there until the destructors of all keys have run.
    end(unsafe { &*place.cast::<AtomicPtr<Lease>>() });
}
