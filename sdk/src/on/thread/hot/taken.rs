//! The chunk writer's state, taken for one record: the checks before the record, and the commit after it.

#![allow(unsafe_code)] // stores into the chunk

use hairline_shm::abi::CHUNK_HEADER_SIZE;
use hairline_shm::{ChunkHeader, Commit, Lease};

use crate::on::base::clock;
use crate::on::base::this_thread::{Hot, NEAR_CALLSITES};
use crate::on::callsite::{Callsite, fence_constants};
use crate::on::session::room::OVERHANG;
use crate::on::thread::raw::Raw;

/// The longest time between two events of a thread, in ns, that the hot path writes: its delta is a varint
/// of at most 3 bytes. Beyond it the cold path writes the event and takes the clock's newest parameters.
pub(crate) const GAP: u64 = 1 << 21;

/// The writer, taken for one record.
pub(crate) struct Taken {
    pub(crate) lease: &'static Lease,
    /// By a pointer that may write the payload too.
    pub(crate) chunk: *mut ChunkHeader,
}

impl Hot {
    /// Takes the writer for a record of the session with epoch `word` (not 0), which `session` must show: the lease's epoch, or that
    /// for ends. None: nothing has changed.
    #[inline(always)]
    pub(crate) fn take(&self, session: impl Fn(&Lease) -> u32, epoch: u32) -> Option<Taken> {
        debug_assert_ne!(epoch, 0, "0 is no session: every caller has compared");
        let lease = self.lease();
        if lease.is_busy() {
            return None;
        }
        lease.set_busy(true);
        if session(lease) != epoch {
            lease.set_busy(false);
            return None;
        }
        fence_constants(); // `epoch` is an epoch
        Some(Taken { lease, chunk: lease.chunk() })
    }

    /// Whether the callsite's strings stand in this sequence.
    #[inline(always)]
    pub(crate) fn has_seen<const WARM: bool>(&self, callsite: &'static Callsite) -> bool {
        let (byte, mask) = callsite.near_bit();
        // SAFETY: `near_bit` made the byte, at most NEAR_BYTES.
        let near = unsafe { self.near.get_unchecked(byte as usize) };
        near.get() & mask != 0 || WARM && self.has_seen_far(callsite.id())
    }

    pub(crate) fn has_seen_far(&self, id: u32) -> bool {
        // SAFETY: `far` has `far_len` bits (cold path), and id is below.
        (NEAR_CALLSITES..self.far_len.get()).contains(&id)
            && unsafe { *self.far.get().add(id as usize / 64) } >> (id % 64) & 1 != 0
    }

    /// Now, and the ns since the last event, if that is something the hot path may write.
    #[inline(always)]
    pub(crate) fn tick<const WARM: bool>(&self, taken: &Taken) -> Option<(u64, u64)> {
        let (multiplier, offset) = (self.multiplier.get(), self.offset.get());
        let now = if WARM { clock::now(multiplier, offset) } else { clock::counter_now(multiplier, offset)? };
        let delta = now.wrapping_sub(taken.lease.last());
        (delta < GAP).then_some((now, delta))
    }
}

impl Taken {
    /// Bytes neither written nor kept for ends. Read where it is needed, as [`last_commit`](Self::last_commit) is.
    #[inline(always)]
    pub(crate) fn room(&self) -> i32 {
        self.lease.room()
    }

    /// The last commit. In FXT it is read once. In TrackEvent it is read anew where it is needed: to keep it there would take a register
    /// that is then saved and restored, in both formats.
    #[inline(always)]
    pub(crate) fn last_commit(&self) -> Commit {
        self.lease.commit()
    }

    /// Where the next record goes, after the last `commit`.
    ///
    /// # Safety
    /// The record must fit the chunk's room.
    #[inline(always)]
    pub(crate) unsafe fn raw(&self, commit: Commit) -> Raw {
        let at = CHUNK_HEADER_SIZE + commit.bytes() as usize;
        // SAFETY: the payload follows the header; room by the contract; only this thread writes above `commit`.
        unsafe { Raw::at(self.chunk.cast::<u8>().add(at)) }
    }

    /// Notes that the record of `bytes` is a begin, and its time where the record does not hold it, in the room that is
    /// kept for its end: `room.rs`, "Where the chunk before may be gone". `room` is what will be left.
    #[inline(always)]
    pub(crate) fn note_begin(&self, commit: Commit, bytes: u32, room: i32, time: Option<u64>) {
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
    pub(crate) fn commit(self, commit: Commit, now: u64, bytes: u32, room: i32) {
        self.publish(commit, now, bytes);
        self.lease.set_room(room);
        self.lease.set_busy(false);
    }

    /// The same for an end that takes just the room that its begin has kept.
    #[inline(always)]
    pub(crate) fn commit_end(self, commit: Commit, now: u64, bytes: u32) {
        self.publish(commit, now, bytes);
        self.lease.set_busy(false);
    }

    #[inline(always)]
    pub(crate) fn publish(&self, commit: Commit, now: u64, bytes: u32) {
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
    pub(crate) fn put_back(self) -> bool {
        self.lease.set_busy(false);
        false
    }
}
