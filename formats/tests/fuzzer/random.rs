//! Random choices that are the same in every run with the same seed.

use std::ops::Range;

/// SplitMix64: one word of state, any seed is valid.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The choices for one input. They do not depend on other inputs.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut mixed = Self(seed);
        Self(mixed.next() ^ index.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns a range below `len`. Short ranges are as likely as long ones.
    pub(crate) fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.below(len + 1);
        let most = [1, 8, 64, len][self.below(4)].min(len - start);
        start..start + self.below(most + 1)
    }

    /// Returns a number that is likely to find faults: near 0, near a power of two, or any.
    pub(crate) fn number(&mut self) -> u64 {
        let near = (self.below(5) as u64).wrapping_sub(2);
        match self.below(4) {
            0 => near,
            1 => (1_u64 << self.below(64)).wrapping_add(near),
            2 => self.next() >> self.below(64),
            _ => self.below(64) as u64,
        }
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
