//! The background work of a session's own thread: refines the clock, allocates the ring's memory ahead of its
//! use, and removes the regions that earlier crashes of this program left.

use std::time::{Duration, Instant};

use hairline_shm::Region;

use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::prune::Pruning;
use crate::on::session::shared::Shared;

/// Bytes of free chunks that are allocated ahead of their use, at least.
const AHEAD: u32 = 2 << 20;

/// Bytes of the ring that each step allocates, in some 0.3 ms.
const STEP: u32 = 1 << 20;

/// Time to the first refinement of the clock. It doubles with each refinement.
const FIRST_REFINEMENT: Duration = Duration::from_millis(20);

/// The longest time between two refinements of the clock.
const LONGEST_REFINEMENT: Duration = Duration::from_millis(500);

/// The state of the background work.
pub(crate) struct Upkeep {
    clock: Clock,
    last_refinement: Instant,
    refine_after: Duration,
    /// The search for the regions of dead processes. It starts when enough of the ring is allocated.
    pruning: Option<Pruning>,
}

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let refine_after = clock.calibrated_in().unwrap_or(FIRST_REFINEMENT);
        Self { clock, last_refinement: Instant::now(), refine_after, pruning: None }
    }

    /// Refines the clock if that is due.
    pub(crate) fn refine_clock(&mut self, shared: &Shared) {
        if self.last_refinement.elapsed() >= self.refine_after {
            let is_first = self.clock.calibrated_in().is_some();
            self.clock.refine(shared.clock());
            self.last_refinement = Instant::now();
            let next = if is_first { FIRST_REFINEMENT } else { self.refine_after * 2 };
            self.refine_after = next.min(LONGEST_REFINEMENT);
        }
    }

    /// Returns the longest time that the session's own thread may sleep: until then, each event of the session
    /// costs a call of the system's clock.
    pub(crate) fn longest_sleep(&self) -> Duration {
        self.clock.calibrated_in().unwrap_or(Duration::MAX)
    }

    /// Allocates the next [`STEP`] of the ring. Returns false when enough is allocated; then it searches for
    /// the regions of dead processes instead.
    pub(crate) fn allocate_ahead(&mut self, shared: &Shared) -> bool {
        if has_enough(shared.region()) || !shared.region().grow(STEP) {
            self.pruning.get_or_insert_with(|| Pruning::new(&process::name())).proceed();
            return false;
        }
        // A recording thread may want this core, and would otherwise wait for a whole time slice.
        std::thread::yield_now();
        true
    }
}

/// Whether enough chunks are allocated: as many are free as are taken, or all. A ring that overwrites will be
/// used as a whole.
fn has_enough(region: &Region) -> bool {
    let (allocated, free) = (region.allocated_chunks(), region.free_allocated_chunks());
    let ahead = (AHEAD / region.chunk_size()).max(allocated - free.min(allocated));
    !region.overwrites() && free >= ahead
}
