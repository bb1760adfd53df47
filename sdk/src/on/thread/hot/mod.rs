//! The hot path: an event of a thread that is set up, at a callsite it has seen, with room in its chunk.
//!
//! Everything it needs is in one thread-local struct without a destructor, so the access is an
//! offset from the thread pointer; and in the thread's lease, a cache line in memory that outlives the thread
//! (`hairline_shm::Lease`), since the drain thread reads it. In order:
//!
//! 1. the writer is **taken**: found free, and marked busy, so that an event which interrupts this one from now on
//!    (a signal handler) is counted by the cold path. One that came between the two has run to its end; all else is
//!    read after the mark;
//! 2. the callsite's word equals the thread's epoch: the session is the one this thread writes for, and its chunk was not
//!    taken back while it was idle (`hairline_shm::Lease`);
//! 3. there is room, and the callsite's strings are known on this sequence;
//! 4. the clock is read; the time since the last event is sane (not negative, and below [`GAP`]);
//! 5. the record's final bytes are stored above `commit`;
//! 6. `commit` is stored with Release: the record is in the trace;
//! 7. `room` gets its new value, and the writer is free again.
//!
//! Where any check fails the writer is put back as it was and another path does the whole event anew: the
//! **warm** one, this same code with `WARM` set, which also knows the fallback clock and the callsites whose "seen"
//! bit is not in the struct; and where that fails too, the cold one. The functions that hold the hot path call
//! nothing but in tail position. They save the registers that their arguments move to while the thread-local is
//! found, which is compiled as if it were a call, and those that TrackEvent's stores need: five at a begin.
//!
//! # Room
//!
//! `room` is how many bytes of the chunk are neither written nor kept for the end of an open scope. A
//! recorded begin takes its own size and that of its end; the end then uses what was kept and leaves
//! `room` as it is. So an end always fits, and loss leaves out whole scopes.

#![allow(unsafe_code)] // stores into the chunk

mod blob;
mod fxt;
mod packet;

use hairline_shm::abi::CHUNK_HEADER_SIZE;
use hairline_shm::{ChunkHeader, Commit, Lease};

use crate::on::base::clock;
pub(crate) use crate::on::base::this_thread::Hot;
use crate::on::base::this_thread::{AS_INTERVAL, NEAR_CALLSITES};
use crate::on::callsite::{Callsite, Kind, TRACK_EVENT, fence_constants};
use crate::on::event::argument::Values;
use crate::on::event::position::{Happens, InFxt, Position};
use crate::on::session::room::OVERHANG;
pub(crate) use crate::on::thread::hot::fxt::END as FXT_END;
pub(crate) use crate::on::thread::hot::packet::END as TRACK_EVENT_END;
use crate::on::thread::raw::Raw;

/// The longest time between two events of a thread, in ns, that the hot path writes: its delta is a varint
/// of at most 3 bytes. Beyond it the cold path writes the event and takes the clock's newest parameters.
pub(crate) const GAP: u64 = 1 << 21;

/// The writer, taken for one record.
struct Taken {
    lease: &'static Lease,
    /// By a pointer that may write the payload too.
    chunk: *mut ChunkHeader,
}

impl Hot {
    /// Takes the writer for a record of the session with epoch `word` (not 0), which `session` must show: the lease's epoch, or that
    /// for ends. None: nothing has changed.
    #[inline(always)]
    fn take(&self, session: impl Fn(&Lease) -> u32, word: u32) -> Option<Taken> {
        debug_assert_ne!(word, 0, "0 is no session: every caller has compared");
        let lease = self.lease();
        if lease.is_busy() {
            return None;
        }
        lease.set_busy(true);
        if session(lease) != word {
            lease.set_busy(false);
            return None;
        }
        fence_constants(); // `word` is an epoch
        Some(Taken { lease, chunk: lease.chunk() })
    }

