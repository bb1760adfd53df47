//! How many messages are in a bounded channel, as a counter.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use hairline::__tasks::{Awaited, DepthCounter};

/// The counter is off by less than the capacity divided by this, and is right where the channel is empty or
/// full.
const STEPS: usize = 8;

/// What is known of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) awaited: Awaited,
    capacity: usize,
    counter: DepthCounter,
    /// The last value in the trace, and above that the number of the session; 0 if there is none.
    shown: AtomicU64,
    /// The changes that nobody has looked at. Whoever makes the first one looks, and records: one at a time,
    /// so that the values are in their order.
    changes: AtomicU64,
    /// Nobody tells what is received.
    is_blind: AtomicBool,
}

impl Channel {
    pub(super) fn new(awaited: Awaited, capacity: usize) -> Self {
        let (shown, changes) = (AtomicU64::new(0), AtomicU64::new(0));
        let (counter, is_blind) = (DepthCounter::new(), AtomicBool::new(false));
        Self { awaited, capacity, counter, shown, changes, is_blind }
    }

    /// From now on nobody tells what is received: if the trace has a value, the last one is 0.
    pub(super) fn set_blind(&self) {
        self.is_blind.store(true, Relaxed);
        self.changed(|| usize::MAX);
    }

    /// Call it when a message may have come or gone. `free`: the number of places that are free now.
    #[inline]
    pub(super) fn changed(&self, free: impl Fn() -> usize) {
        let session = hairline::__tasks::session();
        if session != 0 {
            self.look(session, &free);
        }
    }

    /// A thread that finds another one looking leaves it a mark, and that one looks again: AcqRel, so that it
    /// sees the change which the mark is for. So the last value in the trace is the last one.
    fn look(&self, session: u32, free: &impl Fn() -> usize) {
        if self.changes.fetch_add(1, AcqRel) != 0 {
            return;
        }
        let mut seen = 1;
        loop {
            self.show(session, self.capacity.saturating_sub(free()));
            match self.changes.compare_exchange(seen, 0, AcqRel, Acquire) {
                Ok(_) => return,
                Err(more) => seen = more,
            }
        }
    }

    /// Only who looks calls this.
    fn show(&self, session: u32, depth: usize) {
        let shown = self.shown.load(Relaxed);
        let is_of_session = shown >> 32 == u64::from(session);
        let is_blind = self.is_blind.load(Relaxed);
        let depth = if is_blind { 0 } else { depth };
        if is_of_session && self.is_near(shown, depth) || is_blind && !is_of_session {
            return;
        }
        let is_recorded = self.counter.record(&self.awaited, depth);
        let now = if is_recorded { u64::from(session) << 32 | u64::from(low_half(depth)) } else { 0 };
        self.shown.store(now, Relaxed);
    }

    fn is_near(&self, shown: u64, depth: usize) -> bool {
        let shown = shown & u64::from(u32::MAX);
        let depth = u64::from(low_half(depth));
        let is_end = depth == 0 || depth == u64::from(low_half(self.capacity));
        shown == depth || !is_end && shown.abs_diff(depth) < (self.capacity / STEPS) as u64
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
        let large = Channel::new(Awaited::named("channel", "d"), 64);
        let far = |shown, now| !large.is_near(shown, now);
        assert_eq!(
            [far(0, 0), far(0, 7), far(0, 8), far(1, 0), far(60, 64), far(64, 63)],
            [false, false, true, true, true, false]
        );
        let small = Channel::new(Awaited::named("channel", "d"), 4);
        assert_eq!([small.is_near(0, 1), small.is_near(1, 1), small.is_near(2, 1)], [false, true, false]);
    }
}
