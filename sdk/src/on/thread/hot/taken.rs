//! The chunk writer's state, taken for one record: the checks before the record, and the commit after it.

#![allow(unsafe_code)] // stores into the chunk

use std::sync::atomic::{Ordering, compiler_fence};

use hairline_shm::abi::CHUNK_HEADER_SIZE;
use hairline_shm::{ChunkHeader, Commit, Lease};

use crate::on::base::clock;
use crate::on::base::this_thread::{Hot, NEAR_CALLSITES, near_bit};
use crate::on::callsite::{Callsite, Epoch, Watch, fence_constants};
use crate::on::session::room::OVERHANG;
use crate::on::thread::raw::Raw;
use crate::on::thread::room::NOTE_ID;

/// The time between two events of a thread, in ns, from which the hot path does not write: its delta is a
/// varint of at most 3 bytes. The cold path then writes the event and copies the clock's newest parameters.
pub(crate) const GAP: u64 = 1 << 21;

/// Two events of a thread may be in one tick of the clock, and importers nest two instants that have one
/// time. So the later event is 1 ns after the earlier. The times run ahead of the clock by at most this, in
/// ns.
const SAME_TICK: u64 = 128;

/// The chunk writer, taken for one record.
pub(crate) struct Taken {
    pub(crate) lease: &'static Lease,
    /// The chunk's header, by a pointer that may also write the payload.
    pub(crate) chunk: *mut ChunkHeader,
}

/// Returns the lease's chunk. Call it before the epoch is compared.
///
/// A signal handler may fork at any step, and the child goes on here with a lease whose memory the fork has
/// wiped. If it finds the epoch, it has read the chunk before the fork, so the chunk is not null. An end
/// reads the note of its begin there before it looks at anything else.
#[inline(always)]
fn chunk_before_epoch(lease: &Lease) -> *mut ChunkHeader {
    let chunk = lease.chunk();
    // The handler runs on this thread: the order in the code is all that is needed.
    compiler_fence(Ordering::SeqCst);
    chunk
}

impl Hot {
    /// Takes the chunk writer for a record of the session with `epoch`. `session` reads the lease's epoch, or
    /// its epoch for ends. Returns `None` if the two differ or the thread is busy; nothing has changed then.
    #[inline(always)]
    pub(crate) fn take(&self, session: impl Fn(&Lease) -> u32, epoch: Epoch) -> Option<Taken> {
        self.take_number(session, epoch.get())
    }

    /// As [`take`](Self::take), with the number of an epoch. No session has the number of a slice that is
    /// timed.
    #[inline(always)]
    pub(crate) fn take_number(&self, session: impl Fn(&Lease) -> u32, number: u32) -> Option<Taken> {
        let lease = self.lease();
        // SAFETY: this thread's own lease.
        if unsafe { lease.own_is_busy() } {
            return None;
        }
        lease.set_busy(true);
        let chunk = chunk_before_epoch(lease);
        if session(lease) != number {
            lease.set_busy(false);
            return None;
        }
        fence_constants(); // `epoch` was read from a callsite's word
        Some(Taken { lease, chunk })
    }

    /// Takes the chunk writer for a begin or an instant at the callsite, and returns the callsite's epoch
    /// too.
    #[inline(always)]
    pub(crate) fn take_for(&self, callsite: &'static Callsite) -> Option<(Taken, Epoch)> {
        let lease = self.lease();
        // SAFETY: this thread's own lease.
        if unsafe { lease.own_is_busy() } {
            return None;
        }
        lease.set_busy(true);
        let chunk = chunk_before_epoch(lease);
        // The word again: the caller's copy would have to be saved while the thread-local is found.
        let word = callsite.word();
        let Some(epoch) = (word == lease.epoch()).then(|| Epoch::from_raw(word)).flatten() else {
            lease.set_busy(false);
            return None;
        };
        fence_constants();
        Some((Taken { lease, chunk }, epoch))
    }

    /// Returns whether the callsite's strings have been written on this sequence. `WARM`: it may also be a
    /// callsite whose bit is not where [`Callsite::near_bit`] says.
    #[inline(always)]
    pub(crate) fn has_seen<const WARM: bool>(&self, callsite: &'static Callsite) -> bool {
        let (byte, mask) = callsite.near_bit();
        // SAFETY: `near_bit` made the index, at most NEAR_BYTES.
        let near = unsafe { self.near.get_unchecked(byte as usize) };
        near.get() & mask != 0
            || WARM && (self.has_seen_far(callsite.id()) || self.has_seen_watched(callsite))
    }

    /// As [`has_seen`](Self::has_seen), for a callsite that the session looks at: its near bit is not where
    /// [`Callsite::near_bit`] says.
    #[inline]
    pub(crate) fn has_seen_watched(&self, callsite: &'static Callsite) -> bool {
        let (byte, mask) = near_bit(callsite.id());
        callsite.watch() != Watch::NOTHING
            && self.near.get(byte as usize).is_some_and(|near| near.get() & mask != 0)
    }

