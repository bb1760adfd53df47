//! The state that Hairline keeps for each thread: its lease, and the data of the hot path.
//!
//! All of it is in one thread-local struct without a destructor, so that the hot path reaches it by an offset
//! from the thread pointer. The layers above fill it in: `thread/` sets it up for a session.
//!
//! # Busy
//!
//! A thread marks itself busy while it records, and before it takes a lock of Hairline. An event that
//! interrupts it then, from a signal handler or from an allocator that traces, is counted as re-entrant and
//! does not wait for the lock.

#![allow(unsafe_code)] // a thread-local by reference

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use hairline_formats::track_event::TrackUuid;
use hairline_shm::{Commit, Lease};

#[cfg(any(feature = "sampling", feature = "sync"))]
use crate::on::base::platform::process;
use crate::on::base::{clock, lease};

/// Number of callsites whose "seen" bit is in [`Hot`] itself.
pub(crate) const NEAR_CALLSITES: u32 = 1024;
const NEAR_BYTES: usize = NEAR_CALLSITES as usize / 8;

/// Number of slots in [`Hot`] for tracks that the sequence has described.
const NEAR_TRACKS: usize = 64;

/// Returns byte and mask of the "seen" bit of the callsite with this id. From [`NEAR_CALLSITES`] on, returns
/// a byte that is always 0.
pub(crate) const fn near_bit(id: u32) -> (u32, u8) {
    if id < NEAR_CALLSITES { (id / 8, 1 << (id % 8)) } else { (NEAR_BYTES as u32, 0xff) }
}

thread_local! {
    static HOT: Hot = const { Hot::new() };
}

#[cfg(any(feature = "sampling", feature = "sync"))]
thread_local! {
    /// The kernel's id of this thread; 0 before it is asked for.
    static TID: Cell<u32> = const { Cell::new(0) };
}

/// Returns the kernel's id of this thread, which is kept.
#[cfg(any(feature = "sampling", feature = "sync"))]
#[inline(always)]
pub(crate) fn tid() -> u32 {
    let kept = TID.get();
    if kept == 0 { ask_tid() } else { kept }
}

#[cfg(any(feature = "sampling", feature = "sync"))]
#[cold]
#[inline(never)]
fn ask_tid() -> u32 {
    let tid = process::tid().max(1);
    TID.set(tid);
    tid
}

/// The number of forks that have led to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks that have led to this process. It starts again at 0 after 2^20.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed) & ((1 << 20) - 1)
}