    /// Whether the callsite's strings stand in this sequence.
    #[inline(always)]
    fn has_seen<const WARM: bool>(&self, callsite: &'static Callsite) -> bool {
        let (byte, mask) = callsite.near_bit();
        // SAFETY: `near_bit` made the byte, at most NEAR_BYTES.
        let near = unsafe { self.near.get_unchecked(byte as usize) };
        near.get() & mask != 0 || WARM && self.has_seen_far(callsite.id())
    }

    fn has_seen_far(&self, id: u32) -> bool {
        // SAFETY: `far` has `far_len` bits (cold path), and id is below.
        (NEAR_CALLSITES..self.far_len.get()).contains(&id)
            && unsafe { *self.far.get().add(id as usize / 64) } >> (id % 64) & 1 != 0
    }

    /// Now, and the ns since the last event, if that is something the hot path may write.
    #[inline(always)]
    fn tick<const WARM: bool>(&self, taken: &Taken) -> Option<(u64, u64)> {
        let (multiplier, offset) = (self.multiplier.get(), self.offset.get());
        let now = if WARM { clock::now(multiplier, offset) } else { clock::counter_now(multiplier, offset)? };
        let delta = now.wrapping_sub(taken.lease.last());
        (delta < GAP).then_some((now, delta))
    }
}

impl Taken {
    /// Bytes neither written nor kept for ends. Read where it is needed, as [`last_commit`](Self::last_commit) is.
    #[inline(always)]
    fn room(&self) -> i32 {
        self.lease.room()
    }

    /// The last commit. In FXT it is read once. In TrackEvent it is read anew where it is needed: to keep it there would take a register
    /// that is then saved and restored, in both formats.
    #[inline(always)]
    fn last_commit(&self) -> Commit {
        self.lease.commit()
    }

    /// Where the next record goes, after the last `commit`.
    ///
    /// # Safety
    /// The record must fit the chunk's room.
    #[inline(always)]
    unsafe fn raw(&self, commit: Commit) -> Raw {
        let at = CHUNK_HEADER_SIZE + commit.bytes() as usize;
        // SAFETY: the payload follows the header; room by the contract; only this thread writes above `commit`.
        unsafe { Raw::at(self.chunk.cast::<u8>().add(at)) }
    }

    /// Notes that the record of `bytes` is a begin, and its time where the record does not hold it, in the room that is
    /// kept for its end: `room.rs`, "Where the chunk before may be gone". `room` is what will be left.
    #[inline(always)]
    fn note_begin(&self, commit: Commit, bytes: u32, room: i32, time: Option<u64>) {
        let commit = commit.bytes();
        let at =
            CHUNK_HEADER_SIZE + commit as usize + bytes as usize + room.cast_unsigned() as usize + OVERHANG;
        // SAFETY: the end's room begins where `room` will end, and like the overhang it is this thread's.
        unsafe {
            let note = self.chunk.cast::<u8>().add(at);
            note.cast::<u32>().write_unaligned(commit);
            if let Some(time) = time {
                note.add(4).cast::<u64>().write_unaligned(time);
            }
        }
    }

    /// The record's `bytes` are in the trace, and `room` is left.
    #[inline(always)]
    fn commit(self, commit: Commit, now: u64, bytes: u32, room: i32) {
        self.publish(commit, now, bytes);
        self.lease.set_room(room);
        self.lease.set_busy(false);
    }

    /// The same for an end that takes just the room that its begin has kept.
    #[inline(always)]
    fn commit_end(self, commit: Commit, now: u64, bytes: u32) {
        self.publish(commit, now, bytes);
        self.lease.set_busy(false);
    }

    #[inline(always)]
    fn publish(&self, commit: Commit, now: u64, bytes: u32) {
        let commit = Commit(commit.0 + Commit::new(bytes, 1).0);
        self.lease.set_last(now);
        // SAFETY: the epoch said that the chunk is this thread's, and nobody takes it while the lease is busy. The record's bytes were
        // written, within the room that was found, or that the begin has kept for this end. (In a child that
        // a signal handler forked in the midst of this event the commit is smaller: `fork.rs`.)
        unsafe { (*self.chunk).publish(commit) };
        self.lease.set_commit(commit);
    }

    /// As if nothing had been tried.
    #[inline(always)]
    fn put_back(self) -> bool {
        self.lease.set_busy(false);
        false
    }
}

