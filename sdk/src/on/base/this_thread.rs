//! What Hairline keeps for each thread: its lease, and what the hot path needs.
//!
//! All of it is in one thread-local struct without a destructor, so that the hot path finds it by an offset from the
//! thread pointer. The layers above fill it in: `thread/` sets it up for a session.
//!
//! # Busy
//!
//! A thread that records, or that is about to take a lock of Hairline, marks itself busy. An event that interrupts it
//! then, from a signal handler or from an allocator that traces, is counted as re-entrant and does not wait for the
//! lock.

#![allow(unsafe_code)] // a thread-local by reference

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use hairline_shm::Lease;

use crate::on::base::lease;

/// Callsites whose "seen" bit stands in [`Hot`] itself.
pub(crate) const NEAR_CALLSITES: u32 = 1024;
const NEAR_BYTES: usize = NEAR_CALLSITES as usize / 8;

/// Tracks that are kept in [`Hot`] itself as described.
const NEAR_TRACKS: usize = 64;

/// Where the bit of the callsite with this id stands: byte and mask. Beyond [`NEAR_CALLSITES`], a byte that is
/// always 0.
pub(crate) const fn near_bit(id: u32) -> (u32, u8) {
    if id < NEAR_CALLSITES { (id / 8, 1 << (id % 8)) } else { (NEAR_BYTES as u32, 0xff) }
}

thread_local! {
    static HOT: Hot = const { Hot::new() };
}

/// This thread's.
#[inline(always)]
pub(crate) fn hot<'t>() -> &'t Hot {
    // Through a pointer, since what is done inside of `LocalKey::with` is compiled as a function of its own.
    let hot = HOT.with(std::ptr::from_ref);
    // SAFETY: `Hot` has no destructor, so it is there as long as its thread is; and being neither Send nor Sync
    // the reference cannot leave the thread.
    unsafe { &*hot }
}

/// What a thread's events need. Set up, refilled and emptied by the cold path alone.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    /// The thread's lease: its chunk, whether the chunk is still this thread's, the room in it. A thread without one
    /// has a lease that is busy for good: `lifetime.rs`. An atomic for the signal handlers of this thread.
    lease: AtomicPtr<Lease>,
    pub(crate) multiplier: Cell<u64>,
    pub(crate) offset: Cell<u64>,
    /// `0a LEN 50 SEQUENCE`, LEN counting all but the message.
    pub(crate) prefix: Cell<u64>,
    pub(crate) prefix_len: Cell<usize>,
    /// The end of a scope, complete but for its time.
    pub(crate) end_packet: Cell<[u64; 2]>,
    /// Bytes of a packet besides its message: the prefix and the time.
    pub(crate) packet_base: Cell<u32>,
    /// Callsites from [`NEAR_CALLSITES`] on whose strings this sequence has: words of bits, and bits in them.
    pub(crate) far: Cell<*const u64>,
    pub(crate) far_len: Cell<u32>,
    /// The same for the first callsites; the last byte stays 0.
    pub(crate) near: [Cell<u8>; NEAR_BYTES + 1],
    /// Tracks that this sequence has described, each at the place that its lowest bits say; 0 is none. An FXT interval needs no
    /// description as such, and has [`AS_INTERVAL`] set.
    tracks: [Cell<u64>; NEAR_TRACKS],
}

/// Beside the number of a track, which has 56 bits.
pub(crate) const AS_INTERVAL: u64 = 1 << 63;

impl Hot {
    const fn new() -> Self {
        Self {
            lease: AtomicPtr::new(&raw const lease::NONE as *mut Lease),
            multiplier: Cell::new(0),
            offset: Cell::new(0),
            prefix: Cell::new(0),
            prefix_len: Cell::new(0),
            end_packet: Cell::new([0; 2]),
            packet_base: Cell::new(0),
            far: Cell::new(std::ptr::null()),
            far_len: Cell::new(0),
            near: [const { Cell::new(0) }; NEAR_BYTES + 1],
            tracks: [const { Cell::new(0) }; NEAR_TRACKS],
        }
    }

    /// The thread's lease, for the hot path: one that is busy for good where the thread has none.
    #[inline(always)]
    pub(crate) fn lease(&self) -> &'static Lease {
        lease::lease_at(&self.lease)
    }

    /// The thread's lease, for the cold path: claimed here at the first call.
    #[inline]
    pub(crate) fn own_lease(&self) -> &'static Lease {
        lease::own_lease(&self.lease)
    }

    /// The thread's place for its lease.
    pub(crate) fn lease_place(&self) -> &AtomicPtr<Lease> {
        &self.lease
    }

    /// Until the guard is dropped, events of this thread (from a signal handler, from an allocator) are counted as
    /// re-entrant. A thread takes a lock of this crate only with such a guard, so no such event waits for the lock.
    #[inline]
    pub(crate) fn busy(&self) -> Busy {
        let lease = self.own_lease();
        let before = lease.is_busy();
        lease.set_busy(true);
        Busy { lease, before }
    }

    /// This sequence has the callsite's strings.
    pub(crate) fn set_seen(&self, id: u32) {
        if id < NEAR_CALLSITES {
            let (byte, mask) = near_bit(id);
            let cell = &self.near[byte as usize];
            cell.set(cell.get() | mask);
        }
    }

    /// This sequence has no strings, and no tracks.
    pub(crate) fn clear_seen(&self) {
        self.near.iter().for_each(|cell| cell.set(0));
        self.tracks.iter().for_each(|cell| cell.set(0));
    }

    /// This sequence has described the track; or it has an FXT interval on it, which needs no description as such.
    pub(crate) fn set_described(&self, uuid: u64, as_interval: bool) {
        self.track_cell(uuid).set(if as_interval { uuid | AS_INTERVAL } else { uuid });
    }

    pub(crate) fn track_cell(&self, uuid: u64) -> &Cell<u64> {
        &self.tracks[uuid as usize % NEAR_TRACKS]
    }
}

/// See [`Hot::busy`].
pub(crate) struct Busy {
    lease: &'static Lease,
    before: bool,
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        self.lease.set_busy(self.before);
    }
}

/// Marks this thread as busy; see [`Hot::busy`].
pub(crate) fn busy() -> Busy {
    hot().busy()
}

/// Marks this thread as busy, so that it may wait for a lock. `None` where it may not: [`is_barred`].
pub(crate) fn enter() -> Option<Busy> {
    (!is_barred()).then(busy)
}

/// Whether this thread may not wait for a lock: it is inside of an event, which may be holding it, or in a forked child,
/// where its holder may not exist.
pub(crate) fn is_barred() -> bool {
    hot().own_lease().is_busy() || is_detached()
}

/// Set in a forked child that does not trace, where a lock may be held by a thread that does not exist any more.
static DETACHED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a forked child that does not trace.
#[inline]
pub(crate) fn is_detached() -> bool {
    DETACHED.load(Ordering::Relaxed)
}

/// This process is a forked child that does not trace, for good.
pub(crate) fn set_detached() {
    DETACHED.store(true, Ordering::Relaxed);
}
