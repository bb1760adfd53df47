//! A field: neighbouring bits of a word.

/// The bits `lo..=hi` of a word.
///
/// ```
/// use hairline_formats::fxt::layout::{Field, bits};
///
/// const LEVEL: Field = bits(4, 7);
/// assert_eq!(LEVEL.max(), 15);
/// assert_eq!(LEVEL.set(0x3), 0x30);
/// assert_eq!(LEVEL.set(0x1f), 0xf0); // cut to four bits
/// assert_eq!(LEVEL.get(0xabcd), 0xc);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    lo: u32,
    hi: u32,
}

/// Returns the field of the bits `lo..=hi`, counted from the least significant.
///
/// # Panics
/// If `lo > hi` or `hi > 63`: at compile time, since layouts are constants.
#[must_use]
pub const fn bits(lo: u32, hi: u32) -> Field {
    assert!(lo <= hi && hi < 64);
    Field { lo, hi }
}

impl Field {
    /// Returns the largest value that the field holds.
    #[inline(always)]
    #[must_use]
    pub const fn max(self) -> u64 {
        u64::MAX >> (63 - (self.hi - self.lo))
    }

    /// Returns a word with `value` in the field, cut to the field's width, and zeros elsewhere.
    #[inline(always)]
    #[must_use]
    pub const fn set(self, value: u64) -> u64 {
        (value & self.max()) << self.lo
    }

    /// Returns the field's value in `word`.
    #[inline]
    #[must_use]
    pub const fn get(self, word: u64) -> u64 {
        word >> self.lo & self.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_holds_what_fits_and_touches_nothing_else() {
        for (lo, hi) in [(0, 0), (0, 3), (4, 15), (32, 63), (0, 63), (63, 63)] {
            let field = bits(lo, hi);
            assert_eq!(field.set(u64::MAX).count_ones(), hi - lo + 1);
            assert_eq!(field.set(u64::MAX).trailing_zeros(), lo);
            assert_eq!(field.get(field.set(field.max())), field.max());
            assert_eq!(field.get(!field.set(u64::MAX)), 0);
        }
    }
}
