//! What each thread of the program `crowd` records.

/// Scopes `step` and values of a counter before all threads are there.
pub const STEPS_BEFORE: u64 = 10;
/// Scopes `step` after that.
pub const STEPS_AFTER: u64 = 5;
/// Records of a thread: those, and a scope around them.
pub const RECORDS: u64 = 2 + 3 * STEPS_BEFORE + 2 * STEPS_AFTER;
