//! What a session looks at besides recording a callsite's events, in one word.

/// What a session looks at besides recording a callsite's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch(u64);

impl Watch {
    pub(crate) const NOTHING: Self = Self(0);
    /// Each event has a stack.
    const STACKS: u64 = 1 << 63;
    /// A slow slice has stacks.
    const SLOW_STACKS: u64 = 1 << 62;

    /// `slow_after`: the duration from which a slice is slow, in ns; 0 if none is, so that slices are not timed.
    pub(crate) fn new(slow_after: u64, slow_stacks: bool, stacks: bool) -> Self {
        let slow_after = slow_after.min(Self::SLOW_STACKS - 1);
        let slow_stacks = if slow_stacks && slow_after != 0 { Self::SLOW_STACKS } else { 0 };
        Self(slow_after | slow_stacks | if stacks { Self::STACKS } else { 0 })
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the duration in ns from which a slice is slow; 0 if none is.
    #[inline]
    pub(crate) fn slow_after(self) -> u64 {
        self.0 & (Self::SLOW_STACKS - 1)
    }

    pub(crate) fn has_stacks(self) -> bool {
        self.0 & Self::STACKS != 0
    }

    pub(crate) fn has_slow_stacks(self) -> bool {
        self.0 & Self::SLOW_STACKS != 0
    }
}
