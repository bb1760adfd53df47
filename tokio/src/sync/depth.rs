//! How many messages are in a bounded channel, as a counter.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hairline::__tasks::OwnCounter;

/// The counter is off by less than the capacity divided by this, and is right where the channel is empty or
/// full.
const STEPS: usize = 8;

/// The name of a channel, and of its counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Given(&'static str),
    MadeAt(&'static Location<'static>),
}

/// The counter of a channel.
#[derive(Debug)]
pub(super) struct Depth {
    name: Name,
    capacity: usize,
    counter: OwnCounter,
    /// The last value in the trace, and above that the number of the session.
    shown: AtomicU64,
    /// Nobody tells what is received.
    is_blind: AtomicBool,
}

impl Depth {
    pub(super) fn new(name: Name, capacity: usize) -> Self {
        let (shown, is_blind) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { name, capacity, counter: OwnCounter::new(), shown, is_blind }
    }

    /// From now on nothing is recorded.
    pub(super) fn set_blind(&self) {
        self.is_blind.store(true, Relaxed);
    }

    /// Call it when a message has come or gone. `free`: the number of places that are free now.
    #[inline]
    pub(super) fn changed(&self, free: impl Fn() -> usize) {
        let session = hairline::__tasks::session();
        if session != 0 {
            self.show(session, &free);
        }
    }

    /// Another thread may change the depth after this one has looked at it, and record it before. So the
    /// thread that records looks again: the last value in the trace is the last one. Relaxed: nothing but the
    /// order of the changes of each atomic is needed.
    fn show(&self, session: u32, free: &impl Fn() -> usize) {
        /// If others go on to change it, they record it too.
        const MOST: usize = 8;
        for _ in 0..MOST {
            let depth = self.capacity.saturating_sub(free());
            let shown = self.shown.load(Relaxed);
            if self.is_blind.load(Relaxed) || shown >> 32 == u64::from(session) && self.is_near(shown, depth)
            {
                return;
            }
            let now = u64::from(session) << 32 | u64::from(low_half(depth));
            if self.shown.compare_exchange(shown, now, Relaxed, Relaxed).is_ok() {
                self.counter.record(self.name, "messages", depth);
            }
        }
    }

    fn is_near(&self, shown: u64, depth: usize) -> bool {
        let shown = shown & u64::from(u32::MAX);
        let depth = u64::from(low_half(depth));
        let is_end = depth == 0 || depth == u64::from(low_half(self.capacity));
        shown == depth || !is_end && shown.abs_diff(depth) < (self.capacity / STEPS) as u64
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => write!(f, "depth: {name}"),
            Self::MadeAt(place) => write!(f, "depth: {}:{}", place.file(), place.line()),
        }
    }
}

fn low_half(depth: usize) -> u32 {
    u32::try_from(depth).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_if_it_is_an_eighth_of_the_capacity_or_leads_to_an_end() {
        let depth = Depth::new(Name::Given("d"), 64);
        let far = |shown, now| !depth.is_near(shown, now);
        assert_eq!(
            [far(0, 0), far(0, 7), far(0, 8), far(1, 0), far(60, 64), far(64, 63)],
            [false, false, true, true, true, false]
        );
        let small = Depth::new(Name::Given("d"), 4);
        assert_eq!([small.is_near(0, 1), small.is_near(1, 1), small.is_near(2, 1)], [false, true, false]);
    }
}
