//! A recorded begin, for the end that belongs to it.

use crate::on::callsite::{Callsite, Epoch};

/// The begin of a slice on this thread's track. The end of the slice needs it.
///
/// Each begin leaves its id in the room that it reserves for its end (`room.rs`). An end finds there the id
/// of the innermost open slice. If that is not its own id, it ends out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenScope {
    /// The epoch in which the begin was recorded.
    pub(crate) epoch: Epoch,
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
        Self { epoch, id: now as u32 }
    }
}
