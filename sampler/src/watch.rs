//! Slices that are watched: a thread that is still in one at its deadline takes a sample of itself.
//!
//! ```text
//!  a thread begins a slice: it claims a place            begin: no lock, no system call
//!  the watcher's thread looks at all places              look: asks the thread of one that is due, by a signal
//!  the thread's handler takes the sample                 only if the slice is still open
//!  the thread ends the slice: the place is free          end
//! ```
//!
//! # Who may change a place
//!
//! | state | next |
//! |---|---|
//! | free | claimed, by any thread |
//! | claimed | a deadline, by the same thread |
//! | a deadline | due, by the watcher; free, by the thread that ends the slice, and by a later session |
//! | due | taken, by the handler on the slice's thread; free, as above, and by the watcher without the thread |
//! | taken | free, as above |
//!
//! # Orderings
//!
//! 1. `begin` stores the deadline (SeqCst), and `look` loads it: it sees the thread and the times.
//! 2. `begin` stores the deadline and then loads `sleeps`. `look` stores `sleeps` and then loads the
//!    deadlines. All are SeqCst: either the watcher sees the deadline, or `begin` sees that it sleeps.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::ring::{Note, Ring};

/// The slices that are watched at a time. More have no sample at their deadline.
const PLACES: usize = 256;

/// The places at which a thread looks for a free one.
const LOOKS: usize = 16;

const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const DUE: u64 = 2;
const TAKEN: u64 = 3;

/// The shortest time between two looks for new slices, in ns.
const SHORTEST: u64 = 500_000;

#[derive(Debug)]
struct Place {
    /// One of the states above, or the deadline: `CLOCK_BOOTTIME`, in ns.
    state: AtomicU64,
    tid: AtomicU32,
    begun: AtomicU64,
    tag: AtomicU64,
}

impl Place {
    fn is(&self, tid: u32) -> bool {
        self.tid.load(Ordering::Relaxed) == tid
    }
}

/// The slices of this process that are watched.
#[derive(Debug)]
pub struct Watch {
    places: [Place; PLACES],
    ring: &'static Ring,
    /// The places that are due, or are about to be.
    due: AtomicU32,
    /// Whether the watcher sleeps until it is woken.
    sleeps: AtomicBool,
    /// The shortest limit so far, in ns.
    shortest: AtomicU64,
    /// Slices without a place.
    without: AtomicU64,
}

/// A slice that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched(u16);

impl Watched {
    /// No slice.
    pub const NONE: Self = Self(u16::MAX);
}

/// What the watcher does until its next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It looks again after so many ns.
    After(u64),
    /// It sleeps until [`Watch::begin`] says that it is to be woken.
    WhenWoken,
}

impl Watch {
    /// Creates a watch without slices, whose samples go to `ring`.
    pub(crate) fn new(ring: &'static Ring) -> Self {
        let place = || Place {
            state: AtomicU64::new(FREE),
            tid: AtomicU32::new(0),
            begun: AtomicU64::new(0),
            tag: AtomicU64::new(0),
        };
        Self {
            places: std::array::from_fn(|_| place()),
            ring,
            due: AtomicU32::new(0),
            sleeps: AtomicBool::new(false),
            shortest: AtomicU64::new(u64::MAX),
            without: AtomicU64::new(0),
        }
    }

