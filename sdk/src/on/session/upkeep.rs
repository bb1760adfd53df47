//! The background work of a session's own thread: refines the clock, makes the ring's pages present, and
//! removes the regions that earlier crashes of this program left.

use std::time::{Duration, Instant};

use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::recover::Pruning;
use crate::on::session::shared::Shared;

/// Bytes of the ring whose pages are made present during the session's start, which waits for the clock's
/// calibration anyway.
pub(crate) const POPULATED_AT_START: usize = 16 << 20;

/// Bytes of the ring that each further step makes present, in some 0.3 ms.
const POPULATE_STEP: usize = 1 << 20;

/// Time to the first refinement of the clock. It doubles with each refinement.
const FIRST_REFINEMENT: Duration = Duration::from_millis(20);

/// The longest time between two refinements of the clock.
const LONGEST_REFINEMENT: Duration = Duration::from_millis(500);

/// The state of the background work.
pub(crate) struct Upkeep {
    clock: Clock,
    last_refinement: Instant,
    refine_after: Duration,
    /// Bytes of the ring that are present.
    populated: usize,
    /// The search for the regions of dead processes. It starts when the whole ring is present.
    pruning: Option<Pruning>,
}

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last_refinement: Instant::now(),
            refine_after: FIRST_REFINEMENT,
            populated: POPULATED_AT_START,
            pruning: None,
        }
    }

    /// Refines the clock if that is due.
    pub(crate) fn refine_clock(&mut self, shared: &Shared) {
        if self.last_refinement.elapsed() >= self.refine_after {
            self.clock.refine(shared.clock());
            self.last_refinement = Instant::now();
            self.refine_after = (self.refine_after * 2).min(LONGEST_REFINEMENT);
        }
    }

    /// Makes the next [`POPULATE_STEP`] of the ring present. Returns false when all of the ring is present;
    /// then it searches for the regions of dead processes instead.
    pub(crate) fn populate(&mut self, shared: &Shared) -> bool {
        let from = self.populated;
        if from >= shared.region().len() {
            self.pruning.get_or_insert_with(|| Pruning::new(&process::name())).proceed();
            return false;
        }
        self.populated += POPULATE_STEP;
        shared.region().populate(from..self.populated);
        // A recording thread may want this core, and would otherwise wait for a whole time slice.
        std::thread::yield_now();
        true
    }
}
