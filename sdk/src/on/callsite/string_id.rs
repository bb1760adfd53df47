//! The ids of interned strings.

use hairline_formats::fxt;

/// The id of a string that this process has interned: categories, names, keys, and values of arguments.
///
/// A callsite has two other numbers of the same width: its serial number and its bit in the "seen" sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct StringId(pub(crate) u32);

impl StringId {
    /// The empty string, as in both formats; a string that is not interned.
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)] // in builds without optimisation too
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Returns the id in `InternedData` of TrackEvent.
    #[inline(always)]
    pub(crate) fn iid(self) -> u64 {
        u64::from(self.0)
    }

    /// Returns the index of the string in FXT. `None` if the string has none, since the index has 15 bits.
    pub(crate) fn index(self) -> Option<u16> {
        u16::try_from(self.0).ok().filter(|index| *index <= fxt::MAX_STRING_INDEX)
    }
}