    /// As [`has_seen`](Self::has_seen), in a session that records facts beside each event. The caller writes
    /// these facts.
    #[inline]
    pub(crate) fn has_seen_detailed(&self, callsite: &'static Callsite) -> bool {
        let id = callsite.id();
        // SAFETY: `far` has `detailed_len` bits (cold path), and id is below.
        id < self.detailed_len.get() && unsafe { *self.far.get().add(id as usize / 64) } >> (id % 64) & 1 != 0
    }

    /// As [`has_seen`](Self::has_seen), in a session that records places and nothing else beside an event.
    #[inline(always)]
    pub(crate) fn has_seen_located(&self, callsite: &'static Callsite) -> bool {
        let (byte, mask) = callsite.near_bit();
        // SAFETY: as in `has_seen`.
        unsafe { self.located.get_unchecked(byte as usize) }.get() & mask != 0
    }

    /// As [`has_seen`](Self::has_seen), for a callsite beyond the first 1,024 that the session does not look at.
    #[inline(always)]
    pub(crate) fn has_seen_far_unwatched(&self, callsite: &'static Callsite) -> bool {
        self.has_seen_far(callsite.id()) && callsite.watch() == Watch::NOTHING
    }

    #[inline(always)]
    fn has_seen_far(&self, id: u32) -> bool {
        // SAFETY: `far` has `far_len` bits (cold path), and id is below.
        (NEAR_CALLSITES..self.far_len.get()).contains(&id)
            && unsafe { *self.far.get().add(id as usize / 64) } >> (id % 64) & 1 != 0
    }

    /// Returns the current time, and the ns since the last event. Returns `None` if the hot path cannot write
    /// them. `WARM`: without a counter, it is the fallback clock's time.
    #[inline(always)]
    pub(crate) fn tick<const WARM: bool>(&self, taken: &Taken) -> Option<(u64, u64)> {
        // Without a counter, the time is so late that the comparison below fails. The parameters are loaded
        // after the counter is read: their loads are then parts of the instructions that use them.
        let now = if WARM {
            clock::now(self.multiplier.get(), self.offset.get())
        } else {
            let ticks = clock::ticks();
            clock::unchecked_at(ticks, self.multiplier.get(), self.offset.get())
        };
        // SAFETY: this thread's own lease.
        let last = unsafe { taken.lease.own_last() };
        if clock::HAS_LONG_TICKS && last.wrapping_sub(now) < SAME_TICK {
            return Some((last + 1, 1));
        }
        let delta = now.wrapping_sub(last);
        if WARM {
            if delta.wrapping_sub(1) < GAP - 1 {
                return Some((now, delta));
            }
            // The fallback clock, whose ticks may be long.
            return (delta.wrapping_neg() < SAME_TICK).then_some((last + 1, 1));
        }
        if delta == 0 {
            // On x86-64 too: some processors count in steps of 10 ns, and an event takes less.
            return Some((last + 1, 1));
        }
        (delta < GAP).then_some((now, delta))
    }
}

impl Taken {
    /// Returns the bytes that are neither written nor reserved for ends. Call it only where the value is
    /// needed, like [`last_commit`](Self::last_commit). What was checked must not be read again for the place
    /// of a store: in a child that a signal handler forks meanwhile, the lease is wiped and this is 0.
    #[inline(always)]
    pub(crate) fn room(&self) -> i32 {
        self.lease.room()
    }

    /// Returns the last commit. FXT reads it once. TrackEvent reads it again at each use: a register that
    /// holds it would have to be saved and restored, in both formats.
    #[inline(always)]
    pub(crate) fn last_commit(&self) -> Commit {
        self.lease.commit()
    }

    /// Returns the position of the next record, after the last `commit`.
    #[inline(always)]
    pub(crate) unsafe fn raw(&self, commit: Commit) -> Raw {
        let at = CHUNK_HEADER_SIZE + commit.bytes() as usize;
        // SAFETY: the payload follows the header. The contract gives the room. Only this thread writes above
        // `commit`.
        unsafe { Raw::at(self.chunk.cast::<u8>().add(at)) }
    }

    /// Stores the note of a begin, a record of `bytes`, in the room that is reserved for its end: `room.rs`,
    /// "Notes". `has_time`: whether the note has the whole time, since the record does not. `room`: the bytes
    /// left after this record.
    #[inline(always)]
    pub(crate) fn note_begin(&self, commit: Commit, bytes: u32, room: i32, now: u64, has_time: bool) {
        // SAFETY: the end's room begins where `room` will end. Like the overhang, it is this thread's.
        unsafe {
            let note = self.note_at(commit, room).add(bytes as usize);
            note.cast::<u32>().write_unaligned(commit.bytes());
            if has_time {
                note.add(NOTE_ID).cast::<u64>().write_unaligned(now);
            } else {
                note.add(NOTE_ID).cast::<u32>().write_unaligned(now as u32);
            }
        }
    }

