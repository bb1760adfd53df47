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
pub(crate) struct Countdown {
    left: Cell<i64>,
    /// The profile for which they were drawn; 0 for none.
    of: Cell<u32>,
    random: Cell<u64>,
}

impl Countdown {
    pub(crate) const fn new() -> Self {
        Self { left: Cell::new(0), of: Cell::new(0), random: Cell::new(0) }
    }

    /// Subtracts an allocation. Returns whether [`is_sampled`](Self::is_sampled) is to be asked about it.
    #[inline(always)]
    pub(crate) fn subtract(&self, size: usize, profile: u32) -> bool {
        let left = self.left.get().wrapping_sub(size as i64);
        self.left.set(left);
        left < 0 || self.of.get() != profile
    }

    /// Returns whether the allocation that was subtracted is sampled, and draws the next distance. `seed`
    /// tells threads apart, at the first call in each.
    pub(crate) fn is_sampled(
        &self,
        size: usize,
        profile: u32,
        mean: u64,
        seed: impl FnOnce() -> u64,
    ) -> bool {
        if self.of.replace(profile) == profile {
            self.left.set(self.draw(mean));
            return true;
        }
        // The distance of another profile, or of none.
        if self.random.get() == 0 {
            self.random.set(seed());
        }
        let left = self.draw(mean).wrapping_sub(size as i64);
        self.left.set(if left < 0 { self.draw(mean) } else { left });
        left < 0
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
        let countdown = Countdown::new();
        let (mut bytes, mut count, mut samples) = (0, 0, 0);
        for _ in 0..times {
            if countdown.subtract(size, 1) && countdown.is_sampled(size, 1, mean, || 7) {
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
    fn a_profile_does_not_wait_for_the_distance_of_the_one_before() {
        let countdown = Countdown::new();
        countdown.is_sampled(1, 1, u64::MAX, || 7);
        let mut samples = 0;
        for _ in 0..10_000 {
            samples += u32::from(countdown.subtract(10, 2) && countdown.is_sampled(10, 2, 100, || 7));
        }
        assert!((800..1200).contains(&samples), "{samples}");
    }
}
