//! The salt that makes the ids of a part unique.

/// Distinguishes the tracks and async intervals of a part from those of other parts, because a forked process
/// shares ids with its parent. The ids of the first part do not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Salt(pub(super) u64);

impl Salt {
    /// The salt of the part with this number, from 0.
    pub(super) fn of(part: u64) -> Self {
        // Multiples of an odd constant (from the golden ratio): the salts of two parts differ in many bits.
        Self(part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
