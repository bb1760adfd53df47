//! The addresses of the sampled blocks that are live: a table of fixed size, which each free asks.
//!
//! ```text
//! alloc  ── insert ──> a place in the bucket, and a number ── record with the number ──> session's thread
//! free   ── take ────> the place is taken: nobody finds it ── push ──> it is empty; list of freed numbers
//! session's thread ── freed ──> the numbers of the list ── release ──> the number is free again
//! ```
//!
//! # A place
//!
//! | value | meaning | who changes it |
//! |---|---|---|
//! | 0 | empty | a thread that has allocated: to the address |
//! | 1 | taken by a thread that inserts, frees or moves the block | that thread |
//! | other | the address of a live block | the thread that frees the block: to 1 |
//!
//! An address is in one bucket only, which is a cache line. A full bucket takes no block: the caller counts
//! the sample as lost. So no operation follows a chain, and none depends on how full other buckets are.
//!
//! # The filter
//!
//! Nearly all blocks are not sampled. A byte for each bucket has the number of its places in use: 8 KiB,
//! which stay in the processor's nearest cache. A place is counted after it is filled and until before it is
//! emptied, so the number is at most that of the places, and never wraps.
//!
//! # Numbers
//!
//! A place is empty again at the free: the next block often has the same address. The session's thread knows
//! the sample by a number, which is in use until it has counted the free. Threads try a few numbers in turn.
//!
//! # Orderings
//!
//! 1. `insert` and the `take` of the same block need none: the program passes the block from the thread that
//!    allocates to the one that frees, which therefore sees the slot and its count.
//! 2. `leave` and `release` (Release) pair with `insert` (Acquire): the next owner of a place or a number
//!    does not change what belongs to it before the last one has read that.
//! 3. `push` (Release) pairs with `freed` (Acquire): the numbers of the list are whole. Nothing is popped
//!    alone, so a head that comes back means the same list.

use crate::on::base::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The slots of a bucket: a cache line.
#[cfg(not(loom))]
const WAYS: usize = 8;
#[cfg(loom)]
const WAYS: usize = 1;

/// Number of buckets, a power of two. With a sample for each 512 KiB, half of the slots are in use when 16
/// GiB are live. Then one block in thirty finds its bucket full.
#[cfg(not(loom))]
const BUCKETS: usize = 1 << 13;
#[cfg(loom)]
const BUCKETS: usize = 1;

/// Number of slots.
pub(crate) const SLOTS: usize = BUCKETS * WAYS;

const EMPTY: u64 = 0;
/// No block has this address.
const TAKEN: u64 = 1;

/// A cache line of addresses.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

/// The sampled blocks of a process.
#[derive(Debug)]
pub(crate) struct Blocks {
    in_use: [AtomicU8; BUCKETS],
    buckets: [Bucket; BUCKETS],
    /// By place: the number of its sample.
    numbers: [AtomicU32; SLOTS],
    /// By number: 1 if it is in use.
    taken: [AtomicU8; SLOTS],
    /// The number that is tried next.
    turn: AtomicU32,
    /// By number: the number after this one in the list of freed ones, plus 1; 0 at the list's end.
    next: [AtomicU32; SLOTS],
    /// The first number of that list, plus 1.
    freed: AtomicU32,
}

/// The numbers that an insertion tries.
const TRIES: u32 = 16;

/// The sample of a block: its place in the table, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a place that is neither put back nor pushed is never used again"]
pub(crate) struct Slot {
    place: u32,
    pub(crate) number: u32,
}

