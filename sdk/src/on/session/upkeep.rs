//! The background work of a session's own thread: refines the clock, allocates the ring's memory ahead of its
//! use, and removes the regions that earlier crashes of this program left.
//!
//! The memory of the ring costs the kernel 0.3 to 1 ms of CPU time a MiB. So a program gets no more than it
//! uses or, for a burst to come, than its age allows: a program that ends soon pays for next to none but that
//! of the start.

use std::time::{Duration, Instant};

use hairline_shm::Region;

use crate::on::base::clock::Clock;
use crate::on::base::platform::{self, process};
use crate::on::prune::Pruning;
use crate::on::session::recall;
use crate::on::session::shared::Shared;

/// Bytes of free chunks that are allocated for a burst, in a session of age [`OLD`]. A younger one has as
/// large a part of them as it is old: so they take at most 1 % of the program's time.
const FOR_BURST: u32 = 2 << 20;
const OLD: Duration = Duration::from_millis(200);

/// Bytes of free chunks from which on a ring has as many allocated chunks that are free as are taken. A
/// smaller ring has three times as many.
const SMALL: u32 = 1 << 20;

/// A ring that overwrites is used as a whole, so all of it is allocated when the session has this age. A
/// younger one may be that of a program that ends at once.
const YOUNG: Duration = Duration::from_millis(2);

/// Bytes of the ring that a step allocates at least and at most: half of what is allocated.
const STEPS: (u32, u32) = (256 << 10, 1 << 20);

/// The time between two refinements of the clock grows by this factor.
const REFINEMENT_GROWTH: u32 = 4;

/// The longest time between two refinements of the clock.
const LONGEST_REFINEMENT: Duration = Duration::from_millis(500);

/// The session's own thread wakes up for refinements that are at most so far apart. Others wait until it is
/// awake, each second at least. Where a clock read is fast, the rate is good to a part per million by then.
const LONGEST_WOKEN_FOR: Duration = Duration::from_millis(50);

/// A refinement that the thread wakes up for is late after this many times the planned time.
const LATE: u32 = 4;

/// A refinement that the thread does not wake up for is late after this time.
const LATE_AT_LEAST: Duration = Duration::from_secs(2);

/// The state of the background work.
pub(crate) struct Upkeep {
    clock: Clock,
    started: Instant,
    last_refinement: Instant,
    /// Whether threads were to load the clock's parameters at the last refinement.
    has_interrupted: bool,
    /// `None`: the clock needs no refinement.
    refine_after: Option<Duration>,
    /// The search for the regions of dead processes. It starts when enough of the ring is allocated.
    pruning: Option<Pruning>,
}

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let (now, refine_after) = (Instant::now(), clock.first_refinement());
        Self {
            clock,
            started: now,
            last_refinement: now,
            has_interrupted: false,
            refine_after,
            pruning: None,
        }
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
        let next = next.unwrap_or(LONGEST_REFINEMENT);
        let patience = if next <= LONGEST_WOKEN_FOR { next * LATE } else { LATE_AT_LEAST };
        let interrupts = self.clock.refine(shared.clock(), next, patience);
        // A thread in the midst of a cold event may have loaded the old parameters, and overlooks the
        // interruption: a second one will find it elsewhere.
        if interrupts || self.has_interrupted {
            recall::interrupt_all(shared);
        }
        self.has_interrupted = interrupts;
    }

    fn refinement_due_in(&self) -> Option<Duration> {
        self.refine_after.map(|after| after.saturating_sub(self.last_refinement.elapsed()))
    }

    /// Returns the longest time that the session's own thread may sleep before the next upkeep.
    pub(crate) fn longest_sleep(&self) -> Duration {
        let is_early = self.refine_after.is_some_and(|after| after <= LONGEST_WOKEN_FOR);
        self.refinement_due_in().filter(|_| is_early).unwrap_or(Duration::MAX)
    }

    /// Returns the time until a ring that overwrites is allocated.
    pub(crate) fn growth_of_window_due_in(&self) -> Duration {
        YOUNG.checked_sub(self.started.elapsed()).unwrap_or(Duration::MAX)
    }

    /// Allocates more of the ring, if its age or its use demands that. Returns false when enough is allocated;
    /// then it searches for the regions of dead processes instead.
    pub(crate) fn allocate_ahead(&mut self, shared: &Shared) -> bool {
        let region = shared.region();
        if has_enough(region, self.started.elapsed()) || !region.grow(step(region)) {
            // Otherwise the start has done it: the program may close what is opened here.
            if platform::has_own_files() {
                let new = || Pruning::new(process::name(), region.backing());
                self.pruning.get_or_insert_with(new).proceed(|| shared.requests.pending().stop);
            }
            return false;
        }
        // A recording thread may want this core, and would otherwise wait for a whole time slice.
        std::thread::yield_now();
        true
    }
}

/// Returns the bytes that the next step allocates.
fn step(region: &Region) -> u32 {
    let allocated = region.allocated_chunks().saturating_mul(region.chunk_size());
    (allocated / 2).clamp(STEPS.0, STEPS.1)
}

/// Returns whether enough chunks of a region of this age are allocated.
fn has_enough(region: &Region, age: Duration) -> bool {
    if region.overwrites() {
        return age < YOUNG;
    }
    let (allocated, free) = (region.allocated_chunks(), region.free_allocated_chunks());
    let taken = allocated - free.min(allocated);
    free >= ahead(taken, region.chunk_size(), age)
}

/// Returns the number of free chunks that are to be allocated.
fn ahead(taken: u32, chunk_size: u32, age: Duration) -> u32 {
    let for_burst = u128::from(FOR_BURST) * age.min(OLD).as_micros() / OLD.as_micros();
    let for_use = taken.max((taken * 3).min(SMALL / chunk_size));
    for_use.max(for_burst as u32 / chunk_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u32 = 16 << 10;

    #[test]
    fn a_young_quiet_program_gets_no_memory_beyond_the_start() {
        let at_start = 256 << 10;
        for ms in [0, 2, 18] {
            assert!(ahead(3, CHUNK, Duration::from_millis(ms)) <= at_start / CHUNK - 3, "{ms} ms");
        }
    }

    #[test]
    fn a_program_gets_memory_for_a_burst_with_its_age() {
        let after = |ms| ahead(1, CHUNK, Duration::from_millis(ms)) * CHUNK;
        assert_eq!([50, 100, 200, 100_000].map(after), [512 << 10, 1 << 20, 2 << 20, 2 << 20]);
    }

    #[test]
    fn a_busy_program_gets_memory_with_its_use_at_any_age() {
        let taken = |chunks| ahead(chunks, CHUNK, Duration::ZERO);
        assert_eq!([5, 12, 30, 200].map(taken), [15, 36, 64, 200]);
    }
}
