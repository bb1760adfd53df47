//! Mappings, frames and stacks, each once, by a number.

use std::collections::HashMap;
use std::hash::Hash;

use crate::process::Place;

/// Values by the order in which they first came.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// Returns the value's number.
    pub(crate) fn number(&mut self, value: &T) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.numbers.insert(value.clone(), number);
        self.values.push(value.clone());
        number
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
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

/// The frames and stacks of all samples.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) mappings: Numbered<Mapping>,
    pub(crate) frames: Numbered<Frame>,
    pub(crate) stacks: Numbered<Box<[u32]>>,
}

impl Table {
    /// Returns the number of the stack with these places, the innermost first. `unknown` is the mapping of
    /// code without a file.
    pub(crate) fn stack(&mut self, places: &[Place], unknown: u32) -> u32 {
        let frames = places.iter().rev().map(|place| {
            let mapping = place.mapping.unwrap_or(unknown);
            self.frames.number(&Frame { mapping, rel_pc: place.rel_pc })
        });
        let stack: Box<[u32]> = frames.collect();
        self.stacks.number(&stack)
    }
}
