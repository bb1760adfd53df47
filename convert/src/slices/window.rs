//! Sorts events that are out of order by some thousand events.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::slices::entry::Entry;

/// The limit for waiting events. The threads that write to one track follow each other in the file, each with
/// its events since its previous chunk.
const LONGEST: usize = 1 << 16;

/// The waiting events, the earliest first. Events of equal time stay in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Window {
    waiting: BinaryHeap<Waiting>,
    came: u64,
}

#[derive(Debug)]
struct Waiting {
    entry: Entry,
    came: u64,
}

impl Waiting {
    fn order(&self) -> (i64, u64) {
        (self.entry.time, self.came)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order()) // a heap's maximum is popped first
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Waiting {}

impl Window {
    /// Adds an event. Returns the earliest one if the window is full.
    pub(super) fn push(&mut self, entry: Entry) -> Option<Entry> {
        self.came += 1;
        self.waiting.push(Waiting { entry, came: self.came });
        if self.waiting.len() > LONGEST { self.pop() } else { None }
    }

    /// Removes the earliest event.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.waiting.pop().map(|waiting| waiting.entry)
    }
}