    /// As [`note_begin`](Self::note_begin), before the record is written at `position`. The end has
    /// `reserved` bytes, which `room` exceeds.
    #[inline(always)]
    pub(crate) fn note_at_limit(
        &self,
        has_time: bool,
        position: *mut u8,
        commit: Commit,
        reserved: i32,
        now: u64,
    ) {
        // Signed: in a child that a signal handler forked just now, the lease is wiped and its room is 0. The
        // sum, -1 at least, is in the chunk or its header all the same, which the child has for itself.
        let at = self.room() as isize + (OVERHANG as isize - reserved as isize);
        // SAFETY: as in `note_begin`.
        unsafe {
            let note = position.offset(at);
            note.cast::<u32>().write_unaligned(commit.bytes());
            if has_time {
                note.add(NOTE_ID).cast::<u64>().write_unaligned(now);
            } else {
                note.add(NOTE_ID).cast::<u32>().write_unaligned(now as u32);
            }
        }
    }

    /// Adds the strings of the end to the note of [`note_at_limit`](Self::note_at_limit).
    #[inline(always)]
    pub(crate) fn note_strings_at_limit(&self, position: *mut u8, reserved: i32, strings: u64) {
        let at = self.room() as isize + (OVERHANG as isize - reserved as isize); // as there
        // SAFETY: as in `note_begin`. A note has 4 + `Note::LEN` bytes, which an end of FXT has too.
        unsafe { position.offset(at).add(NOTE_ID + 4).cast::<u64>().write_unaligned(strings) };
    }

    /// Returns the place of the note that is `room` bytes above `commit`.
    #[inline(always)]
    unsafe fn note_at(&self, commit: Commit, room: i32) -> *mut u8 {
        let at = CHUNK_HEADER_SIZE + commit.bytes() as usize + room.cast_unsigned() as usize + OVERHANG;
        // SAFETY: by the contract, in the chunk.
        unsafe { self.chunk.cast::<u8>().add(at) }
    }

    /// Returns whether the innermost open slice is that of the begin with this id.
    #[inline(always)]
    pub(crate) fn is_innermost(&self, commit: Commit, room: i32, id: u32) -> bool {
        // SAFETY: `end_epoch`, or `Hot::detailed_end_epoch` together with `epoch`, shows that the ends of all
        // open slices are reserved in this chunk. There is one at least, that of the caller. Its note is
        // where `room` ends.
        unsafe { self.note_at(commit, room).add(NOTE_ID).cast::<u32>().read_unaligned() == id }
    }

    /// Commits the record of `bytes`, after which `room` is left.
    #[inline(always)]
    pub(crate) fn commit(self, commit: Commit, now: u64, bytes: u32, room: i32) {
        self.publish(commit, now, bytes);
        self.lease.set_room(room);
        self.lease.set_busy(false);
    }

    /// As [`commit`](Self::commit), for a record of `bytes` that reserves room for its end.
    #[inline(always)]
    pub(crate) fn commit_and_reserve(self, now: u64, bytes: u32, reserved: i32) {
        self.publish(self.last_commit(), now, bytes);
        self.lease.set_room(self.lease.room() - (bytes as i32 + reserved));
        self.lease.set_busy(false);
    }

    /// As [`commit`](Self::commit), for an end that fills exactly the room that its begin reserved.
    #[inline(always)]
    pub(crate) fn commit_end(self, commit: Commit, now: u64, bytes: u32) {
        self.publish(commit, now, bytes);
        self.lease.set_busy(false);
    }

    /// As [`commit_and_reserve`](Self::commit_and_reserve), for a record whose time the lease has already.
    /// Returns that time: no register needs to hold it.
    #[inline(always)]
    pub(crate) fn commit_timed(self, bytes: u32, reserved: i32) -> u64 {
        self.publish_timed(self.last_commit(), bytes);
        self.lease.set_room(self.lease.room() - (bytes as i32 + reserved));
        let now = self.lease.last();
        self.lease.set_busy(false);
        now
    }

    #[inline(always)]
    pub(crate) fn publish(&self, commit: Commit, now: u64, bytes: u32) {
        self.lease.set_last(now);
        self.publish_timed(commit, bytes);
    }

    #[inline(always)]
    fn publish_timed(&self, commit: Commit, bytes: u32) {
        let commit = Commit(commit.0 + Commit::new(bytes, 1).0);
        // SAFETY: the epoch shows that the chunk is this thread's. Nobody takes it while the lease is busy.
        // The record's bytes were written, within the room that was checked, or that the begin reserved for
        // this end. (In a child that a signal handler forked during this event, the commit is smaller:
        // `fork.rs`.)
        unsafe { (*self.chunk).publish(commit) };
        self.lease.set_commit(commit);
    }

    /// Puts the chunk writer back unchanged. Returns false or `None`, for the caller to return.
    #[inline(always)]
    pub(crate) fn put_back<R: Default>(self) -> R {
        self.lease.set_busy(false);
        R::default()
    }
}
