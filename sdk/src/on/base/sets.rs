//! Sets of the small numbers of strings and callsites, and a hash of random numbers.

use std::hash::Hasher;

use crate::on::base::memory::List;

/// A hasher of numbers that are random already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    /// Mixes an address into the hash of a pair of a random number and an address. The lowest bits of all
    /// addresses are the same.
    fn write_usize(&mut self, number: usize) {
        self.0 ^= (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// A growing set of small numbers, 64 to a word.
#[derive(Debug, Default)]
pub(crate) struct Bits(List<u64>);

impl Bits {
    /// Removes all numbers and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Adds `n`. Returns false if the set already contains it.
    pub(crate) fn insert(&mut self, n: u32) -> bool {
        let (word, bit) = (n as usize / 64, 1 << (n % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    pub(crate) fn contains(&self, n: u32) -> bool {
        self.0.get(n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 != 0)
    }

    /// Returns the words, and the number of bits in them.
    pub(crate) fn raw(&self) -> (*const u64, u32) {
        (self.0.as_ptr(), self.0.len() as u32 * 64) // a bit for each callsite and string of a program
    }
}
