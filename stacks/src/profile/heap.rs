//! Sampled allocations of one process, summed up by call stack.
//!
//! ```text
//!  allocated: slot, weight, registers, stack ──> the stack's number ──> sums of the stack: + allocated
//!                                                      │
//!                                              blocks[slot] = stack and weight
//!                                                      │
//!  freed: slot ────────────────────────────────────────┴─────────────> sums of the stack: + freed
//!
//!  dump: the sums of all stacks that have changed since the dump before
//! ```
//!
//! Sums only grow, and a block is freed with the weight with which it was allocated: what is live never is
//! negative. Stacks have the numbers of the [table](crate::table). It may not forget any here, so one that
//! finds no room in it shares the sums of [`OTHERS`].

use std::time::{Duration, Instant};

use hairline_formats::track_event::{
    HeapDump, HeapSample, SequenceId, UnwindError, clock_snapshot, fields::clock, heap_dump,
};

use crate::fxt::Records;
use crate::process::{Place, Sampled};
use crate::profile::Profile;

/// The name that the heap has in the trace.
const HEAP: &str = "heap";

/// The stack of all allocations whose own stack finds no room.
const OTHERS: u32 = 0;

/// The sums of a packet: with their tags some 16 KiB, so that a blob has room for them.
const SUMS_OF_A_PACKET: usize = 512;

/// The least time between two looks at the process's mappings: it may run code that no file has.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Counts have units of 2^-16.
const COUNT_BITS: u32 = 16;

/// A sampled allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocated<'a> {
    /// The number of the block, unless one before it with this number is not freed.
    pub slot: u32,
    /// The bytes that the sample stands for.
    pub bytes: u64,
    /// The allocations that the sample stands for, in units of 2^-16.
    pub count: u64,
    /// The registers of the mask [`REGISTERS`](crate::REGISTERS).
    pub registers: &'a [u64],
    /// The memory from the stack pointer on.
    pub stack: &'a [u8],
}

/// What a heap profile has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapTotals {
    /// Sampled allocations.
    pub samples: u64,
    /// Those whose stack does not reach its root.
    pub cut: u64,
    /// Those whose stack found no room in the table.
    pub others: u64,
    /// An estimate of the bytes that are live, of all blocks allocated since the profile's begin.
    pub live: u64,
    /// Dumps.
    pub dumps: u64,
}

/// The sums of a stack. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    allocated: u64,
    freed: u64,
    allocations: u64,
    frees: u64,
}

/// A sampled block that is live.
#[derive(Clone, Copy, Debug)]
struct Block {
    stack: u32,
    bytes: u64,
    count: u64,
}

/// The sampled allocations of one process, which become a part of a trace.
#[derive(Debug)]
pub struct HeapProfile {
    profile: Profile,
    pid: u32,
    interval: u64,
    /// By the number of the stack: now, and in the last dump.
    sums: Vec<(Sums, Sums)>,
    /// By slot.
    blocks: Vec<Option<Block>>,
    totals: HeapTotals,
    /// The number of the next packet.
    index: u64,
    /// The number of frames whose functions are written.
    named: usize,
    last_look: Instant,
}

impl HeapProfile {
    /// Creates a profile of the process `pid` without samples, for packets of this sequence. `interval`: the
    /// mean of the bytes between two samples.
    #[must_use]
    pub fn packets(sequence: SequenceId, pid: u32, interval: u64) -> Self {
        Self::new(Profile::packets(sequence), pid, interval)
    }

    /// As [`packets`](Self::packets), in FXT records that continue a stream.
    #[must_use]
    pub fn fxt_within(pid: u32, interval: u64) -> Self {
        let profile = Profile { records: Some(Records::within()), ..Profile::packets(FXT_SEQUENCE) };
        Self::new(profile, pid, interval)
    }

    fn new(mut profile: Profile, pid: u32, interval: u64) -> Self {
        profile.add_present(pid);
        let mut heap = Self {
            profile,
            pid,
            interval,
            sums: Vec::new(),
            blocks: Vec::new(),
            totals: HeapTotals::default(),
            index: 0,
            named: 0,
            last_look: Instant::now(),
        };
        let nowhere = Place { mapping: None, rel_pc: 0, address: 0 };
        let others = heap.profile.table.stack(&[nowhere], heap.profile.unknown);
        debug_assert_eq!(others, OTHERS);
        heap
    }

    /// Adds a sampled allocation, and writes its stack if it is new.
    pub fn allocated(&mut self, of: &Allocated<'_>) {
        let stack = self.stack(&Sampled { address: 0, registers: of.registers, stack: of.stack });
        let sums = at(&mut self.sums, stack);
        sums.0.allocated = sums.0.allocated.saturating_add(of.bytes);
        sums.0.allocations = sums.0.allocations.saturating_add(of.count);
        *at(&mut self.blocks, of.slot) = Some(Block { stack, bytes: of.bytes, count: of.count });
        self.totals.samples += 1;
        self.totals.live = self.totals.live.saturating_add(of.bytes);
    }

    /// Adds the free of a sampled block. Returns `false` if its allocation was not added yet: the caller
    /// comes again.
    pub fn freed(&mut self, slot: u32) -> bool {
        let Some(block) = self.blocks.get_mut(slot as usize).and_then(Option::take) else { return false };
        let sums = at(&mut self.sums, block.stack);
        sums.0.freed = sums.0.freed.saturating_add(block.bytes);
        sums.0.frees = sums.0.frees.saturating_add(block.count);
        self.totals.live = self.totals.live.saturating_sub(block.bytes);
        true
    }

