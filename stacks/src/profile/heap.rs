//! Sampled allocations of one process, summed up by call stack.
//!
//! ```text
//!  allocated: slot, weight, registers, stack ──> the stack's number ──> sums of the stack: + allocated
//!                                                      │
//!                                              blocks[slot] = stack and weight
//!                                                      │
//!  freed: slot ────────────────────────────────────────┴─────────────> sums of the stack: + freed
//!
//!  moment: a copy of the sums and stacks ──> writer of a trace: what has changed since the moment before
//! ```
//!
//! Sums only grow, and a block is freed with the weight with which it was allocated: what is live never is
//! negative. Stacks have the numbers of the [table](crate::table). It may not forget any here, so one that
//! finds no room in it shares the sums of [`OTHERS`].
//!
//! # The innermost frame
//!
//! The first frame of a sample is the recorder's: that of the function that noted the allocation. The frame
//! named [`ALLOCATION`] has its place, which no other function shares: Perfetto's table of heap profiles
//! counts a sample once for each function of its innermost frame, and those of the program are often inlined
//! in one another. The frame before has the function that called the allocator, with the allocator's method
//! inlined in it: functions of that method's file are left out when the functions are looked up. Their names
//! would not tell them: in debug information of lines they have no paths.
//!
//! # Several traces
//!
//! A writer knows what its trace has. So the first dump of each trace is whole: those of a snapshot, and of a
//! file of an output in several. Later dumps cost what is new.

mod kept;
mod sums;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hairline_formats::track_event::{
    ALLOCATION, HeapDump, HeapSample, SampledBy, SequenceId, UnwindError, clock_snapshot, fields::clock,
    heap_dump,
};

use hairline_perf::Words;

use crate::file::ProgramFile;
use crate::fxt::Records;
use crate::machine::stack_pointer;
use crate::packets::{Packets, iid};
use crate::process::{Place, Sampled};
use crate::profile::Profile;
use crate::profile::heap::kept::{About, Kept, Read};
use crate::profile::heap::sums::{Sums, at};
use crate::symbols::Known;
use crate::table::Table;
use crate::unwound::{Found, Unwound};

pub use kept::{HeapProgress, KeptAt};

/// The place of the frame in which each stack ends. No code is there.
const INNERMOST: Place = Place { mapping: None, rel_pc: 1, address: 1 };

/// The name that the heap has in the trace.
const HEAP: &str = "heap";

/// The stack of all allocations whose own stack finds no room.
const OTHERS: u32 = 0;

/// The sums of a packet: with their tags some 16 KiB, so that a blob has room for them.
const SUMS_OF_A_PACKET: usize = 512;

/// The least time between two looks at the process's mappings: it may run code that no file has.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The bytes for which a dump has room at first. A vector that grows from a few bytes may have them from a
/// block that a thread of the program allocated and the session's thread freed. The C library would then grow
/// it in the memory of the program's thread, and tidy that up first: 70 ms for 3.7 s of small allocations.
const ROOM: usize = 64 << 10;

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
    /// The instructions of the innermost frames, whose callers' are return addresses. Empty: `stack` has all.
    pub call_chain: Words<'a>,
    /// The registers of the mask [`REGISTERS`](crate::REGISTERS), of the frame that called these. The innermost
    /// frame of all is in a function of the recorder's, whose caller has called the allocator or is it.
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
    /// By the number of the stack.
    sums: Vec<Sums>,
    /// By slot.
    blocks: Vec<Option<Block>>,
    totals: HeapTotals,
    unwound: Unwound,
    /// The last look at the process's mappings.
    last_look: Option<Instant>,
    /// What is needed of it after a kill.
    kept: Kept,
}

/// A heap profile at one moment: a copy, which another thread may write.
#[derive(Debug)]
pub struct HeapMoment {
    boottime: u64,
    coarse: u64,
    has_losses: bool,
    pid: u32,
    interval: u64,
    sums: Vec<Sums>,
    files: Vec<Arc<ProgramFile>>,
    table: Table,
    known: Arc<Known>,
}

/// Writes moments of a heap profile into one trace, in the order of time.
#[derive(Debug)]
pub struct HeapWriter {
    packets: Packets,
    /// In FXT.
    records: Option<Records>,
    /// The sums that the trace has, by the number of the stack.
    dumped: Vec<Sums>,
    /// The number of the next packet.
    index: u64,
    /// The number of frames whose functions are written.
    named: usize,
}

