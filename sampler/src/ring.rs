//! A ring of slots of one size, which threads and signal handlers fill and one thread reads.
//!
//! # Who owns a slot
//!
//! Each slot has a turn, a number that only grows. The slot at `position % slots`
//!
//! | turn | belongs to |
//! |---|---|
//! | `position` | the writer that claims `position` |
//! | `position + 1` | the reader |
//! | `position + slots` | the writer of the next round |
//!
//! A writer claims a position by a compare-and-swap of `next`, once the slot's turn says that the slot is
//! free. It waits for nobody: without a free slot the sample is lost, and counted. A writer that is
//! interrupted holds up the reader at its slot, and nobody else.
//!
//! # Orderings
//!
//! 1. `publish` stores the turn (Release), and `read` loads it (Acquire): the reader sees the sample.
//! 2. `read` stores the turn (Release), and `claim` loads it (Acquire): the reader has done with the slot
//!    before the writer of the next round overwrites it.
//!
//! `next`, the count of losses and what samples have of a stack are Relaxed: they guard no memory.

#![allow(unsafe_code)] // memory that threads share

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::memory::Memory;

/// The most registers that a sample has.
pub(crate) const MOST_REGISTERS: usize = 4;

/// What a writer knows of a sample besides its stack.
pub type Note = [u64; 3];

/// What a slot begins with.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Head {
    /// `CLOCK_BOOTTIME`, in ns.
    pub(crate) time: u64,
    pub(crate) registers: [u64; MOST_REGISTERS],
    /// What the writer knows of the sample besides its stack.
    pub(crate) note: Note,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    /// The number of addresses, of 8 bytes each.
    pub(crate) passed: u32,
    /// The bytes of the stack, behind them.
    pub(crate) copied: u32,
    /// Expirations of the timer since the sample before, besides this one.
    pub(crate) missed: u32,
    pub(crate) reserved: u32,
}

#[repr(C)]
struct Slot {
    turn: AtomicU64,
    head: UnsafeCell<Head>,
}

/// The ring. Its memory is never moved.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Memory,
    /// A power of two.
    slots: u64,
    /// The bytes of a slot: a [`Slot`], and a part of a stack, so that the next one is aligned.
    slot_bytes: usize,
    /// The most bytes of a stack.
    stack: usize,
    next: AtomicU64,
    lost: AtomicU64,
    /// Whether samples follow the chain of frame pointers.
    follows: AtomicBool,
    /// How far from the stack pointer the chain before was read, in bytes.
    reach: AtomicUsize,
}

// SAFETY: a slot is accessed by its owner alone, as the module's table says; all else is atomic.
unsafe impl Sync for Ring {}
// SAFETY: the memory belongs to the ring, wherever that is.
unsafe impl Send for Ring {}

/// A slot that its writer fills.
pub(crate) struct Claimed<'r> {
    ring: &'r Ring,
    slot: &'r Slot,
    position: u64,
    stack: *mut u8,
    room: usize,
}

impl Ring {
    /// Creates a ring for at least this number of samples, each with so many bytes of a stack.
    pub(crate) fn new(samples: u32, stack: u32) -> std::io::Result<Self> {
        let slots = u64::from(samples.next_power_of_two());
        let stack = stack as usize;
        let slot_bytes = (size_of::<Slot>() + stack).next_multiple_of(64);
        let bytes = usize::try_from(slots).ok().and_then(|slots| slots.checked_mul(slot_bytes));
        let memory = Memory::new(bytes.ok_or(std::io::ErrorKind::OutOfMemory)?)?;
        let ring = Self {
            memory,
            slots,
            slot_bytes,
            stack,
            next: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            follows: AtomicBool::new(false),
            reach: AtomicUsize::new(0),
        };
        for position in 0..slots {
            ring.slot(position).turn.store(position, Ordering::Relaxed); // no other thread has the ring yet
        }
        Ok(ring)
    }

    fn at(&self, position: u64) -> *mut u8 {
        let index = (position & (self.slots - 1)) as usize;
        // SAFETY: the index is less than the number of slots, and the memory has as many.
        unsafe { self.memory.start().add(index * self.slot_bytes) }
    }

    fn slot(&self, position: u64) -> &Slot {
        // SAFETY: the memory is that of a slot, aligned to 64 bytes, and zeros are a valid one. It is mapped as
        // long as `self` lives. What is not atomic in it is in an `UnsafeCell`.
        unsafe { &*self.at(position).cast::<Slot>() }
    }

