//! Takes the last slice of a thread back, for the entry in which `tracing` drops a future.
//!
//! `tracing` enters a span once more to drop its future, leaves it, and closes it. Nothing but the close
//! tells that entry from a poll, so it is recorded like a poll: the process may be killed in it. At the close
//! the slice is taken back, if it is the last one of its thread:
//!
//! ```text
//! position   [begin]   [end]                   close: the commit is again that of `position`
//! ```
//!
//! The position and the commit at the close show whether anything else was written: two more records are the
//! begin and the end, and `changes` counts everything that is no event. `hairline_shm` decides whether a
//! reader has the bytes.

use crate::on::base::this_thread::{self, Hot, Position};
use crate::on::callsite::Epoch;
use crate::on::thread::cold;

/// The longest slice that is taken back, in ns. The drop of a future that is done takes 10 to 50 ns. The rest
/// is for a future that frees its memory, and for the first store into a page of the chunk. A longer drop is
/// worth to be seen. A larger number would take more polls for drops: a program that enters a span by hand
/// may close it right after a short poll. Without optimisation all of this takes ten times as long.
const LONGEST: u64 = if cfg!(debug_assertions) { 20_000 } else { 2_000 };

/// What is added in a session that records the thread's CPU time, in ns: its begin and its end each ask the
/// kernel, which takes 0.2 us on hardware and several us in some virtual machines and sandboxes.
const TWO_SYSTEM_CALLS: u64 = 10_000;

/// The begin of a slice that may be taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The position of its record.
    position: Position,
    /// The time at which what is inside of the slice began.
    time: u64,
}

/// Returns the position after this thread's last record.
#[inline]
pub(crate) fn position() -> Position {
    let hot = this_thread::hot();
    let lease = hot.lease();
    Position { commit: lease.commit(), last: lease.last(), changes: hot.changes() }
}

impl Begun {
    /// No slice.
    pub(crate) const NONE: Self = Self { position: Position::START, time: 0 };

    /// Call it after a slice was begun at `before`.
    #[inline(always)] // else it is returned in memory, and copied
    pub(crate) fn new(before: Position) -> Self {
        let hot = this_thread::hot();
        if hot.changes() == before.changes {
            Self { position: before, time: hot.lease().last() }
        } else {
            Self { position: hot.cold_position.get(), time: time_after_changes(hot) }
        }
    }

    /// Returns whether the slice, whose entry was left, is short and the last one of this thread, with
    /// nothing inside of it.
    #[inline]
    pub(crate) fn is_short_and_empty(&self) -> bool {
        let hot = this_thread::hot();
        let lease = hot.lease();
        let begin = &self.position;
        let is_last =
            hot.changes() == begin.changes && lease.commit().records() == begin.commit.records() + 2;
        let longest = if hot.facts().cpu_time { LONGEST + TWO_SYSTEM_CALLS } else { LONGEST };
        is_last && lease.last().saturating_sub(self.time) <= longest
    }

    /// Takes the slice back, the last one of this thread, if no reader has it. `epoch` is that of its
    /// callsite.
    pub(crate) fn retract(&self, epoch: Epoch) {
        cold::retract(epoch, &self.position, this_thread::hot().lease().commit());
    }
}

/// Returns the time of a begin if the chunk or the strings have changed: the cold path has written it, and
/// that took longer than a drop does.
#[cold]
fn time_after_changes(hot: &Hot) -> u64 {
    hot.now()
}
