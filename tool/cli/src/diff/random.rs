//! Random numbers that are the same in each run of the command.

/// A generator: splitmix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(0x6861_6972_6c69_6e65)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// Puts a random choice of `count` elements first.
    pub(super) fn choose<T>(&mut self, all: &mut [T], count: usize) {
        for n in 0..count {
            let other = n + self.below(all.len() - n);
            all.swap(n, other);
        }
    }
}
