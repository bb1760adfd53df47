//! What a session's own thread does beside its work: it keeps the clock true and the ring's pages present, and clears away what
//! crashes of this program have left.

use std::time::{Duration, Instant};

use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::recover::Pruning;
use crate::on::session::shared::Shared;

/// Bytes of the ring whose pages are made present while the session starts, where the clock's calibration has to be
/// waited for anyway; and how many at a time are added after that, some 0.3 ms.
pub(crate) const POPULATED_AT_START: usize = 16 << 20;
const POPULATE: usize = 1 << 20;

/// Time to the first refinement of the clock, after which it doubles, and the longest between two.
const REFINE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

pub(crate) struct Upkeep {
    clock: Clock,
    refined: Instant,
    refine_after: Duration,
    populated: usize,
    /// The look at regions of earlier processes, once the ring is present.
    pruning: Option<Pruning>,
}

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            refined: Instant::now(),
            refine_after: REFINE.0,
            populated: POPULATED_AT_START,
            pruning: None,
        }
    }

    /// Refines the clock, when it is time.
    pub(crate) fn refine_clock(&mut self, shared: &Shared) {
        if self.refined.elapsed() >= self.refine_after {
            self.clock.refine(&shared.clock);
            self.refined = Instant::now();
            self.refine_after = (self.refine_after * 2).min(REFINE.1);
        }
    }

    /// Makes some more of the ring present. False when all of it is.
    pub(crate) fn populate(&mut self, shared: &Shared) -> bool {
        let from = self.populated;
        if from >= shared.region.len() {
            self.pruning.get_or_insert_with(|| Pruning::new(&process::name())).proceed();
            return false;
        }
        self.populated += POPULATE;
        shared.region.populate(from..self.populated);
        // A thread that records may want this core, and would otherwise wait for a whole time slice.
        std::thread::yield_now();
        true
    }
}