/// In a forked child: its thread has another id than in the parent.
pub(crate) fn set_forked() {
    #[cfg(any(feature = "sampling", feature = "sync"))]
    TID.set(0);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns this thread's state.
#[inline(always)]
pub(crate) fn hot<'t>() -> &'t Hot {
    // By a pointer, since the closure of `LocalKey::with` is compiled as a separate function.
    let hot = HOT.with(std::ptr::from_ref);
    // SAFETY: `Hot` has no destructor, so it exists as long as its thread. It is neither Send nor Sync, so
    // the reference cannot leave the thread.
    unsafe { &*hot }
}

/// The data that a thread's events need. Only the cold path sets it up, refills and empties it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    /// The thread's lease: its chunk, whether the drain thread has recalled the chunk, and the room in it. A
    /// thread without a lease of its own has a lease that is always busy: `base/lease.rs`. An atomic, for the
    /// signal handlers of this thread.
    lease: AtomicPtr<Lease>,
    pub(crate) multiplier: Cell<u64>,
    pub(crate) offset: Cell<u64>,
    /// `0a LEN 50 SEQUENCE`. LEN counts all bytes but the message.
    pub(crate) prefix: Cell<u64>,
    pub(crate) prefix_len: Cell<usize>,
    /// The end of a scope, complete except for its time.
    pub(crate) end_packet: Cell<[u64; 2]>,
    /// Bytes of a packet without its message: the prefix and the time.
    pub(crate) packet_base: Cell<u32>,
    /// The "seen" bits of the callsites from [`NEAR_CALLSITES`] on, whose strings this sequence has: words of
    /// bits, and the number of bits.
    pub(crate) far: Cell<*const u64>,
    pub(crate) far_len: Cell<u32>,
    /// The "seen" bits of the callsites below [`NEAR_CALLSITES`]; the last byte stays 0.
    pub(crate) near: [Cell<u8>; NEAR_BYTES + 1],
    /// The same bits in a session that records the places of events and nothing else beside them. Then those
    /// above stay clear: only code that writes the place finds a callsite.
    pub(crate) located: [Cell<u8>; NEAR_BYTES + 1],
    /// Tracks that this sequence has described, each in the slot given by its lowest bits; 0 is an empty
    /// slot. An FXT interval needs no description as an interval, and has [`AS_INTERVAL`] set.
    tracks: [Cell<u64>; NEAR_TRACKS],
    /// The number of bits in `far` if the session records facts beside each event, else 0. Then the near bits
    /// stay clear and `far_len` is 0: only code that writes the facts finds a callsite.
    pub(crate) detailed_len: Cell<u32>,
    /// These facts. Set by [`set_facts`](Self::set_facts).
    facts: Cell<Facts>,
    /// Bytes that a begin reserves for its end.
    pub(crate) end_size: Cell<i32>,
    /// The epoch of a session with [CPU times](Facts::cpu_time), if the ends of all open scopes are reserved
    /// in the chunk; else 0. The lease's epoch for ends is 0 in such a session. Only the cold path changes
    /// this one, so it counts only if the lease has the same epoch: the drain thread and a fork clear that
    /// one.
    pub(crate) detailed_end_epoch: Cell<u32>,
    /// The epoch of the session whose ring had no room for an event of this thread, until the thread has
    /// written the number of those; else 0. No later session has the same.
    starved_epoch: Cell<u32>,
    /// The position of the last record that the cold path has written. The hot path does not use it.
    pub(crate) cold_position: Cell<Position>,
}

/// The facts that a session records beside each event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The place in the source.
    pub(crate) location: bool,
    /// The CPU time of the thread.
    pub(crate) cpu_time: bool,
}

impl Facts {
    pub(crate) const NONE: Self = Self { location: false, cpu_time: false };
    const PLACES: Self = Self { location: true, cpu_time: false };
}

/// A position between two records of this thread's sequence.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "subscriber"), allow(dead_code))] // only spans of `tracing` are taken back
pub(crate) struct Position {
    /// The commit in the chunk.
    pub(crate) commit: Commit,
    /// The time of the record before.
    pub(crate) last: u64,
    /// Differs from another position's if the chunk does, or if anything but events was written in between.
    pub(crate) changes: u64,
}

impl Position {
    /// The position before any record.
    pub(crate) const START: Self = Self { commit: Commit(0), last: 0, changes: 0 };
}

/// A flag beside the uuid of a track, which has 56 bits.
pub(crate) const AS_INTERVAL: u64 = 1 << 63;

