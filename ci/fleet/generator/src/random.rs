//! Numbers that look random and are the same in every run.

/// A generator: SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A duration in nanoseconds: most are near `usual`, a few take several times as long.
    pub(crate) fn duration(&mut self, usual: i64) -> i64 {
        let random = self.next();
        let tail = i64::from((random >> 32).trailing_zeros().min(6));
        let spread = (random & 0xff).cast_signed();
        let ns = usual * (192 + spread) / 320 * (8 + tail * tail) / 8;
        (ns / 100).max(1) * 100
    }
}