impl HeapProfile {
    /// Creates a profile of the process `pid` without samples, for packets of this sequence. `interval`: the
    /// mean of the bytes between two samples. `allocator`: the source file of the allocator that samples, or the
    /// end of its path.
    #[must_use]
    pub fn packets(sequence: SequenceId, pid: u32, interval: u64, allocator: &str) -> Self {
        Self::new(Profile::packets(sequence), pid, interval, allocator)
    }

    /// As [`packets`](Self::packets), in FXT records that continue a stream.
    #[must_use]
    pub fn fxt_within(pid: u32, interval: u64, allocator: &str) -> Self {
        let profile = Profile { records: Some(Records::within()), ..Profile::packets(FXT_SEQUENCE) };
        Self::new(profile, pid, interval, allocator)
    }

    /// Closes each file once it was read for unwinding: threads with other open files look functions up.
    #[must_use]
    pub fn closing_files(self) -> Self {
        Self { profile: self.profile.for_months(), ..self }
    }

    fn new(profile: Profile, pid: u32, interval: u64, allocator: &str) -> Self {
        let known = Known::in_program().naming(INNERMOST.rel_pc, ALLOCATION).without(allocator);
        let mut heap = Self {
            profile: Profile { known: Arc::new(known), ..profile },
            pid,
            interval,
            sums: Vec::new(),
            blocks: Vec::new(),
            totals: HeapTotals::default(),
            unwound: Unwound::default(),
            last_look: None,
            kept: Kept::new(allocator),
        };
        let nowhere = Place { mapping: None, rel_pc: 0, address: 0 };
        let others = heap.profile.table.stack(&[nowhere], heap.profile.unknown);
        debug_assert_eq!(others, OTHERS);
        heap
    }

    /// Adds a sampled allocation. Returns its stack pointer, and the address after all that was needed of its
    /// stack: 0 if its root is not in what was copied.
    pub fn allocated(&mut self, of: &Allocated<'_>) -> [u64; 2] {
        let Found { number: stack, end } = self.stack(&Sampled {
            address: 0,
            call_chain: of.call_chain,
            registers: of.registers,
            stack: of.stack,
        });
        let sums = at(&mut self.sums, stack);
        sums.allocated = sums.allocated.saturating_add(of.bytes);
        sums.allocations = sums.allocations.saturating_add(of.count);
        *at(&mut self.blocks, of.slot) = Some(Block { stack, bytes: of.bytes, count: of.count });
        self.totals.samples += 1;
        self.totals.live = self.totals.live.saturating_add(of.bytes);
        [stack_pointer(of.registers).unwrap_or(0), end]
    }

    /// Adds the free of a sampled block. Returns `false` if its allocation was not added yet: the caller
    /// comes again.
    pub fn freed(&mut self, slot: u32) -> bool {
        let Some(block) = self.blocks.get_mut(slot as usize).and_then(Option::take) else { return false };
        let sums = at(&mut self.sums, block.stack);
        sums.freed = sums.freed.saturating_add(block.bytes);
        sums.frees = sums.frees.saturating_add(block.count);
        self.totals.live = self.totals.live.saturating_sub(block.bytes);
        true
    }

    /// Returns the number of a sample's stack, and its end or 0.
    fn stack(&mut self, sampled: &Sampled<'_>) -> Found {
        if let Some(found) = self.unwound.find(sampled) {
            return found;
        }
        let profile = &mut self.profile;
        let mut error = profile.unwind(self.pid, sampled);
        let is_strange = |profile: &Profile, error: &UnwindError| {
            matches!(error, UnwindError::InvalidMap)
                || profile.places.last().is_none_or(|place| place.mapping.is_none())
        };
        // A library may have been loaded since.
        let is_due = self.last_look.is_none_or(|last| last.elapsed() > BETWEEN_LOOKS);
        if is_strange(profile, &error) && is_due {
            profile.add_present(self.pid);
            self.unwound = Unwound::default(); // unwound with other mappings
            self.last_look = Some(Instant::now());
            error = profile.unwind(self.pid, sampled);
        }
        match profile.places.first_mut() {
            Some(own) => *own = INNERMOST,
            None => profile.places.push(INNERMOST),
        }
        let is_cut = !matches!(error, UnwindError::None);
        self.totals.cut += u64::from(is_cut);
        let stack = profile.table.stack_if_room(&profile.places, profile.unknown);
        self.totals.others += u64::from(stack.is_none());
        let past_last = profile.words.iter().map(|(at, _)| at + size_of::<u64>()).max();
        let end = match (past_last, stack_pointer(sampled.registers)) {
            (Some(bytes), Some(sp)) if !is_cut => sp.saturating_add(bytes as u64),
            _ => 0,
        };
        let found = Found { number: stack.unwrap_or(OTHERS), end };
        if let Some(process) = profile.processes.get(&self.pid).filter(|_| !is_cut && stack.is_some()) {
            self.unwound.note(sampled, &profile.words, |address| process.has_code(address), found);
        }
        found
    }

