//! The numbers of a part, made different from those of the others.

/// What tells the tracks and the async intervals of a part from those of the others: a process that was forked has some numbers of
/// its parent's. Those of the first part stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Salt(pub(super) u64);

impl Salt {
    /// Of the part with this number, from 0.
    pub(super) fn of(part: u64) -> Self {
        // Odd multiples of the golden ratio: two parts differ in all digits.
        Self(part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
