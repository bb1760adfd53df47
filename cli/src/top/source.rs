//! Where slices are had from.

use std::sync::atomic::AtomicBool;

use crate::top::rates::Rates;

/// Where slices are had from.
pub(super) trait SliceSource {
    /// Those of the time since it was asked last. Nothing, if `is_over` comes true before it has any.
    fn take(&mut self, is_over: &AtomicBool) -> Result<Rates, String>;
}
