//! The number of a session in this process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::options::Format;

/// Bit 0 of an epoch: set if the session writes TrackEvent packets, clear for FXT records.
const TRACK_EVENT: u32 = 1;

/// The number of a session in this process, or [`UNREGISTERED`](Self::UNREGISTERED).
///
/// Atomics and leases hold an `Option<Epoch>` as a `u32`: 0 is `None`. A lease without a chunk has the epoch
/// 0. An `Epoch` is never 0, so no event finds its own epoch there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(NonZeroU32);

impl Epoch {
    /// The word of a callsite that was never hit. No session has it.
    pub(crate) const UNREGISTERED: Self = Self(NonZeroU32::MIN);

    /// The number of the first session, without the bit of its format.
    const FIRST: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

    /// Returns the epoch of a new session. Epochs are never reused, so that a thread that slept during a
    /// session sees that its own session has ended.
    pub(crate) fn next(format: Format) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(Epoch::FIRST.get());
        let number = NonZeroU32::new(NEXT.fetch_add(2, Ordering::Relaxed)).unwrap_or(Self::FIRST);
        Self(number | if format == Format::TrackEvent { TRACK_EVENT } else { 0 })
    }

    /// Converts the content of an atomic: 0 is no epoch.
    #[inline(always)]
    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        NonZeroU32::new(raw).map(Self)
    }

    /// Returns the number.
    #[inline(always)]
    pub(crate) const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the number, which is never 0.
    #[inline(always)]
    pub(crate) const fn number(self) -> NonZeroU32 {
        self.0
    }

    /// Returns the format of the session.
    #[inline(always)]
    pub(crate) fn format(self) -> Format {
        Self::format_of(self.get())
    }

    /// Returns the format of the session whose epoch has this number.
    #[inline(always)]
    pub(crate) const fn format_of(number: u32) -> Format {
        if number & TRACK_EVENT == 0 { Format::Fxt } else { Format::TrackEvent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_an_epoch_of_its_own_with_its_format() {
        let formats = [Format::Fxt, Format::TrackEvent, Format::TrackEvent, Format::Fxt];
        let epochs = formats.map(Epoch::next);
        assert_eq!(epochs.map(Epoch::format), formats);
        assert!(epochs.is_sorted_by(|a, b| a.get() | 1 < b.get()));
        assert!(epochs.iter().all(|epoch| *epoch > Epoch::UNREGISTERED));
    }

    #[test]
    fn no_epoch_is_0_in_an_atomic() {
        assert_eq!(Epoch::from_raw(0), None);
        assert_eq!(Epoch::from_raw(7).map(Epoch::get), Some(7));
        assert_eq!(size_of::<Option<Epoch>>(), size_of::<u32>());
    }
}
