//! Tracks of async intervals, used again when an interval has ended.
//!
//! Each interval needs a track on which nothing else happens at the time. A track for each would do, but a program that
//! answers a million requests would have a million tracks; with lanes it has as many as there are requests at once,
//! and what lies below them has its rows in the UI rather than a row for each request.
//!
//! ```text
//! lane 0   [ request 1 ]   [ request 3 .....
//! lane 1        [ request 2 ......... ]
//! ```

use std::time::Instant;

use crate::on::base::lock::{Fixed, Grow, Map, Mutex, MutexGuard};
use crate::on::base::sets::Spread;
use crate::on::base::this_thread;
use crate::on::callsite::Callsite;
use crate::on::event::interval::Lane;
use crate::on::event::track::new_uuid;

/// Lanes that are kept for later. Where a program makes ever new parent tracks, all are forgotten at this many and
/// begun anew.
const MAX_FREE: usize = 1 << 16;

/// Whose lanes: intervals of one place in the code, under one track.
type Key = (u64, usize);

static FREE: Mutex<Free> =
    Mutex::new(Free { keys: Map::with_hasher(Fixed::new()), places: Vec::new(), empty: None });

/// The lanes, held for a fork.
pub(crate) type Held = MutexGuard<'static, Free>;

pub(crate) fn hold(until: Instant) -> Option<Held> {
    FREE.try_lock_until(until)
}

/// Free lanes. The lanes of all keys are in one list, so that the lists of single keys never grow:
/// `lock/growing.rs`.
#[derive(Default)]
pub(crate) struct Free {
    keys: Map<Key, OfKey, Spread>,
    places: Vec<Place>,
    /// The first place without a lane.
    empty: Option<usize>,
}

/// The lanes of a key. Most keys never have more than one at a time, which has its place here.
#[derive(Default)]
struct OfKey {
    last: Option<Lane>,
    /// The place of the lane that was given back before.
    before: Option<usize>,
}

/// A place of the list.
#[derive(Clone, Copy)]
struct Place {
    lane: Lane,
    /// The place of the lane of the same key that was given back before; the next empty place.
    next: Option<usize>,
}

impl Grow for Free {
    fn with_room(entries: usize) -> Self {
        Self { keys: Grow::with_room(entries), places: Grow::with_room(entries), empty: None }
    }

    fn entries(&self) -> usize {
        self.keys.entries().max(self.places.entries())
    }

    fn has_room(&self, more: usize) -> bool {
        self.keys.has_room(more) && self.places.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.keys.take_over(&mut smaller.keys);
        self.places.take_over(&mut smaller.places);
        self.empty = smaller.empty;
    }
}

impl Free {
    /// Takes a lane of the key that was used before `since` only; of several the one that was given back
    /// last.
    #[inline]
    fn take(&mut self, key: Key, since: u64) -> Option<Lane> {
        let of_key = self.keys.get_mut(&key)?;
        if of_key.last.is_some_and(|lane| lane.used_until < since) {
            of_key.last.take()
        } else {
            self.take_listed(key, since)
        }
    }

    #[inline(never)]
    fn take_listed(&mut self, key: Key, since: u64) -> Option<Lane> {
        let of_key = self.keys.get_mut(&key)?;
        let mut after = None;
        let mut at = of_key.before?;
        while self.places[at].lane.used_until >= since {
            after = Some(at);
            at = self.places[at].next?;
        }
        let Place { lane, next } = self.places[at];
        match after {
            Some(after) => self.places[after].next = next,
            None => of_key.before = next,
        }
        self.places[at].next = self.empty.replace(at);
        Some(lane)
    }

    /// Whether the lane has found a place without room for one more.
    #[inline]
    fn has_taken_back(&mut self, key: Key, lane: Lane) -> bool {
        let of_key = self.keys.get_mut(&key).filter(|of_key| of_key.last.is_none());
        of_key.map(|of_key| of_key.last = Some(lane)).is_some()
    }

