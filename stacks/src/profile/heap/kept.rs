//! What a killed process needs of its heap profile: entries like those of [samples](crate::tape), of
//! which the oldest may be forgotten.
//!
//! | entry | content |
//! |---|---|
//! | file, mapping | as for samples |
//! | heap | sequence, process, mean of the bytes between two samples, format; source file of the allocator |
//! | frame | number, mapping, address |
//! | stack | number; numbers of the frames, from the root |
//! | sums | times, losses, progress of the writer; number and sums of each stack that has changed |
//! | too large | nothing: the profile has more stacks than there is room for |
//!
//! Sums are those since the session's begin. So the last ones of a stack count, and after a kill at any
//! moment the entries are a profile of some moment before. All numbers are those of the session's
//! tables: so whoever reads the entries can continue the session's trace, whose ids they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use hairline_formats::proto::put_varint;
use hairline_formats::track_event::SequenceId;

use crate::file::ProgramFile;
use crate::packets::Interned;
use crate::process::MOST_FRAMES;
use crate::profile::heap::sums::{Sums, at};
use crate::table::{Frame, Mapping, Table};
use crate::tape::{Defined, Entries, FILE, MAPPING, Reader, read_file};

const HEAP: u8 = 16;
const FRAME: u8 = 17;
const STACK: u8 = 18;
const SUMS: u8 = 19;
const TOO_LARGE: u8 = 20;

/// The stacks of an entry, which has then less than 256 KiB.
const SUMS_OF_AN_ENTRY: usize = 4096;

/// The most items of a kind that are read: a profile has fewer.
const MOST_READ: u32 = 1 << 20;

/// The writer of the entries.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Entries,
    defined: Defined,
    /// The frames and stacks with lower numbers are written.
    frames: u32,
    stacks: u32,
    /// The sums that are written, by the number of the stack.
    sums: Vec<Sums>,
    /// The source file of the allocator.
    allocator: String,
}

/// How far a [`HeapWriter`](crate::HeapWriter) is in its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapProgress {
    /// The number of the next packet.
    pub(super) index: u64,
    pub(super) interned: Interned,
}

impl HeapProgress {
    /// Whether these tables have all that was written.
    pub(super) fn is_within(&self, files: &[Arc<ProgramFile>], table: &Table) -> bool {
        let Interned { files: of_files, mappings, frames, stacks } = self.interned;
        of_files <= files.len()
            && mappings <= table.mappings.values().len()
            && frames <= table.frames.values().len()
            && stacks <= table.stacks.end()
    }
}

/// The moment of an entry with sums: as for [`HeapProfile::at`](crate::HeapProfile::at).
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptAt {
    /// `CLOCK_BOOTTIME`, in ns.
    pub boottime: u64,
    /// `CLOCK_MONOTONIC_COARSE`, in ns.
    pub coarse: u64,
    /// Whether samples were lost.
    pub has_losses: bool,
    /// That of the writer of the present trace.
    pub progress: HeapProgress,
}

impl KeptAt {
    fn numbers(&self) -> [u64; 8] {
        let HeapProgress { index, interned: Interned { files, mappings, frames, stacks } } = self.progress;
        let [files, mappings, frames] = [files, mappings, frames].map(|count| count as u64);
        let losses = self.has_losses.into();
        [self.boottime, self.coarse, losses, index, files, mappings, frames, stacks.into()]
    }

    fn of([boottime, coarse, losses, index, files, mappings, frames, stacks]: [u64; 8]) -> Self {
        let [files, mappings, frames] = [files, mappings, frames].map(|count| count as usize);
        let interned = Interned { files, mappings, frames, stacks: stacks as u32 };
        Self { boottime, coarse, has_losses: losses != 0, progress: HeapProgress { index, interned } }
    }
}

/// What an entry has of the profile as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) sequence: SequenceId,
    pub(super) pid: u32,
    pub(super) interval: u64,
    pub(super) is_fxt: bool,
}

impl Kept {
    pub(super) fn new(allocator: &str) -> Self {
        Self { allocator: allocator.to_owned(), ..Self::default() }
    }

    /// Writes what has changed since the last call.
    pub(super) fn keep(&mut self, moment: KeptAt, files: &[Arc<ProgramFile>], table: &Table, sums: &[Sums]) {
        self.defined.define(&mut self.entries, files, table);
        for (number, frame) in table.frames.since(self.frames) {
            self.entries.begin(FRAME, &[number.into(), frame.mapping.into(), frame.rel_pc]);
        }
        for (number, stack) in table.stacks.since(self.stacks) {
            let entry = self.entries.begin(STACK, &[number.into()]);
            stack.iter().for_each(|frame| put_varint(entry, (*frame).into()));
        }
        (self.frames, self.stacks) = (table.frames.end(), table.stacks.end());
        self.sums.resize(sums.len(), Sums::default());
        let changed = (0_u64..).zip(sums.iter().zip(&mut self.sums)).filter(|(_, (now, kept))| *now != *kept);
        let (mut entry, mut count) = (self.entries.begin(SUMS, &moment.numbers()), 0);
        for (number, (now, kept)) in changed {
            if count == SUMS_OF_AN_ENTRY {
                (entry, count) = (self.entries.begin(SUMS, &moment.numbers()), 0);
            }
            let Sums { allocated, freed, allocations, frees } = *now;
            [number, allocated, freed, allocations, frees].iter().for_each(|n| put_varint(entry, *n));
            *kept = *now;
            count += 1;
        }
    }