    /// Returns the number of a sample's stack.
    fn stack(&mut self, sampled: &Sampled<'_>) -> u32 {
        let profile = &mut self.profile;
        let mut error = profile.unwind(self.pid, sampled);
        let is_strange = |profile: &Profile, error: &UnwindError| {
            matches!(error, UnwindError::InvalidMap)
                || profile.places.last().is_none_or(|place| place.mapping.is_none())
        };
        // A library may have been loaded since.
        if is_strange(profile, &error) && self.last_look.elapsed() > BETWEEN_LOOKS {
            profile.add_present(self.pid);
            self.last_look = Instant::now();
            error = profile.unwind(self.pid, sampled);
        }
        self.totals.cut += u64::from(!matches!(error, UnwindError::None));
        let stack = profile.table.stack_if_room(&profile.places, profile.unknown);
        self.totals.others += u64::from(stack.is_none());
        profile.packets.intern(&mut profile.out, &profile.files, &profile.table);
        stack.unwrap_or(OTHERS)
    }

    /// Writes what has changed since the dump before. Times are in ns, on `CLOCK_BOOTTIME` and on
    /// `CLOCK_MONOTONIC_COARSE`. `has_losses`: whether samples were lost.
    pub fn dump(&mut self, boottime: u64, coarse: u64, has_losses: bool) {
        let profile = &mut self.profile;
        let sequence = profile.packets.sequence();
        profile.packets.intern(&mut profile.out, &profile.files, &profile.table);
        clock_snapshot(
            &mut profile.out,
            sequence,
            &[(clock::BOOTTIME, boottime), (clock::MONOTONIC_COARSE, coarse)],
        );
        let changed = (0..).zip(&mut self.sums).filter(|(_, (now, dumped))| now != dumped);
        let samples: Vec<HeapSample> = changed
            .map(|(number, (now, dumped))| {
                *dumped = *now;
                now.sample(number)
            })
            .collect();
        // An empty dump is one too: what was live before still is.
        let pieces = samples.len().div_ceil(SUMS_OF_A_PACKET).max(1);
        for piece in 0..pieces {
            let samples = samples.chunks(SUMS_OF_A_PACKET).nth(piece).unwrap_or_default();
            let dump = HeapDump {
                pid: self.pid,
                heap: HEAP,
                coarse_ns: coarse,
                interval: self.interval,
                has_losses,
                index: self.index,
                is_continued: piece + 1 < pieces,
            };
            heap_dump(&mut profile.out, sequence, boottime, &dump, samples);
            self.index += 1;
        }
        self.totals.dumps += 1;
    }

    /// Writes the functions of the frames that are new since the last call.
    pub fn write_functions(&mut self) {
        let profile = &mut self.profile;
        let frames = profile.table.frames.values();
        let new = frames[self.named..].iter();
        let sequence = profile.packets.sequence();
        profile.known.write(&mut profile.out, sequence, &profile.files, &profile.table, new);
        self.named = frames.len();
    }

    /// Returns the part of the trace that has been written since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.profile.take_output()
    }

    /// Returns the numbers of samples and of what was left out.
    #[must_use]
    pub fn totals(&self) -> HeapTotals {
        self.totals
    }
}

/// The sequence of the packets in an FXT trace. CPU samples have the first, and those at switches the second.
const FXT_SEQUENCE: SequenceId = SequenceId(3);

impl Sums {
    fn sample(&self, number: u32) -> HeapSample {
        HeapSample {
            callstack: crate::packets::iid(number),
            allocated: self.allocated,
            freed: self.freed,
            allocations: rounded(self.allocations),
            frees: rounded(self.frees),
        }
    }
}

/// Rounds a count: equal counts stay equal, and a smaller one never becomes the larger one.
fn rounded(count: u64) -> u64 {
    count.saturating_add(1 << (COUNT_BITS - 1)) >> COUNT_BITS
}

/// Returns the value of a number, which may be the first one that has it.
fn at<T: Clone + Default>(values: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if number >= values.len() {
        values.resize(number + 1, T::default());
    }
    &mut values[number]
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERS: usize = crate::REGISTERS.count_ones() as usize;

    fn allocated(slot: u32, bytes: u64, count: u64, registers: &[u64]) -> Allocated<'_> {
        Allocated { slot, bytes, count, registers, stack: &[] }
    }

    #[test]
    fn sums_grow_and_what_is_freed_is_what_was_allocated() {
        let mut heap = HeapProfile::packets(SequenceId(9), std::process::id(), 100);
        heap.allocated(&allocated(7, 150, 3 << 15, &[0x10; 4][..REGISTERS]));
        heap.allocated(&allocated(8, 50, 1 << 16, &[0x20; 4][..REGISTERS]));
        assert!(!heap.freed(9), "an allocation that comes later");
        assert!(heap.freed(7) && !heap.freed(7));
        assert_eq!(heap.totals().live, 50);
        let [_, (first, _), (second, _)] = heap.sums[..] else { panic!() };
        let expected = HeapSample { callstack: 2, allocated: 150, freed: 150, allocations: 2, frees: 2 };
        assert_eq!(first.sample(1), expected);
        assert_eq!((second.allocated, second.freed), (50, 0));
        heap.dump(5, 4, false);
        assert!(heap.sums.iter().all(|(now, dumped)| now == dumped));
        assert_eq!(heap.totals().dumps, 1);
    }
}
