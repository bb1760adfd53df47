//! Counts in slots, one for each thread, so that a thread counts without an atomic addition.
//!
//! # Who writes a slot
//!
//! A thread claims a free slot and is then the only one that writes it, by a load, an addition and a store.
//! At its end it releases the slot, whose counts stay: the next owner adds to them. So a sum over all slots
//! is that of all threads, past and present. A thread without a slot adds to the shared one, atomically.
//!
//! # Orderings
//!
//! The store of `release` (Release) pairs with the claim of the next owner (Acquire): the next owner loads
//! the last counts of the one before, and loses none. The counts themselves are Relaxed: a sum that runs
//! while threads count may miss their last additions, and finds them the next time.

use crate::on::base::sync::{AtomicU64, Ordering, const_unless_loom};

/// Number of words of 64 slots each.
#[cfg(not(loom))]
const WORDS: usize = 4;
#[cfg(loom)]
const WORDS: usize = 1;

/// Number of slots: threads that count without an atomic addition. Each has a cache line of its own.
#[cfg(not(loom))]
const SLOTS: usize = WORDS * 64;
#[cfg(loom)]
const SLOTS: usize = 1;

/// Numbers that wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes allocated less bytes freed.
    pub(crate) live: u64,
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
}

impl Counts {
    /// Returns the change by the free of a block.
    #[inline(always)]
    pub(crate) fn of_free(size: usize) -> Self {
        Self { live: (size as u64).wrapping_neg(), allocations: 0, frees: 1 }
    }

    /// Returns the difference to earlier counts.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            live: self.live.wrapping_sub(earlier.live),
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            frees: self.frees.wrapping_sub(earlier.frees),
        }
    }
}

/// The counts of one thread, or the shared ones.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    live: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl Slot {
    const_unless_loom! {
        fn new() -> Slot {
            Slot { live: AtomicU64::new(0), allocations: AtomicU64::new(0), frees: AtomicU64::new(0) }
        }
    }

    /// Adds to the counts. Only the owner of the slot calls this.
    #[inline(always)]
    pub(crate) fn add(&self, change: Counts) {
        let add = |count: &AtomicU64, more: u64| {
            count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.live, change.live);
        // Constants, mostly. The compiler leaves no store out, not even that of an unchanged count.
        if change.allocations != 0 {
            add(&self.allocations, change.allocations);
        }
        if change.frees != 0 {
            add(&self.frees, change.frees);
        }
    }

    /// Adds to the counts of the slot that threads share.
    fn add_shared(&self, change: Counts) {
        for (count, more) in self.counts().into_iter().zip(change.numbers()) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn load(&self) -> Counts {
        let [live, allocations, frees] = self.counts().map(|count| count.load(Ordering::Relaxed));
        Counts { live, allocations, frees }
    }

    #[inline(always)]
    fn counts(&self) -> [&AtomicU64; 3] {
        [&self.live, &self.allocations, &self.frees]
    }
}

impl Counts {
    #[inline(always)]
    fn numbers(self) -> [u64; 3] {
        [self.live, self.allocations, self.frees]
    }
}

/// The slots of a process.
#[derive(Debug)]
pub(crate) struct Slots {
    /// A bit for each slot that a thread owns.
    owned: [AtomicU64; WORDS],
    slots: [Slot; SLOTS],
    shared: Slot,
}

impl Slots {
    /// Creates slots that no thread owns.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            owned: [const { AtomicU64::new(0) }; WORDS],
            slots: [const { Slot::new() }; SLOTS],
            shared: Slot::new(),
        }
    }

    /// Creates slots that no thread owns.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            owned: std::array::from_fn(|_| AtomicU64::new(0)),
            slots: std::array::from_fn(|_| Slot::new()),
            shared: Slot::new(),
        }
    }

    /// Claims a slot for the calling thread. `None` if all are owned.
    pub(crate) fn claim(&self) -> Option<&Slot> {
        for (slots, owned) in self.slots.chunks(64).zip(&self.owned) {
            let mut bits = owned.load(Ordering::Relaxed);
            while let Some(slot) = slots.get(bits.trailing_ones() as usize) {
                // Acquire pairs with the Release in `release`.
                match owned.compare_exchange(bits, bits | (bits + 1), Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return Some(slot),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Releases a slot that the calling thread has claimed, and does not use any more.
    pub(crate) fn release(&self, slot: &Slot) {
        let Some(index) = self.slots.iter().position(|own| std::ptr::eq(own, slot)) else { return };
        self.owned[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release); // pairs with `claim`
    }

    /// Adds to the counts of threads without a slot.
    pub(crate) fn add_shared(&self, change: Counts) {
        self.shared.add_shared(change);
    }

    /// Returns the sum of all threads' counts.
    pub(crate) fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        for slot in self.slots.iter().chain([&self.shared]) {
            let Counts { live, allocations, frees } = slot.load();
            sum.live = sum.live.wrapping_add(live);
            sum.allocations = sum.allocations.wrapping_add(allocations);
            sum.frees = sum.frees.wrapping_add(frees);
        }
        sum
    }
}