    /// Returns the numbers of samples and of what was left out.
    #[must_use]
    pub fn totals(&self) -> HeapTotals {
        self.totals
    }

    /// Copies the sums of this moment. Times are in ns, on `CLOCK_BOOTTIME` and on `CLOCK_MONOTONIC_COARSE`.
    /// `has_losses`: whether samples were lost.
    #[must_use]
    pub fn at(&self, boottime: u64, coarse: u64, has_losses: bool) -> HeapMoment {
        let Self { profile, pid, interval, sums, .. } = self;
        HeapMoment {
            boottime,
            coarse,
            has_losses,
            pid: *pid,
            interval: *interval,
            sums: sums.clone(),
            files: profile.files.clone(),
            table: profile.table.to_read(),
            known: Arc::clone(&profile.known),
        }
    }

    /// Writes what has changed since the last call into entries, by which a [`HeapWindow`] has the profile of
    /// this moment.
    pub fn keep(&mut self, moment: KeptAt) {
        self.kept.keep(moment, &self.profile.files, &self.profile.table, &self.sums);
    }

    /// Writes everything once more at the next [`keep`](Self::keep): the entries so far are needed no more after
    /// it.
    pub fn keep_again(&mut self) {
        let Self { profile, pid, interval, kept, .. } = self;
        let (sequence, is_fxt) = (profile.packets.sequence(), profile.records.is_some());
        kept.again(About { sequence, pid: *pid, interval: *interval, is_fxt });
    }

    /// Writes that there is no profile, because it has more stacks than there is room for.
    pub fn keep_none(&mut self) {
        self.kept.none();
    }

    /// Calls `visit` with each entry since the last call.
    pub fn take_entries(&mut self, visit: impl FnMut(&[u8])) {
        self.kept.take(visit);
    }

    /// Creates the writer for a trace that has nothing of this profile.
    #[must_use]
    pub fn writer(&self) -> HeapWriter {
        HeapWriter {
            packets: Packets::new(self.profile.packets.sequence(), SampledBy::CpuTime { period: 0 }),
            records: self.profile.records.is_some().then(Records::within),
            dumped: Vec::new(),
            index: 0,
            named: 0,
        }
    }
}

impl HeapWriter {
    /// Returns how far it is, so that another writer can continue its trace.
    #[must_use]
    pub fn progress(&self) -> HeapProgress {
        HeapProgress { index: self.index, interned: self.packets.interned() }
    }

    /// Returns a dump of this moment: the stacks and sums that the trace does not have yet.
    #[must_use]
    pub fn dump(&mut self, at: &HeapMoment) -> Vec<u8> {
        let mut out = Vec::with_capacity(ROOM);
        let sequence = self.packets.sequence();
        self.packets.intern(&mut out, &at.files, &at.table);
        let clocks = [(clock::BOOTTIME, at.boottime), (clock::MONOTONIC_COARSE, at.coarse)];
        clock_snapshot(&mut out, sequence, &clocks);
        let samples = self.changed(at);
        // An empty dump is one too: what was live before still is.
        let pieces = samples.len().div_ceil(SUMS_OF_A_PACKET).max(1);
        for piece in 0..pieces {
            let samples = samples.chunks(SUMS_OF_A_PACKET).nth(piece).unwrap_or_default();
            let dump = HeapDump {
                pid: at.pid,
                heap: HEAP,
                coarse_ns: at.coarse,
                interval: at.interval,
                has_losses: at.has_losses,
                index: self.index,
                is_continued: piece + 1 < pieces,
            };
            heap_dump(&mut out, sequence, at.boottime, &dump, samples);
            self.index += 1;
        }
        self.take(out)
    }

