//! A recorded begin, for the end that belongs to it.

use std::num::NonZeroU32;

use crate::on::callsite::{Callsite, Epoch};

/// The begin of a slice on this thread's track. The end of the slice needs it.
///
/// Each begin leaves its id in the room that it reserves for its end (`room.rs`). An end finds there the id
/// of the innermost open slice. If that is not its own id, it ends out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenScope {
    /// The epoch in which the begin was recorded.
    pub(crate) recorded_in: RecordedIn,
    /// The low half of the begin's time.
    pub(crate) id: u32,
}

/// What the end of a recorded slice needs. Passed by reference: each argument of a function of the hot path
/// takes a register that is saved while the thread-local is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) callsite: &'static Callsite,
    pub(crate) open: OpenScope,
}

impl OpenScope {
    /// Describes a begin at the time `now`.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the low half is meant
    pub(crate) fn new(epoch: Epoch, now: u64) -> Self {
        Self::with_id(epoch, now as u32)
    }

    #[inline(always)]
    pub(crate) fn with_id(epoch: Epoch, id: u32) -> Self {
        Self { recorded_in: RecordedIn(epoch.number()), id }
    }

    /// Returns the epoch in which the begin was recorded.
    #[inline(always)]
    pub(crate) fn epoch(self) -> Epoch {
        self.recorded_in.epoch()
    }

    /// Returns the same begin as one that is not timed.
    pub(crate) fn untimed(self) -> Self {
        Self::with_id(self.epoch(), self.id)
    }
}

/// The epoch in which a begin was recorded, and whether the slice is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedIn(NonZeroU32);

/// Added to the epoch of a slice that is timed. No session has an epoch with this bit: so the end of such a
/// slice leaves the hot path at its first check.
const TIMED: u32 = 1 << 30;

impl RecordedIn {
    /// Returns the number that the hot path compares with the lease's epoch.
    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    #[inline(always)]
    pub(crate) fn epoch(self) -> Epoch {
        // Without the bit, the number is that of an epoch.
        Epoch::from_raw(self.number() & !TIMED).unwrap_or(Epoch::UNREGISTERED)
    }

    #[inline(always)]
    pub(crate) fn is_timed(self) -> bool {
        self.number() & TIMED != 0
    }

    pub(crate) fn timed(self) -> Self {
        Self(self.0 | TIMED)
    }
}
