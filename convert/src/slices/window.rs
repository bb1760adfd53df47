//! Puts in order what comes out of order by some thousand events.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::slices::entry::Entry;

/// Events that wait for others which may be earlier. Threads that write to one track are in the file one after the other, each with
/// what it wrote since the last time; those events are few among all.
const LONGEST: usize = 1 << 16;

/// What waits, the earliest first; of one moment, what came first.
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
        other.order().cmp(&self.order()) // the heap's greatest is the earliest
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
    /// Takes one, and gives the earliest if there are too many.
    pub(super) fn push(&mut self, entry: Entry) -> Option<Entry> {
        self.came += 1;
        self.waiting.push(Waiting { entry, came: self.came });
        if self.waiting.len() > LONGEST { self.pop() } else { None }
    }

    /// The earliest.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.waiting.pop().map(|waiting| waiting.entry)
    }
}
