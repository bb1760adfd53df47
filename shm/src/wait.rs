//! The wait of threads for a chunk that the drain frees.
//!
//! ```text
//! thread                                         drain
//! claim: none                                    frees chunks of a batch
//! state = load
//! a chunk is free? else sleep while `state`  <─  state = the next turn, wakes all
//! claim again                                    next batch
//! ```
//!
//! No wake-up is missed, because the drain changes the state after it has freed: `awaited.rs`. A thread that
//! loads the state of the new turn sees the freed chunks, by the ordering of the state. So the bitmap is read
//! with `Relaxed` here.
//!
//! A disk that is stuck must not stop the program at each event. So after the time of one thread has passed,
//! no thread waits until the drain frees a chunk.

use std::time::{Duration, Instant};

use crate::awaited::Awaited;
use crate::sync::{AtomicU32, Ordering, time_until};

/// The state: in these bits, whether threads may wait. The other bits count the turns in which the drain has
/// freed chunks.
mod state {
    /// Not before the drain frees a chunk: the time of some thread has passed.
    pub(super) const NOT_YET: u32 = 1;
    /// Never again: the region is drained no longer.
    pub(super) const NEVER: u32 = 2;
    /// One turn.
    pub(super) const TURN: u32 = 4;

    pub(super) fn may_wait(state: u32) -> bool {
        state & (NOT_YET | NEVER) == 0
    }
}

/// The longest sleep. A child that a signal handler has forked meanwhile notices then that it is one. Not
/// shorter: ten thousand threads that looked every 20 ms left no time for the drain thread.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Waiting {
    state: Awaited,
    /// The number of threads that wait.
    threads: AtomicU32,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { state: Awaited::new(0), threads: AtomicU32::new(0) }
    }

    pub(crate) fn may_wait(&self) -> bool {
        state::may_wait(self.state.load())
    }

    /// Whether a thread waited at some moment of the call.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until `is_free` returns `true`. Calls `wake` after the thread is counted.
    ///
    /// Returns `false` if `until` has passed, or if threads may not wait.
    pub(crate) fn wait(&self, until: Instant, wake: impl FnOnce(), is_free: impl Fn() -> bool) -> bool {
        self.threads.fetch_add(1, Ordering::Relaxed);
        wake();
        let found = self.wait_counted(until, is_free);
        self.threads.fetch_sub(1, Ordering::Relaxed);
        found
    }

    fn wait_counted(&self, until: Instant, is_free: impl Fn() -> bool) -> bool {
        loop {
            let state = self.state.load();
            if !state::may_wait(state) {
                return false;
            }
            if is_free() {
                return true;
            }
            let left = time_until(until);
            if left.is_zero() {
                // Not if the drain has freed a chunk since the state was loaded.
                self.state.try_change(state, state | state::NOT_YET);
            } else {
                self.state.sleep_while(state, left.min(LONGEST_SLEEP));
            }
        }
    }

    /// Wakes all threads, after chunks were freed.
    pub(crate) fn freed(&self) {
        self.state.change(|state| match state & state::NEVER {
            0 => (state & !state::NOT_YET).wrapping_add(state::TURN),
            _ => state,
        });
    }

    /// Ends all waits, now and later.
    pub(crate) fn end(&self) {
        self.state.change(|state| state | state::NEVER);
    }
}
