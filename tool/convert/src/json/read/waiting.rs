//! Complete slices that wait for an outer one.

use std::cmp::Reverse;

use crate::json::read::current::Current;
use crate::{EventKind, TrackId};

/// The waiting slices of a thread, by begin.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) slices: Vec<Held>,
    latest: i64,
    pub(super) is_unsorted: bool,
    /// The number of slices so far that were in the order of their begins.
    pub(super) in_order: u32,
}

impl Waiting {
    /// Notes the begin of a slice.
    pub(super) fn add(&mut self, begin: i64) {
        self.is_unsorted |= begin < self.latest;
        self.latest = begin;
        self.in_order = self.in_order.saturating_add(1);
    }

    /// Whether there was one slice, which waits no longer.
    pub(super) fn has_had_one(&self) -> bool {
        self.in_order == 1 && self.slices.is_empty()
    }
}

/// An event that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) content: Current,
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    /// The offset of its object in the input.
    pub(super) position: u64,
}

impl Held {
    /// The place in the order: by begin, of equal begins the longest first.
    pub(super) fn place(&self) -> (i64, Reverse<i64>) {
        (self.time, Reverse(self.duration()))
    }

    pub(super) fn duration(&self) -> i64 {
        if let EventKind::Complete { duration } = self.kind { duration } else { 0 }
    }
}
