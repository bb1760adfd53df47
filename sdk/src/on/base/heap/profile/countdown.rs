//! Which allocations are sampled: a Poisson process over the bytes that a thread allocates.
//!
//! A thread draws the number of bytes up to its next sample from an exponential distribution, and subtracts
//! each allocation from it. The allocation that crosses zero is sampled. So each byte has the same chance,
//! independent of sizes, of their order and of the other threads.
//!
//! An allocation of `size` bytes is sampled with the probability `1 - exp(-size / mean)`. One sample
//! therefore stands for the inverse of that many allocations of its size, so that sums of samples have no
//! bias.

use std::cell::Cell;

/// What one sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Allocations, in units of 2^-16: a sample of a large block stands for little more than one.
    pub(crate) count: u64,
}

/// Returns what a sample of an allocation of this size stands for, with one sample in `mean` bytes.
pub(crate) fn weight(size: usize, mean: u64) -> Weight {
    let size = size as f64;
    let chance = -(-size / mean as f64).exp_m1();
    // An allocation of no bytes is never sampled: the quotient is not used.
    Weight { bytes: (size / chance).round() as u64, count: (65_536.0 / chance).round() as u64 }
}

/// The bytes up to a thread's next sample.
#[derive(Debug)]
pub(crate) struct Distance {
    left: Cell<i64>,
    random: Cell<u64>,
}

impl Distance {
    pub(crate) const fn new() -> Self {
        Self { left: Cell::new(0), random: Cell::new(0) }
    }

    /// Subtracts an allocation, unless it is the one that crosses zero. Returns whether it did.
    #[inline(always)]
    pub(crate) fn subtract(&self, size: usize) -> bool {
        let left = self.left.get().wrapping_sub(size as i64);
        if left >= 0 {
            self.left.set(left);
        }
        left >= 0
    }

    /// Draws the distance to the next sample with one in `mean` bytes. `None`: there is none, as good as
    /// never. `seed` tells threads apart, at the first call in each.
    pub(crate) fn begin(&self, mean: Option<u64>, seed: impl FnOnce() -> u64) {
        let Some(mean) = mean else { return self.left.set(i64::MAX) };
        if self.random.get() == 0 {
            self.random.set(seed());
        }
        self.left.set(self.draw(mean));
    }

    /// Draws a distance in bytes.
    fn draw(&self, mean: u64) -> i64 {
        // SplitMix64.
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let between_0_and_1 = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (-between_0_and_1.ln() * mean as f64) as i64 // saturates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of the samples of `times` allocations of this size: bytes, allocations, samples.
    fn sums(size: usize, times: u64, mean: u64) -> (f64, f64, u64) {
        let distance = Distance::new();
        distance.begin(Some(mean), || 7);
        let (mut bytes, mut count, mut samples) = (0, 0, 0);
        for _ in 0..times {
            if !distance.subtract(size) {
                distance.begin(Some(mean), || 7);
                let weight = weight(size, mean);
                bytes += weight.bytes;
                count += weight.count;
                samples += 1;
            }
        }
        (bytes as f64, count as f64 / 65_536.0, samples)
    }

    #[test]
    fn samples_add_up_to_what_was_allocated_whatever_its_size() {
        const MEAN: u64 = 4096;
        for size in [16, 1000, 4096, 20_000, 1 << 20] {
            let times = (40_000_000 / size as u64).max(1000);
            let (bytes, count, samples) = sums(size, times, MEAN);
            // Four standard deviations of a Poisson process.
            let tolerance = 4.0 / (samples as f64).sqrt();
            let truth = (size as u64 * times) as f64;
            assert!((bytes / truth - 1.0).abs() < tolerance, "{size}: {bytes} of {truth}");
            assert!((count / times as f64 - 1.0).abs() < tolerance, "{size}: {count} of {times}");
        }
    }

    #[test]
    fn a_large_block_is_always_sampled_and_stands_for_itself() {
        assert_eq!(weight(1 << 30, 512 << 10), Weight { bytes: 1 << 30, count: 65_536 });
        assert_eq!(sums(1 << 30, 100, 512 << 10).2, 100);
    }

    #[test]
    fn without_a_profile_no_allocation_is_sampled() {
        let distance = Distance::new();
        distance.begin(None, || 7);
        assert!((0..1000).all(|_| distance.subtract(1 << 50)));
    }
}
