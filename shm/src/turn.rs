//! The turn at the end of a chunk: the owner takes its last records back, or a reader reads them.
//!
//! A thread may find that its last records should not be in the trace, and take them back: it lowers the
//! commit, and writes other bytes there. Readers rely on bytes below a commit that do not change. So a reader
//! announces how far it reads, and the owner never goes back below that:
//!
//! ```text
//! owner                                        reader (the drain, the window)
//!   word: 0 -> RETRACTING, to    or not now      word |= READING        never waits
//!   held <= to?                  or not now      commit, or `to` if the word was RETRACTING
//!   commit = to                                  held = that commit, which never falls
//!   word &= READING                              word &= !READING
//! ```
//!
//! The cases, by the order of the two read-modify-writes that begin the turns:
//!
//! 1. *The reader is first, and not done.* The owner finds READING, and its records stay.
//! 2. *The reader is first, and done.* The owner sees `held` (the pair is the reader's last step and the
//!    owner's first). Its records stay if the reader has any of them.
//! 3. *The owner is first, and not done.* The reader finds `to`, and reads up to there. These bytes stay:
//!    until the reader is done the owner has no second turn, and then it sees `held`. If `to` is below
//!    `held`, the owner finds that too and its records stay, so the reader reads up to the commit.
//! 4. *The owner is first, and done.* The reader sees the lower commit, or a later one.
//!
//! The word is in the private memory of the process: another process that writes into the region cannot make
//! the owner change bytes that a reader has a slice of.

use crate::abi::Commit;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A reader has its turn.
const READING: u64 = 1 << 63;
/// The owner has its turn. The bits below are the commit to which it goes back.
const RETRACTING: u64 = 1 << 62;
/// The bits of a commit, whose two halves are below 2^25.
const COMMIT: u64 = RETRACTING - 1;

/// The turn of one chunk.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    word: AtomicU64,
    /// The bytes up to which a reader reads or has read.
    held: AtomicU32,
}

impl Turn {
    /// Starts the chunk's next life, whose records begin at `start`. The Release of Writing publishes it.
    pub(crate) fn reset(&self, start: u32) {
        self.held.store(start, Ordering::Relaxed);
    }

    /// Returns a commit of a chunk that its owner may be writing: the bytes below it do not change. `load`
    /// loads the commit.
    pub(crate) fn read(&self, load: impl FnOnce() -> Commit) -> Commit {
        // Acquire pairs with both Releases in `retract`. Of its first step: the bytes below `to` may be read.
        // Of its last one: `load` finds the lower commit.
        let before = self.word.fetch_or(READING, Ordering::Acquire);
        // Relaxed: the reader's own store, or that of the claim.
        let held = self.held.load(Ordering::Relaxed);
        // Below `held` the owner does not go: then the commit stays.
        let to = Some(Commit(before & COMMIT)).filter(|to| before & RETRACTING != 0 && to.bytes() >= held);
        let commit = to.unwrap_or_else(load);
        self.held.store(commit.bytes(), Ordering::Relaxed);
        // Release pairs with the Acquire in `retract`: the owner sees `held`.
        self.word.fetch_and(!READING, Ordering::Release);
        commit
    }

    /// Calls `lower` if no reader has or wants bytes above `to`. Returns whether it did.
    pub(crate) fn retract(&self, to: Commit, lower: impl FnOnce()) -> bool {
        // Acquire pairs with the Release in `read`, and Release with its Acquire.
        let turn = self.word.compare_exchange(0, RETRACTING | to.0, Ordering::AcqRel, Ordering::Relaxed);
        if turn.is_err() {
            return false;
        }
        let is_unread = self.held.load(Ordering::Relaxed) <= to.bytes();
        if is_unread {
            lower();
        }
        // Release pairs with the Acquire in `read`: a later reader finds the lower commit. (The fence in
        // `WriteChunk::retract` would do for that, too.)
        self.word.fetch_and(READING, Ordering::Release);
        is_unread
    }
}
