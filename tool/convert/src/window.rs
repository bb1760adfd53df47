//! Sorts events that are out of order by some thousand events.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The limit for waiting events. The threads that write to one track follow each other in the file, each with
/// its events since its previous chunk.
pub(crate) const LONGEST: usize = 1 << 16;

/// An event with a time.
pub(crate) trait Timed {
    fn time(&self) -> i64;
}

/// The waiting events, the earliest first. Events of equal time stay in order of arrival.
#[derive(Debug)]
pub(crate) struct Window<E> {
    waiting: BinaryHeap<Waiting<E>>,
    came: u64,
}

#[derive(Debug)]
struct Waiting<E> {
    event: E,
    came: u64,
}

impl<E: Timed> Waiting<E> {
    fn order(&self) -> (i64, u64) {
        (self.event.time(), self.came)
    }
}

impl<E: Timed> Ord for Waiting<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order()) // a heap's maximum is popped first
    }
}

impl<E: Timed> PartialOrd for Waiting<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E: Timed> PartialEq for Waiting<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<E: Timed> Eq for Waiting<E> {}

impl<E: Timed> Default for Window<E> {
    fn default() -> Self {
        Self { waiting: BinaryHeap::new(), came: 0 }
    }
}

impl<E: Timed> Window<E> {
    /// Adds an event. The caller removes the earliest one if more than [`LONGEST`] wait.
    pub(crate) fn push(&mut self, event: E) {
        self.came += 1;
        self.waiting.push(Waiting { event, came: self.came });
    }

    /// Removes the earliest event.
    pub(crate) fn pop(&mut self) -> Option<E> {
        self.waiting.pop().map(|waiting| waiting.event)
    }

    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
