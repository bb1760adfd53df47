//! The background work of a session's own thread: refines the clock, allocates the ring's memory ahead of its
//! use, and removes the regions that earlier crashes of this program left.
//!
//! A program that ends at once pays for none of the ring's memory but that of the start.

use std::time::{Duration, Instant};

use hairline_shm::Region;

use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::prune::Pruning;
use crate::on::session::recall;
use crate::on::session::shared::Shared;

/// Bytes of free chunks that are allocated ahead of their use, at least.
const AHEAD: u32 = 2 << 20;

/// Bytes of the ring that each step allocates, in some 0.3 ms.
const STEP: u32 = 1 << 20;

/// A session that is younger than this may be that of a program that ends at once. Until then the ring has
/// the memory of its start, unless threads take a quarter of that.
const YOUNG: Duration = Duration::from_millis(2);

/// The time between two refinements of the clock grows by this factor.
const REFINEMENT_GROWTH: u32 = 4;

/// The longest time between two refinements of the clock.
const LONGEST_REFINEMENT: Duration = Duration::from_millis(500);

/// The session's own thread wakes up for refinements that are at most so far apart. Others wait until it is
/// awake: by then the rate is good to a part per million.
const LONGEST_WOKEN_FOR: Duration = Duration::from_millis(50);

/// The state of the background work.
pub(crate) struct Upkeep {
    clock: Clock,
    started: Instant,
    /// Whether the ring gets memory ahead of its use.
    allocates: bool,
    last_refinement: Instant,
    /// `None`: the clock needs no refinement.
    refine_after: Option<Duration>,
    /// The search for the regions of dead processes. It starts when enough of the ring is allocated.
    pruning: Option<Pruning>,
}

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let (now, refine_after) = (Instant::now(), clock.first_refinement());
        Self { clock, started: now, allocates: false, last_refinement: now, refine_after, pruning: None }
    }

    /// Refines the clock if that is due. Threads with parameters that are too old load the new ones at their
    /// next events.
    pub(crate) fn refine_clock(&mut self, shared: &Shared) {
        if self.refinement_due_in().is_none_or(|due| !due.is_zero()) {
            return;
        }
        let next = self.refine_after.map(|after| (after * REFINEMENT_GROWTH).min(LONGEST_REFINEMENT));
        self.refine_after = next;
        self.last_refinement = Instant::now();
        if self.clock.refine(shared.clock(), next.unwrap_or(LONGEST_REFINEMENT)) {
            recall::interrupt_all(shared);
        }
    }

    fn refinement_due_in(&self) -> Option<Duration> {
        self.refine_after.map(|after| after.saturating_sub(self.last_refinement.elapsed()))
    }

    /// Returns the longest time that the session's own thread may sleep before the next upkeep.
    pub(crate) fn longest_sleep(&self) -> Duration {
        let is_early = self.refine_after.is_some_and(|after| after <= LONGEST_WOKEN_FOR);
        let refinement = self.refinement_due_in().filter(|_| is_early);
        let growth = (!self.allocates).then(|| YOUNG.saturating_sub(self.started.elapsed()));
        refinement.into_iter().chain(growth).min().unwrap_or(Duration::MAX)
    }

    /// Allocates the next [`STEP`] of the ring. Returns false when enough is allocated; then it searches for
    /// the regions of dead processes instead.
    pub(crate) fn allocate_ahead(&mut self, shared: &Shared) -> bool {
        let region = shared.region();
        self.allocates |= self.started.elapsed() >= YOUNG || is_busy(region);
        if !self.allocates || has_enough(region) || !region.grow(STEP) {
            let pruning =
                self.pruning.get_or_insert_with(|| Pruning::new(&process::name(), region.backing()));
            pruning.proceed(|| shared.requests.pending().stop);
            return false;
        }
        // A recording thread may want this core, and would otherwise wait for a whole time slice.
        std::thread::yield_now();
        true
    }
}

/// Whether a quarter of the allocated chunks is taken, in a ring that is drained.
fn is_busy(region: &Region) -> bool {
    let (allocated, free) = (region.allocated_chunks(), region.free_allocated_chunks());
    !region.overwrites() && free <= allocated / 4 * 3
}

/// Whether enough chunks are allocated: as many are free as are taken, or all. A ring that overwrites will be
/// used as a whole.
fn has_enough(region: &Region) -> bool {
    let (allocated, free) = (region.allocated_chunks(), region.free_allocated_chunks());
    let ahead = (AHEAD / region.chunk_size()).max(allocated - free.min(allocated));
    !region.overwrites() && free >= ahead
}