    /// Notes that the calling thread `tid` has begun a slice at `now`, which is slow after `limit` ns. The
    /// sample's note is the time at which it is taken, `tag` with the thread's id in its lower half, and `now`.
    /// Returns also whether the watcher is to be woken.
    #[must_use]
    pub fn begin(&self, tid: u32, now: u64, limit: u64, tag: u64) -> (Watched, bool) {
        let first = tid as usize;
        let free = |n: &usize| {
            let state = &self.places[n % PLACES].state;
            state.load(Ordering::Relaxed) == FREE
                && state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(at) = (first..first + LOOKS).find(free).map(|n| n % PLACES) else {
            self.without.fetch_add(1, Ordering::Relaxed);
            return (Watched::NONE, false);
        };
        let place = &self.places[at];
        place.tid.store(tid, Ordering::Relaxed);
        place.begun.store(now, Ordering::Relaxed);
        place.tag.store(tag, Ordering::Relaxed);
        let is_shortest = limit < self.shortest.load(Ordering::Relaxed)
            && limit < self.shortest.fetch_min(limit, Ordering::Relaxed);
        place.state.store(now.saturating_add(limit).max(TAKEN + 1), Ordering::SeqCst); // pairs 1 and 2
        let wakes = self.sleeps.load(Ordering::SeqCst) && self.sleeps.swap(false, Ordering::SeqCst); // pair 2
        (Watched(at as u16), wakes || is_shortest)
    }

    /// Notes that the slice which the thread `tid` began at `begun` has ended.
    pub fn end(&self, watched: Watched, tid: u32, begun: u64) {
        if let Some(place) = self.places.get(usize::from(watched.0)) {
            self.free_if(place, |place| place.is(tid) && place.begun.load(Ordering::Relaxed) == begun);
        }
    }

    /// As [`end`](Self::end), of the slices of the thread that began at a time with this lower half.
    pub fn end_of(&self, tid: u32, begun: u32) {
        for place in &self.places {
            let is_it = |place: &Place| place.is(tid) && place.begun.load(Ordering::Relaxed) as u32 == begun;
            self.free_if(place, is_it);
        }
    }

    /// Forgets the slices that have another tag: their session has ended.
    pub fn keep_only(&self, tag: u64) {
        for place in &self.places {
            self.free_if(place, |place| place.tag.load(Ordering::Relaxed) != tag);
        }
    }

    /// Returns the number of slices for which there was no place.
    pub fn without(&self) -> u64 {
        self.without.load(Ordering::Relaxed)
    }

    /// Frees a place of which that holds. Whoever has changed its state meanwhile has freed it, or will.
    fn free_if(&self, place: &Place, holds: impl Fn(&Place) -> bool) {
        loop {
            let state = place.state.load(Ordering::Acquire);
            if state <= CLAIMED || !holds(place) {
                return;
            }
            if place.state.compare_exchange(state, FREE, Ordering::Release, Ordering::Relaxed).is_ok() {
                if state == DUE {
                    self.due.fetch_sub(1, Ordering::Relaxed);
                }
                return;
            }
        }
    }

    /// Asks the threads of the slices that are due at `now` for samples. `ask` returns whether it has asked the
    /// thread: it may block the signal, or have ended without the end of its slices. `is_there` returns whether a
    /// thread is.
    pub(crate) fn look_with(
        &self,
        now: u64,
        mut ask: impl FnMut(u32) -> bool,
        is_there: impl Fn(u32) -> bool,
    ) -> Next {
        self.sleeps.store(true, Ordering::SeqCst); // pair 2
        let (mut is_empty, mut next) = (true, u64::MAX);
        for place in &self.places {
            let deadline = place.state.load(Ordering::SeqCst); // pairs 1 and 2
            if deadline <= TAKEN {
                if deadline > CLAIMED && !is_there(place.tid.load(Ordering::Relaxed)) {
                    let tid = place.tid.load(Ordering::Relaxed);
                    self.free_if(place, |place| {
                        place.is(tid) && place.state.load(Ordering::Relaxed) <= TAKEN
                    });
                }
                continue;
            }
            is_empty = false;
            if deadline > now {
                next = next.min(deadline - now);
                continue;
            }
            let tid = place.tid.load(Ordering::Relaxed);
            self.due.fetch_add(1, Ordering::Relaxed);
            // Release: the handler that finds it due sees the count above.
            let is_due = place.state.compare_exchange(deadline, DUE, Ordering::Release, Ordering::Relaxed);
            if is_due.is_err() {
                self.due.fetch_sub(1, Ordering::Relaxed); // it has just ended
            } else if !ask(tid) {
                self.without.fetch_add(1, Ordering::Relaxed);
                self.free_if(place, |place| place.is(tid) && place.state.load(Ordering::Relaxed) == DUE);
            }
        }
        if is_empty {
            return Next::WhenWoken;
        }
        self.sleeps.store(false, Ordering::Relaxed);
        let quarter = self.shortest.load(Ordering::Relaxed) / 4;
        Next::After(next.min(quarter).max(SHORTEST))
    }

    /// Calls `sample` for each slice of the thread that is due, with a note. A signal handler on that thread
    /// calls this.
    #[allow(dead_code)] // other systems than Linux have no handler
    pub(crate) fn take(&self, tid: u32, time: u64, mut sample: impl FnMut(&'static Ring, Note)) {
        if self.due.load(Ordering::Relaxed) == 0 {
            return;
        }
        for place in &self.places {
            if place.state.load(Ordering::Acquire) != DUE || !place.is(tid) {
                continue;
            }
            let (tag, begun) = (place.tag.load(Ordering::Relaxed), place.begun.load(Ordering::Relaxed));
            let taken = place.state.compare_exchange(DUE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                self.due.fetch_sub(1, Ordering::Relaxed);
                sample(self.ring, [time, tag | u64::from(tid), begun]);
            }
        }
    }

    /// In a forked child: the threads of the slices are the parent's, but for the calling one. Their samples
    /// are too.
    pub fn leave_in_child(&self) {
        self.places.iter().for_each(|place| place.state.store(FREE, Ordering::Relaxed));
        self.due.store(0, Ordering::Relaxed);
        self.sleeps.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn watch() -> &'static Watch {
        let ring = Box::leak(Box::new(Ring::new(4, 64).unwrap()));
        Box::leak(Box::new(Watch::new(ring)))
    }

    fn look(watch: &Watch, now: u64) -> Next {
        watch.look_with(now, |tid| tid == 77, |tid| tid == 77)
    }

    fn taken(watch: &Watch, tid: u32) -> Vec<Note> {
        let mut notes = Vec::new();
        watch.take(tid, 7, |_, note| notes.push(note));
        notes
    }

    #[test]
    fn a_slice_is_due_once_from_its_deadline_until_its_end() {
        let watch = watch();
        let tid = 77;
        let (slice, wakes) = watch.begin(tid, 1_000_000, 4_000_000, 9 << 32);
        assert!(wakes, "the watcher sleeps for longer than this limit allows");
        assert!(!watch.begin(tid, 900_000_000, 4_000_000, 0).1, "it did not sleep");
        watch.end_of(tid, 900_000_000);
        assert_eq!(look(watch, 4_000_000), Next::After(1_000_000));
        assert!(taken(watch, tid).is_empty());
        assert_eq!(look(watch, 5_000_000), Next::After(1_000_000), "a quarter of the limit");
        assert!(taken(watch, 1).is_empty(), "another thread");
        assert_eq!(taken(watch, tid), [[7, 9 << 32 | u64::from(tid), 1_000_000]]);
        assert!(taken(watch, tid).is_empty());
        watch.end(slice, tid, 7);
        assert_eq!(look(watch, 5_500_000), Next::WhenWoken, "taken, and still there");
        watch.end(slice, tid, 1_000_000);
        assert_eq!(look(watch, 6_000_000), Next::WhenWoken);
        assert!(watch.begin(tid, 0, 1, 0).1, "the watcher sleeps");
    }

    #[test]
    fn a_slice_that_ends_when_it_is_due_has_no_sample() {
        let watch = watch();
        let (slice, _) = watch.begin(77, 10, 10, 0);
        look(watch, 20);
        watch.end(slice, 77, 10);
        assert!(taken(watch, 77).is_empty());
        assert_eq!(watch.due.load(Ordering::Relaxed), 0);
        let (_, _) = watch.begin(77, 30, 10, 0);
        look(watch, 40);
        watch.end_of(78, 30);
        watch.end_of(77, 30);
        assert!(taken(watch, 77).is_empty());
        assert_eq!(watch.due.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_place_of_a_thread_that_has_ended_is_free() {
        let watch = watch();
        let begin = || watch.begin(78, 0, 1, 0).0;
        assert!((0..LOOKS).all(|_| begin() != Watched::NONE));
        assert_eq!(begin(), Watched::NONE);
        look(watch, 5);
        assert_ne!(begin(), Watched::NONE);
    }

    #[test]
    fn more_slices_than_there_are_places_for_are_not_watched() {
        let watch = watch();
        let begun: Vec<_> = (0..=LOOKS).map(|n| watch.begin(5, n as u64, 1, 0).0).collect();
        assert!(begun[..LOOKS].iter().all(|slice| *slice != Watched::NONE));
        assert_eq!(begun[LOOKS], Watched::NONE);
        watch.end(Watched::NONE, 5, 0);
        assert_eq!(watch.without(), 1);
        watch.keep_only(1);
        assert_ne!(watch.begin(5, 0, 1, 1).0, Watched::NONE);
    }
}