    /// Returns the sums that are others than in the dump before, which are then those of the trace.
    fn changed(&mut self, at: &HeapMoment) -> Vec<HeapSample> {
        self.dumped.resize(at.sums.len(), Sums::default());
        let changed = (0..).zip(at.sums.iter().zip(&self.dumped)).filter(|(_, (now, dumped))| now != dumped);
        let samples = changed.map(|(number, (now, _))| now.sample(number)).collect();
        self.dumped.clone_from(&at.sums);
        samples
    }

    /// Returns the functions that the trace does not have yet. Looks up those that are not known.
    #[must_use]
    pub fn functions(&mut self, at: &HeapMoment) -> Vec<u8> {
        let mut out = Vec::with_capacity(ROOM);
        let frames = at.table.frames.values();
        let new = frames.get(self.named..).unwrap_or_default().iter();
        at.known.write(&mut out, self.packets.sequence(), &at.files, &at.table, new);
        self.named = frames.len();
        self.take(out)
    }

    fn take(&mut self, packets: Vec<u8>) -> Vec<u8> {
        match &mut self.records {
            Some(records) => records.take(&packets),
            None => packets,
        }
    }
}

/// A heap profile that entries have.
#[derive(Debug)]
pub struct HeapWindow {
    moment: HeapMoment,
    writer: HeapWriter,
}

impl HeapWindow {
    /// Reads the entries of [`HeapProfile::take_entries`], also damaged ones. `None`: there is no profile.
    /// `continues`: it is added to the trace of the session, which has the dumps so far.
    ///
    /// # Errors
    /// A sentence that says why there is no profile of a session that had one.
    pub fn read(entries: &[&[u8]], continues: bool) -> Result<Option<Self>, &'static str> {
        if kept::was_too_large(entries) {
            return Err("the heap profile is left out: it had more stacks than its region has room for");
        }
        Ok(kept::read(entries).map(|read| Self::of(read, continues)))
    }

    fn of(read: Read, continues: bool) -> Self {
        let Read { about, allocator, files, table, sums, moment } = read;
        let About { sequence, pid, interval, is_fxt } = about;
        let KeptAt { boottime, coarse, has_losses, progress } = moment;
        let known = Arc::new(Known::default().naming(INNERMOST.rel_pc, ALLOCATION).without(&allocator));
        let by = SampledBy::CpuTime { period: 0 };
        let (packets, index) = match continues && progress.index > 0 && progress.is_within(&files, &table) {
            true => (Packets::continued(sequence, by, progress.interned), progress.index),
            false => (Packets::new(sequence, by), 0),
        };
        let records = is_fxt.then(Records::within);
        Self {
            moment: HeapMoment { boottime, coarse, has_losses, pid, interval, sums, files, table, known },
            writer: HeapWriter { packets, records, dumped: Vec::new(), index, named: 0 },
        }
    }

    /// Returns a dump of the profile with the functions of its frames, as a part of a trace.
    #[must_use]
    pub fn write(self) -> Vec<u8> {
        let Self { moment, mut writer } = self;
        let mut out = writer.dump(&moment);
        out.extend_from_slice(&writer.functions(&moment));
        out
    }
}

/// The sequence of the packets in an FXT trace. CPU samples have the first, and those at switches the second.
const FXT_SEQUENCE: SequenceId = SequenceId(3);

