//! What waits for the builder of slices to say which slice it belongs to.

use crate::args::OwnLeaf;
use crate::flows::{Change, Step};

/// A step of a flow whose slice is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPoint {
    pub(crate) flow: u64,
    pub(crate) time: i64,
    pub(crate) event: u32,
    pub(crate) change: Change,
}

/// What an end adds to its slice.
#[derive(Debug, Default)]
pub(crate) struct LateEnd {
    pub(crate) leaves: Vec<OwnLeaf>,
    pub(crate) flows: Vec<FlowPoint>,
}

/// The limit for the arguments of ends whose begin is not known yet, in bytes.
pub(crate) const MOST_LATE: usize = 32 << 20;
/// The limit for steps of flows that wait for their slice, and for those that wait for the next one.
pub(crate) const MOST_POINTS: usize = 1 << 20;

impl FlowPoint {
    /// The step, at a slice.
    pub(crate) fn at(&self, slice: u32, is_chosen: bool) -> Step {
        let Self { flow, time, event, change } = *self;
        Step { flow, time, event, at: slice, change, is_chosen }
    }
}

impl LateEnd {
    /// What it takes in memory, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(OwnLeaf::bytes).sum();
        128 + leaves + size_of_val(&self.flows[..])
    }
}
