//! The slices of the threads, as far as later events of their thread need them.
//!
//! A trace may have millions of threads with one slice each. So a thread keeps only the times of its first
//! slice, and all else once it has another event.

use std::cmp::Reverse;

use crate::json::read::rounded;
use crate::json::read::waiting::Waiting;
use crate::neighbours::{Neighbours, Span};
use crate::starts::ThreadStarts;
use crate::ties::{Rank, Ties};
use crate::{ByTrack, TrackId};

/// The place of a complete slice among those of its time: [`Order`](super::order::Order) puts the longest
/// first.
pub(super) const COMPLETE: Rank = Rank::Complete(Reverse(0));

/// The threads, by the number of their track.
#[derive(Debug, Default)]
pub(super) struct Threads(ByTrack<Slot>);

#[derive(Debug, Default)]
enum Slot {
    #[default]
    None,
    /// One slice and no other event.
    Once {
        begin: i64,
        end: i64,
    },
    Thread(Box<Thread>),
}

#[derive(Debug, Default)]
struct Thread {
    ties: Ties,
    slices: Option<Box<Slices>>,
}

/// The complete slices of a thread.
#[derive(Debug, Default)]
struct Slices {
    waiting: Waiting,
    placed: Neighbours,
    starts: ThreadStarts,
}

impl Threads {
    /// Adds an event of a thread. Returns whether importers read it before an earlier one with its time.
    pub(super) fn ties(&mut self, track: TrackId, time: i64, rank: Rank) -> bool {
        self.thread(track).ties.add(time, rank)
    }

    /// The slices of a thread that wait.
    pub(super) fn waiting(&mut self, track: TrackId) -> &mut Waiting {
        &mut self.thread(track).slices.get_or_insert_default().waiting
    }

    /// As `waiting`, of a thread that has had complete slices, and another event beside the first of them.
    pub(super) fn waiting_again(&mut self, track: TrackId) -> Option<&mut Waiting> {
        match self.0.get_mut(track) {
            Some(Slot::Thread(thread)) => thread.slices.as_mut().map(|slices| &mut slices.waiting),
            _ => None,
        }
    }

    /// The place of a complete slice that waits no longer, and whether it encloses an earlier one with the
    /// same begin.
    pub(super) fn place(&mut self, track: TrackId, begin: i64, end: i64) -> (Span, bool) {
        let thread = self.thread(track);
        let placed = thread.slices.get_or_insert_default().place(begin, end);
        if thread.has_one_slice(begin) {
            *self.0.at(track) = Slot::Once { begin, end };
        }
        placed
    }

    fn thread(&mut self, track: TrackId) -> &mut Thread {
        let slot = self.0.at(track);
        match *slot {
            Slot::Thread(_) => {}
            Slot::None => *slot = Slot::Thread(Box::default()),
            Slot::Once { begin, end } => *slot = Slot::Thread(Thread::of_one_slice(begin, end)),
        }
        let Slot::Thread(thread) = slot else { unreachable!("it became one") };
        thread
    }
}

impl Thread {
    #[cold]
    fn of_one_slice(begin: i64, end: i64) -> Box<Self> {
        let mut thread = Box::<Self>::default();
        thread.ties.add(begin, COMPLETE);
        let slices = thread.slices.get_or_insert_default();
        slices.waiting.add(begin);
        slices.place(begin, end);
        thread
    }

    /// Whether this is the state after one slice, which is over.
    fn has_one_slice(&self, begin: i64) -> bool {
        let is_one = self.slices.as_ref().is_some_and(|slices| slices.waiting.has_had_one());
        is_one && self.ties.is_of_slice(begin, COMPLETE)
    }
}

impl Slices {
    fn place(&mut self, begin: i64, end: i64) -> (Span, bool) {
        let (begin, end) = rounded::place(&mut self.placed, (begin, end));
        ((begin, end), self.starts.is_late(begin, end.saturating_sub(begin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_one_slice_is_as_after_that_slice_and_holds_its_times_only() {
        let (mut threads, track) = (Threads::default(), TrackId(3));
        assert!(!threads.ties(track, 10, COMPLETE));
        threads.waiting(track).add(10);
        assert_eq!(threads.place(track, 10, 20), ((10, 20), false));
        assert!(matches!(threads.0.get(track), Some(Slot::Once { begin: 10, end: 20 })));
        assert!(size_of::<Slot>() <= 24, "there may be millions of threads");
        // The end of the slice around it, which is rounded, and one that comes too late.
        assert_eq!(threads.place(track, 15, 21), ((15, 20), false));
        assert_eq!(threads.place(track, 10, 30), ((10, 30), true));
        assert!(threads.ties(track, 10, Rank::End));
    }
}