/// A record without arguments: begin or instant. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn plain<const WARM: bool>(hot: &Hot, callsite: &'static Callsite, word: u32, kind: Kind) -> bool {
    let Some(taken) = hot.take(Lease::epoch, word) else { return false };
    if word & TRACK_EVENT == 0 {
        fxt::plain::<WARM>(hot, callsite, kind, taken)
    } else {
        packet::plain::<WARM>(hot, callsite, kind, taken)
    }
}

/// The begin of a scope that a flow goes through, `begun` already or here. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn with_flow<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    word: u32,
    flow: u64,
    begun: bool,
) -> bool {
    let Some(taken) = hot.take(Lease::epoch, word) else { return false };
    if word & TRACK_EVENT == 0 {
        fxt::with_flow::<WARM>(hot, callsite, flow, begun, taken)
    } else {
        packet::with_flow::<WARM>(hot, callsite, flow, taken)
    }
}

/// The end of a recorded scope. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn end<const WARM: bool>(hot: &Hot, callsite: &'static Callsite, word: u32) -> bool {
    let Some(taken) = hot.take(Lease::end_epoch, word) else { return false };
    // The room is there: the begin kept it, in this chunk.
    if word & TRACK_EVENT == 0 {
        fxt::end::<WARM>(hot, callsite, taken)
    } else {
        packet::end::<WARM>(hot, taken)
    }
}

/// A record with arguments. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn with_values<const WARM: bool, V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    word: u32,
    kind: Kind,
    values: &V,
) -> bool {
    if V::NESTED {
        return false;
    }
    let Some(taken) = hot.take(Lease::epoch, word) else { return false };
    // The macros make as many keys as values. Said here, it spares a bounds check for each.
    if callsite.keys().len() != values.count() || !hot.has_seen::<WARM>(callsite) {
        return taken.put_back();
    }
    if word & TRACK_EVENT == 0 {
        fxt::with_values::<WARM>(hot, callsite, kind, values, taken)
    } else if kind == Kind::Counter {
        packet::counter::<WARM>(hot, callsite, values, taken)
    } else {
        packet::with_values::<WARM>(hot, callsite, kind, None, values, taken)
    }
}

/// An event on another track than the thread's own, with arguments. When; None: nothing was written, take the cold path.
///
/// Its slices keep no room for their ends. Where they may not be written at once, in a ring that overwrites, no track is
/// ever said to be [described](Hot::set_described).
#[inline(always)]
pub(crate) fn on_track<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    word: u32,
    happens: Happens,
    place: Position,
    values: &V,
) -> Option<u64> {
    if V::NESTED {
        return None;
    }
    let taken = hot.take(Lease::epoch, word)?;
    let lease = taken.lease;
    let is_packet = word & TRACK_EVENT != 0;
    let is_blob = !is_packet && place.in_fxt == InFxt::Blob;
    let is_end = happens == Happens::End;
    // A slice's end has the begin's callsite, and no argument; its packet has no string either. A blob has none by number.
    let has_strings = is_blob || is_end && is_packet || hot.has_seen::<true>(callsite);
    let has_keys = is_end || callsite.keys().len() == values.count() && !(is_blob && values.count() != 0);
    let as_interval = !is_packet && place.in_fxt == InFxt::Interval;
    let described = if as_interval { place.uuid | AS_INTERVAL } else { place.uuid };
    let is_described = hot.track_cell(place.uuid).get() == described;
    let is_left = !is_packet && place.in_fxt == InFxt::Thread;
    let is_written = if is_left || !is_described || !has_strings || !has_keys {
        taken.put_back()
    } else if is_blob {
        blob::event(hot, callsite, happens, place, taken)
    } else if !is_packet {
        fxt::in_interval(hot, callsite, happens, place, values, taken)
    } else if is_end {
        packet::end_on_track(hot, place, taken)
    } else {
        packet::with_values::<true>(hot, callsite, Kind::Instant, Some(place), values, taken)
    };
    is_written.then(|| lease.last())
}
