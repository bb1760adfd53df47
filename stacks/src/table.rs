//! Mappings, frames and stacks, each once, by a number.

use std::hash::Hash;
use std::sync::Arc;

use hairline_perf::Map;

use crate::file::ProgramFile;
use crate::process::Place;

/// The path of code that is in no file.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// The most stacks that are kept, and the most frames that they have together: some 20 MiB of memory. A long
/// recording has ever new ones.
const MOST_STACKS: usize = 1 << 16;
const MOST_DEPTHS: usize = 1 << 21;

/// Values by the order in which they first came.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    numbers: Map<T, u32>,
    values: Vec<T>,
    /// The number of the first value: those before it are forgotten.
    first: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: Map::default(), values: Vec::new(), first: 0 }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// Returns the value's number.
    pub(crate) fn number(&mut self, value: &T) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.end();
        self.numbers.insert(value.clone(), number);
        self.values.push(value.clone());
        number
    }

    fn has(&self, value: &T) -> bool {
        self.numbers.contains_key(value)
    }

    /// Returns a copy without the numbers by value: it gets no further values.
    fn to_read(&self) -> Self {
        Self { numbers: Map::default(), values: self.values.clone(), first: self.first }
    }

    /// Returns the values that are kept.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the value with this number, unless it is forgotten.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number.checked_sub(self.first)? as usize)
    }

    /// Returns the number that the next new value gets.
    pub(crate) fn end(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.values.len()).unwrap_or(u32::MAX))
    }

    /// Returns the values from this number on, but for forgotten ones, with their numbers.
    pub(crate) fn since(&self, number: u32) -> impl Iterator<Item = (u32, &T)> {
        let number = number.max(self.first);
        (number..).zip(&self.values[(number - self.first) as usize..])
    }

    /// Forgets all values. One that comes again gets a new number.
    fn forget(&mut self) {
        self.first = self.end();
        self.numbers.clear();
        self.values.clear();
    }
}

/// A mapped part of a file, in one process or in several that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    /// The number of the file.
    pub(crate) file: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) bias: u64,
}

/// A frame: the number of a mapping, and an address as in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) mapping: u32,
    pub(crate) rel_pc: u64,
}

impl Frame {
    /// Returns the frame of a place. `unknown` is the mapping of code without a file.
    fn of(place: &Place, unknown: u32) -> Self {
        Self { mapping: place.mapping.unwrap_or(unknown), rel_pc: place.rel_pc }
    }
}

/// The frames and stacks of all samples.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) mappings: Numbered<Mapping>,
    pub(crate) frames: Numbered<Frame>,
    pub(crate) stacks: Numbered<Arc<[u32]>>,
    /// The frames of all stacks that are kept.
    depths: usize,
    /// Which frames are those of samples that Perfetto reads.
    shown: Vec<bool>,
}

impl Table {
    /// Returns the place of a frame.
    pub(crate) fn place(&self, frame: u32, files: &[Arc<ProgramFile>]) -> Option<Place> {
        let frame = self.frames.values().get(frame as usize)?;
        let mapping = self.mappings.values().get(frame.mapping as usize)?;
        let is_known = files.get(mapping.file as usize)?.path != UNKNOWN;
        let address = frame.rel_pc.wrapping_add(mapping.bias);
        Some(Place { mapping: is_known.then_some(frame.mapping), rel_pc: frame.rel_pc, address })
    }

    /// Returns a copy that gets no further entries.
    pub(crate) fn to_read(&self) -> Self {
        let Self { mappings, frames, stacks, depths, shown } = self;
        Self {
            mappings: mappings.to_read(),
            frames: frames.to_read(),
            stacks: stacks.to_read(),
            depths: *depths,
            shown: shown.clone(),
        }
    }

    /// Notes that Perfetto reads a sample with this stack.
    pub(crate) fn show(&mut self, stack: u32) {
        self.shown.resize(self.frames.values().len(), false);
        for frame in self.stacks.get(stack).into_iter().flat_map(|stack| stack.iter()) {
            self.shown[*frame as usize] = true;
        }
    }

    /// Returns the frames of samples that Perfetto reads, or those of the others alone.
    pub(crate) fn frames_shown(&self, is_shown: bool) -> impl Iterator<Item = &Frame> + Clone {
        let all = self.frames.values().iter().enumerate();
        let these = all.filter(move |(n, _)| self.shown.get(*n).copied().unwrap_or(false) == is_shown);
        these.map(|(_, frame)| frame)
    }

    /// Returns the number of the stack with these places, the innermost first. `unknown` is the mapping of
    /// code without a file. If there are too many stacks, all others are forgotten.
    pub(crate) fn stack(&mut self, places: &[Place], unknown: u32) -> u32 {
        let frames = places.iter().rev().map(|place| self.frames.number(&Frame::of(place, unknown)));
        let stack: Arc<[u32]> = frames.collect();
        if !self.has_room(stack.len()) && !self.stacks.has(&stack) {
            self.stacks.forget();
            self.depths = 0;
        }
        self.number(&stack)
    }

    /// As [`stack`](Self::stack). `None` if others would have to be forgotten: the table then gets no frames of
    /// the stack either.
    pub(crate) fn stack_if_room(&mut self, places: &[Place], unknown: u32) -> Option<u32> {
        if self.has_room(places.len()) {
            return Some(self.stack(places, unknown));
        }
        let frame = |place: &Place| self.frames.numbers.get(&Frame::of(place, unknown)).copied();
        let stack: Arc<[u32]> = places.iter().rev().map(frame).collect::<Option<_>>()?;
        self.stacks.numbers.get(&stack).copied()
    }

    fn has_room(&self, depth: usize) -> bool {
        self.stacks.values().len() < MOST_STACKS && self.depths + depth <= MOST_DEPTHS
    }

    fn number(&mut self, stack: &Arc<[u32]>) -> u32 {
        if !self.stacks.has(stack) {
            self.depths += stack.len();
        }
        self.stacks.number(stack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_without_end_take_bounded_memory_and_have_numbers_of_their_own() {
        let mut table = Table::default();
        let mut stack = |n: usize| {
            let place = |n: usize| Place { mapping: None, rel_pc: n as u64, address: n as u64 };
            let number = table.stack(&[place(n % 300), place(n / 300)], 0);
            assert!(table.stacks.values().len() <= MOST_STACKS);
            (number as usize, table.stacks.since(number).count())
        };
        for n in 0..3 * MOST_STACKS {
            assert_eq!(stack(n), (n, 1), "a new one");
        }
        assert_eq!(stack(3 * MOST_STACKS - 1).0, 3 * MOST_STACKS - 1, "one that is kept");
        assert_eq!(stack(0).0, 3 * MOST_STACKS, "one that was forgotten");
    }

    #[test]
    fn a_stack_without_room_leaves_a_full_table_as_it_is() {
        let mut table = Table::default();
        let place = |n: usize| Place { mapping: None, rel_pc: n as u64, address: n as u64 };
        for n in 0..MOST_STACKS {
            assert_eq!(table.stack_if_room(&[place(n)], 0), Some(n as u32));
        }
        assert_eq!(table.stack_if_room(&[place(MOST_STACKS)], 0), None);
        assert_eq!(table.stack_if_room(&[place(1), place(2)], 0), None, "a new one of known frames");
        assert_eq!(table.stack_if_room(&[place(7)], 0), Some(7));
        assert_eq!(table.frames.values().len(), MOST_STACKS);
    }
}
