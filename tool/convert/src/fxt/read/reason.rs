//! Why a record is skipped.

/// Why a record is skipped, as its report counts it.
pub(super) struct Reason(pub(super) &'static str);

pub(super) const DAMAGED: Reason = Reason("damaged records left out");
pub(super) const UNKNOWN_STRING: Reason = Reason("records with unknown strings left out");
pub(super) const UNKNOWN_THREAD: Reason = Reason("records of unknown threads left out");
pub(super) const TIME: Reason = Reason("records with times beyond 292 years left out");
pub(super) const TOO_MANY_TRACKS: Reason = Reason("records on more than 4194304 tracks left out");
