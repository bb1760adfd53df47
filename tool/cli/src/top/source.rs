//! Sources of slices.

use std::sync::atomic::AtomicBool;

use crate::top::rates::Rates;

/// A source of slices.
pub(super) trait SliceSource {
    /// The slices since the last call. Returns nothing if `is_over` becomes true before there are any.
    fn take(&mut self, is_over: &AtomicBool) -> Result<Rates, String>;
}