impl Sums {
    fn sample(&self, number: u32) -> HeapSample {
        HeapSample {
            callstack: iid(number),
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

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = file!();
    const REGISTERS: usize = crate::REGISTERS.count_ones() as usize;

    /// The stack of a function that was called at this distance from the begin of another one: the memory at
    /// the frame pointer, which is 0x10 as all registers are.
    fn called_at(distance: u64) -> [u8; 16] {
        let caller = (at::<u32> as *const ()).addr() as u64 + distance;
        [[0; 8], caller.to_ne_bytes()].concat().try_into().expect("two words")
    }

    #[test]
    fn entries_have_the_profile_also_when_the_oldest_are_forgotten() {
        let mut heap = HeapProfile::packets(SequenceId(9), std::process::id(), 100, FILE);
        let moment = |index| {
            let progress = HeapProgress { index, ..HeapProgress::default() };
            KeptAt { boottime: 5, coarse: 4, has_losses: false, progress }
        };
        let (mut entries, mut starts) = (Vec::new(), Vec::new());
        for n in 0..4 {
            heap.allocated(&allocated(n, 150, 1 << 16, &called_at(1 + u64::from(n) % 3)));
            if n % 2 == 0 {
                starts.push(entries.len());
                heap.keep_again();
            }
            heap.keep(moment(n.into()));
            heap.take_entries(|entry| entries.push(entry.to_vec()));
        }
        assert!(heap.freed(0));
        heap.keep(moment(7));
        heap.take_entries(|entry| entries.push(entry.to_vec()));
        let read = |from: usize| {
            let entries: Vec<&[u8]> = entries[from..].iter().map(Vec::as_slice).collect();
            HeapWindow::read(&entries, true).expect("room").expect("a profile")
        };
        assert_eq!(heap.sums.len(), 4);
        for from in starts.iter().copied().chain([1, starts[1] - 1]) {
            let window = read(from);
            let (sums, table) = (&window.moment.sums, &window.moment.table);
            assert_eq!((sums, window.writer.index), (&heap.sums, 7), "from entry {from}");
            let now = &heap.profile.table;
            assert_eq!(table.mappings.values(), now.mappings.values(), "each with its number");
            assert_eq!(table.frames.values(), now.frames.values());
            assert_eq!(table.stacks.values(), now.stacks.values());
            let depths =
                |table: &Table| -> usize { table.stacks.since(1).map(|(_, stack)| stack.len()).sum() };
            assert_eq!(depths(&window.moment.table), depths(&heap.profile.table));
        }
        assert!(HeapWindow::read(&[], true).is_ok_and(|window| window.is_none()));
        heap.keep_none();
        heap.take_entries(|entry| assert!(HeapWindow::read(&[entry], true).is_err()));
    }

    fn allocated(slot: u32, bytes: u64, count: u64, stack: &[u8; 16]) -> Allocated<'_> {
        Allocated {
            slot,
            bytes,
            count,
            call_chain: Words::default(),
            registers: &[0x10; 4][..REGISTERS],
            stack,
        }
    }

    #[test]
    fn sums_grow_and_what_is_freed_is_what_was_allocated() {
        let mut heap = HeapProfile::packets(SequenceId(9), std::process::id(), 100, FILE);
        heap.allocated(&allocated(7, 150, 3 << 15, &called_at(1)));
        heap.allocated(&allocated(8, 50, 1 << 16, &called_at(2)));
        assert!(!heap.freed(9), "an allocation that comes later");
        assert!(heap.freed(7) && !heap.freed(7));
        assert_eq!(heap.totals().live, 50);
        let [_, first, second] = heap.sums[..] else { panic!() };
        let expected = HeapSample { callstack: 2, allocated: 150, freed: 150, allocations: 2, frees: 2 };
        assert_eq!(first.sample(1), expected);
        assert_eq!((second.allocated, second.freed), (50, 0));
    }

    #[test]
    fn the_first_dump_of_each_trace_is_whole_and_the_next_one_has_what_has_changed() {
        let mut heap = HeapProfile::packets(SequenceId(9), std::process::id(), 100, FILE).closing_files();
        heap.allocated(&allocated(7, 150, 1 << 16, &called_at(1)));
        let (mut writer, first) = (heap.writer(), heap.at(5, 4, false));
        heap.allocated(&allocated(8, 50, 1 << 16, &called_at(2)));
        let second = heap.at(7, 6, false);
        assert!(heap.freed(7) && heap.freed(8));
        let changed = |writer: &mut HeapWriter, at: &HeapMoment| -> Vec<(u64, u64, u64)> {
            let changed = writer.changed(at).into_iter();
            changed.map(|sample| (sample.callstack, sample.allocated, sample.freed)).collect()
        };
        assert_eq!(changed(&mut writer, &first), [(2, 150, 0)]);
        assert_eq!(changed(&mut writer, &second), [(3, 50, 0)]);
        assert_eq!(changed(&mut heap.writer(), &second), [(2, 150, 0), (3, 50, 0)]);
        assert_eq!(changed(&mut writer, &heap.at(9, 8, false)), [(2, 150, 150), (3, 50, 50)]);
    }
}