    /// The caller has made sure of room for one more entry.
    fn give_back(&mut self, key: Key, lane: Lane) {
        if self.keys.len() >= MAX_FREE || self.places.len() >= MAX_FREE && self.empty.is_none() {
            self.keys.clear();
            self.places.clear();
            self.empty = None;
        }
        let of_key = self.keys.entry(key).or_default();
        let Some(lane) = of_key.last.replace(lane) else { return };
        let place = Place { lane, next: of_key.before };
        of_key.before = Some(match self.empty {
            Some(at) => {
                self.empty = self.places[at].next;
                self.places[at] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        });
    }
}

fn key(parent: u64, callsite: &'static Callsite) -> Key {
    (parent, std::ptr::from_ref(callsite).addr())
}

/// A lane below `parent` for an interval of `callsite` that begins now.
pub(crate) fn take(parent: u64, callsite: &'static Callsite) -> Lane {
    take_before(parent, callsite, u64::MAX)
}

/// The same for one that began at `since`.
pub(crate) fn take_before(parent: u64, callsite: &'static Callsite, since: u64) -> Lane {
    let fresh = || Lane { uuid: new_uuid(), used_until: 0 };
    let Some(_busy) = this_thread::enter() else { return fresh() }; // nothing is recorded there
    let mut free = FREE.lock();
    free.take(key(parent, callsite), since).unwrap_or_else(fresh)
}

/// Gives a lane back on which nothing is open any more.
pub(crate) fn give_back(parent: u64, callsite: &'static Callsite, lane: Lane) {
    let Some(_busy) = this_thread::enter() else { return };
    let key = key(parent, callsite);
    if !FREE.lock().has_taken_back(key, lane) {
        give_back_with_room(key, lane);
    }
}

#[inline(never)]
fn give_back_with_room(key: Key, lane: Lane) {
    FREE.lock_with_room(|free| (free, 1)).give_back(key, lane);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on::callsite::CounterOptions;
    use crate::on::callsite::Kind;
    use crate::on::callsite::Site;

    static SITE: Site = Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE };
    static ONE: Callsite = Callsite::new(Kind::Scope, "t", "one", &[], &SITE);
    static OTHER: Callsite = Callsite::new(Kind::Scope, "t", "other", &[], &SITE);

    #[test]
    fn a_lane_is_used_again_by_intervals_of_its_place_and_parent() {
        let (a, b) = (take(7, &ONE), take(7, &ONE));
        assert_ne!(a.uuid, b.uuid);
        let ended = Lane { used_until: 5, ..a };
        give_back(7, &ONE, ended);
        assert_ne!(take(7, &OTHER).uuid, a.uuid);
        assert_ne!(take(8, &ONE).uuid, a.uuid);
        assert_eq!(take(7, &ONE), ended);
        assert_ne!(take(7, &ONE).uuid, a.uuid);
    }
    #[test]
    fn lanes_are_found_wherever_they_stand_in_the_list() {
        let mut free = Free::default();
        let lane = |n: u64| Lane { uuid: n, used_until: n };
        for n in 0..100 {
            free.give_back((n % 7, 0), lane(n));
        }
        let places = free.places.len();
        assert_eq!(free.take((3, 0), 50), Some(lane(45))); // in the middle of the key's lanes
        assert_eq!(free.take((3, 0), 4), Some(lane(3))); // the first of them
        assert_eq!(free.take((3, 0), 3), None);
        assert_eq!(free.take((3, 0), u64::MAX), Some(lane(94))); // the last of them
        assert_eq!(free.take((3, 0), u64::MAX), Some(lane(87))); // the one before
        assert!(free.has_taken_back((3, 0), lane(94)) && !free.has_taken_back((3, 0), lane(87)));
        (200..203).for_each(|n| free.give_back((3, 0), lane(n)));
        assert_eq!(free.places.len(), places, "empty places are used again");
        let rest: Vec<_> = std::iter::from_fn(|| free.take((3, 0), u64::MAX)).map(|l| l.uuid).collect();
        let taken = [3, 45, 87];
        let expected = (0..100).filter(|n| n % 7 == 3 && !taken.contains(n)).chain(200..203).rev();
        assert_eq!(rest, expected.collect::<Vec<_>>(), "the last first");
        assert_eq!(free.take((4, 0), u64::MAX), Some(lane(95)));
    }

    #[test]
    fn lanes_are_forgotten_before_there_are_too_many() {
        let mut free = Free::default();
        for n in 0..3 * MAX_FREE as u64 {
            free.give_back((n, 0), Lane { uuid: n, used_until: 0 });
            free.give_back((0, 1), Lane { uuid: n, used_until: 0 });
            assert!(free.keys.len() <= MAX_FREE && free.places.len() <= MAX_FREE);
        }
    }
}