    /// Claims a slot; `None` if none is free, which is counted. A signal handler may call this.
    pub(crate) fn claim(&self) -> Option<Claimed<'_>> {
        let mut position = self.next.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(position);
            let turn = slot.turn.load(Ordering::Acquire); // pair 2
            if turn < position {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return None; // the reader has not read the sample of the last round
            }
            if turn > position {
                position = self.next.load(Ordering::Relaxed); // another writer has claimed it
                continue;
            }
            let claimed =
                self.next.compare_exchange_weak(position, position + 1, Ordering::Relaxed, Ordering::Relaxed);
            match claimed {
                Ok(_) => {
                    let head = size_of::<Slot>();
                    // SAFETY: a slot is at least as large as its head.
                    let stack = unsafe { self.at(position).add(head) };
                    return Some(Claimed { ring: self, slot, position, stack, room: self.stack });
                }
                Err(now) => position = now,
            }
        }
    }

    /// Sets whether samples from now on have the addresses of the chain of frame pointers.
    pub(crate) fn follow_frame_pointers(&self, on: bool) {
        self.follows.store(on, Ordering::Relaxed);
    }

    /// Calls `each` for the samples from `position` on that are complete, up to the first one that is not: with
    /// the addresses that it has, and with the bytes of its stack. Returns the position after them. One thread
    /// reads, and passes the result to the next call.
    pub(crate) fn read(&self, mut position: u64, mut each: impl FnMut(&Head, &[u8], &[u8])) -> u64 {
        loop {
            let slot = self.slot(position);
            if slot.turn.load(Ordering::Acquire) != position + 1 {
                return position; // pair 1
            }
            // SAFETY: the slot belongs to the reader, until the store below.
            let head = unsafe { *slot.head.get() };
            // SAFETY: as above; the bytes are those that the slot has after its head, and all are initialised:
            // the mapping was zeros.
            let room =
                unsafe { std::slice::from_raw_parts(self.at(position).add(size_of::<Slot>()), self.stack) };
            let (passed, rest) = room.split_at(room.len().min(head.passed as usize * 8));
            each(&head, passed, &rest[..rest.len().min(head.copied as usize)]);
            slot.turn.store(position + self.slots, Ordering::Release); // pair 2
            position += 1;
        }
    }

    /// Returns the number of samples that found no free slot.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Claimed<'_> {
    /// The memory for the stack, and its size. It is the caller's until `publish`.
    pub(crate) fn stack(&mut self) -> (*mut u8, usize) {
        (self.stack, self.room)
    }

    /// Makes the memory for the top of the stack smaller.
    pub(crate) fn at_most(&mut self, bytes: usize) {
        if !self.follows_frame_pointers() {
            self.room = self.room.min(bytes);
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn follows_frame_pointers(&self) -> bool {
        self.ring.follows.load(Ordering::Relaxed)
    }

    /// How far from the stack pointer the chain before was read, in bytes.
    pub(crate) fn reach(&self) -> usize {
        self.ring.reach.load(Ordering::Relaxed)
    }

    pub(crate) fn set_reach(&self, bytes: usize) {
        self.ring.reach.store(bytes, Ordering::Relaxed);
    }

    /// Gives the sample to the reader.
    pub(crate) fn publish(self, head: Head) {
        // SAFETY: the slot belongs to this writer, until the store below.
        unsafe { *self.slot.head.get() = head };
        self.slot.turn.store(self.position + 1, Ordering::Release); // pair 1
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn put(ring: &Ring, tid: u32) -> bool {
        let Some(mut claimed) = ring.claim() else { return false };
        let (stack, room) = claimed.stack();
        // SAFETY: the memory is this writer's.
        unsafe { stack.write_bytes(tid as u8, room.min(8)) };
        claimed.publish(Head { tid, copied: 8, ..Head::default() });
        true
    }

    #[test]
    fn a_full_ring_loses_and_counts_and_goes_on_when_it_was_read() {
        let ring = Ring::new(4, 64).unwrap();
        let put = |tid| put(&ring, tid);
        assert!((0..4).all(put) && !put(4) && !put(5));
        assert_eq!(ring.lost(), 2);
        let mut tids = Vec::new();
        let position = ring.read(0, |head, _, stack| tids.push((head.tid, stack.to_owned())));
        assert_eq!(tids, (0..4).map(|tid| (tid, vec![tid as u8; 8])).collect::<Vec<_>>());
        assert!(put(6));
        assert_eq!(ring.read(position, |head, _, _| assert_eq!(head.tid, 6)), 5);
    }

    #[test]
    fn a_sample_that_is_being_written_holds_up_the_reader_and_no_writer() {
        let ring = Ring::new(4, 64).unwrap();
        let first = ring.claim().unwrap();
        assert!(put(&ring, 1));
        assert_eq!(ring.read(0, |_, _, _| panic!("not complete")), 0);
        first.publish(Head::default());
        let mut tids = Vec::new();
        assert_eq!(ring.read(0, |head, _, _| tids.push(head.tid)), 2);
        assert_eq!(tids, [0, 1]);
    }

    #[test]
    fn writers_side_by_side_lose_nothing_that_is_not_counted() {
        let ring = Ring::new(8, 64).unwrap();
        let (writers, each) = (3, if cfg!(miri) { 20 } else { 20_000 });
        let mut read = 0_u64;
        std::thread::scope(|scope| {
            let writing: Vec<_> = (0..writers)
                .map(|tid| {
                    scope.spawn({
                        let ring = &ring;
                        move || (0..each).for_each(|_| _ = put(ring, tid))
                    })
                })
                .collect();
            let mut position = 0;
            let mut look = || {
                position = ring.read(position, |head, _, stack| {
                    assert!(stack.iter().all(|byte| *byte == head.tid as u8) && stack.len() == 8);
                    read += 1;
                });
            };
            while !writing.iter().all(|writer| writer.is_finished()) {
                look();
            }
            look();
        });
        assert_eq!(read + ring.lost(), u64::from(writers) * each);
    }
}
