//! Takes chunks back from idle threads. Only a session's own thread does so: the drain thread, or the flight
//! recorder's.

#![allow(unsafe_code)] // `ask` and `take`

use std::time::Duration;

use hairline_shm::{Lease, Recall, all_leases, fence_all_threads};

use crate::on::session::room;
use crate::on::session::shared::Shared;

/// A thread is idle that has recorded nothing for so long.
pub(crate) const IDLE: Duration = Duration::from_millis(1);

/// Threads that are asked at a time: each fence interrupts all threads that run.
const LOOK: usize = 256;

/// Where the search goes on, and what came of the last one.
#[derive(Debug, Default)]
pub(crate) struct Recaller {
    /// Leases that were looked at last: no thread is asked again before all others were.
    hand: usize,
    /// The kernel puts no fence into other threads. So nobody is asked: that alone sends a thread the slow
    /// way once.
    has_no_fence: bool,
    asked: Vec<&'static Lease>,
}

/// The leases of all threads.
fn leases() -> impl Iterator<Item = &'static Lease> {
    // SAFETY: this file calls nothing but `ask` and `take` on them.
    unsafe { all_leases() }
}

impl Recaller {
    /// Takes up to `wanted` chunks back from threads that have been idle; where all are busy and `is_short`,
    /// some from any thread, so that those without a chunk have their turn. Returns how many.
    pub(crate) fn recall(&mut self, shared: &Shared, wanted: u32, is_short: bool) -> usize {
        match self.recall_from(shared, wanted, IDLE) {
            0 if is_short => self.recall_from(shared, wanted.div_ceil(8), Duration::ZERO),
            taken => taken,
        }
    }

    fn recall_from(&mut self, shared: &Shared, wanted: u32, idle: Duration) -> usize {
        let idle = u64::try_from(idle.as_nanos()).unwrap_or(0);
        // Where the ring overwrites, a thread with open slices repeats them from the chunk that it has. Where
        // it does not, their ends may come late.
        let empty_room = (!shared.has_late_chunk()).then(|| room::empty_room(shared.region()));
        let recall = Recall {
            region: shared.region(),
            epoch: shared.epoch(),
            idle_since: shared.clock().load().now().saturating_sub(idle),
            empty_room,
        };
        self.take_from_all(&recall, wanted as usize)
    }

    /// Goes once round all threads.
    fn take_from_all(&mut self, recall: &Recall<'_>, wanted: usize) -> usize {
        let (mut taken, mut looked) = (0, 0);
        self.asked.clear();
        let from = self.hand;
        for lease in leases().skip(from).chain(leases().take(from)) {
            if taken + self.asked.len() >= wanted || self.has_no_fence {
                break;
            }
            looked += 1;
            if lease.ask(recall) {
                self.asked.push(lease);
            }
            if self.asked.len() == LOOK {
                taken += self.take_from_asked(recall);
            }
        }
        taken += self.take_from_asked(recall);
        let leases = leases().count().max(1);
        self.hand = (from + looked) % leases;
        taken
    }

    fn take_from_asked(&mut self, recall: &Recall<'_>) -> usize {
        if self.asked.is_empty() {
            return 0;
        }
        if !fence_all_threads() {
            self.has_no_fence = true;
            self.asked.clear(); // they settle at their next event
            return 0;
        }
        // SAFETY: each was asked for this `recall`, and the fence has succeeded.
        self.asked.drain(..).filter(|lease| unsafe { lease.take(recall) }).count()
    }
}