impl Hot {
    /// Returns the time in ns, by the parameters that the thread knows.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        clock::now(self.multiplier.get(), self.offset.get())
    }

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
            detailed_len: Cell::new(0),
            starved_epoch: Cell::new(0),
            facts: Cell::new(Facts::NONE),
            end_size: Cell::new(0),
            detailed_end_epoch: Cell::new(0),
            near: [const { Cell::new(0) }; NEAR_BYTES + 1],
            located: [const { Cell::new(0) }; NEAR_BYTES + 1],
            tracks: [const { Cell::new(0) }; NEAR_TRACKS],
            cold_position: Cell::new(Position::START),
        }
    }

    /// Returns the [changes](Position::changes) up to the last record that the cold path has written.
    #[cfg_attr(not(feature = "subscriber"), allow(dead_code))]
    #[inline(always)]
    pub(crate) fn changes(&self) -> u64 {
        // SAFETY: this thread's own cell; nothing writes it while one of its fields is read.
        unsafe { (*self.cold_position.as_ptr()).changes }
    }

    /// Returns the thread's lease, for the hot path. A thread without its own lease has one that is always
    /// busy.
    #[inline(always)]
    pub(crate) fn lease(&self) -> &'static Lease {
        lease::load_lease(&self.lease)
    }

    /// Returns the thread's lease, for the cold path. The first call claims it.
    #[inline]
    pub(crate) fn own_lease(&self) -> &'static Lease {
        lease::own_lease(&self.lease)
    }

    /// Returns the slot that holds the thread's lease.
    pub(crate) fn lease_slot(&self) -> &AtomicPtr<Lease> {
        &self.lease
    }

    /// Marks this thread busy until the guard is dropped: its events (from a signal handler, from an
    /// allocator) are counted as re-entrant. A thread takes a lock of this crate only with such a guard, so
    /// no such event waits for the lock.
    #[inline]
    pub(crate) fn busy(&self) -> Busy {
        let lease = self.own_lease();
        let before = lease.is_busy();
        lease.set_busy(true);
        Busy { lease, before }
    }

    /// Begins a sequence, whose session records these facts beside each event.
    pub(crate) fn set_facts(&self, facts: Facts) {
        self.facts.set(facts);
        self.set_starved(0);
    }

    /// Returns the facts that the session records beside each event.
    #[inline(always)]
    pub(crate) fn facts(&self) -> Facts {
        self.facts.get()
    }

    /// Whether the session records facts beside each event.
    #[inline(always)]
    pub(crate) fn is_detailed(&self) -> bool {
        self.facts.get() != Facts::NONE
    }

    /// Sets the epoch of the session that has no room for this thread's events; 0 when the thread has written
    /// their number.
    pub(crate) fn set_starved(&self, epoch: u32) {
        self.starved_epoch.set(epoch);
    }

    /// Returns that epoch.
    #[inline(always)]
    pub(crate) fn starved_epoch(&self) -> u32 {
        self.starved_epoch.get()
    }

    /// Records that this sequence has the callsite's strings. `has_place`: also that of its place in the
    /// source, if the session records places, and the hot path can write it.
    pub(crate) fn set_seen(&self, id: u32, has_place: bool) {
        let bits = match self.facts.get() {
            Facts::NONE => &self.near,
            Facts::PLACES if has_place => &self.located,
            _ => return,
        };
        if id < NEAR_CALLSITES {
            let (byte, mask) = near_bit(id);
            let cell = &bits[byte as usize];
            cell.set(cell.get() | mask);
        }
    }

    /// Records that this sequence has no strings and no tracks.
    pub(crate) fn clear_seen(&self) {
        self.near.iter().chain(&self.located).for_each(|cell| cell.set(0));
        self.tracks.iter().for_each(|cell| cell.set(0));
    }

    /// Records that this sequence has described the track; or, with `as_interval`, that it has an FXT
    /// interval on the track, which needs no description.
    pub(crate) fn set_described(&self, uuid: TrackUuid, as_interval: bool) {
        self.track_cell(uuid).set(if as_interval { uuid.0 | AS_INTERVAL } else { uuid.0 });
    }

    /// Returns the slot of the track in the set of described tracks.
    pub(crate) fn track_cell(&self, uuid: TrackUuid) -> &Cell<u64> {
        &self.tracks[uuid.0 as usize % NEAR_TRACKS]
    }
}

/// Marks the thread busy; see [`Hot::busy`].
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

/// Marks this thread busy; see [`Hot::busy`].
pub(crate) fn busy() -> Busy {
    hot().busy()
}

/// Marks this thread busy, so that it may wait for a lock. `None` if it may not wait: [`is_barred`].
pub(crate) fn enter() -> Option<Busy> {
    (!is_barred()).then(busy)
}

/// Whether this thread may not wait for a lock: it is inside an event that may hold the lock, or in a forked
/// child where the holder of the lock may not exist.
pub(crate) fn is_barred() -> bool {
    hot().own_lease().is_busy() || is_detached()
}

/// Set in a forked child that does not trace. A thread that does not exist there may hold any lock.
static DETACHED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a forked child that does not trace.
#[inline]
pub(crate) fn is_detached() -> bool {
    DETACHED.load(Ordering::Relaxed)
}

/// Records that this process is a forked child that will never trace.
pub(crate) fn set_detached() {
    DETACHED.store(true, Ordering::Relaxed);
}