impl Blocks {
    /// Creates a table without blocks.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            in_use: [const { AtomicU8::new(0) }; BUCKETS],
            buckets: [const { Bucket([const { AtomicU64::new(EMPTY) }; WAYS]) }; BUCKETS],
            numbers: [const { AtomicU32::new(0) }; SLOTS],
            taken: [const { AtomicU8::new(0) }; SLOTS],
            turn: AtomicU32::new(0),
            next: [const { AtomicU32::new(0) }; SLOTS],
            freed: AtomicU32::new(0),
        }
    }

    /// Creates a table without blocks.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            in_use: std::array::from_fn(|_| AtomicU8::new(0)),
            buckets: std::array::from_fn(|_| Bucket(std::array::from_fn(|_| AtomicU64::new(EMPTY)))),
            numbers: std::array::from_fn(|_| AtomicU32::new(0)),
            taken: std::array::from_fn(|_| AtomicU8::new(0)),
            turn: AtomicU32::new(0),
            next: std::array::from_fn(|_| AtomicU32::new(0)),
            freed: AtomicU32::new(0),
        }
    }

    /// Inserts the address of a block that the calling thread has allocated and has not passed on. `None` if
    /// its bucket is full, or the numbers that were tried are in use.
    pub(crate) fn insert(&self, address: u64) -> Option<Slot> {
        let number = self.claim_number()?;
        let bucket = bucket(address);
        let claim = |place: &AtomicU64| {
            place.load(Ordering::Relaxed) == EMPTY
                && place.compare_exchange(EMPTY, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() // pair 2
        };
        let Some(way) = self.buckets[bucket].0.iter().position(claim) else {
            self.release(number);
            return None;
        };
        let slot = Slot { place: (bucket * WAYS + way) as u32, number };
        self.numbers[slot.place as usize].store(number, Ordering::Relaxed);
        self.address(slot).store(address, Ordering::Relaxed);
        self.in_use[bucket].fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    fn claim_number(&self) -> Option<u32> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let tried = (0..TRIES).map(|more| first.wrapping_add(more) % SLOTS as u32);
        tried.into_iter().find(|number| {
            let taken = &self.taken[*number as usize];
            taken.load(Ordering::Relaxed) == 0
                && taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() // pair 2
        })
    }

    /// Whether [`take`](Self::take) may find a block: the filter's word.
    #[inline(always)]
    pub(crate) fn may_have(&self, address: u64) -> bool {
        self.in_use[bucket(address)].load(Ordering::Relaxed) != 0
    }

    /// Takes the slot of a block that the calling thread frees or moves. `None` if the block is not sampled.
    /// Call it before the allocator has the block back: from then on another block may have the address.
    pub(crate) fn take(&self, address: u64) -> Option<Slot> {
        self.take_from(bucket(address), address)
    }

    fn take_from(&self, bucket: usize, address: u64) -> Option<Slot> {
        let take = |slot: &AtomicU64| {
            slot.load(Ordering::Relaxed) == address
                && slot.compare_exchange(address, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let way = self.buckets[bucket].0.iter().position(take)?;
        let place = bucket * WAYS + way;
        Some(Slot { place: place as u32, number: self.numbers[place].load(Ordering::Relaxed) })
    }

    /// Undoes [`take`](Self::take): the block stays where it was.
    pub(crate) fn put_back(&self, slot: Slot, address: u64) {
        self.address(slot).store(address, Ordering::Relaxed);
    }

    /// Empties the place of a block that was taken, and adds its number to the list of freed ones.
    pub(crate) fn push(&self, slot: Slot) {
        self.leave(slot);
        let number = slot.number;
        let mut first = self.freed.load(Ordering::Relaxed);
        loop {
            self.next[number as usize].store(first, Ordering::Relaxed);
            // Release: pair 3.
            match self.freed.compare_exchange(first, number + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes the whole list of freed numbers, in no order. Show each to [`release`](Self::release) when its
    /// block has been counted.
    pub(crate) fn freed(&self, mut show: impl FnMut(u32)) {
        let mut next = self.freed.swap(0, Ordering::Acquire); // pair 3
        while let Some(number) = next.checked_sub(1) {
            next = self.next[number as usize].load(Ordering::Relaxed);
            show(number);
        }
    }

    /// Makes a number from the list usable again.
    pub(crate) fn release(&self, number: u32) {
        self.taken[number as usize].store(0, Ordering::Release); // pair 2
    }

    /// Undoes [`insert`](Self::insert), whose number was shown to nobody.
    pub(crate) fn cancel(&self, slot: Slot) {
        self.leave(slot);
        self.release(slot.number);
    }

    fn leave(&self, slot: Slot) {
        self.in_use[slot.place as usize / WAYS].fetch_sub(1, Ordering::Relaxed);
        self.address(slot).store(EMPTY, Ordering::Release); // pair 2
    }

    /// Empties all slots but those that a thread is just taking or inserting: their threads go on as always.
    pub(crate) fn forget(&self) {
        self.freed(|number| self.release(number));
        for (bucket, slots) in self.buckets.iter().enumerate() {
            for slot in &slots.0 {
                let address = slot.load(Ordering::Relaxed);
                if address > TAKEN
                    && let Some(slot) = self.take_from(bucket, address)
                {
                    self.cancel(slot);
                }
            }
        }
    }

    fn address(&self, slot: Slot) -> &AtomicU64 {
        &self.buckets[slot.place as usize / WAYS].0[slot.place as usize % WAYS]
    }
}

/// The bucket of an address: its lowest bits are those of an alignment, so all are mixed.
#[inline(always)]
fn bucket(address: u64) -> usize {
    let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize & (BUCKETS - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn freed(blocks: &Blocks) -> Vec<u32> {
        let mut all = Vec::new();
        blocks.freed(|number| all.push(number));
        all
    }

    #[test]
    fn a_block_is_found_once_and_its_number_is_used_again_when_it_is_released() {
        static BLOCKS: Blocks = Blocks::new();
        let slot = BLOCKS.insert(0x1000).expect("room");
        assert_eq!(BLOCKS.take(0x2000), None);
        assert_eq!(BLOCKS.take(0x1000), Some(slot));
        assert_eq!(BLOCKS.take(0x1000), None, "taken");
        BLOCKS.put_back(slot, 0x1000);
        assert_eq!(BLOCKS.take(0x1000), Some(slot));
        BLOCKS.push(slot);
        let again = BLOCKS.insert(0x1000).expect("room");
        assert_ne!(again.number, slot.number, "not before it is released");
        assert_eq!(freed(&BLOCKS), [slot.number]);
        BLOCKS.release(slot.number);
        BLOCKS.cancel(again);
        assert!(BLOCKS.in_use.iter().chain(&BLOCKS.taken).all(|count| count.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn an_address_that_comes_again_and_again_finds_room_before_its_frees_are_counted() {
        static BLOCKS: Blocks = Blocks::new();
        for _ in 0..1000 {
            let slot = BLOCKS.insert(0x1000).expect("room");
            assert_eq!(BLOCKS.take(0x1000), Some(slot));
            BLOCKS.push(slot);
        }
        assert_eq!(freed(&BLOCKS).len(), 1000);
    }

    #[test]
    fn a_full_bucket_takes_no_block_and_nearly_all_find_room_at_half_of_the_slots() {
        static BLOCKS: Blocks = Blocks::new();
        let addresses = (1..=SLOTS as u64 / 2).map(|n| 0x7f00_0000_0000 + n * 48);
        let full = addresses.clone().filter(|address| BLOCKS.insert(*address).is_none()).count();
        assert!(full * 30 < SLOTS / 2, "{full}");
        let found =
            addresses.filter_map(|address| BLOCKS.take(address)).map(|slot| BLOCKS.push(slot)).count();
        assert_eq!(found + full, SLOTS / 2);
        assert_eq!(freed(&BLOCKS).len(), found);
        let _ = BLOCKS.insert(0x1000).expect("another bucket");
        BLOCKS.forget();
        assert_eq!(BLOCKS.take(0x1000), None);
    }
}
