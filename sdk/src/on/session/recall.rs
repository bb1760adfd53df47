//! Recalls chunks from idle threads.
//!
//! Only the session's own thread does so: the drain thread, or the recorder thread of a flight recorder.

#![allow(unsafe_code)] // `ask` and `take`

use std::time::Duration;

use hairline_shm::{Lease, Recall, all_leases, fence_all_threads};

use crate::on::session::room;
use crate::on::session::shared::Shared;

/// A thread that has recorded nothing for this time is idle.
pub(crate) const IDLE: Duration = Duration::from_millis(1);

/// The most threads that are asked before one fence. Each fence interrupts all threads that run.
const MAX_ASKED: usize = 256;

/// The state between two recalls.
#[derive(Debug, Default)]
pub(crate) struct Recaller {
    /// The index of the next lease. No thread is asked again before all others were asked.
    next: usize,
    /// Whether the kernel cannot fence other threads. Then no thread is asked, because the question alone
    /// sends the thread's next event to the cold path.
    has_no_fence: bool,
    asked: Vec<&'static Lease>,
}

/// The leases of all threads.
fn leases() -> impl Iterator<Item = &'static Lease> {
    // SAFETY: this file calls nothing but `ask`, `take` and `interrupt` on them.
    unsafe { all_leases() }
}

/// Sends the next event of each thread to the cold path, where it loads the clock's newest parameters.
pub(crate) fn interrupt_all(shared: &Shared) {
    leases().for_each(|lease| lease.interrupt(shared.epoch().get()));
}

impl Recaller {
    /// Recalls up to `wanted` chunks from idle threads. Returns the number of recalled chunks.
    pub(crate) fn recall_idle(&mut self, shared: &Shared, wanted: u32) -> usize {
        self.recall_from(shared, wanted, IDLE)
    }

    /// Like [`recall_idle`](Self::recall_idle). If no thread is idle, recalls up to an eighth of `wanted`
    /// from any threads that are between two events, so that threads without a chunk get their turn.
    pub(crate) fn recall_any(&mut self, shared: &Shared, wanted: u32) -> usize {
        match self.recall_from(shared, wanted, IDLE) {
            0 => self.recall_from(shared, wanted.div_ceil(8), Duration::ZERO),
            recalled => recalled,
        }
    }

    fn recall_from(&mut self, shared: &Shared, wanted: u32, idle: Duration) -> usize {
        let idle = u64::try_from(idle.as_nanos()).unwrap_or(0);
        // Without a chunk for late ends, only threads without open slices lose their chunks: a late end has
        // no place to go to, and in a ring that overwrites, a thread repeats its open slices from its chunk.
        let empty_room = (!shared.late_ends.has_chunk()).then(|| room::empty_room(shared.region()));
        let recall = Recall {
            region: shared.region(),
            epoch: shared.epoch().get(),
            idle_since: shared.now().saturating_sub(idle),
            empty_room,
        };
        self.take_from_all(&recall, wanted as usize)
    }

    /// Asks all threads once, until `wanted` chunks are recalled. Returns their number.
    fn take_from_all(&mut self, recall: &Recall<'_>, wanted: usize) -> usize {
        let (mut taken, mut visited) = (0, 0);
        self.asked.clear();
        let from = self.next;
        for lease in leases().skip(from).chain(leases().take(from)) {
            if taken + self.asked.len() >= wanted || self.has_no_fence {
                break;
            }
            visited += 1;
            if lease.ask(recall) {
                self.asked.push(lease);
            }
            if self.asked.len() == MAX_ASKED {
                taken += self.take_from_asked(recall);
            }
        }
        taken += self.take_from_asked(recall);
        let leases = leases().count().max(1);
        self.next = (from + visited) % leases;
        taken
    }

    /// Recalls the chunks of the asked threads that are still idle. Returns their number.
    fn take_from_asked(&mut self, recall: &Recall<'_>) -> usize {
        if self.asked.is_empty() {
            return 0;
        }
        if !fence_all_threads() {
            self.has_no_fence = true;
            self.asked.clear(); // these threads settle at their next events
            return 0;
        }
        // SAFETY: each thread was asked for this `recall`, and the fence has succeeded since.
        self.asked.drain(..).filter(|lease| unsafe { lease.take(recall) }).count()
    }
}
