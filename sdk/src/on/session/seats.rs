//! The threads of a session that may hold a chunk, so that idle ones can be asked for it.

#![allow(unsafe_code)] // looks into other threads' thread-local memory

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::{Lease, Recall, fence_all_threads};

use crate::on::lock::Mutex;

/// A thread is idle that has recorded nothing for so long.
pub(super) const IDLE: Duration = Duration::from_millis(1);

/// Threads that are looked at while the lock is held: one that begins or ends meanwhile waits for some 50 us.
const LOOK: usize = 256;

/// All threads that record, each at a place of its own.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    leases: Vec<Option<Seated>>,
    free: Vec<usize>,
    /// Where the next look begins: nobody is asked again before all others were.
    hand: usize,
    /// There is no fence to put into other threads: nobody is asked, since that alone sends a thread the slow way once.
    has_no_fence: bool,
}

#[derive(Debug)]
struct Seated(NonNull<Lease>);

// SAFETY: a `Lease` is all atomics, and `Seat` keeps it where it is.
unsafe impl Send for Seated {}

/// A thread's place, from its first event in a session to the last. Dropped by the thread itself.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    place: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut places = self.seats.0.lock();
        places.leases[self.place] = None;
        places.free.push(self.place);
    }
}

impl Seats {
    /// A place for this thread's lease.
    pub(crate) fn seat(self: &Arc<Self>, lease: &'static Lease) -> Seat {
        let seated = Some(Seated(NonNull::from(lease)));
        let mut places = self.0.lock();
        let place = places.free.pop().unwrap_or(places.leases.len());
        if place == places.leases.len() {
            places.leases.push(seated);
        } else {
            places.leases[place] = seated;
        }
        Seat { seats: Arc::clone(self), place }
    }

    /// Takes up to `wanted` chunks from idle threads. How many.
    pub(super) fn recall(&self, recall: &Recall<'_>, wanted: usize) -> usize {
        let (mut taken, mut looked) = (0, 0);
        // All of it now: an allocator that traces must not come for a seat while the lock is held.
        let mut asked = Vec::with_capacity(wanted.min(LOOK));
        while taken < wanted {
            let mut places = self.0.lock();
            if looked >= places.leases.len() || places.has_no_fence {
                break;
            }
            if places.hand >= places.leases.len() {
                places.hand = 0;
            }
            let from = places.hand;
            let here = &places.leases[from..places.leases.len().min(from + LOOK)];
            asked.clear();
            let mut seen = 0;
            for seated in here {
                if taken + asked.len() >= wanted {
                    break;
                }
                seen += 1;
                if let Some(Seated(lease)) = seated {
                    // SAFETY: the thread that sits here is there, with its thread-local memory, until it has left, for which it
                    // needs the lock that is held.
                    let lease = unsafe { lease.as_ref() };
                    if lease.ask(recall) {
                        asked.push(lease);
                    }
                }
            }
            if !asked.is_empty() {
                if !fence_all_threads() {
                    places.has_no_fence = true;
                    break; // those that were asked settle at their next event
                }
                taken += asked.iter().filter(|lease| lease.take(recall)).count();
            }
            looked += seen;
            places.hand = from + seen;
        }
        taken
    }
}