    /// Writes everything at the next [`keep`](Self::keep).
    pub(super) fn again(&mut self, of: About) {
        (self.defined, self.frames, self.stacks) = (Defined::default(), 0, 0);
        self.sums.clear();
        let numbers = [of.sequence.0.into(), of.pid.into(), of.interval, of.is_fxt.into()];
        self.entries.begin(HEAP, &numbers).extend_from_slice(self.allocator.as_bytes());
    }

    /// Writes that there is nothing.
    pub(super) fn none(&mut self) {
        self.entries = Entries::default();
        self.entries.begin(TOO_LARGE, &[]);
    }

    pub(super) fn take(&mut self, visit: impl FnMut(&[u8])) {
        self.entries.take(visit);
    }
}

/// Whether the entries have no profile, because it had too many stacks.
pub(super) fn was_too_large(entries: &[&[u8]]) -> bool {
    entries.iter().any(|entry| entry.first() == Some(&TOO_LARGE))
}

/// The content of entries. Numbers are those of the session.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) about: About,
    pub(super) allocator: String,
    pub(super) files: Vec<Arc<ProgramFile>>,
    pub(super) table: Table,
    pub(super) sums: Vec<Sums>,
    pub(super) moment: KeptAt,
}

/// Reads entries. `None`: there is no profile, or they are damaged.
pub(super) fn read(entries: &[&[u8]]) -> Option<Read> {
    let (heap, allocator) = entries.iter().rev().find_map(|entry| {
        let mut heap = Reader::of(entry, HEAP)?;
        let numbers: [u64; 4] = heap.numbers()?;
        Some((numbers, String::from_utf8_lossy(heap.0).into_owned()))
    })?;
    let [sequence, pid, interval, is_fxt] = heap;
    let (sequence, pid) = (u32::try_from(sequence).ok()?, u32::try_from(pid).ok()?);
    let (mut files, mut mappings, mut frames) = (Numbers::default(), Numbers::default(), Numbers::default());
    let (mut stacks, mut sums, mut last) = (Numbers::default(), Vec::new(), KeptAt::default());
    for entry in entries {
        if let Some(mut of) = Reader::of(entry, FILE) {
            files.add(of.number()?, read_file(of)?)?;
        } else if let Some(mut of) = Reader::of(entry, MAPPING) {
            let [number, file, start, end, offset, bias] = of.numbers()?;
            mappings.add(number, Mapping { file: u32::try_from(file).ok()?, start, end, offset, bias })?;
        } else if let Some(mut of) = Reader::of(entry, FRAME) {
            let [number, mapping, rel_pc] = of.numbers()?;
            frames.add(number, Frame { mapping: u32::try_from(mapping).ok()?, rel_pc })?;
        } else if let Some(mut of) = Reader::of(entry, STACK) {
            let number = of.number()?;
            let each = std::iter::from_fn(|| of.number().and_then(|frame| u32::try_from(frame).ok()));
            stacks.add(number, each.take(MOST_FRAMES).collect::<Arc<[u32]>>())?;
        } else if let Some(mut of) = Reader::of(entry, SUMS) {
            last = KeptAt::of(of.numbers()?);
            while let Some([number, allocated, freed, allocations, frees]) = of.numbers() {
                let number = u32::try_from(number).ok().filter(|number| *number < MOST_READ)?;
                *at(&mut sums, number) = Sums { allocated, freed, allocations, frees };
            }
        }
    }
    let mut table = Table::default();
    let files: Vec<Arc<ProgramFile>> = files.in_order()?.map(Arc::new).collect();
    mappings.in_order()?.for_each(|mapping| _ = table.mappings.number(&mapping));
    frames.in_order()?.for_each(|frame| _ = table.frames.number(&frame));
    stacks.in_order()?.for_each(|stack| _ = table.stacks.number(&stack));
    let is_whole = table.mappings.values().iter().all(|of| files.get(of.file as usize).is_some())
        && table.frames.values().iter().all(|of| table.mappings.get(of.mapping).is_some())
        && table.stacks.values().iter().all(|of| of.iter().all(|frame| table.frames.get(*frame).is_some()))
        && sums.len() <= table.stacks.values().len();
    if !is_whole {
        return None; // a damaged region
    }
    let about = About { sequence: SequenceId(sequence), pid, interval, is_fxt: is_fxt != 0 };
    Some(Read { about, allocator, files, table, sums, moment: last })
}

/// Items by their numbers.
#[derive(Debug)]
struct Numbers<T>(BTreeMap<u32, T>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Numbers<T> {
    /// Adds an item, which may be there already. `None` if there are too many.
    fn add(&mut self, number: u64, item: T) -> Option<()> {
        let number = u32::try_from(number).ok().filter(|number| *number < MOST_READ)?;
        self.0.insert(number, item);
        Some(())
    }

    /// Returns the items. `None` if some are missing.
    fn in_order(self) -> Option<impl Iterator<Item = T>> {
        let last = self.0.last_key_value().map(|(last, _)| *last as usize + 1);
        (last.unwrap_or(0) == self.0.len()).then(|| self.0.into_values())
    }
}
